"""The pair loss of RankNCG (Raykar, Duraiswami, Krishnapuram 2008) as a function of the scores s = Xw:

    L(s) = scale · Σ over edges i → j  Σ_{k ∈ A^i, l ∈ A^j} q_k q_l ℓ(s_l − s_k),   pairs only within a query,

    logistic   ℓ(u) = log(1 + e^{−u}): minus the log-likelihood of the paper
    erfc       ℓ(u) = ierfc(cu)/(2c), ierfc(t) = e^{−t²}/√π − t erfc(t), c = √3/(√2 π): convex, and −ℓ'(u) = erfc(cu)/2
               replaces the logistic gradient in the paper

with the weights q of the rows, or 1, and scale 1 / Σ q_k q_l (without weights, 1 / number of pairs), or 1 as in the
paper. ℓ is summed pair by pair or in O(n) (``fast_sums.hpp``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm._support.clock import Spans
from apsvm.data.row_operator import RowOperator
from apsvm.risk.of_rows import FunctionOfRows
from apsvm.solvers.score_space import Tangent
from apsvm.trainers.rank_ncg.preferences import Classes, PreferenceGraph

#: r_x of the Fourier series: half the width of a cell.
HALF_WIDTH = 0.5


class NoPairsError(ValueError):
    """No query has a pair of rows with a preference."""


def fourier_setting(
    accuracy: float, kappa: float = 3.0, half_width: float = HALF_WIDTH
) -> tuple[float, int, float, float]:
    """Parameters h, p, r − r_x and r_x of the Fourier series (31)-(33), chosen as in the slides for an error of
    ``accuracy`` ε per unit of weight, 0 < ε < 1. ``kappa`` is κ of (31): the slides use 3, and 2 would suffice.

        r = erfc⁻¹(ε) + 2 r_x,   h = π / (κ (r + erfc⁻¹(ε/2))),   p = ⌈erfc⁻¹(√π h ε/4) / (2h)⌉
    """
    from scipy.special import erfcinv

    r = float(erfcinv(accuracy)) + 2.0 * half_width
    h = np.pi / (kappa * (r + float(erfcinv(accuracy / 2.0))))
    p = int(np.ceil(float(erfcinv(np.sqrt(np.pi) * h * accuracy / 4.0)) / (2.0 * h)))
    return h, p, r - half_width, half_width


@dataclass(slots=True, eq=False)
class PairLoss(FunctionOfRows):
    """See the module; made by ``make_pair_loss``.

    Attributes
    ----------
    rows : ordered query by query, and class by class within a query
    pairs, queries, queries_skipped : int, number of pairs, and of queries with and without pairs
    scale : factor of the sum over pairs
    """

    rows: RowOperator
    pairs: int
    queries: int
    queries_skipped: int
    scale: float
    _sums: _kernels.PairSums = field(repr=False)
    _spans: Spans = field(default_factory=Spans, repr=False)

    def slopes(self, scores: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        self._sum(scores, out, with_loss=False)

    def tangent(self, scores: NDArray[np.float64], slopes: NDArray[np.float64]) -> Tangent:
        return Tangent(self._sum(scores, slopes, with_loss=True))

    def spans(self) -> Spans:
        """Time spent since the last call on scores, sums and gradient."""
        spans, self._spans = self._spans, Spans()
        return spans

    def _sum(self, scores: NDArray[np.float64], out: NDArray[np.float64], *, with_loss: bool) -> float:
        if not (np.isfinite(scores.sum()) or np.isfinite(scores).all()):
            raise FloatingPointError("scores are not finite: the feature values are too large, scale them down")
        with self._spans["sums"]:
            return self._sums(scores, out, self.scale, with_loss)


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """Rows in the order of the kernel: query by query, and class by class within a query.

    order : (n,) int64, positions of the caller's rows
    starts : (S + 1,) int64, first rows of the segments (rows of one class of one query); classes : (S,) int64, their
        classes
    queries : (Q + 1,) int64, the first segment of each query
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    classes: NDArray[np.int64]
    queries: NDArray[np.int64]


