"""``RankerSet``: rankers of one kind, one a class (``--one-vs-rest``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from apsvm.models.base import RowModel, WeightedRanker
from apsvm.models.components import ComponentRanker
from apsvm.models.container import ModelError, check_field
from apsvm.models.header import Header
from apsvm.models.linear import LinearRanker
from apsvm.models.map import columns_in, map_in
from apsvm.models.parts import check_labels, headers_in, shared_by_classes
from apsvm.types import JsonDict, JsonObject, Matrix

if TYPE_CHECKING:
    from apsvm.data.features.base import FeatureMap
    from apsvm.types import AnyArray

R = TypeVar("R", bound=WeightedRanker)
#: By what a file's header calls the set.
RANKERS_OF_SETS: dict[str, type[WeightedRanker]] = {kind.kind_of_set: kind for kind in (LinearRanker, ComponentRanker)}


@dataclass(frozen=True, slots=True)
class RankerSet(RowModel, Generic[R]):
    """A ranker of kind R a class, one against the rest.

    each : R
    coef : (k, columns) float64, or (k, H, columns) of H components; intercepts : (k,) float64, or (k, H); class j is
        the label ``classes[j]``, increasing
    header : what holds for the whole
    headers : (k,) of each class's ranker, as if trained alone
    feature_map : φ, of (width,) features; None: the features as they are
    """

    has_classes: ClassVar[bool] = True

    each: type[R]
    coef: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    header: Header
    headers: Sequence[Header] = field()
    feature_map: FeatureMap | None = None

    @classmethod
    def of(cls, rankers: Sequence[R], header: Header) -> RankerSet[R]:
        """The set of ``rankers`` of one feature map and number of components, in the order of their labels. What
        ``header`` has in its mappings all rankers' headers have."""
        constants = np.stack([ranker.constants for ranker in rankers])
        coef = np.stack([ranker.coef for ranker in rankers])
        return cls(
            each=type(rankers[0]),
            coef=coef,
            intercepts=constants[:, 0] if coef.ndim == 2 else constants,
            header=header,
            headers=[ranker.header for ranker in rankers],
            feature_map=rankers[0].feature_map,
        )

    @property
    def kind(self) -> str:  # type: ignore[override]  # of the instance here
        return self.each.kind_of_set

    @property
    def what(self) -> str:  # type: ignore[override]
        return self.each.what_of_set

    @property
    def n_columns(self) -> int:
        return int(self.coef.shape[-1])

    @property
    def components(self) -> int:
        """H, 1 of linear rankers."""
        return 1 if self.coef.ndim == 2 else int(self.coef.shape[1])

    @property
    def classes(self) -> NDArray[np.float64]:
        """(k,) float64, increasing: the label of each ranker."""
        return np.array([header.labels.positive for header in self.headers], dtype=np.float64)

    def with_headers(self, change: Callable[[Header], Header]) -> Self:
        return replace(self, headers=[change(header) for header in self.headers])

    def ranker(self, label: float) -> R:
        """The ranker of a class, as if trained alone.

        Raises
        ------
        KeyError : no class has this label
        """
        at = np.flatnonzero(self.classes == label)
        if at.size == 0:
            raise KeyError(label)
        j = int(at[0])
        return self.each.of_set(self.coef[j].copy(), self.intercepts[j], self.headers[j], self.feature_map)

    def score(self, X: Matrix, *, threads: int = 1) -> NDArray[np.float64]:
        """(n, k) float64; column j has the bits of ``ranker(classes[j]).score(X)``."""
        return self.each.scores_of_set(self.rows(X, threads), self.coef, self.intercepts)

    def own_parts(self) -> tuple[JsonDict, dict[str, NDArray[np.float64]]]:
        """Of a class what differs from the whole."""
        more, arrays, of_classes = self.each.parts_of_set(self.coef, self.intercepts)
        shared = shared_by_classes(self.header)
        headers = (header.difference(shared) for header in self.headers)
        classes = [{**header, **own} for header, own in zip(headers, of_classes, strict=True)]
        return {**more, "classes": classes}, arrays

    @classmethod
    def arrays_in(cls, content: JsonObject) -> Sequence[str]:
        return RANKERS_OF_SETS[content["kind"]].arrays_in(content)

    @classmethod
    def from_parts(cls, content: JsonObject, arrays: Mapping[str, AnyArray]) -> RankerSet[Any]:
        check_field(content, "classes", list)
        classes = content["classes"]
        if not classes or not all(isinstance(difference, dict) for difference in classes):
            raise ModelError("its header's 'classes' is no list of JSON objects, one a class")
        whole = {key: value for key, value in content.items() if key != "classes"}
        header, headers = headers_in(whole, classes)
        feature_map = map_in(content, header, arrays)
        each = RANKERS_OF_SETS[content["kind"]]
        coef, intercepts = each.read_set(content, classes, arrays, columns_in(content, feature_map))
        check_labels(headers)
        return RankerSet(each, coef, intercepts, header, headers, feature_map)
