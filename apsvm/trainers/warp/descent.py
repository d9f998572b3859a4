"""WARP (Weston, Bengio, Usunier 2010; Usunier, Buffoni, Gallinari 2009): the top of the list by stochastic sampling.

    minimise  1/P Σ_i L(r_i)/r_i Σ_{j ∈ N_i} (1 − s_i + s_j)₊ + l2/2 ‖w‖²,     L(r) = (τ_1 + … + τ_r) / (τ_1 + … + τ_N)

over the P positives i. N_i are the negatives of i's query, r_i the number of them with 1 − s_i + s_j > 0, and N the
maximum number of negatives. L is divided by its maximum, so that steps have one scale for all τ. τ: ``auc`` 1
everywhere; ``p@K`` 1 up to K; ``harmonic`` 1/i.

A step draws a positive, then negatives until one violates, and estimates L(r_i) from the number of draws
(``apsvm/_native/core/warp/``). It gives up after min(N, 1000) draws, or ``max_trials``. A pass takes every positive
once, in a new order.

With grades, a row is a positive against all rows of its query with lower grades. With a threshold, grades are 0 and 1.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm._support import sparse as sp
from apsvm.data.rows import Rows
from apsvm.risk import NothingToRankError
from apsvm.solvers.sgd import DescentOutcome, Epoch, Pass
from apsvm.trainers.base import Progress, Watch
from apsvm.trainers.warp.epochs import run_epochs
from apsvm.trainers.warp.settings import WarpSettings, cutoff_of

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: Approximate duration of a call of the native loop; signals are handled between calls.
SECONDS_A_CALL = 0.1


def loss_of_rank(tau: str, n: int) -> NDArray[np.float64]:
    """L(0), …, L(n), not normalised: (n + 1,) float64.

    >>> loss_of_rank("harmonic", 3).tolist() == [0, 1, 1 + 1 / 2, 1 + 1 / 2 + 1 / 3]
    True
    >>> loss_of_rank("p@2", 4).tolist()
    [0.0, 1.0, 2.0, 2.0, 2.0]
    """
    ranks = np.arange(n + 1.0)
    if tau == "harmonic":
        return np.concatenate([[0.0], np.cumsum(1.0 / ranks[1:])])
    within: NDArray[np.float64] = np.minimum(ranks, cutoff_of(tau))
    return within


@dataclass(frozen=True, slots=True)
class Candidates:
    """The negatives of each positive. rows, starts, counts : (P,) int64; members : (m,) int64, row numbers.

    Those of the positive ``rows[p]`` are ``members[starts[p] : starts[p] + counts[p]]``, at least one.
    """

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    members: NDArray[np.int64]
    queries: int
    queries_skipped: int


def candidates(grades: AnyArray, groups: NDArray[np.int64] | None) -> Candidates:
    """Candidates of rows: the negatives of a row are the rows of its query with lower grades.

    Parameters
    ----------
    grades : (n,) any numbers or bool; groups : (n,) int64, or None, one query

    Raises
    ------
    NothingToRankError : no query has two grades
    """
    n = grades.size
    if groups is None and grades.dtype == np.bool_ and 0 < np.count_nonzero(grades) < n:  # no sort is needed
        rows, members = np.flatnonzero(grades), np.flatnonzero(~grades)
        return Candidates(rows, np.zeros_like(rows), np.full_like(rows, members.size), members, 1, 0)
    grades = np.unique(grades, return_inverse=True)[1]
    query = np.zeros(n, dtype=np.int64) if groups is None else np.unique(groups, return_inverse=True)[1]
    members = np.lexsort((grades, query)).astype(np.int64, copy=False)
    place = np.arange(n, dtype=np.int64)
    new_query = np.diff(query[members], prepend=-1) != 0
    new_grade = new_query | (np.diff(grades[members], prepend=-1) != 0)
    query_start = np.maximum.accumulate(np.where(new_query, place, 0))
    counts = np.maximum.accumulate(np.where(new_grade, place, 0)) - query_start
    positive = counts > 0
    queries = int(np.count_nonzero(new_query))
    used = int(np.unique(query_start[positive]).size)
    if used == 0:
        raise NothingToRankError("no query has both a positive and a negative row")
    return Candidates(members[positive], query_start[positive], counts[positive], members, used, queries - used)


def violates(scores: NDArray[np.float64], pairs: Candidates) -> bool:
    """True if any positive has a negative with 1 − s_i + s_j > 0; scores : (n,)."""
    ends = np.unique(np.stack([pairs.starts, pairs.counts], axis=1), axis=0)
    highest = {(start, count): scores[pairs.members[start : start + count]].max() for start, count in ends.tolist()}
    of_negatives = np.array([highest[key] for key in zip(pairs.starts.tolist(), pairs.counts.tolist(), strict=True)])
    return bool((1.0 - scores[pairs.rows] + of_negatives > 0.0).any())


def train_warp(
    rows: Rows,
    grades: AnyArray,
    settings: WarpSettings,
    watch: Watch,
    *,
    show: Callable[[Epoch], Progress],
    groups: NDArray[np.int64] | None = None,
    validate: Callable[[NDArray[np.float64]], float] | None = None,
    start: NDArray[np.float64] | None = None,
) -> tuple[DescentOutcome[NDArray[np.float64]], Candidates]:
    """Train the weights w (dimension,) float64 of a linear ranker; also returns the candidates. The weight of a bias,
    the last one, moves no ranking and keeps its initial value.

    Parameters
    ----------
    rows : n rows
    grades : (n,) numbers, higher is better, or bool
    show : displays an epoch
    groups : (n,) int64, rows of one query share a value; None: one query
    validate : metric of w (dimension,), higher is better, called after each epoch
    start : (dimension,) float64, initial w; 0 by default

    Raises
    ------
    NothingToRankError : no query has two grades (a ValueError)
    FloatingPointError : weights that are not finite
    """
    descent = _RowSteps(rows, candidates(grades, groups), settings, start)
    outcome = run_epochs(descent, settings, watch, show=show, validate=validate)
    if not np.isfinite(rows.scores(outcome.best)).all():
        raise _not_finite("scores")
    return outcome, descent.pairs


class _RowSteps:
    """The weights during the descent.

    Attributes
    ----------
    pairs : the candidates for draws
    w : (dimension,) float64; the weight of a bias, the last one, stays constant
    """

    def __init__(
        self, rows: Rows, pairs: Candidates, settings: WarpSettings, start: NDArray[np.float64] | None
    ) -> None:
        self.pairs = pairs
        self.w = np.zeros(rows.dimension)
        self._w = self.w[: rows.features]
        if start is not None:
            self._w[:] = start[: rows.features]
        self._rows, self._settings = rows, settings
        matrix, selection = rows.in_memory()
        self._matrix = matrix
        self._csr = (
            _kernels.CsrMatrix(matrix.indptr, matrix.indices, matrix.data, *matrix.shape)
            if sp.issparse(matrix)
            else None
        )
        self._rng = np.random.default_rng(settings.seed)
        self._loop = self._native_loop(selection)

    def _native_loop(self, selection: NDArray[np.int64]) -> _kernels.WarpRows:
        """The kernel's loop over these rows. ``selection``: (n,) int64, row of the matrix for each row."""
        settings, pairs, matrix = self._settings, self.pairs, self._matrix
        per_row = max(1, (matrix.nnz if sp.issparse(matrix) else matrix.size) // max(1, matrix.shape[0]))
        # An update of the L2 penalty costs as much as some rows, so it is done for a fraction of the trials.
        pace = pace_of(settings, int(pairs.counts.max()), max(16, 4 * self._w.size // per_row), self._rng)
        squares, steps = rule_memory(settings.rule, self._w)
        return _kernels.WarpRows(
            self._w,
            squares,
            steps,
            selection[pairs.rows],
            pairs.starts,
            pairs.counts,
            selection[pairs.members],
            *pace,
        )

    def one_pass(self, stop: Callable[[], bool]) -> Pass:
        """Visits every positive once, in a new order."""
        order = self._rng.permutation(self.pairs.rows.size)
        passed = run_pass(self._run, self._loop.settle, order, None, self._settings, self._w, stop)
        # A pass without updates may be chance, or due to the limit on trials.
        if passed.moved or not violates(self._rows.scores(self.w), self.pairs):
            return passed
        return replace(passed, moved=True)

    def snapshot(self) -> NDArray[np.float64]:
        """A copy of w."""
        return self.w.copy()

    def _run(self, order: NDArray[np.int64]) -> tuple[int, int, float]:
        if self._csr is not None:
            return self._loop.run_csr(self._csr, order)
        return self._loop.run_dense(self._matrix, order)


def pace_of(
    settings: WarpSettings, n_negatives: int, trials_a_penalty: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], str, float, int, str, float, float, int, int, int]:
    """Last arguments of a native loop, which set its steps; ``n_negatives``: the maximum."""
    table = loss_of_rank(settings.tau, n_negatives)
    of_rank = table, settings.rank_estimator, 1.0 / table[-1], settings.max_trials or 0
    of_step = settings.rule, settings.rate, settings.penalty, trials_a_penalty
    return (*of_rank, *of_step, int(rng.integers(2**63)), settings.workers)


def rule_memory(rule: str, parameters: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Initial state of the rule for each parameter: squares and steps; empty arrays for a rule without state."""
    none = np.empty(0, dtype=parameters.dtype)
    if rule == "adagrad":
        return np.ones_like(parameters), none
    if rule == "adadelta":
        return np.zeros_like(parameters), np.zeros_like(parameters)
    return none, none


def run_pass(
    run: Callable[[NDArray[np.int64]], tuple[int, int, float]],
    settle: Callable[[], None],
    order: NDArray[np.int64],
    draws_of: AnyArray | None,
    settings: WarpSettings,
    parameters: AnyArray,
    stop: Callable[[], bool],
) -> Pass:
    """Runs ``order`` in several calls of ``run`` (→ trials, updates, loss), between which it can stop.

    ``draws_of`` : number of draws for each ordered number; None: one
    """
    trials = updates = done = 0
    loss = 0.0
    size = 64
    while done < order.size:
        began = time.perf_counter()
        part = order[done : done + size]
        result = run(part)
        done += part.size
        trials, updates, loss = trials + result[0], updates + result[1], loss + result[2]
        pace = SECONDS_A_CALL / max(1e-9, time.perf_counter() - began)
        size = max(1, int(size * min(4.0, max(0.25, pace))))
        if stop():
            break
    settle()
    if not np.isfinite(parameters).all():
        raise _not_finite("weights")
    draws = done if draws_of is None else int(draws_of[order[:done]].sum())
    penalty = 0.5 * settings.penalty * float(np.vdot(parameters, parameters))
    return Pass(draws, trials, updates, loss / draws + penalty, moved=updates > 0 or settings.penalty > 0.0)


def _not_finite(name: str) -> FloatingPointError:
    return FloatingPointError(
        f"the {name} are not finite: feature values or the learning rate are too large, scale them down"
    )
