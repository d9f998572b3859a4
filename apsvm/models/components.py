"""``ComponentRanker``: several weight vectors with a constant each, of which a row has the best score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.data.rows import Rows
from apsvm.models.base import WeightedRanker, checked_array
from apsvm.models.container import ModelError, check_field
from apsvm.models.header import Header
from apsvm.models.map import columns_in, map_in
from apsvm.models.parts import check_shape, contributions_of, header_in
from apsvm.types import JsonDict, JsonObject, Matrix

if TYPE_CHECKING:
    from apsvm.data.features.additive import Contributions
    from apsvm.data.features.base import FeatureMap
    from apsvm.types import AnyArray


@dataclass(frozen=True, slots=True)
class ComponentRanker(WeightedRanker):
    """score(x) = max over h of coef_h·φ(x) + intercepts_h, or of coef_h·φ(x)/‖φ(x)‖ + intercepts_h if rows are divided
    by their length; the higher, the better.

    coef : (H, columns) float64, H at least 2; without a map, column j belongs to file index j, or j + 1 if not
        ``zero_based``
    intercepts : (H,) float64
    header : how, of what and how well it was made
    feature_map : φ, of (width,) features; None: the features as they are
    """

    kind: ClassVar[str] = "components"
    what: ClassVar[str] = "a ranker of several components (--components)"
    kind_of_set: ClassVar[str] = "components-one-vs-rest"
    what_of_set: ClassVar[str] = "a set of rankers of several components, one a class (--one-vs-rest --components)"

    coef: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    header: Header
    feature_map: FeatureMap | None = None

    @property
    def components(self) -> int:
        return int(self.intercepts.size)

    @property
    def constants(self) -> NDArray[np.float64]:
        return self.intercepts

    def score_components(self, X: Matrix, *, threads: int = 1) -> NDArray[np.float64]:
        """What each component gives to the rows of X, (n, width) CSR or dense: (n, H) float64, in one pass.

        Raises
        ------
        ValueError : X is not (n, width)
        """
        return self.rows(X, threads).scores_of_all(self.coef) + self.intercepts

    def raised(self, by: float) -> ComponentRanker:
        return replace(self, intercepts=self.intercepts + by)

    def contributions(self, X: Matrix, component: int = 0) -> Contributions:
        check_shape(X, self.width)
        return contributions_of(X, self.feature_map, self.coef[component], unit_rows=self.unit_rows)

    def score(self, X: Matrix, *, threads: int = 1) -> NDArray[np.float64]:
        best: NDArray[np.float64] = self.score_components(X, threads=threads).max(axis=1)
        return best

    def leading(self, X: Matrix, *, threads: int = 1) -> NDArray[np.int64]:
        best: NDArray[np.int64] = self.score_components(X, threads=threads).argmax(axis=1)
        return best

    def own_parts(self) -> tuple[JsonDict, dict[str, NDArray[np.float64]]]:
        return {"components": self.components}, {"coef": self.coef, "intercepts": self.intercepts}

    @classmethod
    def arrays_in(cls, content: JsonObject) -> Sequence[str]:
        return ["coef", "intercepts"]

    @classmethod
    def from_parts(cls, content: JsonObject, arrays: Mapping[str, AnyArray]) -> ComponentRanker:
        header = header_in(content)
        feature_map = map_in(content, header, arrays)
        H = _components_in(content)
        coef = checked_array(arrays, "coef", (H, columns_in(content, feature_map)))
        return cls(coef, checked_array(arrays, "intercepts", (H,)), header, feature_map)

    @classmethod
    def of_set(
        cls,
        coef: NDArray[np.float64],
        intercepts: NDArray[np.float64],
        header: Header,
        feature_map: FeatureMap | None,
    ) -> ComponentRanker:
        return cls(coef, intercepts.copy(), header, feature_map)

    @classmethod
    def parts_of_set(
        cls, coef: NDArray[np.float64], intercepts: NDArray[np.float64]
    ) -> tuple[JsonDict, dict[str, NDArray[np.float64]], list[JsonDict]]:
        return {"components": int(coef.shape[1])}, {"coef": coef, "intercepts": intercepts}, [{} for _ in coef]

    @classmethod
    def read_set(
        cls, content: JsonObject, classes: Sequence[JsonObject], arrays: Mapping[str, AnyArray], columns: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        k, H = len(classes), _components_in(content)
        return checked_array(arrays, "coef", (k, H, columns)), checked_array(arrays, "intercepts", (k, H))

    @staticmethod
    def scores_of_set(rows: Rows, coef: NDArray[np.float64], intercepts: NDArray[np.float64]) -> NDArray[np.float64]:
        k, H, columns = coef.shape
        scores = rows.scores_of_all(coef.reshape(k * H, columns)).reshape(-1, k, H)
        best: NDArray[np.float64] = (scores + intercepts).max(axis=2)
        return best


def _components_in(content: JsonObject) -> int:
    """Raises ModelError."""
    check_field(content, "components", int)
    components: int = content["components"]
    if components < 2:
        raise ModelError(f"its header's 'components' is {components}, expected at least 2")
    return components