def arrange(classes: Classes, groups: NDArray[np.int64] | None) -> Arrangement:
    """groups : (n,) int64, rows of one query share a value, in any order; None: one query"""
    n = classes.of_row.size
    if groups is None:
        short = classes.of_row.astype(np.min_scalar_type(classes.names.size), copy=False)  # short keys sort by digits
        counts = np.bincount(classes.of_row)
        present = np.flatnonzero(counts)
        starts = np.append(0, np.cumsum(counts[present]))
        return Arrangement(np.argsort(short, kind="stable"), starts, present, np.array([0, present.size]))
    query = np.unique(groups, return_inverse=True)[1]
    order = np.lexsort((classes.of_row, query))
    query, of_row = query[order], classes.of_row[order]
    new_query, new_segment = np.ones((2, n), dtype=bool)
    new_query[1:] = query[1:] != query[:-1]
    new_segment[1:] = new_query[1:] | (of_row[1:] != of_row[:-1])
    segments = np.flatnonzero(new_segment)
    first = np.searchsorted(segments, np.flatnonzero(new_query))
    return Arrangement(order, np.append(segments, n), of_row[segments], np.append(first, segments.size))


def require_pairs(classes: Classes, graph: PreferenceGraph, groups: NDArray[np.int64] | None) -> None:
    """Raises NoPairsError if no query has a pair of rows with a preference."""
    if groups is None:  # one row of each class suffices
        classes = replace(classes, of_row=np.flatnonzero(np.bincount(classes.of_row)))
    _sums(arrange(classes, groups), classes, graph, "logistic", "direct", None, 1)


def make_pair_loss(
    rows: RowOperator,
    classes: Classes,
    graph: PreferenceGraph,
    groups: NDArray[np.int64] | None = None,
    *,
    objective: str = "logistic",
    summation: str = "auto",
    accuracy: float = 1e-3,
    normalize: str = "pairs",
    weights: NDArray[np.float64] | None = None,
) -> PairLoss:
    """Bind rows, classes and graph together.

    Parameters
    ----------
    rows : n rows; their number of threads is the sums' too
    groups : (n,) int64, rows of one query share a value, in any order; None: one query
    accuracy : the largest error of the Fourier series per unit of weight
    weights : (n,) of the rows, at least 0, a row of 2 as two rows; None: all 1

    Raises
    ------
    NoPairsError : there is no pair to rank
    ValueError : a Fourier series for another objective than erfc; a class without a name, or outside the graph
    """
    arrangement = arrange(classes, groups)
    fourier = fourier_setting(accuracy) if summation == "fourier" else None
    ordered = None if weights is None else np.ascontiguousarray(weights[arrangement.order], dtype=np.float64)
    sums = _sums(arrangement, classes, graph, objective, summation, fourier, rows.threads, ordered)
    n_queries = arrangement.queries.size - 1
    return PairLoss(
        rows.select(arrangement.order),
        sums.pairs,
        n_queries - sums.queries_without_pairs,
        sums.queries_without_pairs,
        1.0 / sums.weight if normalize == "pairs" else 1.0,
        sums,
    )


def _sums(
    arrangement: Arrangement,
    classes: Classes,
    graph: PreferenceGraph,
    objective: str,
    summation: str,
    fourier: tuple[float, int, float, float] | None,
    threads: int,
    weights: NDArray[np.float64] | None = None,
) -> _kernels.PairSums:
    sums = _kernels.PairSums(
        objective,
        summation,
        fourier,
        arrangement.starts,
        arrangement.classes,
        arrangement.queries,
        graph.below.starts,
        graph.below.first,
        graph.below.last,
        graph.above.starts,
        graph.above.first,
        graph.above.last,
        weights,
        threads,
    )
    if sums.pairs == 0:
        if classes.names.size == 1:
            raise NoPairsError(f"all rows are of one class, {classes.names[0]:g}: a ranking needs two")
        raise NoPairsError(f"no query has rows of two classes with a preference in the graph ({graph.name})")
    if sums.weight == 0.0:
        raise NoPairsError("every pair has a row of weight 0")
    return sums
