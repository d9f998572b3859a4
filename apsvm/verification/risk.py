"""Risk of rows or bags as a function of the rows' scores: the mean over the queries of their structured hinges
(``apsvm.verification.plain``), with its plane. NumPy only.

A bag has the score of its best row. ``held``, if given, is the row whose score each bag has as a positive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.verification.exact import UNIT
from apsvm.verification.plain import (
    Array,
    Definition,
    Hinge,
    RankingDefinition,
    levels,
    ranking_by_score,
)

Integers = NDArray[np.int64]


class Task(NamedTuple):
    """A query, or one level of a query's grades.

    Attributes
    ----------
    weight : float, its weight in the risk
    positives, negatives : the units, rows or bags, (P,) and (N,) int64
    costs : the costs of both, if units have costs
    """

    weight: float
    positives: Integers
    negatives: Integers
    costs: tuple[Array, Array] | None


class Plane(NamedTuple):
    """A plane slopes·s' + offset ≤ the risk at every s' (n,), equal to the risk's ``value`` at its own point."""

    value: float
    offset: float
    slopes: Array


@dataclass(frozen=True)
class Units:
    """Units that are ranked: n rows, single or in bags.

    Attributes
    ----------
    rows : int, n
    order : (n,) int64, the rows bag by bag; None: each row is a unit
    starts : (bags,) int64, where each bag begins in ``order``
    """

    rows: int
    order: Integers | None = None
    starts: Integers | None = None

    def best(self, scores: Array) -> Integers:
        """(units,) int64: the best row of each unit. NaN ranks below all others; no objective is finite with it."""
        if self.order is None or self.starts is None:
            return np.arange(self.rows)
        values = scores[self.order]
        values = np.where(np.isnan(values), -np.inf, values)
        maxima = np.maximum.reduceat(values, self.starts)
        sizes = np.diff(self.starts, append=self.rows)
        at_maximum = np.flatnonzero(values == np.repeat(maxima, sizes))
        return self.order[at_maximum[np.searchsorted(at_maximum, self.starts)]]


class PlainRisk:
    """Risk of scores; see the module.

    Parameters
    ----------
    definition : the definition of the loss
    tasks : the terms of the sum
    units : the units that are ranked
    """

    def __init__(self, definition: Definition, tasks: list[Task], units: Units) -> None:
        self._definition, self._tasks, self._units = definition, tasks, units
        #: True if each unit is a row: then the hinge is convex in w; otherwise only with held units.
        self.of_rows = units.order is None

    def hinge(self, scores: Array, held: Integers | None = None, worse: Array | float = 0.0) -> Plane:
        """Structured hinge at ``scores`` (n,), with positives lowered and negatives raised by ``worse``. If ``worse`` ≥
        0, no scores in between have a higher hinge."""
        return self._sum(scores, held, worse, by_score=False)

    def by_score(self, scores: Array, held: Integers | None = None, worse: Array | float = 0.0) -> Plane:
        """Margin terms of the ranking by score; the tight bound is the hinge minus these."""
        return self._sum(scores, held, worse, by_score=True)

    def rounding(self, scores: Array) -> float:
        """Bound on the rounding error of the hinge at ``scores``, including the choice of its ranking: a fraction of
        the largest terms of each task's sums."""
        at, error = np.abs(scores[self.best(scores)]), 0.0
        for weight, positives, negatives, costs in self._tasks:
            loss, down, up = self._definition.largest(positives.size, negatives.size, costs)[1:]
            terms = loss + float(down @ at[positives]) + float(up @ at[negatives])
            error += weight * (positives.size + negatives.size + 32) * UNIT * terms
        return error

    @property
    def largest_loss(self) -> float:
        """Upper bound on the summed magnitudes of the loss's terms."""
        sizes = ((task.weight, (task.positives.size, task.negatives.size, task.costs)) for task in self._tasks)
        return sum(weight * self._definition.largest(*of_task).loss for weight, of_task in sizes)

    def best(self, scores: Array) -> Integers:
        """(units,) int64: the best row of each unit."""
        return self._units.best(scores)

    def _sum(self, scores: Array, held: Integers | None, worse: Array | float, *, by_score: bool) -> Plane:
        at = self.best(scores)
        lower, higher = scores - worse, scores + worse
        at_positive = at if held is None else held
        slopes = np.zeros(scores.size)
        value = offset = 0.0
        for weight, positives, negatives, costs in self._tasks:
            rows_pos, rows_neg = at_positive[positives], at[negatives]
            s_pos, s_neg = lower[rows_pos], higher[rows_neg]
            result: Hinge = ranking_by_score(s_pos, s_neg) if by_score else self._definition.hinge(s_pos, s_neg, costs)
            value += weight * result.value
            offset += weight * result.loss
            slopes[rows_pos] += weight * result.positives
            slopes[rows_neg] += weight * result.negatives
        return Plane(value, offset, slopes)


def tasks_of(
    definition: Definition,
    relevant: NDArray[np.bool_],
    *,
    grades: Array | None = None,
    queries: Integers | None = None,
    costs: Array | None,
    query_weights: Mapping[int, float] | None = None,
) -> list[Task]:
    """Tasks whose weighted sum is the risk of these units.

    Parameters
    ----------
    relevant : (n,) bool
    grades : (n,) float64; losses without a gain ignore them
    queries : (n,) int64; None: one query
    costs : (n,) float64; only losses over rows use them
    query_weights : weight of each query in the mean, 1 where not named
    """
    everything = np.arange(relevant.size)
    if queries is None or not definition.by_query:
        members = [(1.0, everything)]
    else:
        by_query = np.argsort(queries, kind="stable")
        names, starts = np.unique(queries[by_query], return_index=True)
        weights = [(query_weights or {}).get(name, 1.0) for name in names.tolist()]
        members = list(zip(weights, np.split(by_query, starts[1:]), strict=True))
    graded = grades is not None and isinstance(definition, RankingDefinition) and definition.gain is not None
    parts: list[tuple[float, list[Task]]] = []
    for weight, rows in members:
        if graded:
            assert grades is not None
            assert isinstance(definition, RankingDefinition)
            levelled = levels(grades[rows], definition)
            tasks = [_task(share, rows, np.maximum(grades[rows], 0.0) >= level) for level, share in levelled]
        else:
            tasks = [_task(1.0, rows, relevant[rows], costs)]
            tasks = [task for task in tasks if task.positives.size and task.negatives.size]
        if tasks and weight > 0.0:
            parts.append((weight, tasks))
    total = sum(weight for weight, _ in parts)
    return [task._replace(weight=task.weight * weight / total) for weight, tasks in parts for task in tasks]


def _task(weight: float, rows: Integers, positive: NDArray[np.bool_], costs: Array | None = None) -> Task:
    positives, negatives = rows[positive], rows[~positive]
    return Task(weight, positives, negatives, None if costs is None else (costs[positives], costs[negatives]))
