"""``RankerSet``: a ranker for each class (``--one-vs-rest``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from apsvm._support.errors import require
from apsvm._support.types import JsonDict, Matrix
from apsvm.models.base import Model
from apsvm.models.components import ComponentRanker
from apsvm.models.content import Content
from apsvm.models.header import Header
from apsvm.models.json import difference
from apsvm.models.linear import LinearRanker

if TYPE_CHECKING:
    from typing import Self

    from apsvm._support.types import AnyArray
    from apsvm.data.features.base import FeatureMap

#: A ranker of a class, by weights of columns.
RankerOfClass: TypeAlias = LinearRanker | ComponentRanker

#: ``kind`` and ``description`` of a set, by the class of its rankers.
KINDS_OF_SETS: dict[type[RankerOfClass], tuple[str, str]] = {
    LinearRanker: ("one-vs-rest", "a set of rankers, one a class (--one-vs-rest)"),
    ComponentRanker: (
        "components-one-vs-rest",
        "a set of rankers of several components (--one-vs-rest --components)",
    ),
}


@dataclass(frozen=True, slots=True, repr=False)
class RankerSet(Model):
    """Rankers of one class each against the rest, with one kind, feature map and number of components.

    Attributes
    ----------
    each : Sequence[LinearRanker] or Sequence[ComponentRanker]
        (k,) rankers, ascending by label.
    header : Header
        Common properties of the rankers.
    """

    has_classes: ClassVar[bool] = True

    each: Sequence[RankerOfClass]
    header: Header

    @property
    def kind(self) -> str:  # type: ignore[override]  # of the instance here
        return KINDS_OF_SETS[type(self.each[0])][0]

    @property
    def description(self) -> str:  # type: ignore[override]
        return KINDS_OF_SETS[type(self.each[0])][1]

    @property
    def coef(self) -> NDArray[np.float64]:
        """(k, columns) float64, or (k, H, columns) of H components."""
        return np.stack([ranker.coef for ranker in self.each])

    @property
    def intercepts(self) -> NDArray[np.float64]:
        """(k, H) float64; H is 1 without components."""
        return np.stack([ranker.intercepts for ranker in self.each])

    @property
    def components(self) -> int:
        return self.each[0].components

    @property
    def n_columns(self) -> int:
        return self.each[0].n_columns

    @property
    def feature_map(self) -> FeatureMap | None:
        return self.each[0].feature_map

    @property
    def classes(self) -> NDArray[np.float64]:
        """(k,) float64, ascending: the label of each ranker."""
        return np.array([header.labels.positive for header in self.headers], dtype=np.float64)

    def rankers(self) -> Sequence[RankerOfClass]:
        return self.each

    def ranker(self, label: float) -> RankerOfClass:
        """The ranker of the class with this label. Raises KeyError."""
        each: dict[float, RankerOfClass] = dict(zip(self.classes.tolist(), self.each, strict=True))
        return each[label]

    def with_headers(self, headers: Sequence[Header]) -> Self:
        """The model with other ``headers``."""
        each = [ranker.with_header(header) for ranker, header in zip(self.each, headers, strict=True)]
        return replace(self, each=each)

    def _scores(self, X: Matrix, threads: int) -> NDArray[np.float64]:
        """Scores (n, k) by class; column j equals ``ranker(classes[j]).score(X)`` to the last bit."""
        rows, intercepts = self.rows(X, threads=threads), self.intercepts
        scores = rows.scores_of_all(self.coef.reshape(intercepts.size, -1)).reshape(-1, *intercepts.shape) + intercepts
        best: NDArray[np.float64] = scores.max(axis=2)
        return best

    def summary(self) -> JsonDict:
        return {"classes": [{**ranker.header.to_json(), **ranker.summary()} for ranker in self.each]}

    def _fields(self) -> JsonDict:
        """Fields in which each class differs from the common header; the number of components is stored once."""
        whole, shared = _without_skipped(self.header), self.each[0]._fields() if self.components > 1 else {}
        classes = [{**difference(one.header, whole), **({} if shared else one._fields())} for one in self.each]
        return {"classes": classes, **shared}

    def _arrays(self) -> dict[str, AnyArray]:
        each = [ranker._arrays() for ranker in self.each]
        return {name: np.stack([arrays[name] for arrays in each]) for name in each[0]}

    @classmethod
    def of_content(cls, content: Content) -> RankerSet:
        kind: type[RankerOfClass] = ComponentRanker if "components" in content.fields else LinearRanker
        classes = content.field("classes", tuple[Mapping[str, object], ...])
        each = []
        for of_class in content.of_classes(classes, _without_skipped(content.header)):
            each.append(kind.of_content(of_class))
            of_class.require_all_taken()
        require(bool(each), "a class in 'classes'")
        model = cls(each, content.header)
        ascend = bool((np.diff(model.classes, prepend=-np.inf) > 0.0).all())
        require(ascend, f"ascending labels of 'classes', found {model.classes}")
        return model


def _without_skipped(header: Header) -> Header:
    """The common header, with which class headers are compared."""
    return replace(header, classes_skipped=())
