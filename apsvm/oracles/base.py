"""What a separation oracle is: scores of the positives and the negatives in, the most violated ranking out.

    h(s) = max_R [Δ(R*, R) + w·Ψ(R) − w·Ψ(R*)] = Δ(R̂) + c·s

with signed row weights c, a subgradient of h with respect to the scores (``apsvm.ranking``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.losses.base import Loss, RankingLoss


class Violation(NamedTuple):
    """What an oracle says of the most violated ranking, or for a loss over rows of the most violated labelling.

    value : h, the structured hinge; h = Δ + c·s with the row weights c
    loss : Δ of that ranking
    ranks_evaluated : argmaxes over ranks that were computed (bisections look at some negatives twice)
    violating : negatives above at least one positive (for a loss over rows: rows that violate)
    """

    value: float
    loss: float
    ranks_evaluated: int
    violating: int


class BoundOracle(Protocol):
    """An oracle made ready for one query, with what it keeps from call to call."""

    def __call__(
        self,
        scores_pos: NDArray[np.float64],
        scores_neg: NDArray[np.float64],
        weights_pos: NDArray[np.float64],
        weights_neg: NDArray[np.float64],
        /,
    ) -> Violation:
        """Finds the most violated ranking for ``scores_pos`` (n_pos,) and ``scores_neg`` (n_neg,), and writes its row
        weights c into ``weights_pos`` and ``weights_neg``; all float64, C-contiguous, in the order of the rows."""


class Tasks(NamedTuple):
    """What is to be solved, in the order of the queries: the rows from ``first`` on, ``n_pos`` positives and ``n_neg``
    negatives, count ``weights`` times. (t,) int64 and float64. Tasks of the same rows are added up."""

    first: NDArray[np.int64]
    n_pos: NDArray[np.int64]
    n_neg: NDArray[np.int64]
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Levels:
    """The binary losses that make up a graded one, in the order of the queries, (t,) each: level t is of the query
    ``query[t]``, whose first ``n_pos[t]`` rows are its positives, and counts ``weights[t]``."""

    query: NDArray[np.int64]
    n_pos: NDArray[np.int64]
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Queries:
    """How the rows of many queries stand in one array: query by query, positives first.

    n_pos, n_neg : (q,) int64 (for a loss over rows: of all rows, q = 1)
    shares : (q,) float64, the weights of the queries in the risk
    costs : (n,) float64 or None, of the rows, for losses over rows; a ranking loss has no use for them
    levels : of a graded loss, whose rows stand by descending grade; None: each query is one task, of both classes
    """

    n_pos: NDArray[np.int64]
    n_neg: NDArray[np.int64]
    shares: NDArray[np.float64]
    costs: NDArray[np.float64] | None = None
    levels: Levels | None = None

    @property
    def first(self) -> NDArray[np.int64]:
        """(q,) int64: where each query begins."""
        return np.cumsum(self.n_pos + self.n_neg) - self.n_pos - self.n_neg

    def of(self, which: NDArray[np.int64]) -> Queries:
        """The queries ``which`` (m,) int64, ascending, with the rows of these alone; ranking losses only."""
        levels = self.levels
        if levels is not None:
            kept = np.isin(levels.query, which)
            query = np.searchsorted(which, levels.query[kept])
            levels = Levels(query, levels.n_pos[kept], levels.weights[kept])
        return Queries(self.n_pos[which], self.n_neg[which], self.shares[which], None, levels)

    @property
    def tasks(self) -> Tasks:
        if self.levels is None:
            return Tasks(self.first, self.n_pos, self.n_neg, self.shares)
        at, n_pos = self.levels.query, self.levels.n_pos
        return Tasks(
            self.first[at], n_pos, (self.n_pos + self.n_neg)[at] - n_pos, self.shares[at] * self.levels.weights
        )


class QueriesOracle(Protocol):
    """An oracle made ready for many queries, with what it keeps from call to call."""

    def __call__(self, scores: NDArray[np.float64], weights: NDArray[np.float64], /) -> Violation:
        """The sums over the queries, by their shares, for ``scores`` (n,); writes all row weights into ``weights``
        (n,); both float64, C-contiguous, laid out as ``Queries`` says."""


class Oracle(ABC):
    """``exact`` says whether the value is the true maximum: only an exact oracle can certify convergence."""

    name: ClassVar[str]
    exact: ClassVar[bool] = True

    @abstractmethod
    def refusal(self, loss: Loss) -> str | None:
        """Why this oracle cannot serve ``loss``, or None if it can."""

    @abstractmethod
    def bind(
        self,
        loss: Loss,
        n_pos: int,
        n_neg: int,
        *,
        costs: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
        threads: int = 1,
    ) -> BoundOracle:
        """The oracle for one query of these sizes, its tables made once. ``costs``: of the positives' and the
        negatives' rows, for losses over rows; a ranking loss has no use for them. The result does not depend on
        ``threads``."""

    def bind_queries(self, loss: Loss, queries: Queries, *, threads: int = 1) -> QueriesOracle:
        """The oracle for many queries; one task after another unless an oracle knows better."""
        costs = queries.costs
        bound = []
        for first, n_pos, n_neg, share in zip(*queries.tasks, strict=True):
            middle, end = first + n_pos, first + n_pos + n_neg
            own = None if costs is None else (costs[first:middle], costs[middle:end])
            oracle = self.bind(loss, int(n_pos), int(n_neg), costs=own, threads=threads)
            bound.append((slice(first, middle), slice(middle, end), float(share), oracle))

        def most_violated(scores: NDArray[np.float64], weights: NDArray[np.float64], /) -> Violation:
            value = lost = 0.0
            evaluated = violating = 0
            weights[:] = 0.0
            for pos, neg, share, oracle in bound:
                own = np.empty(neg.stop - pos.start)
                n_pos = pos.stop - pos.start
                found = oracle(scores[pos], scores[neg], own[:n_pos], own[n_pos:])
                weights[pos.start : neg.stop] += own if share == 1.0 else share * own
                value += share * found.value
                lost += share * found.loss
                evaluated += found.ranks_evaluated
                violating += found.violating
            return Violation(value, lost, evaluated, violating)

        return most_violated


class RankingOracle(Oracle):
    """An oracle for the family of two-array losses."""

    def refusal(self, loss: Loss) -> str | None:
        if isinstance(loss, RankingLoss):
            return None
        return "it serves losses of two arrays, weights and a convex discount, and this one has none"

    @abstractmethod
    def bind_ranking(self, loss: RankingLoss, n_pos: int, n_neg: int, threads: int) -> BoundOracle:
        """``bind`` for a ranking loss. Of equal maxima the largest rank is to be taken, and
        negatives of equal score stand in the order given."""

    def bind(
        self,
        loss: Loss,
        n_pos: int,
        n_neg: int,
        *,
        costs: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
        threads: int = 1,
    ) -> BoundOracle:
        assert isinstance(loss, RankingLoss)
        return self.bind_ranking(loss, n_pos, n_neg, threads)


class NativeOracle(RankingOracle):
    """A ranking oracle whose algorithm is a kernel of the same name."""

    def bind_ranking(self, loss: RankingLoss, n_pos: int, n_neg: int, threads: int) -> BoundOracle:
        kernel = _kernels.RankingOracle(self.name, loss.unimodal, threads)
        kernel.add_tables(n_neg, *loss.tables(n_pos, n_neg))
        return lambda *arrays: Violation(*kernel.one(*arrays))

    def bind_queries(self, loss: Loss, queries: Queries, *, threads: int = 1) -> QueriesOracle:
        assert isinstance(loss, RankingLoss)
        kernel = _kernels.RankingOracle(self.name, loss.unimodal, threads)
        first, n_pos, n_neg, shares = queries.tasks
        sizes, which = np.unique(np.stack([n_pos, n_neg]), axis=1, return_inverse=True)
        for n_positives, n_negatives in sizes.T.tolist():
            kernel.add_tables(n_negatives, *loss.tables(n_positives, n_negatives))
        kernel.add_tasks(first, which.ravel().astype(np.int64), shares)
        return lambda scores, weights: Violation(*kernel(scores, weights))
