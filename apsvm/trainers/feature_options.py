"""The options on features, before anything is learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from apsvm.data.features import LINEAR

#: Of ``FeatureOptions.bias``, ``scale`` and ``features``.
AUTO: Final = "auto"


@dataclass(frozen=True, slots=True)
class FeatureOptions:
    """Preparation of the features before w weighs them.

    Attributes
    ----------
    scale : a scaling's name (``apsvm.data.features.scaling``), of the mapped columns, or AUTO: dense rows and tables to
        a deviation of 1, sparse rows as they are (``fitting.Fit.prepared``)
    bias : the value of a constant feature, None for none, or AUTO: one that suits the features (``constant_feature``)
        where the trainer wants one
    features : a feature map's name (``apsvm.data.features``), or AUTO: of a table with long-tailed columns these and
        their logarithms, else the features as they are (``fitting.map_by_rule``)
    pool : the pooling of each bag's rows, which comes first, some of ``apsvm.models.header.POOLS``; None: nothing
    """

    scale: str = "none"
    bias: float | Literal["auto"] | None = None
    features: str = LINEAR
    pool: tuple[str, ...] | None = None
