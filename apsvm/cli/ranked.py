"""Rows in the order of their scores, and what they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apsvm._support.shown import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.dataset import Dataset


def best_first(rows: Dataset, scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n,) the rows, those of the query that appears first in front, the best of each query first, those of equal score
    as they stand; and (n,) their ranks in their queries, from 1."""
    import numpy as np

    if rows.groups is None:
        return np.argsort(-scores, kind="stable"), np.arange(1, scores.size + 1)
    _, first, query = np.unique(rows.groups, return_index=True, return_inverse=True)
    order = np.lexsort((-scores, first[query]))
    begins = np.flatnonzero(np.diff(query[order], prepend=-1))
    rank = np.arange(1, order.size + 1) - np.repeat(begins, np.diff(np.append(begins, order.size)))
    return order, rank


def names_of_queries(rows: Dataset) -> list[str] | None:
    """(n,) what the rows' queries are called in their table, or else their qid; None where there are none."""
    if rows.groups is None:
        return None
    return [printable(rows.query_name(query)) for query in rows.groups.tolist()]


def names_of_rows(rows: Dataset) -> list[str]:
    """What rows are called in their table, or the bags that they stand for; or else their numbers in the file, from 1,
    bags' as bag:INT."""
    if rows.table is not None and rows.table.keys is not None:
        return [printable(key) for key in rows.table.keys.tolist()]
    if rows.stands_for is not None:
        prefix = "" if rows.table is not None and rows.table.bags else "bag:"
        return [printable(f"{prefix}{rows.bag_name(bag)}") for bag in rows.stands_for.tolist()]
    return [str(row) for row in range(1, rows.X.shape[0] + 1)]
