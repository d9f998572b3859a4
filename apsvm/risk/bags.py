"""The risk of bags of instances; a bag is ranked by its best instance (Behl, Jawahar, Kumar 2014):

    risk(w) = hinge of the maxima m_b(w) = max over the instances x of bag b of w·x

The most violated ranking lowers positives and raises negatives, so the best instance of every bag is its maximum,
whatever the ranking. Any exact oracle on the maxima therefore solves the joint problem exactly. The risk is convex in
the negatives' maxima and not in the positives'. With held instances of the positives (``BagRisk.convex``) it is convex,
nowhere lower, and equal where those instances are the best: a majoriser.

Scores are those of the instances, linear in w, so that line searches work as for rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.data.bags import rows_of_runs
from apsvm.data.row_operator import ScoredRows
from apsvm.losses.base import Loss
from apsvm.oracles.base import AnyOracle
from apsvm.oracles.layout import Layout
from apsvm.risk.rankings import Risk, bind_risk
from apsvm.solvers.score_space import Majoriser, Tangent


class BagMaxima:
    """Selects the instance that represents each bag.

    Parameters
    ----------
    offsets : (bags + 1,) int64, bag b is the rows offsets[b] to offsets[b + 1] − 1
    members : (m,) int64, the bags in the oracle's order; a bag may occur more than once
    positive : (m,) bool, True for positives
    threads : at most this many
    """

    def __init__(
        self, offsets: NDArray[np.int64], members: NDArray[np.int64], positive: NDArray[np.bool_], threads: int
    ) -> None:
        self.offsets = offsets
        self._members = members
        self._positive = positive
        self._threads = threads
        self._best = np.empty(offsets.size - 1, dtype=np.int64)
        #: (positives,) int64, held rows of the positives; None: their best rows.
        self.held: NDArray[np.int64] | None = None
        #: True if a bag occurs more than once.
        self.repeats = members.size >= offsets.size

    def another(self) -> BagMaxima:
        """A new instance for the same bags, without held instances."""
        return BagMaxima(self.offsets, self._members, self._positive, self._threads)

    def best_of_positives(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """(positives,) int64: the rows to hold at these scores; of equal ones the first."""
        return self._best_rows(scores)[self._members[self._positive]]

    def rows(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """(m,) int64: the row that represents each member."""
        rows = self._best_rows(scores)[self._members]
        if self.held is not None:
            rows[self._positive] = self.held
        return rows

    def _best_rows(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        _kernels.best_of_bags(scores, self.offsets, self._best, self._threads)
        return self._best


@dataclass(slots=True)
class BagRisk(Risk):
    """See the module. ``rows`` are the instances, bag by bag; counts such as ``n_pos`` are of bags."""

    maxima: BagMaxima = None  # type: ignore[assignment]  # never None: inherited fields have defaults
    _convex: BagRisk | None = field(default=None, init=False, repr=False)

    def tangent(self, scores: NDArray[np.float64], slopes: NDArray[np.float64]) -> Tangent:
        rows = self.maxima.rows(scores)
        of_bags = np.empty(rows.size)
        tangent = Risk.tangent(self, scores[rows], of_bags)
        self._spread(of_bags, rows, slopes)
        return tangent

    def less(self, by_score: Risk, scores: NDArray[np.float64], slopes: NDArray[np.float64]) -> float:
        """Same as ``Risk.less``, at the maxima, which are computed once."""
        rows = self.maxima.rows(scores)
        of_bags = np.empty(rows.size)
        value = Risk.less(self, by_score, scores[rows], of_bags)
        self._spread(of_bags, rows, slopes)
        return value

    def _spread(self, of_bags: NDArray[np.float64], rows: NDArray[np.int64], slopes: NDArray[np.float64]) -> None:
        """Spreads the weights of bags to the ``rows`` that represent them."""
        slopes.fill(0.0)
        if self.maxima.repeats:
            np.add.at(slopes, rows, of_bags)
        else:
            slopes[rows] = of_bags

    @property
    def convex(self) -> BagRisk:
        """The risk with held instances of the positives."""
        if self._convex is None:
            self._convex = replace(self, maxima=self.maxima.another())
        return self._convex

    def majoriser(self, scores: NDArray[np.float64]) -> Majoriser:
        """The majoriser with each positive held at its best instance."""
        held = self.maxima.best_of_positives(scores)
        value = self.tangent(scores, np.empty(self.n_scores)).value
        return Majoriser(value, value, held=held)

    def hold(self, held: NDArray[np.int64] | None) -> Callable[[NDArray[np.float64]], NDArray[np.float64]] | None:
        """Holds the positives of ``convex`` at these rows, (positives,)."""
        maxima = self.convex.maxima
        before, maxima.held = maxima.held, held
        if before is None or held is None or np.array_equal(before, held):
            return None

        def change(memo: NDArray[np.float64]) -> NDArray[np.float64]:
            moved = np.flatnonzero(before != held)
            slopes = np.zeros(self.n_scores)
            slopes[held[moved]] = memo[moved]
            slopes[before[moved]] = -memo[moved]
            return self.combine(slopes)

        return change

    def memo(self, slopes: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Slopes of the positives at their held rows; None if a bag is both a positive and a negative."""
        held = self.maxima.held
        return None if held is None or self.maxima.repeats else slopes[held]


def make_bag_risk(
    rows: ScoredRows,
    offsets: NDArray[np.int64],
    of_queries: Layout,
    loss: Loss,
    oracle: AnyOracle,
    *,
    count_ranks: bool = False,
) -> BagRisk:
    """The risk of bags.

    Parameters
    ----------
    rows : the instances, bag by bag
    offsets : (bags + 1,) int64, first row of each bag, and the end of the last
    of_queries : the layout of the bags
    count_ranks : see ``bind_risk``
    """
    layout = of_queries.levels_apart()
    used = np.unique(layout.members)
    members = layout.members.astype(np.int64)
    if used.size < offsets.size - 1:
        which, offsets = rows_of_runs(offsets, used)
        rows, members = rows.select(which), np.searchsorted(used, members)
    maxima = BagMaxima(offsets, members, layout.queries.positive, rows.threads)
    risk = bind_risk(rows, layout, loss, oracle, counted=of_queries.queries, count_ranks=count_ranks)
    return BagRisk(**{item.name: getattr(risk, item.name) for item in fields(risk)}, maxima=maxima)
