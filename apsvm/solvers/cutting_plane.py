"""The 1-slack cutting-plane method (Joachims, Finley, Yu 2009): minimise J(w) = ½‖w − c‖² + C·risk(w); c = 0 mostly.

    repeat  take a plane of the risk;  α = argmax of the working set's dual;  w = c − Σ α_t a_t
    until   J(best w) − dual(α) ≤ ε·C

risk is convex and ≥ 0; each plane bounds it from below everywhere, so dual(α) is a lower bound on the optimum, and any
J(w) an upper one. Hard constraints a·w + b ≤ 0, where there are any, are generated as they are violated.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.clock import Span, Spans
from apsvm.solvers.certificate import Certificate, tolerance_of
from apsvm.solvers.line_search import Cutter
from apsvm.solvers.qp.base import Backend
from apsvm.solvers.qp.base import Solution as QPSolution
from apsvm.solvers.state import State
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
class Iteration:
    """One round; the certificate is of the best points so far."""

    index: int
    certificate: Certificate
    planes: int
    qp: QPSolution
    qp_span: Span
    seconds: float


@dataclass(frozen=True, slots=True)
class Solution:
    """w : (dimension,) float64, the best point seen; risk : its risk; the rest describes the run."""

    w: NDArray[np.float64]
    risk: float
    certificate: Certificate
    state: State
    iterations: int
    planes: int
    seconds: float


class Solver:
    """Minimises ½‖w − c‖² + C·risk(w), for one C and centre after another: planes depend on neither, and a later run
    starts from the planes, the dual variables and the best point of the runs before.

    Parameters
    ----------
    cutter : what evaluates the risk, convex and non-negative, and says where to cut (``line_search``)
    dimension : length of w
    backend : solves the working-set QPs
    start : (dimension,) float64, the first point; 0 by default
    constraints : hard constraints on w, if there are any
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
        self._cutter = cutter
        self._backend = backend
        self._constraints = constraints
        self._working_set = WorkingSet(dimension)
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
        on_iteration: Callable[[Iteration], None] | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        centre: NDArray[np.float64] | None = None,
        good_enough: Callable[[float, float], bool] | None = None,
    ) -> Solution:
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
        FloatingPointError : a value, plane or product of planes that is not finite
        """
        began = time.perf_counter()
        working_set = self._working_set
        tolerance = tolerance_of(epsilon, C)
        working_set.C = C
        working_set.centre = np.zeros_like(self._start) if centre is None else centre
        w = self._start
        dual = 0.0  # α = 0, feasible since risk ≥ 0
        if self._best is not None:
            _, w, lower = self._solve_qp(QP_SHARE * tolerance)
            dual = max(dual, lower)
        primal = np.inf if self._best is None else self._objective(self._best, self._best_risk, C)
        unchanged = 0
        index = 0
        while True:
            index += 1
            before = (primal, dual)
            self._cut(w, C, primal - dual)
            assert self._best is not None
            primal = self._objective(self._best, self._best_risk, C)
            spans = Spans()
            with spans.time("qp"):
                qp, w, lower = self._solve_qp(QP_SHARE * tolerance)
                planes = len(working_set)
                working_set.forget_idle()
            dual = max(dual, lower)
            certificate = Certificate(primal, dual, tolerance)
            enough = certificate.reached or (good_enough is not None and good_enough(primal, dual))
            if enough:
                self._best_risk = self._cutter.verified_risk(self._best)
                primal = self._objective(self._best, self._best_risk, C)
                certificate = Certificate(primal, dual, tolerance)
                enough = certificate.reached or (good_enough is not None and good_enough(primal, dual))
            seconds = time.perf_counter() - began
            if on_iteration is not None:
                on_iteration(Iteration(index, certificate, planes, qp, spans.parts["qp"], seconds))

            progress = max(before[0] - primal, dual - before[1])
            unchanged = 0 if progress > 1e-14 * primal else unchanged + 1
            state = _state(
                enough,
                index,
                max_iterations,
                seconds,
                time_limit,
                unchanged,
                should_stop,
            )
            if state is not None:
                return Solution(self._best, self._best_risk, certificate, state, index, planes, seconds)

    def _solve_qp(self, tolerance: float) -> tuple[QPSolution, NDArray[np.float64], float]:
        """The working set's solution, its w, and the dual objective there."""
        working_set = self._working_set
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            qp = self._backend.solve(working_set.problem(), working_set.alpha, tolerance)
            w, dual = working_set.accept(qp.alpha)
        if not np.isfinite(qp.gap) or not np.isfinite(dual):
            raise not_finite("dual objective")
        return qp, w, dual

    def restart(self, point: NDArray[np.float64]) -> None:
        """Forgets the best point: the next run starts from ``point`` (dimension,), with the planes there are."""
        self._start = point
        self._best, self._best_risk = None, np.inf
        self._cutter.restart()

    def _objective(self, point: NDArray[np.float64], risk: float, C: float) -> float:
        away = point - self._working_set.centre
        return 0.5 * float(away @ away) + C * risk

    def _cut(self, w: NDArray[np.float64], C: float, gap: float) -> None:
        """Adds planes for w, and keeps the better of the best point and the new one."""
        point = w
        if self._constraints is not None:
            restored = self._constraints(w)
            point = restored.point
            for plane, offset in zip(restored.planes, restored.offsets, strict=True):
                self._working_set.add(plane, float(offset), soft=False)
        with np.errstate(over="ignore", invalid="ignore"):
            step = self._cutter(point, C, gap, self._working_set.centre)
            self._working_set.add(step.cut.plane, step.cut.offset, soft=True)
            here = self._objective(step.point, step.risk, C)
        if not np.isfinite(here) or not np.isfinite(self._working_set.problem().gram[-1]).all():
            raise not_finite("objective")
        if self._best is None or here < self._objective(self._best, self._best_risk, C):
            self._best, self._best_risk = step.point, step.risk


def not_finite(what: str) -> FloatingPointError:
    return FloatingPointError(
        f"the {what} is not finite: feature values, bias, costs or C are too large, scale them down"
    )


def _state(
    enough: bool,
    index: int,
    max_iterations: int,
    seconds: float,
    time_limit: float | None,
    unchanged: int,
    should_stop: Callable[[], bool],
) -> State | None:
    if enough:
        return State.CONVERGED
    if should_stop():
        return State.INTERRUPTED
    if index >= max_iterations:
        return State.ITERATION_LIMIT
    if time_limit is not None and seconds >= time_limit:
        return State.TIME_LIMIT
    if unchanged >= STALL_LIMIT:
        return State.STALLED
    return None
