"""Parts of a data set on the workers: reading, a survey of the columns, and the features.

    part  →  ``load``: a table or rows  →  ``survey``: all but the features  →  columns learned on the driver  →  a
    matrix

The driver receives labels, queries and costs of all rows, and decides how columns become features.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.dataset import DataError, Dataset, NoRowsError
from apsvm.data.joining import in_columns_of, widened
from apsvm.data.read_options import ReadOptions, TableOptions
from apsvm.data.tables.cells import Table
from apsvm.data.tables.features import features_of, numbers_of
from apsvm.data.tables.learning import refuse_unusable, release_text
from apsvm.data.tables.reading import ColumnChoice
from apsvm.data.tables.roles import Parts
from apsvm.data.tables.typed import Evidence, may_name_rows
from apsvm.models.columns import Column, ColumnKind, Columns

#: Numbers of a part's column sent to the driver at first; those near the median follow.
MOST_NUMBERS = 1 << 12


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file, or a folder of ``apsvm convert``, that a worker can read.

    Attributes
    ----------
    path : str
        Path on the worker.
    options : ReadOptions
        Options for reading.
    multilabel : bool
        See ``read_data``.
    """

    path: str
    options: ReadOptions
    multilabel: bool = False

    def read(self) -> Dataset:
        """Rows of the part; none for an empty file, which some programs write. Raises DataError, OSError."""
        from apsvm.data.reading import read_data

        options = self.options
        no_rows = Dataset(np.empty((0, 0)), np.empty(0), zero_based=bool(options.zero_based), source=self.path)
        if os.path.isfile(self.path) and not os.path.getsize(self.path):
            return no_rows
        try:
            # Bags are ignored or refused, whatever their labels.
            data = read_data(self.path, options, multilabel=self.multilabel or options.multilabel, bag_label="own")
        except NoRowsError:
            return no_rows
        return replace(data, bags=None) if options.ignores_bags else data

    def load(self) -> PartOfTable | Dataset:
        """The part for training: rows, or the cells of a table before columns are learned. Raises DataError,
        OSError."""
        from apsvm.data.tables.kinds import recognised
        from apsvm.data.tables.reading import read_cells

        if os.path.isfile(self.path) and not os.path.getsize(self.path):
            return self.read()
        kind, content = recognised(self.path)
        if not kind.is_table:
            return self.read()
        options = self.options.table
        chosen = ColumnChoice(options, None, unlabelled=False)
        try:
            table = read_cells(content, kind, options, chosen)
        except NoRowsError:
            return self.read()
        return PartOfTable(table, chosen.parts, options, self.options.dtype)


@dataclass(frozen=True, eq=False)
class PartOfTable:
    """Cells of a part of a table.

    Attributes
    ----------
    table : Table
        The columns read.
    parts : Parts
        Roles of the columns.
    options : TableOptions
        The user's options for the table.
    dtype : DTypeLike
        Type of the features.
    """

    table: Table
    parts: Parts
    options: TableOptions
    dtype: DTypeLike


class Survey(NamedTuple):
    """Summary of a part for the driver.

    Attributes
    ----------
    rows : the rows, their features all 0; None for a table
    size, stores_zeros : number of stored values; True if the matrix is dense
    evidence : evidence of each feature column of a table
    few : columns whose evidence holds only some of the numbers
    missing : for each column with missing cells, a bit per row
    part : the loaded part, without the cells
    """

    rows: Dataset | None
    size: int
    stores_zeros: bool
    evidence: Mapping[str, Evidence]
    few: frozenset[str]
    missing: Mapping[str, NDArray[np.uint8]]
    part: PartOfTable | None


