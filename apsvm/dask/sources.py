"""What the parts of a data set are: files that each worker reads itself, arrays that lie there, or made rows."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from apsvm._support.types import Column, Matrix
from apsvm.data.dataset import DataError, Dataset
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray


class Source(Protocol):
    """A part of a data set, wherever it is; it travels to the worker that reads it."""

    @property
    def name(self) -> str:
        """What messages call it."""

    def read(self, threads: int) -> Dataset:
        """Its rows. Raises DataError, OSError."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file, or a folder of ``apsvm convert``, that the worker can read.

    Attributes
    ----------
    path : as the worker finds it
    options : how to read it
    n_features : the width to read it at, None: its own
    ignore_unknown : whether features beyond that are left out; else they are an error
    unlabelled : whether a matrix needs no labels
    """

    path: str
    options: ReadOptions = field(default_factory=ReadOptions)
    n_features: int | None = None
    ignore_unknown: bool = False
    unlabelled: bool = False

    @property
    def name(self) -> str:
        return self.path

    def read(self, threads: int) -> Dataset:
        if _is_parquet(self.path):
            return _read_parquet(self.path, self.options, self.n_features)
        if os.path.isfile(self.path) and os.path.getsize(self.path) == 0:
            return _without_rows(self.path, self.n_features or 0, zero_based=bool(self.options.zero_based))
        from apsvm.data.reading import read_data

        options = self.options
        return read_data(
            self.path,
            dtype=np.dtype(options.dtype).type,
            sort_features=options.sort_features,
            zero_based=bool(options.zero_based),
            any_base=options.zero_based is None,
            max_features=options.max_features,
            n_features=self.n_features,
            ignore_unknown=self.ignore_unknown,
            multilabel=options.multilabel,
            unlabelled=self.unlabelled,
            check=options.check,
            threads=threads,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ArrayPart:
    """Rows as dask hands them over: arrays, matrices or data frames, by now in this worker's memory.

    Attributes
    ----------
    X : (n, d) dense, CSR, or a data frame
    y : (n,) labels, or None
    qid, weights : (n,) or None
    number : of the part, from 0
    """

    X: Matrix
    y: Column = None
    qid: Column = None
    weights: Column = None
    number: int = 0

    @property
    def name(self) -> str:
        return f"part {self.number}"

    def read(self, threads: int) -> Dataset:
        X = as_matrix(self.X, self.name)
        n = X.shape[0]
        relevance = np.zeros(n) if self.y is None else _column(self.y, "y", n, self.name).astype(np.float64)
        groups = None if self.qid is None else _column(self.qid, "qid", n, self.name)
        weights = None if self.weights is None else _column(self.weights, "sample_weight", n, self.name)
        if groups is not None:
            whole = groups.astype(np.int64)
            if not (whole == groups).all():
                raise DataError(f"{self.name}: query ids are whole numbers, found {groups[whole != groups][0]!r}")
            groups = whole
        return Dataset(
            X=X,
            relevance=relevance,
            groups=groups,
            costs=None if weights is None else weights.astype(np.float64),
            zero_based=True,
            source=self.name,
            fingerprint="",
            unknown_features=0,
        )


@dataclass(frozen=True, slots=True)
class MadePart:
    """Rows drawn where they are needed: X standard normal, float32, and labels that a plane with noise tells apart.

    Attributes
    ----------
    rows, features : int
    positives : the share of rows that are positive, about
    noise : standard deviation of what is added to the plane's score
    seed, number : of the draw, and of the part, from 0
    """

    rows: int
    features: int
    positives: float = 0.01
    noise: float = 2.0
    seed: int = 0
    number: int = 0

    @property
    def name(self) -> str:
        return f"made part {self.number}"

    def read(self, threads: int) -> Dataset:
        from statistics import NormalDist

        plane = np.random.default_rng(self.seed).standard_normal(self.features)
        rng = np.random.default_rng([self.seed, self.number])
        X = rng.standard_normal((self.rows, self.features), dtype=np.float32)
        scores = X @ (plane / np.linalg.norm(plane)).astype(np.float32) + self.noise * rng.standard_normal(self.rows)
        threshold = NormalDist(0.0, float(np.hypot(1.0, self.noise))).inv_cdf(1.0 - self.positives)
        return Dataset(
            X=X,
            relevance=(scores > threshold).astype(np.float64),
            groups=None,
            costs=None,
            zero_based=False,
            source=self.name,
            fingerprint="",
            unknown_features=0,
        )


def as_matrix(X: Matrix, name: str) -> Matrix:
    """Rows as the kernels take them: CSR, or a dense array of float32 or float64; every value finite.

    Raises
    ------
    DataError : another shape, or a value that is not finite
    """
    import scipy.sparse as sp

    if sp.issparse(X):
        matrix = sp.csr_array(X)
        if not matrix.has_canonical_format:
            matrix.sum_duplicates()
        values = matrix.data
    else:
        try:
            values = matrix = np.ascontiguousarray(X if not hasattr(X, "to_numpy") else X.to_numpy())
        except (TypeError, ValueError) as error:
            raise DataError(f"{name}: features are numbers: {error}") from None
    if matrix.ndim != 2:
        raise DataError(f"{name}: expected rows of features, (n, d), found an array of {matrix.ndim} dimensions")
    if matrix.dtype not in (np.float32, np.float64):
        try:
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"{name}: features are numbers: {error}") from None
        values = matrix.data if sp.issparse(matrix) else matrix
    if not np.isfinite(values).all():
        raise DataError(f"{name}: a feature value is not finite")
    return matrix


def _column(values: Column, what: str, n: int, name: str) -> AnyArray:
    column = np.asarray(values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (n,):
        raise DataError(f"{name}: expected {n} values of {what}, one a row, found shape {column.shape}")
    if column.dtype.kind not in "biuf":
        raise DataError(f"{name}: {what} is of numbers, found {column.dtype}")
    if not np.isfinite(column).all():
        raise DataError(f"{name}: a value of {what} is not finite")
    return column


def _without_rows(path: str, width: int, *, zero_based: bool) -> Dataset:
    """An empty file, which a single machine refuses: a writer of parts may write empty ones."""
    digest = hashlib.sha256(b"").hexdigest()
    return Dataset(np.empty((0, width)), np.empty(0), None, None, zero_based, path, digest, 0)


def _is_parquet(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        return stream.read(4) == b"PAR1"


def _read_parquet(path: str, options: ReadOptions, n_features: int | None) -> Dataset:
    """A Parquet file: the columns ``label`` (or ``y``) and, perhaps, ``qid`` and ``cost``; all others are features, in
    their order. Raises DataError."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    try:
        table = parquet.read_table(path)
    except (arrow.ArrowException, ValueError) as error:
        raise DataError(f"{path}: not a Parquet file that can be read: {error}") from None
    columns = {what: next((name for name in names if name in table.column_names), None) for what, names in _COLUMNS}
    features = [name for name in table.column_names if name not in columns.values()]
    columns = {what: None if name is None else table[name].to_numpy() for what, name in columns.items()}
    part = ArrayPart(
        np.column_stack([table[name].to_numpy() for name in features]) if features else np.empty((table.num_rows, 0)),
        columns["label"],
        columns["qid"],
        columns["cost"],
    )
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    try:
        data = part.read(1)
    except DataError as error:
        raise DataError(f"{path}: {str(error).partition(': ')[2]}") from None
    width = data.X.shape[1]
    if n_features is not None and width != n_features:
        raise DataError(f"{path}: expected {n_features} columns of features, found {width}")
    X = data.X.astype(np.float32) if options.dtype == "float32" else data.X
    return Dataset(X, data.relevance, data.groups, data.costs, False, path, digest, 0)


_COLUMNS = (("label", ("label", "y")), ("qid", ("qid",)), ("cost", ("cost",)))
