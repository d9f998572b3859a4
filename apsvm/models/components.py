"""Rankers of several components: ``ComponentRanker``, of which the best component's score counts, and
``ComponentRankerSet``, one for each of several classes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.data.features.scaling import UNIT_ROWS
from apsvm.data.rows import Rows
from apsvm.files import write_whole
from apsvm.models.container import ModelError, check_field, sealed
from apsvm.models.header import Header
from apsvm.models.map import arrays_of_map, columns_in, map_in, shape_of
from apsvm.models.parts import (
    check_labels,
    check_shape,
    contributions_of,
    header_in,
    headers_in,
    names_of_features,
    scaling_in,
    shared_by_classes,
)
from apsvm.types import JsonObject, Matrix

if TYPE_CHECKING:
    from apsvm.data.features.additive import Contributions
    from apsvm.data.features.base import FeatureMap
    from apsvm.types import AnyArray


@dataclass(frozen=True, slots=True)
class ComponentRanker:
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
    arrays: ClassVar[tuple[str, ...]] = ("coef", "intercepts")

    coef: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    header: Header
    feature_map: FeatureMap | None = None

    @property
    def components(self) -> int:
        """H."""
        return int(self.intercepts.size)

    @property
    def width(self) -> int:
        """Number of features, before they are mapped."""
        return int(self.coef.shape[1]) if self.feature_map is None else self.feature_map.n_in

    @property
    def zero_based(self) -> bool:
        """Whether the training file counted features from 0."""
        return self.header.features.zero_based

    @property
    def unit_rows(self) -> bool:
        """Whether rows are divided by their Euclidean length before they are scored (``--scale l2``)."""
        return scaling_in(self.header) is UNIT_ROWS

    def score_components(self, X: Matrix, *, threads: int = 1) -> NDArray[np.float64]:
        """What each component gives to the rows of X, (n, width) CSR or dense: (n, H) float64, in one pass.

        Raises
        ------
        ValueError : X is not (n, width)
        """
        check_shape(X, self.width)
        rows = Rows(X, threads=threads, feature_map=self.feature_map, scaling=scaling_in(self.header))
        return rows.scores_of_all(self.coef) + self.intercepts

    def features(self) -> list[str]:
        """What the features are called: their names, or their numbers in the file. (width,)"""
        return names_of_features(self.header, self.width)

    def columns(self) -> list[str]:
        """What the columns that are weighed are called, by the features they are made of."""
        names = self.features()
        return names if self.feature_map is None else self.feature_map.names(names)

    def contributions(self, X: Matrix, component: int) -> Contributions:
        """What each feature gives to the scores of the rows of X, (n, width) CSR or dense, by the component 0..H − 1;
        the rest as of ``LinearRanker.contributions``."""
        check_shape(X, self.width)
        return contributions_of(X, self.feature_map, self.coef[component], unit_rows=self.unit_rows)

    def score(self, X: Matrix, *, threads: int = 1) -> NDArray[np.float64]:
        """Scores of the rows of X, (n, width) CSR or dense, as they are in the file: (n,) float64.

        Raises
        ------
        ValueError : X is not (n, width)
        """
        best: NDArray[np.float64] = self.score_components(X, threads=threads).max(axis=1)
        return best

    def leading(self, X: Matrix, *, threads: int = 1) -> NDArray[np.int64]:
        """Which component has the highest score, of equal ones the first: (n,) int64, 0..H − 1; ValueError as
        ``score``."""
        best: NDArray[np.int64] = self.score_components(X, threads=threads).argmax(axis=1)
        return best

    def to_bytes(self) -> bytes:
        """The content of the model's file; the same model always gives the same bytes."""
        more = {"kind": self.kind, "components": self.components, **shape_of(self.width, self.feature_map)}
        arrays = {"coef": self.coef, "intercepts": self.intercepts}
        return sealed({**self.header.to_json(), **more}, {**_as_stored(arrays), **arrays_of_map(self.feature_map)})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model whole or not at all (OSError); ``-`` is standard output."""
        write_whole(path, self.to_bytes())

    @classmethod
    def from_parts(cls, content: JsonObject, arrays: Mapping[str, AnyArray]) -> ComponentRanker:
        """What ``to_bytes`` wrote. Raises ModelError."""
        header = header_in(content)
        feature_map = map_in(content, header, arrays)
        H = _components_in(content)
        columns = columns_in(content, feature_map)
        coef = _finite(arrays, "coef", (H, columns))
        return cls(coef, _finite(arrays, "intercepts", (H,)), header, feature_map)


@dataclass(frozen=True, slots=True)
class ComponentRankerSet:
    """A ranker of several components a class, one against the rest.

    coef : (k, H, columns) float64; intercepts : (k, H) float64; class j is the label ``classes[j]``, increasing
    header : what holds for the whole
    headers : (k,) of each class's ranker, as if trained alone
    feature_map : φ, of (width,) features; None: the features as they are
    """

    kind: ClassVar[str] = "components-one-vs-rest"
    what: ClassVar[str] = "a set of rankers of several components, one a class (--one-vs-rest --components)"
    arrays: ClassVar[tuple[str, ...]] = ("coef", "intercepts")

    coef: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    header: Header
    headers: Sequence[Header]
    feature_map: FeatureMap | None = None

    @classmethod
    def of(cls, rankers: Sequence[ComponentRanker], header: Header) -> ComponentRankerSet:
        """The set of ``rankers`` of one feature map and number of components, in the order of their labels."""
        return cls(
            coef=np.stack([ranker.coef for ranker in rankers]),
            intercepts=np.stack([ranker.intercepts for ranker in rankers]),
            header=header,
            headers=[ranker.header for ranker in rankers],
            feature_map=rankers[0].feature_map,
        )

    @property
    def components(self) -> int:
        """H."""
        return int(self.coef.shape[1])

    @property
    def width(self) -> int:
        """Number of features, before they are mapped."""
        return int(self.coef.shape[2]) if self.feature_map is None else self.feature_map.n_in

    @property
    def zero_based(self) -> bool:
        """Whether the training file counted features from 0."""
        return self.header.features.zero_based

    @property
    def classes(self) -> NDArray[np.float64]:
        """(k,) float64, increasing: the label of each ranker."""
        return np.array([header.labels.positive for header in self.headers], dtype=np.float64)

    def ranker(self, label: float) -> ComponentRanker:
        """The ranker of a class, as if trained alone.

        Raises
        ------
        KeyError : no class has this label
        """
        at = np.flatnonzero(self.classes == label)
        if at.size == 0:
            raise KeyError(label)
        j = int(at[0])
        return ComponentRanker(self.coef[j].copy(), self.intercepts[j].copy(), self.headers[j], self.feature_map)

    def score(self, X: Matrix, *, threads: int = 1) -> NDArray[np.float64]:
        """The scores of the rows of X, (n, width) CSR or dense, for each class: (n, k) float64. Column j has the bits
        of ``ranker(classes[j]).score(X)``.

        Raises
        ------
        ValueError : X is not (n, width)
        """
        check_shape(X, self.width)
        rows = Rows(X, threads=threads, feature_map=self.feature_map, scaling=scaling_in(self.header))
        k, H, columns = self.coef.shape
        scores = rows.scores_of_all(self.coef.reshape(k * H, columns)).reshape(-1, k, H)
        best: NDArray[np.float64] = (scores + self.intercepts).max(axis=2)
        return best

    def to_bytes(self) -> bytes:
        """The content of the model's file; the same model always gives the same bytes. Of a class it says only what
        differs from the whole."""
        shared = shared_by_classes(self.header)
        classes = [header.difference(shared) for header in self.headers]
        shape = {"components": self.components, **shape_of(self.width, self.feature_map)}
        arrays = {"coef": self.coef, "intercepts": self.intercepts}
        return sealed(
            {**self.header.to_json(), "kind": self.kind, "classes": classes, **shape},
            {**_as_stored(arrays), **arrays_of_map(self.feature_map)},
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model whole or not at all (OSError); ``-`` is standard output."""
        write_whole(path, self.to_bytes())

    @classmethod
    def from_parts(cls, content: JsonObject, arrays: Mapping[str, AnyArray]) -> ComponentRankerSet:
        """What ``to_bytes`` wrote. Raises ModelError."""
        check_field(content, "classes", list)
        classes = content["classes"]
        if not classes or not all(isinstance(difference, dict) for difference in classes):
            raise ModelError("its header's 'classes' is no list of JSON objects, one a class")
        header, headers = headers_in({key: value for key, value in content.items() if key != "classes"}, classes)
        feature_map = map_in(content, header, arrays)
        H, k = _components_in(content), len(classes)
        coef = _finite(arrays, "coef", (k, H, columns_in(content, feature_map)))
        intercepts = _finite(arrays, "intercepts", (k, H))
        check_labels(headers)
        return cls(coef, intercepts, header, headers, feature_map)


def _as_stored(arrays: Mapping[str, NDArray[np.float64]]) -> dict[str, AnyArray]:
    return {name: array.astype("<f8", copy=False) for name, array in arrays.items()}


def _components_in(content: JsonObject) -> int:
    """Raises ModelError."""
    check_field(content, "components", int)
    components: int = content["components"]
    if components < 2:
        raise ModelError(f"its header's 'components' is {components}, expected at least 2")
    return components


def _finite(arrays: Mapping[str, AnyArray], name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Raises ModelError."""
    array = arrays[name]
    if array.dtype != np.dtype("<f8") or array.shape != shape:
        raise ModelError(f"expected {name} of float64 and shape {shape}, found {array.dtype} of {array.shape}")
    if not np.isfinite(array).all():
        raise ModelError(f"a number of its {name} is not finite")
    return np.ascontiguousarray(array, dtype=np.float64)
