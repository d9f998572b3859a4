"""From parts to one data set on the driver, whose features stay on the workers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from apsvm._support.types import Matrix
from apsvm.dask.cluster import Cluster, Parts, let_go
from apsvm.dask.parts import (
    FilePart,
    Survey,
    around,
    is_number,
    matrix_of_rows,
    matrix_of_table,
    release_cells,
    stored_values,
    survey,
    weighted_quantiles,
)
from apsvm.dask.rows import PartedMatrix
from apsvm.data.dataset import DataError, Dataset, TableRows
from apsvm.data.joining import joined
from apsvm.data.tables.cells import behind_another
from apsvm.data.tables.learning import learn_of_parts, tells_the_label
from apsvm.data.tables.reading import ColumnChoice, rows_beside, with_features
from apsvm.data.tables.roles import require_names

if TYPE_CHECKING:
    from apsvm.data.read_options import TableOptions
    from apsvm.models.columns import Columns

#: Quantiles of a sample of numbers between which the median of all numbers is expected.
AROUND_THE_MEDIAN = (0.47, 0.53)


def read_to_train(cluster: Cluster, parts: Sequence[FilePart], source: str) -> Dataset:
    """Rows of files, concatenated, each file read by a worker; see ``read_data``.

    Raises
    ------
    DataError : parts that cannot be read or do not fit together; the message names part and worker
    OSError : a file that cannot be read; ClusterError, WorkerError
    """
    loaded = cluster.submit(FilePart.load, parts)
    return data_of(cluster, loaded, source)


def data_of(cluster: Cluster, loaded: Parts, source: str) -> Dataset:
    """``read_to_train`` for loaded parts, which it releases."""
    try:
        data = _data_of(cluster, loaded, source)
    finally:
        let_go(loaded)
    cluster.ask(release_cells, data.X.parts)
    return data


def _data_of(cluster: Cluster, loaded: Parts, source: str) -> Dataset:
    surveys: list[Survey] = cluster.ask(survey, loaded, frozenset())
    filled = [at for at, summary in enumerate(surveys) if summary.rows is None or len(summary.rows)]
    if not filled:
        raise DataError(f"{source}: expected at least one row, found none")
    loaded, surveys = [loaded[at] for at in filled], [surveys[at] for at in filled]
    if all(summary.part is not None for summary in surveys):
        return _of_tables(cluster, loaded, surveys, source)
    if any(summary.part is not None for summary in surveys):
        raise DataError(f"{source}: some parts are tables with named columns, and some are none")
    rows = [summary.rows for summary in surveys if summary.rows is not None]
    whole = joined(rows, source)
    columns = None if rows[0].table is None else rows[0].table.columns
    n, width = whole.X.shape
    size = sum(summary.size for summary in surveys)
    dense = all(summary.stores_zeros for summary in surveys) or size == n * width
    features = functools.partial(matrix_of_rows, columns=columns, first=rows[0].source, width=width, dense=dense)
    matrices = cluster.submit(features, loaded)
    sizes = np.array([len(block) for block in rows])
    return replace(whole, X=PartedMatrix(cluster, matrices, sizes, width, size, stores_zeros=dense))


def _of_tables(cluster: Cluster, loaded: Parts, surveys: list[Survey], source: str) -> Dataset:
    """Data set of the parts of a table. Columns are learned from all parts, as on one machine."""
    parts = [summary.part for summary in surveys if summary.part is not None]
    first = parts[0]
    for summary in surveys[1:]:
        assert summary.part is not None
        places = summary.part.table.places.source
        require_names([*summary.part.table.columns, *summary.evidence], places,
                      [*first.table.columns, *surveys[0].evidence], first.table.places.source)  # fmt: skip
    words = frozenset(
        name
        for name in first.parts.features
        if any(summary.evidence[name].spelled is not None for summary in surveys)
        and any(name in summary.few and summary.evidence[name].spelled is None for summary in surveys)
    )
    if words:  # a word in one part makes the numbers of all parts words
        surveys = cluster.ask(survey, loaded, words)
    sizes = np.array([summary.size for summary in surveys])

    def learn() -> tuple[Matrix, Columns, dict[str, NDArray[np.bool_]], list[str]]:
        columns, remarks = learn_of_parts([summary.evidence for summary in surveys], first.parts, first.options, source)
        columns = _with_medians(cluster, loaded, surveys, columns, first.options)
        matrices = cluster.submit(matrix_of_table, loaded, [columns] * len(loaded))
        stored = cluster.ask(stored_values, matrices)
        names = {name for summary in surveys for name in summary.missing}
        missing = {
            column.name: np.concatenate(
                [
                    np.unpackbits(s.missing.get(column.name, np.zeros(-(-s.size // 8), np.uint8)), count=s.size)
                    for s in surveys
                ]
            ).astype(np.bool_)
            for column in columns.features
            if column.name in names
        }
        size, stores_zeros = sum(values for values, _ in stored), all(is_dense for _, is_dense in stored)
        return PartedMatrix(cluster, matrices, sizes, columns.width, size, stores_zeros), columns, missing, remarks

    if not first.table.columns:  # a data frame: labels and queries are elsewhere
        X, columns, _, remarks = learn()
        X = replace(X, names=first.parts.features, columns=columns)
        table = TableRows(columns, remarks=tuple(remarks))
        return Dataset(X, np.zeros(X.shape[0]), source=source, table=table)
    chosen = ColumnChoice(first.options, None, unlabelled=False)
    chosen.parts = first.parts
    rows = rows_beside(behind_another([part.table for part in parts]), first.options, chosen, "own")
    X, columns, missing, remarks = learn()
    whole = with_features(rows, X, columns, (*remarks, *tells_the_label(missing, rows)))
    return replace(whole, source=source)


def _with_medians(
    cluster: Cluster, loaded: Parts, surveys: Sequence[Survey], columns: Columns, options: TableOptions
) -> Columns:
    """The columns with exact medians. For columns of which the driver has seen only a part, workers send the numbers
    around the median."""
    few = frozenset().union(*(summary.few for summary in surveys))
    intervals = {}
    for column in columns.features:
        if column.name in few and is_number(column) and options.missing != "zero":
            of_parts = [summary.evidence[column.name] for summary in surveys]
            counts = [seen.n - seen.missing - seen.n_words for seen in of_parts]
            low, high = weighted_quantiles([seen.numbers for seen in of_parts], counts, AROUND_THE_MEDIAN)
            intervals[column.name] = (column, low, high)
    medians = _medians(cluster, loaded, intervals)
    rest = {name: (column, -np.inf, np.inf) for name, (column, _, _) in intervals.items() if name not in medians}
    medians |= _medians(cluster, loaded, rest)
    of_all = [replace(column, fill=medians.get(column.name, column.fill)) for column in columns.features]
    return replace(columns, features=tuple(of_all))


def _medians(cluster: Cluster, loaded: Parts, intervals: dict[str, Any]) -> dict[str, float]:
    """Medians by column, for columns whose median lies in the requested interval."""
    medians: dict[str, float] = {}
    if not intervals:
        return medians
    answers = cluster.ask(around, loaded, intervals)
    for name in intervals:
        n, below = sum(answer[name].n for answer in answers), sum(answer[name].below for answer in answers)
        between = np.concatenate([answer[name].between for answer in answers])
        places = np.array([(n - 1) // 2, n // 2]) - below
        if places[0] >= 0 and places[1] < between.size:
            first, second = np.partition(between, places)[places].tolist()
            medians[name] = float(first / 2 + second / 2)  # their sum may be infinite
    return medians
