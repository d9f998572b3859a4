"""Base classes of models: arrays and a header (``apsvm.models.header``), stored in one file (``models.container``).

``Model`` has what all share: the file, the features, and what callers ask of any kind. ``Ranker`` gives each row one
score; ``WeightedRanker`` does so by weights of columns. A kind is a subclass in a file of its own and a line in
``models.reading``.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.container import ModelError, sealed
from apsvm._support.files import write_whole
from apsvm._support.types import JsonDict, JsonObject, Matrix
from apsvm.data.features.additive import Contributions
from apsvm.data.features.linear import Linear
from apsvm.data.features.scaling import NO_SCALING, UNIT_ROWS
from apsvm.data.rows import Rows
from apsvm.models.header import Header
from apsvm.models.json import checked
from apsvm.models.map import OF_THE_MAP, arrays_of_map, map_in

if TYPE_CHECKING:
    from typing import Self

    from apsvm._support.types import AnyArray, Arrays
    from apsvm.data.features.base import FeatureMap
    from apsvm.models.linear import LinearRanker

#: The fields of the shape that every file's header has beside those of ``apsvm.models.header.Header``.
_SHAPE = ("kind", "width", "columns")


class ScoreError(ValueError):
    """A row's score is infinite or no number: its values times the weights are.

    row : the first such, from 0
    """

    def __init__(self, row: int) -> None:
        super().__init__(f"row {row + 1}: its score is no finite number: its values or the weights are too large")
        self.row = row


def checked_scores(scores: NDArray[Any]) -> NDArray[Any]:
    """The scores, (n,) or (n, k). Raises ScoreError unless all are finite."""
    if not np.isfinite(scores).all():
        raise ScoreError(int(np.argwhere(~np.isfinite(scores))[0, 0]))
    return scores


class Model(ABC):
    """Arrays and a header that score rows.

    Subclasses are frozen dataclasses with the field ``header`` and, where rows may be mapped, ``feature_map``.

    Attributes
    ----------
    kind : the name in the file's header
    what : the kind in words, with an article, for messages
    fields : what its file's header has beside the width and the fields of ``Header``, and the type of each
    dtype : the type of the arrays in its file
    has_classes : it has a ranker for each of several classes: scores are (n, k)
    lists_items : rows are users, and its scores are of items: (n, width)
    explainable : it has ``contributions``; a feature map may still mix features
    header : how, of what and how well it was made
    """

    __slots__ = ()

    kind: ClassVar[str]
    what: ClassVar[str]
    fields: ClassVar[Mapping[str, Any]] = {}
    dtype: ClassVar[str] = "<f8"
    has_classes: ClassVar[bool] = False
    lists_items: ClassVar[bool] = False
    explainable: ClassVar[bool] = False

    if TYPE_CHECKING:

        @property
        def header(self) -> Header: ...

    def __repr__(self) -> str:
        """In a line: header and feature map of an average of rules are a thousand."""
        loss = f", loss {self.header.loss}" if self.header.loss else ""
        return f"<{type(self).__name__}: {self.what} of {self.width:,} features{loss}>"

    @property
    def feature_map(self) -> FeatureMap | None:
        """φ, of (width,) features; None: the features as they are."""
        return None

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Number of columns that are weighed: the features, or what the map makes of them."""

    @property
    def width(self) -> int:
        """Number of features, before they are mapped."""
        return self.n_columns if self.feature_map is None else self.feature_map.n_in

    @property
    def zero_based(self) -> bool:
        """True if the training file counted features from 0."""
        return self.header.features.zero_based

    @property
    def unit_rows(self) -> bool:
        """True if rows are divided by their Euclidean length before scoring (``--scale l2``)."""
        return self.header.features.scale == UNIT_ROWS.name

    def features(self) -> list[str]:
        """(width,) the features' names, or their numbers in the file; of pooled ones max(7) …"""
        features, first = self.header.features, 0 if self.zero_based else 1
        names, width = features.names, self.width // features.columns_of_feature
        if names is None:
            names = tuple(map(str, range(first, first + width)))
        if features.pool is None:
            return list(names)
        return [f"{pool}({name})" for pool in features.pool for name in names]

    def column_widths(self) -> NDArray[np.int64]:
        """(k,) the number of features that each column of the table became; 1 each without a table, or of pooled
        bags."""
        features = self.header.features
        if features.columns is None or features.pool is not None:
            return np.ones(self.width, dtype=np.int64)
        return np.array([column.width for column in features.columns.features], dtype=np.int64)

    def column_names(self) -> list[str]:
        """(k,) the names of the columns of ``column_widths``."""
        features = self.header.features
        if features.columns is None or features.pool is not None:
            return self.features()
        return [column.name for column in features.columns.features]

    def columns(self) -> list[str]:
        """(n_columns,) what the columns that are weighed are called, by the features they are made of."""
        names = self.features()
        return names if self.feature_map is None else self.feature_map.names(names)

    def score(self, X: Matrix, *, threads: int = 1) -> NDArray[Any]:
        """Scores of the rows of X, (n, width) CSR or dense, as they are in the file: (n,) float64, or (n, k) by a set
        of k rankers.

        Raises
        ------
        ScoreError
            A score is no finite number.
        ValueError
            X is not (n, width).
        """
        if hasattr(X, "scored_by"):  # rows on the workers of a cluster
            return checked_scores(X.scored_by(self))
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._scores(X, threads)
        return checked_scores(scores)

    @abstractmethod
    def _scores(self, X: Matrix, threads: int) -> NDArray[Any]:
        """``score``, of any values."""

    def rows(self, X: Matrix, *, threads: int = 1) -> Rows:
        """The rows of X, (n, width) CSR or dense, as the weights take them; ValueError as ``score``."""
        check_shape(X, self.width)
        # Other scalings are in the weights.
        scaling = UNIT_ROWS if self.unit_rows else NO_SCALING
        return Rows(X, threads=threads, feature_map=self.feature_map, scaling=scaling)

    # Its rankers.

    @property
    def classes(self) -> NDArray[np.float64]:
        """(k,) float64, ascending: the labels with a ranker each; empty without classes."""
        return np.empty(0)

    def rankers(self) -> Sequence[Ranker]:
        """The rankers of rows in it: itself, or one for each class; none where items are ranked."""
        return []

    def ranker(self, label: float) -> Ranker:
        """The ranker of a class, as if trained alone.

        Raises
        ------
        KeyError
            No class has this label.
        """
        raise KeyError(label)

    def with_header(self, header: Header) -> Self:
        """The model with another header of the whole."""
        return replace(self, header=header)  # type: ignore[type-var]  # every kind is a dataclass

    @property
    def headers(self) -> Sequence[Header]:
        """The header of each class's ranker; of any other model its own."""
        return [self.header]

    def with_headers(self, headers: Sequence[Header]) -> Self:
        """The model with its ``headers`` replaced."""
        (header,) = headers
        return self.with_header(header)

    # What it says of itself.

    def linear_parts(self) -> list[LinearRanker]:
        """The linear rankers whose highest score is the ranker's: itself, or one for each component. None where scores
        are made otherwise."""
        return []

    @property
    def components(self) -> int:
        """Number of weight vectors of a ranker, whose highest score counts."""
        return 1

    def leading(self, X: Matrix, *, threads: int = 1) -> NDArray[np.int64]:  # of one component
        """Index (n,) int64, 0..components − 1, of the component of highest score, the first among equals. Raises
        ValueError as ``score``."""
        check_shape(X, self.width)
        return np.zeros(np.shape(X)[0], dtype=np.int64)

    def contributions(self, X: Matrix, component: int = 0) -> Contributions:
        """Contributions of each feature, or of several together, to the scores of the rows of X, (n, width) CSR or
        dense, by the component 0..components − 1. They are relative to the features' means in the training rows if the
        map knows them, else to 0.

        Raises
        ------
        ValueError
            X is not (n, width); columns are made of all features at once, or have no weights.
        """
        raise ValueError(f"{self.what} has no weights of features")

    @abstractmethod
    def summary(self) -> JsonDict:
        """Numbers for ``apsvm info``: ``summary_of`` the weights, constants, and the sizes of the parts."""

    # Its file.

    def to_bytes(self) -> bytes:
        """The content of the model's file; the same model always gives the same bytes."""
        shape = {"kind": self.kind, "width": self.width, **self._fields()}
        if self.feature_map is not None:
            shape["columns"] = self.n_columns
        numbers = {name: array.astype(self.dtype, copy=False) for name, array in self._arrays().items()}
        return sealed({**self.header.to_json(), **shape}, {**numbers, **arrays_of_map(self.feature_map)})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model whole or not at all (OSError); ``-`` is standard output."""
        write_whole(path, self.to_bytes())

    @classmethod
    def from_parts(cls, content: JsonObject, arrays: Arrays) -> Self:
        """The model of a file's header and arrays, as ``to_bytes`` wrote them. Raises ModelError."""
        fields = cls._fields_in(content)
        header = Header.from_json(without_shape(content, fields))
        kinds = {"width": int, **fields}
        shape: JsonDict = {name: checked(kind, content.get(name), name) for name, kind in kinds.items()}
        feature_map = map_in(content, shape["width"], header, arrays)
        parts = Parts(cls.dtype, shape["width"] if feature_map is None else feature_map.n_out, arrays)
        model = cls._read(shape, parts, header, feature_map)
        parts.require_none_left()
        return model

    @classmethod
    def _fields_in(cls, content: JsonObject) -> Mapping[str, Any]:
        """The ``fields`` of a file with this content."""
        return cls.fields

    @abstractmethod
    def _fields(self) -> JsonDict:
        """The values of ``fields``."""

    @abstractmethod
    def _arrays(self) -> dict[str, AnyArray]:
        """The arrays of its file, by name, apart from a feature map's."""

    @classmethod
    @abstractmethod
    def _read(cls, shape: JsonObject, parts: Parts, header: Header, feature_map: FeatureMap | None) -> Self:
        """The model of a file with these values of ``fields``, and ``_arrays``. Raises ModelError."""


