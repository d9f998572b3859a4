"""Options on features, as given before training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from apsvm.data.features import LINEAR

#: Value of ``FeatureOptions.bias``, ``scale`` and ``features`` that leaves the choice to a rule.
AUTO: Final = "auto"


@dataclass(frozen=True, slots=True)
class FeatureOptions:
    """Preparation of the features before w weighs them.

    Attributes
    ----------
    scale : name of a scaling of the mapped columns (``apsvm.data.features.scaling``), or AUTO: dense rows and tables to
        a deviation of 1, sparse rows unchanged (``fitting.Fit.prepared``)
    bias : value of a constant feature, None without one, or AUTO: a value by the features' scale (``constant_feature``)
        if the trainer wants one
    features : name of a feature map (``apsvm.data.features``), or AUTO: logarithms of long-tailed columns of tables,
        otherwise unchanged (``fitting.map_by_rule``); rules, or both averaged, if they rank held-out rows better, or
        about as well (``selection.maps``)
    pool : pooling of each bag's rows, done first; some of ``apsvm.models.header.POOLS``, or None
    """

    scale: str = "none"
    bias: float | Literal["auto"] | None = None
    features: str = LINEAR
    pool: tuple[str, ...] | None = None
