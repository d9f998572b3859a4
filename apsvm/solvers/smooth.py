"""Common parts of solvers that minimise J(w) = λ/2 ‖w‖² + L(Xw) for a smooth convex L of the scores.

∇J(w) = λw + Xᵀc with c = ∂L/∂s at s = Xw. A search ends when ‖∇J(w)‖∞ ≤ tolerance · ‖∇J(0)‖∞, whatever its start.
Reported values are evaluated afresh at the returned point.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm._support.blas import one_blas_thread
from apsvm._support.registry import Registry
from apsvm.solvers.score_space import Evaluated, ScoreFunction, Vector
from apsvm.solvers.state import State, not_finite

#: Rounding error of a zero gradient entry, relative to the summed magnitudes of its terms.
ROUNDING = 16 * np.finfo(np.float64).eps


@dataclass(frozen=True, slots=True)
class SmoothEvaluation:
    """One evaluation of the problem.

    Attributes
    ----------
    index : int, from 1
    iteration : int, iterations completed before it
    objective : float, J; None where the search does not compute it
    gradient_norm : float, ‖∇J‖∞; None for a trial along a direction
    step, slope : float, position of such a trial, and the slope of J there
    """

    index: int
    iteration: int
    objective: float | None = None
    gradient_norm: float | None = None
    step: float | None = None
    slope: float | None = None


@dataclass(frozen=True, slots=True)
class SmoothIteration:
    """A new point.

    Attributes
    ----------
    index : int, from 1
    objective : float, J; None where the search does not compute it
    gradient_norm : float, ‖∇J‖∞
    evaluations : int, so far
    seconds : float, since the run began
    """

    index: int
    objective: float | None
    gradient_norm: float
    evaluations: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SmoothSolution:
    """Result of a run.

    Attributes
    ----------
    w : (dimension,) float64
    objective, gradient_norm : float, J and ‖∇J‖∞ at w, computed afresh
    target : float, requested gradient norm
    state : reason for the end
    iterations, evaluations : int
    seconds : float
    trouble : str or None, name of the value that was not finite, if the state is ``NUMERICAL_TROUBLE``
    """

    w: NDArray[np.float64]
    objective: float
    gradient_norm: float
    target: float
    state: State
    iterations: int
    evaluations: int
    seconds: float
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """``tolerance`` as in the module, ≥ 0; ``time_limit`` in seconds; both it and ``should_stop`` are checked at every
    evaluation."""

    tolerance: float = 1e-5
    max_iterations: int = 10_000
    time_limit: float | None = None
    should_stop: Callable[[], bool] = lambda: False


class Stop(Exception):
    """Ends a search at its best point."""

    def __init__(self, state: State) -> None:
        self.state = state


class SmoothRun:
    """One minimisation: evaluation, counters and observers for a search.

    w : (dimension,) float64, the current point; the search moves it
    target : gradient norm at which the search ends
    point : the last evaluated point; the search begins there and may reuse its vectors
    """

    point: Evaluated

    def __init__(
        self,
        problem: ScoreFunction,
        regularisation: float,
        w: NDArray[np.float64],
        limits: Limits,
        on_evaluation: Callable[[SmoothEvaluation], None],
        on_iteration: Callable[[SmoothIteration], None],
    ) -> None:
        self.problem = problem
        self.regularisation = regularisation
        self.w = w
        self.limits = limits
        self.target = 0.0
        self.iterations = self.evaluations = 0
        self._began = time.perf_counter()
        self._on_evaluation = on_evaluation
        self._on_iteration = on_iteration

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def gradient(self, w: NDArray[np.float64], c: Vector) -> NDArray[np.float64]:
        gradient: NDArray[np.float64] = self.regularisation * w + self.problem.combine(c)
        if not np.isfinite(gradient).all():
            raise not_finite("gradient")
        return gradient

    def evaluate(self, w: NDArray[np.float64], scores: Vector, slopes: Vector) -> Evaluated:
        """Sets ``point`` to ``w``, evaluated afresh; overwrites ``scores`` and ``slopes``."""
        problem = self.problem
        loss = problem.tangent(problem.scores(w, scores), slopes).value
        objective = 0.5 * self.regularisation * float(w @ w) + loss
        if not np.isfinite(objective):
            raise not_finite("objective")
        self.point = Evaluated(w, scores, slopes, objective, self.gradient(w, slopes))
        return self.point

    def evaluated(
        self,
        *,
        objective: float | None = None,
        gradient_norm: float | None = None,
        step: float | None = None,
        slope: float | None = None,
    ) -> None:
        """Called after each evaluation; raises Stop at the time limit or on request."""
        self.evaluations += 1
        self._on_evaluation(SmoothEvaluation(self.evaluations, self.iterations, objective, gradient_norm, step, slope))
        if self.limits.should_stop():
            raise Stop(State.INTERRUPTED)
        if self.limits.time_limit is not None and self.seconds >= self.limits.time_limit:
            raise Stop(State.TIME_LIMIT)

    def moved(self, w: NDArray[np.float64], gradient_norm: float, objective: float | None = None) -> None:
        """Called with each new point except the first; raises Stop at the iteration limit."""
        self.w = w
        self.iterations += 1
        self._on_iteration(SmoothIteration(self.iterations, objective, gradient_norm, self.evaluations, self.seconds))
        if gradient_norm > self.target and self.iterations >= self.limits.max_iterations:
            raise Stop(State.ITERATION_LIMIT)


class SmoothSearch(ABC):
    """A method that moves ``run.w`` to a point with a small enough gradient."""

    name: ClassVar[str]

    @abstractmethod
    def search(self, run: SmoothRun) -> None:
        """Moves ``run.w`` from ``run.point`` until the gradient's norm, evaluated afresh, is at most ``run.target``;
        raises Stop if it ends before that."""


SEARCHES: Registry[SmoothSearch] = Registry(
    "optimizer", {"lbfgs": "apsvm.solvers.lbfgs:LBFGS", "prcg": "apsvm.solvers.nonlinear_cg:NonlinearCG"}
)


def minimise(
    problem: ScoreFunction,
    dimension: int,
    regularisation: float,
    search: SmoothSearch,
    limits: Limits,
    *,
    start: NDArray[np.float64] | None = None,
    on_evaluation: Callable[[SmoothEvaluation], None] = lambda evaluation: None,
    on_iteration: Callable[[SmoothIteration], None] = lambda iteration: None,
) -> SmoothSolution:
    """Minimise λ/2 ‖w‖² + L(Xw) from ``start`` (dimension,) or 0; ``regularisation`` is λ ≥ 0.

    Raises
    ------
    FloatingPointError : scores, objective, gradient or its square are not finite at the start; later that ends the run
        as ``NUMERICAL_TROUBLE``
    """
    # With more BLAS threads the last bits would depend on their number, and small products would be slow.
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        first = np.zeros(dimension) if start is None else start
        run = SmoothRun(problem, regularisation, first, limits, on_evaluation, on_iteration)
        return _minimise(run, search, starts_at_origin=start is None)


def _minimise(run: SmoothRun, search: SmoothSearch, *, starts_at_origin: bool) -> SmoothSolution:
    problem = run.problem
    origin = np.zeros_like(run.w)
    state, trouble = State.CONVERGED, None
    scores, slopes = np.empty(problem.n_scores), np.empty(problem.n_scores)
    try:
        norm = _set_target(run, run.evaluate(origin, scores, slopes))
        run.evaluated(objective=run.point.objective, gradient_norm=norm)
        if not starts_at_origin:
            norm = run.evaluate(run.w, scores, slopes).norm
            run.evaluated(objective=run.point.objective, gradient_norm=norm)
        if norm > run.target:
            trouble = _search(search, run)
    except Stop as stop:
        state = stop.state
    if trouble is not None:
        state = State.NUMERICAL_TROUBLE
    evaluations = run.evaluations
    if not np.array_equal(run.point.w, run.w):
        run.evaluate(run.w, scores, slopes)
        evaluations += 1
    norm = run.point.norm
    if norm <= run.target:
        state = State.CONVERGED
    elif state is State.CONVERGED:
        state = State.STALLED
    return SmoothSolution(
        run.w, run.point.objective, norm, run.target, state, run.iterations, evaluations, run.seconds, trouble
    )


def _set_target(run: SmoothRun, origin: Evaluated) -> float:
    """Sets the target gradient norm, and returns the norm at 0."""
    if not np.isfinite(origin.gradient @ origin.gradient):
        raise not_finite("gradient's square")
    # Constant features leave a gradient of rounding errors; no search reaches a fraction of it.
    rounding = ROUNDING * float(np.abs(run.problem.combine(np.abs(origin.slopes))).max(initial=0.0))
    run.target = max(run.limits.tolerance * origin.norm, rounding)
    return origin.norm


def _search(search: SmoothSearch, run: SmoothRun) -> str | None:
    """Runs the search; returns a message if a value was not finite. The last point is then in ``run.w``."""
    try:
        search.search(run)
    except FloatingPointError as error:
        return str(error)
    return None
