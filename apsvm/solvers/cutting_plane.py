"""The 1-slack cutting-plane method (Joachims, Finley, Yu 2009): minimise J(w) = ½‖w − c‖² + C·risk(w); c = 0 mostly.

    repeat  take a plane of the risk;  α = argmax of the working set's dual;  w = c − Σ α_t a_t
    until   J(best w) − dual(α) ≤ ε·C

risk is convex and nowhere below its declared lower bound; each plane bounds it from below everywhere, so dual(α) is a
lower bound on the optimum, and any J(w) an upper one. Hard constraints a·w + b ≤ 0, where there are any, are generated
as they are violated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.clock import Span, Spans
from apsvm.solvers.certificate import Certificate, tolerance_of
from apsvm.solvers.line_search import Cutter
from apsvm.solvers.qp.base import Backend, QPSolution
from apsvm.solvers.state import State, not_finite
from apsvm.solvers.working_set import WorkingSet

#: Of the gap asked for, what one QP may leave.
QP_SHARE = 1e-3
#: Iterations without any progress, relative to the objective, after which rounding has won.
STALL_LIMIT = 25


@dataclass(frozen=True, slots=True)
class Restoration:
    """What hard constraints say of w: ``point``, a feasible point near it (w itself if it is feasible), and violated
    constraints as planes (m, dimension) and offsets (m,), plane·w + offset > 0."""

    point: NDArray[np.float64]
    planes: NDArray[np.float64]
    offsets: NDArray[np.float64]


Constraints = Callable[[NDArray[np.float64]], Restoration]


@dataclass(frozen=True, slots=True)
class CuttingPlaneIteration:
    """One iteration.

    Attributes
    ----------
    index : int, from 1
    certificate : of the best points so far
    planes : int, in the working set
    qp : the working set's solution
    qp_span : how long that took
    seconds : float, since the run began
    """

    index: int
    certificate: Certificate
    planes: int
    qp: QPSolution
    qp_span: Span
    seconds: float


@dataclass(frozen=True, slots=True)
class CuttingPlaneSolution:
    """What a run came to.

    Attributes
    ----------
    w : (dimension,) float64, the best point found
    risk : float, the risk there
    certificate : its objective, and the best lower bound
    state : why the run ended
    iterations : int, those completed
    planes : int, in the working set
    seconds : float
    trouble : str or None, what was not finite, where the state is ``NUMERICAL_TROUBLE``
    """

    w: NDArray[np.float64]
    risk: float
    certificate: Certificate
    state: State
    iterations: int
    planes: int
    seconds: float
    trouble: str | None = None


def never(primal: float, dual: float) -> bool:
    """Nothing is good enough before ε is reached."""
    return False


class Solver:
    """Minimises ½‖w − c‖² + C·risk(w), for one C and centre after another: planes depend on neither, and a later run
    starts from the planes, the dual variables and the best point of the runs before.

    Parameters
    ----------
    cutter : what evaluates the risk, convex and with a lower bound, and says where to cut (``line_search``)
    dimension : length of w
    backend : solves the working-set QPs
    start : (dimension,) float64, the first point; 0 by default
    constraints : hard constraints on w, if there are any

    Raises
    ------
    ValueError : a risk without a lower bound
    """

    def __init__(
        self,
        cutter: Cutter,
        dimension: int,
        backend: Backend,
        *,
        start: NDArray[np.float64] | None = None,
        constraints: Constraints | None = None,
    ) -> None:
        lower_bound = cutter.lower_bound
        if not np.isfinite(lower_bound):
            raise ValueError(f"cutting planes need a risk with a lower bound, found {lower_bound}")
        self._cutter = cutter
        self._backend = backend
        self._constraints = constraints
        self._working_set = WorkingSet(dimension, lower_bound)
        self._start = np.zeros(dimension) if start is None else start
        self._best: NDArray[np.float64] | None = None
        self._best_risk = np.inf

    def minimise(
        self,
        C: float,
        *,
        epsilon: float = 1e-3,
        max_iterations: int = 10_000,
        time_limit: float | None = None,
        on_iteration: Callable[[CuttingPlaneIteration], None] = lambda iteration: None,
        should_stop: Callable[[], bool] = lambda: False,
        centre: NDArray[np.float64] | None = None,
        good_enough: Callable[[float, float], bool] = never,
    ) -> CuttingPlaneSolution:
        """The minimiser for this C and centre.

        Parameters
        ----------
        C : > 0
        epsilon : the gap asked for, in units of the risk (the objective's gap is ≤ ε·C); ≥ 0
        time_limit : seconds, checked between iterations
        should_stop : asked between iterations; True ends the run as ``INTERRUPTED``
        centre : c, (dimension,) float64; None: 0
        good_enough : of the primal and dual objective, asked between iterations; True ends the run as ``CONVERGED``
            before ε is reached

        Raises
        ------
        FloatingPointError : a value, plane or product of planes that is not finite, before any good point was found;
            later it ends the run as ``NUMERICAL_TROUBLE``, with the best point and bounds so far
        """
        self._working_set.C = C
        self._working_set.centre = np.zeros_like(self._start) if centre is None else centre
        dual = self._working_set.dual_of_nothing
        run = _Run(dual, tolerance_of(epsilon, C), max_iterations, time_limit, should_stop, good_enough)
        with run.guarded():
            w = self._first_point(run)
        while run.state is None:
            with run.guarded():
                self._cut(w, run)
                w = self._solve_qp(run)
                self._working_set.forget_idle()
                self._verify(run)
            run.complete_iteration(on_iteration)
        assert self._best is not None
        return run.solution(self._best, self._best_risk)

    def restart(self, point: NDArray[np.float64]) -> None:
        """Forgets the best point: the next run starts from ``point`` (dimension,), with the planes there are."""
        self._start = point
        self._best, self._best_risk = None, np.inf
        self._cutter.restart()

    def move(self, change: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> None:
        """The risk has become another, whose planes differ from those held by ``change`` of what it remembers of each
        (``ScoreFunction.memo``); planes it remembers nothing of are dropped."""
        self._working_set.move(change)

    def _first_point(self, run: _Run) -> NDArray[np.float64]:
        """The start, or the minimiser of the planes there are already."""
        if self._best is None:
            return self._start
        run.primal = self._objective(self._best, self._best_risk)
        return self._solve_qp(run)

    def _cut(self, w: NDArray[np.float64], run: _Run) -> None:
        """Adds planes for w, and keeps the better of the best point and the one that the cutter found."""
        point = w
        if self._constraints is not None:
            restored = self._constraints(w)
            point = restored.point
            for plane, offset in zip(restored.planes, restored.offsets, strict=True):
                self._working_set.add(plane, float(offset), soft=False)
        cut = self._cutter(point, self._working_set.C, run.primal - run.dual, self._working_set.centre)
        self._working_set.add(cut.plane, cut.offset, soft=True, memo=cut.memo)
        objective = self._objective(cut.point, cut.risk)
        if not np.isfinite(objective):
            raise not_finite("objective")
        if self._best is None or objective < run.primal:
            self._best, self._best_risk, run.primal = cut.point, cut.risk, objective

    def _solve_qp(self, run: _Run) -> NDArray[np.float64]:
        """The minimiser of the planes, whose dual objective is a lower bound."""
        working_set = self._working_set
        spans = Spans()
        with spans.time("qp"):
            qp = self._backend.solve(working_set.problem(), working_set.alpha, QP_SHARE * run.tolerance)
            w, dual = working_set.accept(qp.alpha)
        if not np.isfinite(qp.gap) or not np.isfinite(dual):
            raise not_finite("dual objective")
        run.qp, run.qp_span, run.planes = qp, spans.parts["qp"], len(working_set)
        run.raise_dual(dual)
        return w

    def _verify(self, run: _Run) -> None:
        """A certificate counts only where the best point's risk is computed afresh: along a line search scores are
        added up, with what rounding does to them."""
        if run.enough:
            assert self._best is not None
            risk = self._cutter.verified_risk(self._best)
            objective = self._objective(self._best, risk)
            if not np.isfinite(objective):
                raise not_finite("objective")
            self._best_risk, run.primal = risk, objective

    def _objective(self, point: NDArray[np.float64], risk: float) -> float:
        away = point - self._working_set.centre
        return 0.5 * float(away @ away) + self._working_set.C * risk


class _Run:
    """One minimisation: its bounds, its progress and its end.

    primal : the objective of the best point so far; dual : the best lower bound; state : None while it goes on
    qp, qp_span, planes : the last QP's solution, how long it took, and the planes it was of
    """

    qp: QPSolution
    qp_span: Span
    planes = 0

    def __init__(
        self,
        dual: float,
        tolerance: float,
        max_iterations: int,
        time_limit: float | None,
        should_stop: Callable[[], bool],
        good_enough: Callable[[float, float], bool],
    ) -> None:
        self.tolerance = tolerance
        self.primal, self.dual = np.inf, dual
        self.state: State | None = None
        self._max_iterations = max_iterations
        self._time_limit = time_limit
        self._should_stop = should_stop
        self._good_enough = good_enough
        self._began = time.perf_counter()
        self._iterations = 0
        self._unchanged = 0
        self._before = (self.primal, self.dual)
        self._trouble: str | None = None

    @property
    def certificate(self) -> Certificate:
        return Certificate(self.primal, self.dual, self.tolerance)

    @property
    def enough(self) -> bool:
        return self.certificate.reached or self._good_enough(self.primal, self.dual)

    def raise_dual(self, dual: float) -> None:
        """A QP that is solved to its own tolerance only may come out below one before; both bounds hold."""
        self.dual = max(self.dual, dual)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """An iteration. What is not finite ends the run if there is a good point, and is an error before."""
        self._before = (self.primal, self.dual)
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                yield
        except FloatingPointError as error:
            if not np.isfinite(self.primal):
                raise
            self.state, self._trouble = State.NUMERICAL_TROUBLE, str(error)

    def complete_iteration(self, on_iteration: Callable[[CuttingPlaneIteration], None]) -> None:
        """Reports it, unless trouble broke it off, and decides whether it was the last."""
        if self.state is not None:
            return
        self._iterations += 1
        seconds = time.perf_counter() - self._began
        on_iteration(
            CuttingPlaneIteration(self._iterations, self.certificate, self.planes, self.qp, self.qp_span, seconds)
        )
        progress = max(self._before[0] - self.primal, self.dual - self._before[1])
        self._unchanged = 0 if progress > 1e-14 * abs(self.primal) else self._unchanged + 1
        self.state = self._end(seconds)

    def _end(self, seconds: float) -> State | None:
        if self.enough:
            return State.CONVERGED
        if self._should_stop():
            return State.INTERRUPTED
        if self._iterations >= self._max_iterations:
            return State.ITERATION_LIMIT
        if self._time_limit is not None and seconds >= self._time_limit:
            return State.TIME_LIMIT
        if self._unchanged >= STALL_LIMIT:
            return State.STALLED
        return None

    def solution(self, w: NDArray[np.float64], risk: float) -> CuttingPlaneSolution:
        assert self.state is not None
        seconds = time.perf_counter() - self._began
        return CuttingPlaneSolution(
            w, risk, self.certificate, self.state, self._iterations, self.planes, seconds, self._trouble
        )