def survey(part: PartOfTable | Dataset, spelled: frozenset[str]) -> Survey:
    """Summarises a part. ``spelled``: columns whose numbers count as words. Raises DataError for a missing cell if the
    options refuse those."""
    if isinstance(part, Dataset):
        n, width = part.X.shape
        blank = sp.csr_array((np.empty(0), np.empty(0, dtype=np.int32), np.zeros(n + 1, dtype=np.int64)), (n, width))
        rows = replace(part, X=blank)
        return Survey(rows, part.n_values, not sp.issparse(part.X), {}, frozenset(), {}, None)
    evidence, few, missing = {}, set(), {}
    for name in part.parts.features:
        cells = part.table.columns[name]
        refuse_unusable(cells, part.options)
        seen = Evidence.of(cells, spelled=name in part.options.categorical or name in spelled)
        numbers = seen.numbers
        if numbers.size > MOST_NUMBERS and seen.type not in ("date", "time") and not may_name_rows(name):
            few.add(name)
            some = numbers[:: -(-numbers.size // MOST_NUMBERS)]
            seen = replace(seen, numbers=np.concatenate((some, [numbers.min(), numbers.max()])))
        evidence[name] = seen
        if seen.missing:
            missing[name] = np.packbits(cells.is_missing)
    others = {name: cells for name, cells in part.table.columns.items() if name not in evidence}
    rest = replace(part, table=replace(part.table, columns=others))
    return Survey(None, len(part.table), True, evidence, frozenset(few), missing, rest)


class Around(NamedTuple):
    """Size of a column, number of its values below an interval, and the values in it."""

    n: int
    below: int
    between: NDArray[np.float64]


def around(part: PartOfTable, columns: Mapping[str, tuple[Column, float, float]]) -> dict[str, Around]:
    """For each column, the ``Around`` of its interval (low, high)."""
    result = {}
    for name, (column, low, high) in columns.items():
        values = numbers_of(part.table.columns[name], column)
        values = values[~np.isnan(values)]
        between = values[(values >= low) & (values <= high)]
        result[name] = Around(values.size, int(np.count_nonzero(values < low)), between)
    return result


def matrix_of_table(part: PartOfTable, columns: Columns) -> Matrix:
    """Features of a table, made by ``columns``. Raises DataError."""
    X, _, _ = features_of(part.table, columns, for_training=True, dtype=part.dtype)
    return X


def matrix_of_rows(part: Dataset, columns: Columns | None, first: str, width: int, *, dense: bool) -> Matrix:
    """Features of rows, which must have the ``width`` columns of the part ``first``. Raises DataError otherwise."""
    X = widened(in_columns_of(part, columns, first).X, width, part.source)
    return X.toarray() if dense and sp.issparse(X) else X


def release_cells(X: Matrix) -> None:
    """Frees memory of cells that this thread has read. A task on each part, so that every worker does so."""
    release_text()


def stored_values(X: Matrix) -> tuple[int, bool]:
    """Number of stored values of ``X``, and True if it is dense."""
    return int(X.nnz if sp.issparse(X) else X.size), not sp.issparse(X)


# Parts of dask collections.


def frame_or_array(X: Matrix, number: int) -> PartOfTable | Dataset:
    """Part ``number`` of a collection: cells of a data frame, or rows. Raises DataError if it cannot become
    features."""
    from sklearn.utils import check_array

    from apsvm.estimators.frames import FEATURES, is_frame, is_sparse, precision_of, table_in

    if X.shape[0] == 0:
        X = np.empty((0, 0))
    if is_frame(X) and not is_sparse(X):
        table = table_in(X)
        names = tuple(table.columns)
        return PartOfTable(table, Parts(features=names), TableOptions(features=names), precision_of(X))
    try:
        matrix: Matrix = check_array(X, ensure_min_samples=0, ensure_min_features=0, **FEATURES)
    except (TypeError, ValueError) as error:
        raise DataError(f"part {number}: {error}") from None
    return Dataset(matrix, np.zeros(matrix.shape[0]), zero_based=True, source=f"part {number}")


def weighted_quantiles(
    samples: Sequence[NDArray[np.float64]], sizes: Sequence[int], shares: Sequence[float]
) -> list[float]:
    """Quantiles at ``shares`` of pooled samples; each sample represents as many numbers as ``sizes`` says."""
    values = np.concatenate(samples)
    weights = np.repeat([size / max(1, sample.size) for sample, size in zip(samples, sizes, strict=True)],
                        [sample.size for sample in samples])  # fmt: skip
    order = np.argsort(values, kind="stable")
    passed = np.cumsum(weights[order])
    places = np.searchsorted(passed, np.array(shares) * passed[-1])
    quantiles: list[float] = values[order][np.minimum(places, values.size - 1)].tolist()
    return quantiles


def is_number(column: Column) -> bool:
    """True if the column holds numbers and the median fills its missing cells."""
    return column.kind is ColumnKind.NUMBER and column.fill is not None
