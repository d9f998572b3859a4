"""``RankerSet``: a ranker for each class (``--one-vs-rest``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm._support.errors import ModelError
from apsvm._support.types import JsonDict, JsonObject, Matrix
from apsvm.models.base import Model, Parts, WeightedRanker, without_shape
from apsvm.models.components import ComponentRanker, components_in
from apsvm.models.header import Header
from apsvm.models.json import checked
from apsvm.models.linear import LinearRanker

if TYPE_CHECKING:
    from typing import Self

    from apsvm._support.types import AnyArray
    from apsvm.data.features.base import FeatureMap

#: Kind of the rankers, by the kind of their set in a file's header.
RANKERS_OF_SETS: dict[str, type[WeightedRanker]] = {kind.kind_of_set: kind for kind in (LinearRanker, ComponentRanker)}


@dataclass(frozen=True, slots=True, repr=False)
class RankerSet(Model):
    """Rankers of one class each against the rest, with one kind, feature map and number of components.

    Attributes
    ----------
    each : Sequence[WeightedRanker]
        (k,) rankers, ascending by label.
    header : Header
        Common properties of the rankers.
    """

    has_classes: ClassVar[bool] = True

    each: Sequence[WeightedRanker]
    header: Header

    @property
    def kind(self) -> str:  # type: ignore[override]  # of the instance here
        return self.each[0].kind_of_set

    @property
    def description(self) -> str:  # type: ignore[override]
        return self.each[0].description_of_set

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
        """H, the number of components of each ranker."""
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

    def rankers(self) -> Sequence[WeightedRanker]:
        return self.each

    def ranker(self, label: float) -> WeightedRanker:
        for ranker in self.each:
            if ranker.header.labels.positive == label:
                return ranker
        raise KeyError(label)

    @property
    def headers(self) -> Sequence[Header]:
        return [ranker.header for ranker in self.each]

    def with_headers(self, headers: Sequence[Header]) -> Self:
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
        """Fields of each class's header that differ from the common one. A single constant is stored here, several in
        an array."""
        shared = _shared_by_classes(self.header)
        classes: list[JsonDict] = [header.difference(shared) for header in self.headers]
        if self.components > 1:
            return {"classes": classes, "components": self.components}
        constants = self.intercepts[:, 0].tolist()
        return {"classes": [{**one, "intercept": value} for one, value in zip(classes, constants, strict=True)]}

    def _arrays(self) -> dict[str, AnyArray]:
        return {"coef": self.coef, **({"intercepts": self.intercepts} if self.components > 1 else {})}

    @classmethod
    def _fields_in(cls, content: JsonObject) -> Mapping[str, Any]:
        several = {} if content["kind"] == LinearRanker.kind_of_set else ComponentRanker.fields
        return {"kind": str, "classes": tuple[Mapping[str, object], ...], **several}

    @classmethod
    def _read(cls, shape: JsonObject, parts: Parts, header: Header, feature_map: FeatureMap | None) -> RankerSet:
        kind: Any = RANKERS_OF_SETS[shape["kind"]]
        shared, classes = _shared_by_classes(header), shape["classes"]
        headers = [Header.from_difference(without_shape(one, kind.fields), shared) for one in classes]
        labels = np.array([header.labels.positive for header in headers], dtype=np.float64)
        if not labels.size or not (np.isfinite(labels).all() and (labels[1:] > labels[:-1]).all()):
            raise ModelError("its classes are not finite labels in ascending order")
        if kind is LinearRanker:
            coef = parts.take("coef", len(classes), parts.columns)
            intercepts: Any = [checked(float, one.get("intercept"), "classes.intercept") for one in classes]
        else:
            sizes = len(classes), components_in(shape)
            coef, intercepts = parts.take("coef", *sizes, parts.columns), parts.take("intercepts", *sizes)
        return cls([kind(*of_class, feature_map) for of_class in zip(coef, intercepts, headers, strict=True)], header)


def _shared_by_classes(whole: Header) -> Header:
    """Header with which class headers are compared: the common one, without skipped classes."""
    return replace(whole, classes_skipped=())
