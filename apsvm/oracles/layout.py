"""Layout of queries, classes and grades in one array, to which an oracle for many queries is bound.

Rows stand query by query, in the order of the queries' first rows, and within a query by descending relevance. So the
positives of a query come first, and of a graded one those of every level. A query without a positive or without a
negative contributes nothing and is counted. A loss over rows (0-1) takes all rows as one query. A graded loss is a
weighted sum over its levels' binary losses. Everything here follows from relevance alone: rows may lie anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import Loss
from apsvm.losses.graded import GradedLoss, takes_grades

if TYPE_CHECKING:
    from apsvm._support.types import RowNumbers

#: Number of rows ordered at a time.
_BLOCK = 1 << 16


class NothingToRankError(ValueError):
    """No query has both a positive and a negative row."""


class Tasks(NamedTuple):
    """Tasks to solve, in the order of the queries. Tasks of the same rows are added up.

    Attributes
    ----------
    first : NDArray[int64]
        (t,) int64, first row of each task; its positives come first.
    n_pos, n_neg : NDArray[int64]
        (t,) int64, number of positives and negatives.
    weights : ndarray
        (t,) float64, weight of each task.
    """

    first: NDArray[np.int64]
    n_pos: NDArray[np.int64]
    n_neg: NDArray[np.int64]
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Levels:
    """The binary losses that make up a graded one, in the order of the queries.

    Attributes
    ----------
    query : NDArray[int64]
        (t,) int64, the query of each level.
    n_pos : NDArray[int64]
        (t,) int64, how many of that query's first rows are the level's positives.
    weights : ndarray
        (t,) float64, weight of the level within its query.
    """

    query: NDArray[np.int64]
    n_pos: NDArray[np.int64]
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Queries:
    """Layout of many queries in one array: query by query, positives first.

    Attributes
    ----------
    n_pos, n_neg : NDArray[int64]
        (q,) int64, number of positives and negatives of each query (for a loss over rows q = 1).
    shares : ndarray
        (q,) float64, the weights of the queries in the risk.
    costs : ndarray, optional
        (n,) float64 or None, costs of the rows, for losses over rows only.
    levels : Levels, optional
        Levels of a graded loss, whose rows stand by descending grade; None: each query is one task.
    """

    n_pos: NDArray[np.int64]
    n_neg: NDArray[np.int64]
    shares: NDArray[np.float64]
    costs: NDArray[np.float64] | None = None
    levels: Levels | None = None

    @property
    def first(self) -> NDArray[np.int64]:
        """(q,) int64: first row of each query."""
        return np.cumsum(self.n_pos + self.n_neg) - self.n_pos - self.n_neg

    @property
    def positive(self) -> NDArray[np.bool_]:
        """(n,) bool: True for positives; with levels, for positives of the lowest one."""
        counts = np.column_stack([self.n_pos, self.n_neg]).ravel()
        return np.repeat(np.tile([True, False], self.n_pos.size), counts)

    @property
    def tasks(self) -> Tasks:
        if self.levels is None:
            return Tasks(self.first, self.n_pos, self.n_neg, self.shares)
        at, n_pos = self.levels.query, self.levels.n_pos
        return Tasks(
            self.first[at], n_pos, (self.n_pos + self.n_neg)[at] - n_pos, self.shares[at] * self.levels.weights
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """Rows that count, in the order of their queries.

    Attributes
    ----------
    members : RowNumbers
        (m,) int32, int64 from 2³¹ rows on: the rows that count, in their order.
    queries : Queries
        Layout of the m rows.
    queries_skipped : int
        Number of queries without both classes.
    """

    members: RowNumbers
    queries: Queries
    queries_skipped: int

    def levels_apart(self) -> Layout:
        """The same layout with a query for each level of grades. A row between two grades is then a positive of one
        level and a negative of another."""
        if self.queries.levels is None:
            return self
        tasks = self.queries.tasks
        sizes = tasks.n_pos + tasks.n_neg
        places = np.arange(int(sizes.sum())) + np.repeat(tasks.first - (np.cumsum(sizes) - sizes), sizes)
        apart = Queries(tasks.n_pos, tasks.n_neg, tasks.weights)
        return Layout(self.members[places], apart, self.queries_skipped)


def lay_out(
    loss: Loss,
    relevant: NDArray[np.bool_],
    *,
    groups: NDArray[np.int64] | None = None,
    costs: NDArray[np.float64] | None = None,
    query_weights: Mapping[int, float] | None = None,
    grades: NDArray[np.float64] | None = None,
) -> Layout:
    """Lay out n rows for this loss.

    Parameters
    ----------
    relevant : ndarray of bool
        (n,) bool.
    groups : NDArray[int64], optional
        (n,) int64, rows of one query share a value, in any order; None: one query.
    costs : ndarray, optional
        (n,) float64 ≥ 0, for losses over rows; None: all one.
    query_weights : Mapping[int, float], optional
        Weight ≥ 0 of each group in the mean; 1 for groups not listed; None: all one.
    grades : ndarray, optional
        (n,) float64, for a graded loss; rows above 0 are its positives. None: a binary loss.

    Raises
    ------
    NothingToRankError
        No query of weight > 0 has both a positive and a negative row.
    LossError
        A grade without a finite gain.
    """
    by_query = groups if loss.by_query else None
    levels = None
    relevance = np.maximum(grades, 0.0) if grades is not None and takes_grades(loss) else None
    order, n_pos, n_neg = _queries_first(relevant, relevance, by_query)
    first = np.cumsum(n_pos + n_neg) - n_pos - n_neg
    to_rank = (n_pos > 0) & (n_neg > 0)
    if relevance is not None and takes_grades(loss):
        levels = _levels(loss, relevance[order], first)
        to_rank = np.isin(np.arange(n_pos.size), levels.query)
    weights = np.ones(n_pos.size)
    if query_weights is not None and by_query is not None:
        weights = np.array([query_weights.get(group, 1.0) for group in by_query[order[first]].tolist()])
    used = to_rank & (weights > 0)
    if not used.any():
        raise NothingToRankError("no query has both a positive and a negative row")
    members = order if used.all() else order[np.repeat(used, n_pos + n_neg)]
    if levels is not None:
        kept = used[levels.query]
        levels = Levels((np.cumsum(used) - 1)[levels.query[kept]], levels.n_pos[kept], levels.weights[kept])
    shares = weights[used] / weights[used].sum()
    costs = None if costs is None or loss.by_query else costs[members]
    return Layout(members, Queries(n_pos[used], n_neg[used], shares, costs, levels), int((~to_rank).sum()))


def require_pairs(relevant: NDArray[np.bool_], groups: NDArray[np.int64] | None) -> None:
    """Raises NothingToRankError if no query has both a positive and a negative row."""
    if groups is None:
        fine = relevant.any() and not relevant.all()
    else:
        fine = np.intersect1d(groups[relevant], groups[~relevant]).size > 0
    if not fine:
        raise NothingToRankError("no query has both a positive and a negative row")


def _queries_first(
    relevant: NDArray[np.bool_], relevance: NDArray[np.float64] | None, groups: NDArray[np.int64] | None
) -> tuple[RowNumbers, NDArray[np.int64], NDArray[np.int64]]:
    """Orders rows query by query (by the queries' first rows) and by descending relevance, stably. Also returns the
    numbers of relevant and other rows of each query, (q,) int64. ``relevance``: (n,) ≥ 0, relevant above 0; None if
    only the two classes matter."""
    if relevance is not None:
        relevant = relevance > 0.0
    if groups is None:
        n_pos = np.array([np.count_nonzero(relevant)])
        order = _positives_first(relevant) if relevance is None else _by_relevance(relevance)
        return order, n_pos, relevant.size - n_pos
    starts = np.concatenate(([0], np.flatnonzero(groups[1:] != groups[:-1]) + 1))
    if relevance is None and np.unique(groups[starts]).size == starts.size:
        return _positives_first_in_runs(relevant, starts)
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    rank_of_group = np.argsort(np.argsort(first))
    query = rank_of_group[inverse]
    order = _narrow(np.lexsort((~relevant if relevance is None else -relevance, query)))
    positives = np.bincount(query, weights=relevant).astype(np.int64)
    return order, positives, np.bincount(query) - positives


def _narrow(rows: NDArray[np.int64]) -> RowNumbers:
    return rows.astype(_type_of_rows(rows.size), copy=False)


def _type_of_rows(n: int) -> type[np.int32] | type[np.int64]:
    """Integer type for the numbers of n rows."""
    return np.int32 if n <= np.iinfo(np.int32).max else np.int64


def _by_relevance(relevance: NDArray[np.float64]) -> RowNumbers:
    return _narrow(np.argsort(-relevance, kind="stable"))


def _positives_first(relevant: NDArray[np.bool_]) -> RowNumbers:
    """The relevant rows, then the others, each in order. The result is the only array of the size of the data."""
    order: RowNumbers = np.empty(relevant.size, dtype=_type_of_rows(relevant.size))
    at, at_other = 0, np.count_nonzero(relevant)
    for start in range(0, relevant.size, _BLOCK):
        of_block = relevant[start : start + _BLOCK]
        positives, others = np.flatnonzero(of_block), np.flatnonzero(~of_block)
        order[at : at + positives.size] = positives + start
        order[at_other : at_other + others.size] = others + start
        at, at_other = at + positives.size, at_other + others.size
    return order


def _positives_first_in_runs(
    relevant: NDArray[np.bool_], starts: NDArray[np.int64]
) -> tuple[RowNumbers, NDArray[np.int64], NDArray[np.int64]]:
    """The same within each run, given by its first rows ``starts``; also the numbers of both in each run."""
    n, number = relevant.size, _type_of_rows(relevant.size)
    sizes = np.diff(starts, append=n)
    n_pos = np.add.reduceat(relevant, starts, dtype=np.int64)
    ends = np.cumsum(n_pos)
    positives_before: RowNumbers = np.cumsum(relevant, dtype=number)  # in the row's run
    positives_before -= relevant
    positives_before -= np.repeat((ends - n_pos).astype(number), sizes)
    rows: RowNumbers = np.arange(n, dtype=number)
    place = np.repeat(n_pos.astype(number), sizes)
    place += rows
    place -= positives_before
    of_positives = np.repeat(starts.astype(number), sizes)
    of_positives += positives_before
    np.copyto(place, of_positives, where=relevant)
    order: RowNumbers = np.empty_like(rows)
    order[place] = rows
    return order, n_pos, sizes - n_pos


def _levels(loss: GradedLoss, grades: NDArray[np.float64], first: NDArray[np.int64]) -> Levels:
    """The levels of queries beginning at ``first``, whose ``grades`` stand in descending order."""
    levels = [
        (query, np.count_nonzero(of_query >= threshold), weight)
        for query, of_query in enumerate(np.split(grades, first[1:]))
        for threshold, weight in loss.levels(of_query)
    ]
    query, n_pos, weights = zip(*levels, strict=True) if levels else ((), (), ())
    return Levels(np.array(query, dtype=np.int64), np.array(n_pos, dtype=np.int64), np.array(weights, dtype=np.float64))
