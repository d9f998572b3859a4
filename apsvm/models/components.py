"""The ranker with several components: a row has the score of its best component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm._support.errors import require
from apsvm._support.types import JsonDict, Matrix
from apsvm.models.base import Ranker
from apsvm.models.content import Content
from apsvm.models.header import Header
from apsvm.models.linear import LinearRanker

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray
    from apsvm.data.features.base import FeatureMap


@dataclass(frozen=True, slots=True, repr=False)
class ComponentRanker(Ranker):
    """score(x) = max over h of coef_h·φ(x) + intercepts_h, or of coef_h·φ(x)/‖φ(x)‖ + intercepts_h if ``unit_rows``;
    the higher, the better.

    Attributes
    ----------
    coef : ndarray
        (H, columns) float64, H at least 2; columns as for ``LinearRanker``.
    intercepts : ndarray
        (H,) float64.
    header : Header
        Options, data and results of the training.
    feature_map : FeatureMap, optional
        φ, a map of (width,) features; None: the identity.
    """

    kind: ClassVar[str] = "components"
    description: ClassVar[str] = "a ranker of several components (--components)"

    coef: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    header: Header
    feature_map: FeatureMap | None = None

    @property
    def n_columns(self) -> int:
        return int(self.coef.shape[1])

    def _of_each(self, X: Matrix, threads: int) -> NDArray[np.float64]:
        """Scores of all components, (n, H) float64, in one pass."""
        return self.rows(X, threads=threads).scores_of_all(self.coef) + self.intercepts

    def _scores(self, X: Matrix, threads: int) -> NDArray[np.float64]:
        best: NDArray[np.float64] = self._of_each(X, threads).max(axis=1)
        return best

    def leading(self, X: Matrix) -> NDArray[np.int64]:
        best: NDArray[np.int64] = self._of_each(X, 1).argmax(axis=1)
        return best

    def linear_parts(self) -> list[LinearRanker]:
        parts = zip(self.coef, self.intercepts.tolist(), strict=True)
        return [LinearRanker(coef, intercept, self.header, self.feature_map) for coef, intercept in parts]

    def summary(self) -> JsonDict:
        return {"components": [part.summary() for part in self.linear_parts()]}

    def _fields(self) -> JsonDict:
        return {"components": self.intercepts.size}

    def _arrays(self) -> dict[str, AnyArray]:
        return {"coef": self.coef, "intercepts": self.intercepts}

    @classmethod
    def of_content(cls, content: Content) -> ComponentRanker:
        H = content.field("components", int)
        require(H >= 2, f"at least 2 in 'components', found {H}")
        coef, intercepts = content.array("coef", H, content.columns), content.array("intercepts", H)
        return cls(coef, intercepts, content.header, content.feature_map)
