"""The linear ranker: a weight a column and a constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm._support.types import JsonDict, Matrix
from apsvm.models.base import Ranker
from apsvm.models.content import Content
from apsvm.models.header import Header

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray
    from apsvm.data.features.base import FeatureMap


@dataclass(frozen=True, slots=True, repr=False)
class LinearRanker(Ranker):
    """score(x) = coef·φ(x) + intercept, or coef·φ(x)/‖φ(x)‖ + intercept if ``unit_rows``; the higher, the better.

    Attributes
    ----------
    coef : ndarray
        (columns,) float64. Without a map, column j is the feature with index j in the file, or j + 1 if not
        ``zero_based``.
    intercept : float
        The constant; it shifts all scores, so no ranking depends on it.
    header : Header
        Options, data and results of the training.
    feature_map : FeatureMap, optional
        φ, a map of (width,) features; None: the identity.
    """

    kind: ClassVar[str] = "linear"
    description: ClassVar[str] = "a linear ranker"

    coef: NDArray[np.float64]
    intercept: float
    header: Header
    feature_map: FeatureMap | None = None

    @property
    def n_columns(self) -> int:
        return self.coef.size

    @property
    def intercepts(self) -> NDArray[np.float64]:
        """(1,) float64, the constant."""
        return np.array([self.intercept])

    def _scores(self, X: Matrix, threads: int) -> NDArray[np.float64]:
        return self.rows(X, threads=threads).scores(self.coef) + self.intercept

    def linear_parts(self) -> list[LinearRanker]:
        return [self]

    def _fields(self) -> JsonDict:
        return {"intercept": self.intercept}

    def _arrays(self) -> dict[str, AnyArray]:
        return {"coef": self.coef}

    @classmethod
    def of_content(cls, content: Content) -> LinearRanker:
        coef, intercept = content.array("coef", content.columns), content.field("intercept", float)
        return cls(coef, intercept, content.header, content.feature_map)
