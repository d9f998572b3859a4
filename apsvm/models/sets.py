"""A ranker for each of several classes, one against the rest: ``RankerSet``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from apsvm.models.base import Model, WeightedRanker, bad_header, header_in, summary_of, without_shape
from apsvm.models.components import ComponentRanker
from apsvm.models.container import ModelError, check_field
from apsvm.models.header import Header, HeaderError, LabelKind, Labels
from apsvm.models.linear import LinearRanker, intercept_in
from apsvm.types import JsonDict, JsonObject, Matrix

if TYPE_CHECKING:
    from typing import Self

    from apsvm.data.features.base import FeatureMap
    from apsvm.types import AnyArray, Arrays

R = TypeVar("R", bound=WeightedRanker)


@dataclass(frozen=True, slots=True)
class RankerSet(Model, Generic[R]):
    """A ranker a class, one against the rest: linear ones (score_j(x) = coef_j·φ(x) + intercepts_j), or those of
    ``members``.

    coef : (k, columns) float64, or (k, H, columns) of H components; intercepts : (k,) float64, or (k, H); class j is
        the label ``classes[j]``, increasing
    header : what holds for the whole
    headers : (k,) of each class's ranker, as if trained alone
    feature_map : φ, of (width,) features; None: the features as they are
    """

    kind: ClassVar[str] = "one-vs-rest"
    what: ClassVar[str] = "a set of rankers, one a class (--one-vs-rest)"
    fields: ClassVar[tuple[str, ...]] = ("classes",)
    of_classes: ClassVar[bool] = True
    members: ClassVar[type[WeightedRanker]] = LinearRanker

    coef: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    header: Header
    headers: Sequence[Header] = field()  # without it, the property of Model would be taken for a default
    feature_map: FeatureMap | None = None

    @classmethod
    def of(cls, rankers: Sequence[R], header: Header) -> Self:
        """The set of ``rankers`` of one feature map and number of components, in the order of their labels. What
        ``header`` has in its mappings all rankers' headers have."""
        coef = np.stack([ranker.coef for ranker in rankers])
        intercepts = np.stack([ranker.intercepts for ranker in rankers]).reshape(coef.shape[:-1])
        return cls(coef, intercepts, header, [ranker.header for ranker in rankers], rankers[0].feature_map)

    @property
    def components(self) -> int:
        """H."""
        return int(self.intercepts[0].size)

    @property
    def width(self) -> int:
        """Number of features, before they are mapped."""
        return int(self.coef.shape[-1]) if self.feature_map is None else self.feature_map.n_in

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
        fields, arrays = {"intercept": self.intercepts[j].tolist()}, self._arrays().items()
        of_class = {name: array[j].copy() for name, array in arrays}
        return cast(R, self.members._made(fields, of_class, self.headers[j], self.feature_map))

    def with_headers(self, headers: Sequence[Header]) -> Self:
        return replace(self, headers=headers)

    def score(self, X: Matrix, *, threads: int = 1) -> NDArray[np.float64]:
        """The scores of the rows of X, (n, width) CSR or dense, for each class: (n, k) float64. Column j has the bits
        of ``ranker(classes[j]).score(X)``.

        Raises
        ------
        ValueError : X is not (n, width)
        """
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
        """Of a class only what differs from the whole. A class's one constant stands there, several in an array."""
        shared = _shared_by_classes(self.header)
        classes: list[JsonDict] = [header.difference(shared) for header in self.headers]
        if self.intercepts.ndim > 1:
            return {"classes": classes, "components": self.components}
        constants = self.intercepts.tolist()
        return {"classes": [{**one, "intercept": value} for one, value in zip(classes, constants, strict=True)]}

    def _arrays(self) -> dict[str, AnyArray]:
        return {"coef": self.coef, **({"intercepts": self.intercepts} if self.intercepts.ndim > 1 else {})}

    @classmethod
    def _shapes(cls, content: JsonObject, columns: int) -> dict[str, tuple[int, ...]]:
        k = len(content["classes"])
        return {name: (k, *shape) for name, shape in cls.members._shapes(content, columns).items()}

    @classmethod
    def _made(cls, fields: JsonObject, arrays: Arrays, header: Header, feature_map: FeatureMap | None) -> Self:
        intercepts = arrays.get("intercepts")
        if intercepts is None:
            intercepts = np.array([intercept_in(difference) for difference in fields["classes"]])
        return cls(arrays["coef"], intercepts, header, cls._headers_in(fields, header), feature_map)

    @classmethod
    def _header_in(cls, content: JsonObject) -> Header:
        check_field(content, "classes", list)
        classes = content["classes"]
        if not classes or not all(isinstance(difference, dict) for difference in classes):
            raise ModelError("its header's 'classes' is no list of JSON objects for at least one class")
        if content["schema"] != 1:
            return header_in(content, cls.fields)
        from apsvm.models.schema_1 import of_a_set

        # That schema did not say in the whole that there are classes.
        header = header_in(of_a_set(_without_classes(content)), cls.fields)
        return replace(header, labels=Labels(kind=LabelKind.CLASSES, several=header.labels.several))

    @classmethod
    def _headers_in(cls, content: JsonObject, whole: Header) -> list[Header]:
        """The headers of the classes. Raises ModelError unless they name labels that increase."""
        if content["schema"] == 1:
            from apsvm.models.schema_1 import of_a_class

            shared = _without_classes(content)
            headers = [header_in(of_a_class(shared, difference), ()) for difference in content["classes"]]
        else:
            differences = [without_shape(difference, cls.members.fields) for difference in content["classes"]]
            try:
                headers = [Header.from_difference(one, _shared_by_classes(whole)) for one in differences]
            except HeaderError as error:
                raise bad_header(error) from None
        labels = np.array([header.labels.positive for header in headers], dtype=np.float64)
        if not (np.isfinite(labels).all() and (labels[1:] > labels[:-1]).all()):
            raise ModelError("its classes are not finite labels that increase")
        return headers


@dataclass(frozen=True, slots=True)
class ComponentRankerSet(RankerSet[ComponentRanker]):
    """A ranker of several components a class: coef is (k, H, columns), intercepts (k, H)."""

    kind: ClassVar[str] = "components-one-vs-rest"
    what: ClassVar[str] = "a set of rankers of several components, one a class (--one-vs-rest --components)"
    fields: ClassVar[tuple[str, ...]] = ("classes", "components")
    members: ClassVar[type[WeightedRanker]] = ComponentRanker


def _shared_by_classes(whole: Header) -> Header:
    """What a class's header is compared with: no class has skipped classes of its own."""
    return replace(whole, classes_skipped=())


def _without_classes(content: JsonObject) -> JsonDict:
    return {key: value for key, value in content.items() if key != "classes"}
