"""What every model is: arrays and a header, in a file that runs no code; and what rankers of rows have in common."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from apsvm.data.features.scaling import UNIT_ROWS
from apsvm.data.rows import Rows
from apsvm.files import write_whole
from apsvm.models.container import ModelError, sealed
from apsvm.models.header import Header
from apsvm.models.map import arrays_of_map, shape_of
from apsvm.models.parts import check_shape, names_of_features, scaling_in

if TYPE_CHECKING:
    from apsvm.data.features.additive import Contributions
    from apsvm.data.features.base import FeatureMap
    from apsvm.types import AnyArray, JsonDict, JsonObject, Matrix


class Model(ABC):
    """A model of any kind.

    Attributes
    ----------
    kind : what a file's header calls it; what : the same in words
    has_classes : whether it is a set of rankers, one a class
    lists_items : whether it lists items for users, and does not rank rows
    header : how, of what and how well it was made
    """

    kind: ClassVar[str]
    what: ClassVar[str]
    has_classes: ClassVar[bool] = False
    lists_items: ClassVar[bool] = False

    header: Header

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of features, before they are mapped."""

    @property
    def zero_based(self) -> bool:
        """Whether the training file counted features from 0."""
        return self.header.features.zero_based

    @property
    def headers(self) -> Sequence[Header]:
        """Of its rankers: of each class's, where it has classes."""
        return [self.header]

    def with_header(self, header: Header) -> Self:
        """The same model with another header of the whole."""
        return replace(self, header=header)  # type: ignore[type-var]

    def with_headers(self, change: Callable[[Header], Header]) -> Self:
        """The same model, the header of each of its rankers changed."""
        return self.with_header(change(self.header))

    @abstractmethod
    def parts(self) -> tuple[JsonDict, dict[str, AnyArray]]:
        """What its file's header says beside ``header``, and its arrays, little-endian, by their names."""

    @classmethod
    @abstractmethod
    def from_parts(cls, content: JsonObject, arrays: Mapping[str, AnyArray]) -> Model:
        """The model of a file's header and arrays. Raises ModelError."""

    @classmethod
    @abstractmethod
    def arrays_in(cls, content: JsonObject) -> Sequence[str]:
        """The names of the arrays in a file with this header, apart from a feature map's. Raises ModelError."""

    def to_bytes(self) -> bytes:
        """The content of the model's file; the same model always gives the same bytes."""
        more, arrays = self.parts()
        return sealed({**self.header.to_json(), "kind": self.kind, **more}, arrays)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model whole or not at all (OSError); ``-`` is standard output."""
        write_whole(path, self.to_bytes())


class RowModel(Model):
    """A model that scores rows; with a map φ, (columns,) numbers made of (width,) features, or the features as they
    are."""

    feature_map: FeatureMap | None

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Number of columns that are weighed."""

    @property
    def width(self) -> int:
        return self.n_columns if self.feature_map is None else self.feature_map.n_in

    @property
    def unit_rows(self) -> bool:
        """Whether rows are divided by their Euclidean length before they are scored (``--scale l2``)."""
        return scaling_in(self.header) is UNIT_ROWS

    def rows(self, X: Matrix, threads: int = 1) -> Rows:
        """The rows of X, (n, width) CSR or dense, as they are weighed. Raises ValueError for another shape."""
        check_shape(X, self.width)
        return Rows(X, threads=threads, feature_map=self.feature_map, scaling=scaling_in(self.header))

    @abstractmethod
    def score(self, X: Matrix, *, threads: int = 1) -> NDArray[np.float64]:
        """Scores of the rows of X, (n, width) CSR or dense, as they are in the file: (n,) float64; of a set of k
        rankers (n, k).

        Raises
        ------
        ValueError : X is not (n, width)
        """

    def parts(self) -> tuple[JsonDict, dict[str, AnyArray]]:
        more, arrays = self.own_parts()
        stored = {name: array.astype("<f8", copy=False) for name, array in arrays.items()}
        return {**more, **shape_of(self.width, self.feature_map)}, {**stored, **arrays_of_map(self.feature_map)}

    @abstractmethod
    def own_parts(self) -> tuple[JsonDict, dict[str, NDArray[np.float64]]]:
        """``parts``, apart from the shape and the feature map."""