class Parts:
    """The arrays of a file but those of its feature map, whose weights are for ``columns`` columns."""

    def __init__(self, dtype: str, columns: int, arrays: Arrays) -> None:
        self.columns, self._dtype = columns, np.dtype(dtype)
        self._left = {name: array for name, array in arrays.items() if not name.startswith(OF_THE_MAP)}

    def take(self, name: str, *shape: int) -> AnyArray:
        """The array of this name, in the machine's byte order. Raises ModelError unless it is there, has this shape
        and is finite."""
        array = self._left.pop(name, None)
        if array is None:
            raise ModelError(f"expected the members {name}.npy …, found {', '.join(self._left) or 'none'}")
        native = self._dtype.newbyteorder("=")
        if array.dtype != self._dtype or array.shape != shape:
            raise ModelError(f"expected {name} of {native} and shape {shape}, found {array.dtype} of {array.shape}")
        if not np.isfinite(array).all():
            raise ModelError(f"a number of its {name} is not finite")
        return np.ascontiguousarray(array, dtype=native)

    def require_none_left(self) -> None:
        """Raises ModelError for arrays that are not the model's."""
        if self._left:
            raise ModelError(f"expected the members of the model alone, found {', '.join(self._left)} too")


class Ranker(Model):
    """Gives each row one score; the higher, the better."""

    __slots__ = ()

    def rankers(self) -> Sequence[Ranker]:
        return [self]


