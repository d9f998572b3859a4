"""Base classes of models: arrays and a header (``models.header``), stored in one file (``models.content``).

``Model`` is the interface of all kinds, and ``Ranker`` gives each row one score. A kind is a subclass in a file of its
own and a line in ``models.reading``.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.container import sealed
from apsvm._support.files import write_whole
from apsvm._support.types import JsonDict, Matrix
from apsvm.data.features.additive import Contributions
from apsvm.data.features.linear import Linear
from apsvm.data.features.scaling import NO_SCALING, UNIT_ROWS
from apsvm.data.rows import Rows
from apsvm.models.content import OF_THE_MAP, Content
from apsvm.models.header import Header

if TYPE_CHECKING:
    from typing import Self

    from apsvm._support.types import AnyArray
    from apsvm.data.features.base import FeatureMap
    from apsvm.models.linear import LinearRanker


class ScoreError(ValueError):
    """A row's score is infinite or NaN.

    row : index of the first such row, from 0
    """

    def __init__(self, row: int) -> None:
        super().__init__(f"row {row + 1}: its score is not finite: its values or the weights are too large")
        self.row = row


def checked_scores(scores: NDArray[Any]) -> NDArray[Any]:
    """The scores (n,) or (n, k). Raises ScoreError unless all are finite."""
    if not np.isfinite(scores).all():
        raise ScoreError(int(np.argwhere(~np.isfinite(scores))[0, 0]))
    return scores


class Model(ABC):
    """Arrays and a header that score rows.

    Subclasses are frozen dataclasses with the field ``header`` and, where rows may be mapped, ``feature_map``.
    """

    __slots__ = ()

    kind: ClassVar[str]  #: name of the kind in the file's header
    description: ClassVar[str]  #: the kind in words, with an article, for messages
    dtype: ClassVar[str] = "<f8"  #: type of the arrays in the file
    has_classes: ClassVar[bool] = False  #: it has a ranker for each of several classes: scores are (n, k)
    lists_items: ClassVar[bool] = False  #: rows are users and scores rank items: (n, width)

    if TYPE_CHECKING:

        @property
        def header(self) -> Header: ...

    def __repr__(self) -> str:
        """One line: the header and the map of an average of rules take a thousand."""
        loss = f", loss {self.header.loss}" if self.header.loss else ""
        return f"<{type(self).__name__}: {self.description} of {self.width:,} features{loss}>"

    @property
    def feature_map(self) -> FeatureMap | None:
        """φ, a map of (width,) features; None: the identity."""
        return None

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Number of mapped columns, each with a weight."""

    @property
    def width(self) -> int:
        """Number of features before the map."""
        return self.n_columns if self.feature_map is None else self.feature_map.n_in

    @property
    def unit_rows(self) -> bool:
        """True if rows are divided by their Euclidean length before scoring (``--scale l2``)."""
        return self.header.features.scale == UNIT_ROWS.name

    def features(self) -> list[str]:
        """Names of the features, (width,); numbers in the file if they have none, and max(7) … if they are pooled."""
        features = self.header.features
        first = 0 if features.zero_based else 1
        names, width = features.names, self.width // features.columns_of_feature
        if names is None:
            names = tuple(map(str, range(first, first + width)))
        if features.pool is None:
            return list(names)
        return [f"{pool}({name})" for pool in features.pool for name in names]

    def table_columns(self) -> tuple[list[str], NDArray[np.int64]]:
        """Names of the table's columns and the number of features of each, int64; the features themselves without a
        table, and for pooled bags."""
        features = self.header.features
        if features.columns is None or features.pool is not None:
            return self.features(), np.ones(self.width, dtype=np.int64)
        columns = features.columns.features
        return [column.name for column in columns], np.array([column.width for column in columns], dtype=np.int64)

    def columns(self) -> list[str]:
        """Names of the mapped columns, (n_columns,), made from the names of their features."""
        names = self.features()
        return names if self.feature_map is None else self.feature_map.names(names)

    def score(self, X: Matrix, *, threads: int = 1) -> NDArray[Any]:
        """Score rows.

        Parameters
        ----------
        X : ndarray or sparse matrix
            (n, width) unscaled features.
        threads : int
            Number of threads; the scores do not depend on it.

        Returns
        -------
        ndarray
            (n,) float64, or (n, k) from a set of k rankers.

        Raises
        ------
        ScoreError
            A score is not finite.
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
        """Scores of rows in memory, perhaps not finite."""

    def rows(self, X: Matrix, *, threads: int = 1) -> Rows:
        """Rows of X, (n, width) CSR or dense, mapped and scaled for the weights. Raises ValueError as ``score``."""
        check_shape(X, self.width)
        # Other scalings are in the weights.
        scaling = UNIT_ROWS if self.unit_rows else NO_SCALING
        return Rows(X, threads=threads, feature_map=self.feature_map, scaling=scaling)

    # The rankers of a model.

    @property
    def classes(self) -> NDArray[np.float64]:
        """Labels with a ranker each, (k,) float64, ascending; empty without classes."""
        return np.empty(0)

    def rankers(self) -> Sequence[Ranker]:
        """Rankers of rows: the model itself, or one for each class; none for items."""
        return []

    def with_header(self, header: Header) -> Self:
        """The model with another header."""
        return replace(self, header=header)  # type: ignore[type-var]  # every kind is a dataclass

    @property
    def headers(self) -> Sequence[Header]:
        """Headers of the classes' rankers; the model's own header if it has no classes."""
        return [ranker.header for ranker in self.rankers()] or [self.header]

    # Weights.

    def linear_parts(self) -> list[LinearRanker]:
        """Linear rankers of which the highest score counts: the ranker itself, or one for each component. Empty if
        scores are not linear."""
        return []

    @property
    def components(self) -> int:
        """Number of weight vectors, of which the highest score counts; 1 if scores are not linear."""
        return len(self.linear_parts()) or 1

    def leading(self, X: Matrix) -> NDArray[np.int64]:
        """Index of the linear part with the highest score for each row, the first of equal ones: (n,) int64. Raises
        ValueError as ``score``."""
        check_shape(X, self.width)
        return np.zeros(np.shape(X)[0], dtype=np.int64)

    def contributions(self, X: Matrix) -> list[Contributions]:
        """Contributions of features, and of groups of features that a map combines, to the scores of rows.

        Parameters
        ----------
        X : ndarray or sparse matrix
            (n, width) unscaled features.

        Returns
        -------
        list[Contributions]
            Those of each linear part; relative to the features' training means if the map knows them, else to 0.

        Raises
        ------
        ValueError
            X is not (n, width), the map makes each column from all features, or columns have no weights.
        """
        check_shape(X, self.width)
        feature_map, linear = self.feature_map or Linear(self.width), self.linear_parts()
        parts = feature_map.parts()
        if not linear:
            raise ValueError(f"{self.description} has no weights of features")
        if parts is None:
            raise ValueError(f"the feature map {feature_map.name} makes each column from all features at once")
        matrix = X if sp.issparse(X) else np.asarray(X)
        return [
            Contributions(matrix, feature_map, parts, part.coef, float(part.intercept), unit_rows=self.unit_rows)
            for part in linear
        ]

    def summary(self) -> JsonDict:
        """Numbers for ``apsvm info``: sizes, constants, and ``summary_of`` the weights."""
        return {**self._fields(), "weights": summary_of(*self._arrays().values())}

    # The file of a model.

    def to_bytes(self) -> bytes:
        """Content of the model's file; equal models give equal bytes."""
        fields = {"kind": self.kind, "width": self.width, **self._fields()}
        arrays = {name: array.astype(self.dtype, copy=False) for name, array in self._arrays().items()}
        if self.feature_map is not None:
            fields["columns"] = self.n_columns
            for name, array in self.feature_map.arrays().items():
                arrays[OF_THE_MAP + name] = array.astype(array.dtype.newbyteorder("<"), copy=False)
        return sealed({**self.header.to_json(), **fields}, arrays)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file; ``-`` is standard output. Raises OSError and leaves no partial file."""
        write_whole(path, self.to_bytes())

    @abstractmethod
    def _fields(self) -> JsonDict:
        """Sizes and other fields of the kind in the file's header, besides the width."""

    @abstractmethod
    def _arrays(self) -> dict[str, AnyArray]:
        """Arrays of the file by name, without those of the feature map."""

    @classmethod
    @abstractmethod
    def of_content(cls, content: Content) -> Self:
        """Model from a file with these ``_fields`` and ``_arrays``. Raises ModelError."""


class Ranker(Model):
    """Gives each row one score; the higher, the better."""

    __slots__ = ()

    def rankers(self) -> Sequence[Ranker]:
        return [self]


def check_shape(X: Matrix, width: int) -> None:
    """Raises ValueError unless X is (n, width)."""
    shape = np.shape(X)
    if len(shape) != 2 or shape[1] != width:
        raise ValueError(f"expected X of shape (n, {width}), found {shape}")


def norm_of(weights: NDArray[np.floating]) -> float:
    """Euclidean norm of all entries, without overflow of the squares."""
    with np.errstate(over="ignore"):
        norm = float(np.linalg.norm(weights))
    if math.isfinite(norm):
        return norm
    largest = float(np.abs(weights).max())
    return largest * float(np.linalg.norm(weights / largest))


def summary_of(*arrays: NDArray[np.floating]) -> JsonDict:
    """Number of nonzero values in all arrays together, and their norm; None if it overflows."""
    numbers = np.concatenate([array.ravel() for array in arrays])
    norm = norm_of(numbers)
    return {"nonzero": int(np.count_nonzero(numbers)), "norm": norm if math.isfinite(norm) else None}