class Ranker(RowModel):
    """One ranker of rows: a score each, the higher, the better."""


class WeightedRanker(Ranker):
    """A ranker by weights of columns.

    coef : (columns,) float64, or (H, columns) of H components; without a map, column j belongs to file index j, or
        j + 1 if not ``zero_based``
    """

    coef: NDArray[np.float64]

    #: Of a set of such rankers: its kind, and what it is in words.
    kind_of_set: ClassVar[str]
    what_of_set: ClassVar[str]

    @property
    def n_columns(self) -> int:
        return int(self.coef.shape[-1])

    def features(self) -> list[str]:
        """What the features are called: their names, or their numbers in the file; of pooled ones max(7) … (width,)"""
        return names_of_features(self.header, self.width)

    def columns(self) -> list[str]:
        """What the columns that are weighed are called, by the features they are made of."""
        names = self.features()
        return names if self.feature_map is None else self.feature_map.names(names)

    @property
    @abstractmethod
    def components(self) -> int:
        """Number of weight vectors, of which the best counts."""

    @property
    @abstractmethod
    def constants(self) -> NDArray[np.float64]:
        """(components,) float64: the constant of each weight vector."""

    @abstractmethod
    def raised(self, by: float) -> Self:
        """The same ranker, its scores raised by a number: no ranking depends on it."""

    @abstractmethod
    def contributions(self, X: Matrix, component: int = 0) -> Contributions:
        """What each feature gives to the scores of the rows of X, (n, width) CSR or dense, by one of the components,
        relative to its mean in the training rows where the map knows it, else to 0.

        Raises
        ------
        ValueError : X is not (n, width); the map makes columns of several features at once
        """

    @abstractmethod
    def leading(self, X: Matrix, *, threads: int = 1) -> NDArray[np.int64]:
        """Which component has the highest score, of equal ones the first: (n,) int64; ValueError as ``score``."""

    # What a set of such rankers, ``models.sets``, is made of: coef (k, …) and intercepts, (k,) or of components (k, H).

    @classmethod
    @abstractmethod
    def of_set(
        cls,
        coef: NDArray[np.float64],
        intercepts: NDArray[np.float64],
        header: Header,
        feature_map: FeatureMap | None,
    ) -> Self:
        """The ranker of one part of a set's arrays."""

    @classmethod
    @abstractmethod
    def parts_of_set(
        cls, coef: NDArray[np.float64], intercepts: NDArray[np.float64]
    ) -> tuple[JsonDict, dict[str, NDArray[np.float64]], list[JsonDict]]:
        """``own_parts`` of a set, and what its file says of each class beside the header."""

    @classmethod
    @abstractmethod
    def read_set(
        cls, content: JsonObject, classes: Sequence[JsonObject], arrays: Mapping[str, AnyArray], columns: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """coef and intercepts of what ``parts_of_set`` wrote. Raises ModelError."""

    @staticmethod
    @abstractmethod
    def scores_of_set(rows: Rows, coef: NDArray[np.float64], intercepts: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, k) float64: the scores of the rows by k rankers, in one pass."""


def checked_array(arrays: Mapping[str, AnyArray], name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """An array of a file, of this shape and finite. Raises ModelError."""
    array = arrays[name]
    if array.dtype != np.dtype("<f8") or array.shape != shape:
        raise ModelError(f"expected {name} of float64 and shape {shape}, found {array.dtype} of {array.shape}")
    if not np.isfinite(array).all():
        raise ModelError(f"a number of its {name} is not finite")
    return np.ascontiguousarray(array, dtype=np.float64)