class WeightedRanker(Ranker):
    """score(x) = max over h of coef_h·φ(x) + intercepts_h, for one weight vector or several.

    Attributes
    ----------
    coef
        (columns,) float64, or (H, columns).
    intercepts
        (H,) float64.
    kind_of_set, what_of_set : ClassVar[str]
        Of a set of such rankers, ``kind`` and ``what``.
    """

    __slots__ = ()

    kind_of_set: ClassVar[str]
    what_of_set: ClassVar[str]
    explainable: ClassVar[bool] = True

    if TYPE_CHECKING:

        @property
        def coef(self) -> NDArray[np.float64]: ...

        @property
        def intercepts(self) -> NDArray[np.float64]: ...

    @property
    def n_columns(self) -> int:
        return int(self.coef.shape[-1])

    def contributions(self, X: Matrix, component: int = 0) -> Contributions:
        check_shape(X, self.width)
        feature_map = Linear(self.width) if self.feature_map is None else self.feature_map
        parts = feature_map.parts()
        if parts is None:
            raise ValueError(f"the feature map {feature_map.name} makes columns of all features at once")
        matrix = X if sp.issparse(X) else np.asarray(X)
        linear = self.linear_parts()[component]
        return Contributions(matrix, feature_map, parts, linear.coef, float(linear.intercept), unit_rows=self.unit_rows)


def without_shape(content: JsonObject, fields: Iterable[str]) -> JsonDict:
    """The content without the fields of the shape and the ``fields`` of a kind."""
    return {key: value for key, value in content.items() if key not in (*_SHAPE, *fields)}


def check_shape(X: Matrix, width: int) -> None:
    """Raises ValueError unless X is (n, width)."""
    shape = np.shape(X)
    if len(shape) != 2 or shape[1] != width:
        raise ValueError(f"expected X of shape (n, {width}), found {shape}")


def norm_of(weights: NDArray[np.floating]) -> float:
    """‖w‖ of an array of any shape, finite wherever float64 can hold it."""
    with np.errstate(over="ignore"):
        norm = float(np.linalg.norm(weights))
    if math.isfinite(norm):
        return norm
    largest = float(np.abs(weights).max())
    return largest * float(np.linalg.norm(weights / largest))


def summary_of(*arrays: NDArray[np.floating]) -> JsonDict:
    """Number of nonzero values in all arrays together, and their ``norm_of``, None if float64 cannot hold it."""
    numbers = np.concatenate([array.ravel() for array in arrays])
    norm = norm_of(numbers)
    return {"nonzero": int(np.count_nonzero(numbers)), "norm": norm if math.isfinite(norm) else None}
