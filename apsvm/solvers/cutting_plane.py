"""The 1-slack cutting-plane method (Joachims, Finley, Yu 2009): minimise J(w) = ½‖w‖² − c·w + C·risk(w); c = 0 mostly.

    repeat  take a plane of the risk;  α = argmax of the working set's dual;  w = c − Σ α_t a_t, or nearer (``levels``)
    until   J(best w) − dual(α) ≤ ε·C

risk is convex and nowhere below its declared lower bound; each plane bounds it from below everywhere, so dual(α) is a
lower bound on the optimum, and any J(w) an upper one. Hard constraints a·w + b ≤ 0, if any, are generated when
violated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm._support.clock import Span
from apsvm.solvers.certificate import Certificate, tolerance_of
from apsvm.solvers.levels import Levels
from apsvm.solvers.line_search import Cutter
from apsvm.solvers.qp.base import Backend, QPSolution
from apsvm.solvers.run import Limits, Run, never
from apsvm.solvers.state import State, not_finite
from apsvm.solvers.working_set import WorkingSet

#: Fraction of the requested gap that one QP may leave open.
QP_SHARE = 1e-3


@dataclass(frozen=True, slots=True)
class Restoration:
    """Result of restoring hard constraints at w: ``point``, a feasible point near it (w itself if it is feasible), and
    violated constraints as planes (m, dimension) and offsets (m,), plane·w + offset > 0."""

    point: NDArray[np.float64]
    planes: NDArray[np.float64]
    offsets: NDArray[np.float64]


Constraints = Callable[[NDArray[np.float64]], Restoration]


@dataclass(frozen=True, slots=True)
class CuttingPlaneIteration:
    """One iteration.

    Attributes
    ----------
    index : int
        Number of the iteration, starting at 1.
    certificate : Certificate
        Certificate of the best points so far.
    planes : int
        Number of planes in the working set.
    qp : QPSolution
        The working set's solution.
    qp_span : Span
        Time of the QP.
    seconds : float
        Seconds since the run began.
    """

    index: int
    certificate: Certificate
    planes: int
    qp: QPSolution
    qp_span: Span
    seconds: float


@dataclass(frozen=True, slots=True)
class CuttingPlaneSolution:
    """Result of a run.

    Attributes
    ----------
    w : ndarray
        (dimension,) float64, the best point found.
    risk : float
        Risk at w.
    certificate : Certificate
        Objective at w, and the best lower bound.
    state : State
        Reason for the end.
    iterations : int
        Number of completed iterations.
    planes : int
        Number of planes in the working set.
    seconds : float
        Wall-clock time of the run.
    trouble : str, optional
        Name of the value that was not finite, if the state is ``NUMERICAL_TROUBLE``.
    """

    w: NDArray[np.float64]
    risk: float
    certificate: Certificate
    state: State
    iterations: int
    planes: int
    seconds: float
    trouble: str | None = None


class Solver:
    """Minimises ½‖w‖² − c·w + C·risk(w) for a sequence of C and centres c. Planes depend on neither, so a later run
    starts from the planes, dual variables and best point of earlier runs.

    Parameters
    ----------
    cutter : Cutter
        Evaluates the risk, which is convex and has a lower bound, and chooses where to cut (``line_search``).
    dimension : int
        Length of w.
    backend : Backend
        Solves the working-set QPs.
    start : ndarray, optional
        (dimension,) float64, the first point; 0 by default.
    constraints : Constraints, optional
        Hard constraints on w, if any.

    Raises
    ------
    ValueError
        The risk has no lower bound.
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
        if not math.isfinite(lower_bound):
            raise ValueError(f"cutting planes need a risk with a lower bound, found {lower_bound}")
        self._cutter = cutter
        self._backend = backend
        self._constraints = constraints
        self._working_set = WorkingSet(dimension, lower_bound)
        self._levels = Levels() if cutter.levels else None
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
        """Minimise for this C and centre.

        Parameters
        ----------
        C : float
            > 0.
        epsilon : float
            Requested gap, in units of the risk (the objective's gap is ≤ ε·C); ≥ 0.
        max_iterations, time_limit : int and float, optional
            Limits; the seconds are checked between iterations.
        on_iteration : Callable[[CuttingPlaneIteration], None]
            Called after each iteration.
        should_stop : Callable[[], bool]
            Called between iterations; True ends the run as ``INTERRUPTED``.
        centre : ndarray, optional
            (dimension,) float64, the centre c; None: 0.
        good_enough : Callable[[float, float], bool]
            Called with the primal and dual objective between iterations; True ends the run as ``CONVERGED``
            before ε is reached.

        Raises
        ------
        FloatingPointError
            A value, plane or product of planes is not finite before a good point was found. Later it ends the run as
            ``NUMERICAL_TROUBLE``, with the best point and bounds so far.
        """
        limits = Limits(tolerance_of(epsilon, C), max_iterations, time_limit, should_stop, good_enough)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # non-finite values are checked below
            run = self._begin(C, centre, limits)
            while run.state is None:
                run.attempt(self._iterate)
                if run.state is None:
                    run.complete_iteration()
                    bounds, planes, qp = run.certificate, run.planes, run.qp
                    on_iteration(CuttingPlaneIteration(run.iterations, bounds, planes, qp, run.qp_span, run.seconds))
                    run.decide()
            if run.state is not State.CONVERGED:
                run.attempt(self._measure)
        assert self._best is not None
        return CuttingPlaneSolution(
            self._best,
            self._best_risk,
            run.certificate,
            run.state,
            run.iterations,
            run.planes,
            run.seconds,
            run.trouble,
        )

    def restart(self, point: NDArray[np.float64]) -> None:
        """Forgets the best point: the next run starts from ``point`` (dimension,), with the current planes."""
        self._start = point
        self._best, self._best_risk = None, np.inf
        self._cutter.restart()

    def move(self, change: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> None:
        """Adapts the planes to a changed risk: each plane moves by ``change`` of its memo (``ScoreFunction.memo``).
        Planes without a memo are dropped."""
        self._working_set.move(change)

    def _begin(self, C: float, centre: NDArray[np.float64] | None, limits: Limits) -> Run:
        """Starts a run from the start point, or from the minimiser of existing planes."""
        self._working_set.C = C
        self._working_set.recentre(np.zeros_like(self._start) if centre is None else centre)
        dual = self._working_set.dual_of_nothing
        if self._levels is not None:
            self._levels.begin()
        run = Run(limits, dual, self._start)
        if self._best is not None:
            run.attempt(self._go_on)
        return run

    def _go_on(self, run: Run) -> None:
        """Continues from the best point and the existing planes."""
        assert self._best is not None
        run.primal = self._objective(self._best, self._best_risk)
        self._solve_qp(run)

    def _iterate(self, run: Run) -> None:
        self._cut(run)
        self._solve_qp(run)
        self._working_set.forget_idle()
        if run.enough:  # a certificate counts only with a freshly computed risk of the best point
            self._measure(run)

    def _cut(self, run: Run) -> None:
        """Adds planes at the run's point, and keeps the better of the best point and the cutter's point."""
        point = run.point
        if self._constraints is not None:
            restored = self._constraints(point)
            point = restored.point
            for plane, offset in zip(restored.planes, restored.offsets, strict=True):
                self._working_set.add(plane, float(offset), soft=False)
        cut = self._cutter(point, self._working_set.C, run.primal - run.dual, self._working_set.centre)
        self._working_set.add(cut.plane, cut.offset, soft=True, memo=cut.memo)
        objective = self._objective(cut.point, cut.risk)
        if not math.isfinite(objective):
            raise not_finite("objective")
        if self._best is None or objective < run.primal:
            self._best, self._best_risk, run.primal = cut.point, cut.risk, objective

    def _solve_qp(self, run: Run) -> None:
        """Minimises the planes and raises the lower bound to the dual objective. The next point is the minimiser, or
        nearer (``levels``)."""
        working_set = self._working_set
        span = Span()
        with span:
            qp = self._backend.solve(working_set.problem(), working_set.alpha, QP_SHARE * run.tolerance)
            run.point, dual = working_set.accept(qp.alpha)
            if not math.isfinite(qp.gap) or not math.isfinite(dual):
                raise not_finite("dual objective")
            run.raise_dual(dual)
            if self._levels is not None and self._best is not None and not run.enough:
                nearer = self._levels.step(working_set, self._best, run.primal, run.dual, run.tolerance)
                run.point = run.point if nearer is None else nearer
        run.qp, run.qp_span, run.planes = qp, span, len(working_set)

    def _measure(self, run: Run) -> None:
        """Computes the best point's risk afresh, since a line search accumulates rounding in the scores."""
        assert self._best is not None
        risk = self._cutter.verified_risk(self._best)
        objective = self._objective(self._best, risk)
        if not math.isfinite(objective):
            raise not_finite("objective")
        self._best_risk, run.primal = risk, objective

    def _objective(self, point: NDArray[np.float64], risk: float) -> float:
        working_set = self._working_set
        return 0.5 * float(point.dot(point)) - float(working_set.centre.dot(point)) + working_set.C * risk
