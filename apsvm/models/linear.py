"""``LinearRanker``: a weight a column and a constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.data.features.additive import Contributions
from apsvm.data.rows import Rows
from apsvm.models.base import WeightedRanker, checked_array
from apsvm.models.container import ModelError, check_field
from apsvm.models.header import Header
from apsvm.models.json import is_finite_number
from apsvm.models.map import columns_in, map_in
from apsvm.models.parts import check_shape, contributions_of, header_in
from apsvm.types import JsonDict, JsonObject, Matrix

if TYPE_CHECKING:
    from apsvm.data.features.base import FeatureMap
    from apsvm.types import AnyArray


@dataclass(frozen=True, slots=True)
class LinearRanker(WeightedRanker):
    """score(x) = coef·φ(x) + intercept, or coef·φ(x)/‖φ(x)‖ + intercept if ``unit_rows``; the higher, the better.

    coef : (columns,) float64; without a map, column j belongs to file index j, or j + 1 if not ``zero_based``
    intercept : float, the constant; it moves every score alike, so no ranking depends on it
    header : how, of what and how well it was made
    feature_map : φ, of (width,) features; None: the features as they are
    """

    kind: ClassVar[str] = "linear"
    what: ClassVar[str] = "a linear ranker"
    kind_of_set: ClassVar[str] = "one-vs-rest"
    what_of_set: ClassVar[str] = "a set of rankers, one a class (--one-vs-rest)"

    coef: NDArray[np.float64]
    intercept: float
    header: Header
    feature_map: FeatureMap | None = None

    @property
    def components(self) -> int:
        return 1

    @property
    def constants(self) -> NDArray[np.float64]:
        return np.array([self.intercept])

    def raised(self, by: float) -> LinearRanker:
        return replace(self, intercept=self.intercept + by)

    def contributions(self, X: Matrix, component: int = 0) -> Contributions:
        check_shape(X, self.width)
        return contributions_of(X, self.feature_map, self.coef, unit_rows=self.unit_rows)

    def leading(self, X: Matrix, *, threads: int = 1) -> NDArray[np.int64]:
        check_shape(X, self.width)
        return np.zeros(np.shape(X)[0], dtype=np.int64)

    def score(self, X: Matrix, *, threads: int = 1) -> NDArray[np.float64]:
        return self.rows(X, threads).scores(self.coef) + self.intercept

    def own_parts(self) -> tuple[JsonDict, dict[str, NDArray[np.float64]]]:
        return {"intercept": self.intercept}, {"coef": self.coef}

    @classmethod
    def arrays_in(cls, content: JsonObject) -> Sequence[str]:
        return ["coef"]

    @classmethod
    def from_parts(cls, content: JsonObject, arrays: Mapping[str, AnyArray]) -> LinearRanker:
        header = header_in(content)
        feature_map = map_in(content, header, arrays)
        coef = checked_array(arrays, "coef", (columns_in(content, feature_map),))
        return cls(coef, _intercept_in(content), header, feature_map)

    @classmethod
    def of_set(
        cls,
        coef: NDArray[np.float64],
        intercepts: NDArray[np.float64],
        header: Header,
        feature_map: FeatureMap | None,
    ) -> LinearRanker:
        return cls(coef, float(intercepts), header, feature_map)

    @classmethod
    def parts_of_set(
        cls, coef: NDArray[np.float64], intercepts: NDArray[np.float64]
    ) -> tuple[JsonDict, dict[str, NDArray[np.float64]], list[JsonDict]]:
        return {}, {"coef": coef}, [{"intercept": intercept} for intercept in intercepts.tolist()]

    @classmethod
    def read_set(
        cls, content: JsonObject, classes: Sequence[JsonObject], arrays: Mapping[str, AnyArray], columns: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        coef = checked_array(arrays, "coef", (len(classes), columns))
        return coef, np.array([_intercept_in(of_class) for of_class in classes])

    @staticmethod
    def scores_of_set(rows: Rows, coef: NDArray[np.float64], intercepts: NDArray[np.float64]) -> NDArray[np.float64]:
        return rows.scores_of_all(coef) + intercepts


def _intercept_in(content: JsonObject) -> float:
    """Raises ModelError."""
    check_field(content, "intercept", (int, float))
    if not is_finite_number(content["intercept"]):
        raise ModelError("its constant is not finite")
    return float(content["intercept"])
