"""What the parts of a data set are: files that each worker reads itself, or arrays that lie there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from apsvm._support.types import Column, Matrix
from apsvm.data.dataset import DataError, Dataset, NoRowsError
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray
    from apsvm.data.tables.reading import ForModel


class Source(Protocol):
    """A part of a data set, wherever it is; it travels to the worker that reads it."""

    @property
    def name(self) -> str:
        """What messages call it."""

    def read(self, threads: int) -> Dataset:
        """Its rows. Raises DataError, OSError."""


@contextmanager
def on_worker(address: str, file: str) -> Iterator[None]:
    """Errors of rows, and of this file, name the worker as well."""
    where = f" (on {address})"
    try:
        yield
    except DataError as error:
        raise DataError(f"{error}{where}") from None
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror or error}{where}", file) from None


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file, or a folder of ``apsvm convert``, that the worker can read, as one machine does.

    Attributes
    ----------
    path : as the worker finds it
    options : how to read it
    n_features : the width to read it at, None: its own
    ignore_unknown : whether features beyond that are left out; else they are an error
    unlabelled : whether labels are not looked for
    model : the features of the model that the rows are for; None: of a training
    """

    path: str
    options: ReadOptions
    n_features: int | None = None
    ignore_unknown: bool = False
    unlabelled: bool = False
    model: ForModel | None = None

    @property
    def name(self) -> str:
        return self.path

    def read(self, threads: int) -> Dataset:
        from apsvm.data.reading import read_data

        options = self.options
        try:
            data = read_data(
                self.path,
                dtype=options.dtype,
                sort_features=options.sort_features,
                zero_based=bool(options.zero_based),
                any_base=options.zero_based is None,
                max_features=options.max_features,
                n_features=self.n_features,
                ignore_unknown=self.ignore_unknown,
                multilabel=options.multilabel,
                unlabelled=self.unlabelled,
                bag_label="own",  # bags are ignored, or refused whatever their labels are
                check=options.check,
                threads=threads,
                # What stands for a missing cell would be learned from the part alone.
                table=replace(options.table, missing="zero" if options.table.missing == "zero" else "refuse"),
                model=self.model,
            )
        except NoRowsError:
            return _without_rows(self.path, self.n_features or 0, zero_based=bool(options.zero_based))
        if data.table is not None and data.table.queries:
            raise DataError(
                f"{self.path}: column {data.table.columns.qid!r}: on a cluster queries are whole numbers, found "
                f"{data.table.queries[0]!r}"
            )
        return replace(data, bags=None) if options.ignores_bags else data


@dataclass(frozen=True, slots=True, eq=False)
class ArrayPart:
    """Rows as dask hands them over: arrays, matrices or data frames, by now in this worker's memory.

    Attributes
    ----------
    X : (n, d) dense, CSR, or a data frame
    y : (n,) labels
    qid, weights : (n,) or None
    number : of the part, from 0
    names : of the columns of all parts, where they are data frames
    copies : whether a row of weight k counts as the row k times
    """

    X: Matrix
    y: Column
    qid: Column = None
    weights: Column = None
    number: int = 0
    names: tuple[str, ...] | None = None
    copies: bool = False

    @property
    def name(self) -> str:
        return f"part {self.number}"

    def read(self, threads: int) -> Dataset:
        names = names_of(self.X)
        if names != self.names:
            found, expected = (", ".join(of_part or ("no names",)) for of_part in (names, self.names))
            raise DataError(
                f"{self.name}: expected the columns of part 0, in the same order, {expected}, found {found}"
            )
        X = as_matrix(self.X, self.name)
        n = X.shape[0]
        relevance = _column(self.y, "y", n, self.name).astype(np.float64)
        groups = None if self.qid is None else _column(self.qid, "qid", n, self.name)
        weights = None if self.weights is None else _column(self.weights, "sample_weight", n, self.name)
        if groups is not None:
            whole = groups.astype(np.int64)
            if not (whole == groups).all():
                raise DataError(
                    f"{self.name}: query ids are whole numbers, found {groups[whole != groups][0].item()!r}"
                )
            groups = whole
        if weights is not None and (weights < 0).any():
            raise DataError(f"{self.name}: a sample_weight is at least 0, found {weights.min():g}")
        data = Dataset(
            X=X,
            relevance=relevance,
            groups=groups,
            costs=None if weights is None else weights.astype(np.float64),
            zero_based=True,
            source=self.name,
            fingerprint="",
            unknown_features=0,
        )
        return _repeated(data) if self.copies and weights is not None else data


def _repeated(data: Dataset) -> Dataset:
    """Each row as often as its weight says. Raises DataError for a fraction."""
    from apsvm.estimators.rows import count_rows

    try:
        members = count_rows(len(data), None, data.costs, by_query=True).members
    except ValueError as error:
        raise DataError(f"{data.source}: {error}") from None
    return replace(data.select(members), costs=None)


def names_of(X: Matrix) -> tuple[str, ...] | None:
    """The names of a data frame's columns, where all are text, as scikit-learn has them."""
    names = tuple(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def as_matrix(X: Matrix, name: str) -> Matrix:
    """Rows as the kernels take them: CSR, or a dense array of float32 or float64; every value finite.

    Raises
    ------
    DataError : another shape, or a value that is not finite
    """
    import scipy.sparse as sp

    is_sparse = sp.issparse(X)
    try:
        matrix: Matrix = sp.csr_array(X) if is_sparse else np.ascontiguousarray(X)
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: features are numbers: {error}") from None
    if matrix.ndim != 2:
        raise DataError(f"{name}: expected rows of features, (n, d), found an array of {matrix.ndim} dimensions")
    if is_sparse and not matrix.has_canonical_format:
        matrix.sum_duplicates()
    if not np.isfinite(matrix.data if is_sparse else matrix).all():
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
