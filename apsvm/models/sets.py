"""``RankerSet``: rankers of one kind, one a class (``--one-vs-rest``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from apsvm._support.container import ModelError, check_field
from apsvm._support.types import JsonDict, JsonObject, Matrix
from apsvm.models.base import Model, Parts, WeightedRanker, bad_header, header_in, summary_of, without_shape
from apsvm.models.components import ComponentRanker, components_in
from apsvm.models.header import Header, HeaderError
from apsvm.models.linear import LinearRanker, intercept_in

if TYPE_CHECKING:
    from typing import Self

    from apsvm._support.types import AnyArray
    from apsvm.data.features.base import FeatureMap

R = TypeVar("R", bound=WeightedRanker)
#: By what a file's header calls the set.
RANKERS_OF_SETS: dict[str, type[WeightedRanker]] = {kind.kind_of_set: kind for kind in (LinearRanker, ComponentRanker)}


@dataclass(frozen=True, slots=True, repr=False)
class RankerSet(Model, Generic[R]):
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
    headers: Sequence[Header] = field()  # without it, the property of Model would be taken for a default
    feature_map: FeatureMap | None = None

    @classmethod
    def of(cls, rankers: Sequence[R], header: Header) -> RankerSet[R]:
        """The set of ``rankers`` of one feature map and number of components, in the order of their labels. What
        ``header`` has in its mappings all rankers' headers have."""
        coef = np.stack([ranker.coef for ranker in rankers])
        intercepts = np.stack([ranker.intercepts for ranker in rankers]).reshape(coef.shape[:-1])
        headers = [ranker.header for ranker in rankers]
        return cls(type(rankers[0]), coef, intercepts, header, headers, rankers[0].feature_map)

    @property
    def kind(self) -> str:  # type: ignore[override]  # of the instance here
        return self.each.kind_of_set

    @property
    def what(self) -> str:  # type: ignore[override]
        return self.each.what_of_set

    @property
    def components(self) -> int:
        """H."""
        return int(self.intercepts[0].size)

    @property
    def n_columns(self) -> int:
        return int(self.coef.shape[-1])

    @property
    def classes(self) -> NDArray[np.float64]:
        """(k,) float64, increasing: the label of each ranker."""
        return np.array([header.labels.positive for header in self.headers], dtype=np.float64)

    def rankers(self) -> list[R]:
        return [self._ranker(j) for j in range(len(self.headers))]

    def ranker(self, label: float) -> R:
        at = np.flatnonzero(self.classes == label)
        if at.size == 0:
            raise KeyError(label)
        return self._ranker(int(at[0]))

    def _ranker(self, j: int) -> R:
        constants = self.intercepts[j].copy() if self.intercepts.ndim > 1 else float(self.intercepts[j])
        make: Any = self.each
        ranker: R = make(self.coef[j].copy(), constants, self.headers[j], self.feature_map)
        return ranker

    def with_headers(self, headers: Sequence[Header]) -> Self:
        return replace(self, headers=headers)

    def _scores(self, X: Matrix, threads: int) -> NDArray[np.float64]:
        """Column j has the bits of ``ranker(classes[j]).score(X)``."""
        rows, intercepts = self.rows(X, threads=threads), self.intercepts
        scores = rows.scores_of_all(self.coef.reshape(intercepts.size, -1)).reshape(-1, *intercepts.shape) + intercepts
        best: NDArray[np.float64] = scores if scores.ndim == 2 else scores.max(axis=2)
        return best

    def summary(self) -> JsonDict:
        constants = "intercept" if self.intercepts.ndim == 1 else "intercepts"
        classes = [
            {**header.to_json(), constants: intercept, "weights": summary_of(coef)}
            for header, intercept, coef in zip(self.headers, self.intercepts.tolist(), self.coef, strict=True)
        ]
        return {"classes": classes}

    def _fields(self) -> JsonDict:
        """Fields of the classes that differ from the whole. A single constant of a class is stored here, several in an
        array."""
        shared = _shared_by_classes(self.header)
        classes: list[JsonDict] = [header.difference(shared) for header in self.headers]
        if self.intercepts.ndim > 1:
            return {"classes": classes, "components": self.components}
        constants = self.intercepts.tolist()
        return {"classes": [{**one, "intercept": value} for one, value in zip(classes, constants, strict=True)]}

    def _arrays(self) -> dict[str, AnyArray]:
        return {"coef": self.coef, **({"intercepts": self.intercepts} if self.intercepts.ndim > 1 else {})}

    @classmethod
    def _header_in(cls, content: JsonObject) -> Header:
        check_field(content, "classes", list)
        classes = content["classes"]
        if not classes or not all(isinstance(difference, dict) for difference in classes):
            raise ModelError("its header's 'classes' is no list of JSON objects, one a class")
        return header_in(content, ("classes", *RANKERS_OF_SETS[content["kind"]].fields))

    @classmethod
    def _read(cls, content: JsonObject, parts: Parts, header: Header, feature_map: FeatureMap | None) -> RankerSet[Any]:
        each, classes = RANKERS_OF_SETS[content["kind"]], content["classes"]
        differences = [without_shape(difference, each.fields) for difference in classes]
        try:
            headers = [Header.from_difference(difference, _shared_by_classes(header)) for difference in differences]
        except HeaderError as error:
            raise bad_header(error) from None
        labels = np.array([header.labels.positive for header in headers], dtype=np.float64)
        if not (np.isfinite(labels).all() and (labels[1:] > labels[:-1]).all()):
            raise ModelError("its classes are not finite labels that increase")
        shape = (len(classes),) if each is LinearRanker else (len(classes), components_in(content))
        coef = parts.take("coef", *shape, parts.columns)
        if each is LinearRanker:
            intercepts = np.array([intercept_in(difference) for difference in classes])
        else:
            intercepts = parts.take("intercepts", *shape)
        return RankerSet(each, coef, intercepts, header, headers, feature_map)


def _shared_by_classes(whole: Header) -> Header:
    """Header that class headers are compared with: without skipped classes."""
    return replace(whole, classes_skipped=())
