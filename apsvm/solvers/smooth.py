"""Minimise J(w) = λ/2 ‖w‖² + L(Xw) for a smooth convex L of the scores: what the solvers of this kind share.

∇J(w) = λw + Xᵀc with c = ∂L/∂s at s = Xw. A search ends when ‖∇J(w)‖∞ ≤ tolerance · ‖∇J(0)‖∞, wherever it began. What
is reported is evaluated afresh at the point returned.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic

import numpy as np
from numpy.typing import NDArray

from apsvm._support.blas import one_blas_thread
from apsvm._support.registry import Registry
from apsvm.solvers.score_space import ScoreFunction, V
from apsvm.solvers.state import State, not_finite

#: Of the sum of its terms' sizes, what rounding leaves of a gradient entry that is zero.
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
    step, slope : float, of such a trial: how far along, and how J rises there
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
    """What a run came to.

    Attributes
    ----------
    w : (dimension,) float64
    objective, gradient_norm : float, J and ‖∇J‖∞ at w, computed afresh
    asked : float, the gradient norm to be reached
    state : why the run ended
    iterations, evaluations : int
    seconds : float
    trouble : str or None, what was not finite, where the state is ``NUMERICAL_TROUBLE``
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
    """Ends a search at the best point it has reached."""

    def __init__(self, state: State) -> None:
        self.state = state


class SmoothRun(Generic[V]):
    """One minimisation: what a search asks, counts and tells.

    w : (dimension,) float64, the point reached so far; the search moves it
    asked : the gradient norm at which it has arrived
    """

    def __init__(
        self,
        problem: ScoreFunction[V],
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

    def gradient(self, w: NDArray[np.float64], c: V) -> NDArray[np.float64]:
        gradient: NDArray[np.float64] = self.regularisation * w + self.problem.combine(c)
        if not np.isfinite(gradient).all():
            raise not_finite("gradient")
        return gradient

    def evaluated(
        self,
        *,
        objective: float | None = None,
        gradient_norm: float | None = None,
        step: float | None = None,
        slope: float | None = None,
    ) -> None:
        """To be called after each evaluation; raises Stop when time is up or a stop was requested."""
        self.evaluations += 1
        self._on_evaluation(SmoothEvaluation(self.evaluations, self.iterations, objective, gradient_norm, step, slope))
        if self.limits.should_stop():
            raise Stop(State.INTERRUPTED)
        if self.limits.time_limit is not None and self.seconds >= self.limits.time_limit:
            raise Stop(State.TIME_LIMIT)

    def moved(self, w: NDArray[np.float64], gradient_norm: float, objective: float | None = None) -> None:
        """To be called with each new point but the first; raises Stop at the limit of iterations."""
        self.w = w
        self.iterations += 1
        self._on_iteration(SmoothIteration(self.iterations, objective, gradient_norm, self.evaluations, self.seconds))
        if gradient_norm > self.target and self.iterations >= self.limits.max_iterations:
            raise Stop(State.ITERATION_LIMIT)


class SmoothSearch(ABC):
    """A way to get from ``run.w`` to a point whose gradient is small enough."""

    name: ClassVar[str]

    @abstractmethod
    def search(self, run: SmoothRun[V]) -> None:
        """Moves ``run.w`` until the gradient's norm is at most ``run.asked``; raises Stop if it ends before that."""


SEARCHES: Registry[SmoothSearch] = Registry(
    "optimizer", {"lbfgs": "apsvm.solvers.lbfgs:LBFGS", "prcg": "apsvm.solvers.nonlinear_cg:NonlinearCG"}
)


def minimise(
    problem: ScoreFunction[V],
    dimension: int,
    regularisation: float,
    search: SmoothSearch,
    limits: Limits,
    *,
    start: NDArray[np.float64] | None = None,
    on_evaluation: Callable[[SmoothEvaluation], None] = lambda evaluation: None,
    on_iteration: Callable[[SmoothIteration], None] = lambda iteration: None,
) -> SmoothSolution:
    """The minimiser of λ/2 ‖w‖² + L(Xw), from ``start`` (dimension,) or 0; ``regularisation`` is λ ≥ 0.

    Raises
    ------
    FloatingPointError : scores, objective or gradient are not finite where the search begins, or its gradient's square
        is not; later that ends the run as ``NUMERICAL_TROUBLE``
    """
    # More BLAS threads would make the last bits depend on their number, and small products slow.
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        first = np.zeros(dimension) if start is None else start
        run = SmoothRun(problem, regularisation, first, limits, on_evaluation, on_iteration)
        return _minimise(run, search, starts_at_origin=start is None)


def _minimise(run: SmoothRun[V], search: SmoothSearch, *, starts_at_origin: bool) -> SmoothSolution:
    problem, limits, regularisation = run.problem, run.limits, run.regularisation
    origin = np.zeros_like(run.w)
    state, trouble = State.CONVERGED, None
    scores, c, sizes = (problem.vectors.empty() for _ in range(3))
    try:
        problem.slopes(problem.scores(origin, scores), c)
        gradient = run.gradient(origin, c)
        if not np.isfinite(gradient @ gradient):
            raise not_finite("gradient's square")
        # Constant features leave a gradient of rounding errors, and no share of those can be asked for.
        problem.vectors.absolute(c, sizes)
        rounding = ROUNDING * float(np.abs(problem.combine(sizes)).max(initial=0.0))
        norm = float(np.abs(gradient).max(initial=0.0))
        run.target = max(limits.tolerance * norm, rounding)
        run.evaluated(gradient_norm=norm)
        if not starts_at_origin or norm > run.target:
            trouble = _search(search, run)
    except Stop as stop:
        state = stop.state
    if trouble is not None:
        state = State.NUMERICAL_TROUBLE
    w = run.w
    loss = problem.tangent(problem.scores(w, scores), c).value
    objective = 0.5 * regularisation * float(w @ w) + loss
    if not np.isfinite(objective):
        raise not_finite("objective")
    norm = float(np.abs(run.gradient(w, c)).max(initial=0.0))
    if norm <= run.target:
        state = State.CONVERGED
    elif state is State.CONVERGED:
        state = State.STALLED
    evaluations = run.evaluations + 1
    return SmoothSolution(w, objective, norm, run.target, state, run.iterations, evaluations, run.seconds, trouble)


def _search(search: SmoothSearch, run: SmoothRun[V]) -> str | None:
    """What was not finite, if that ended the search: the point reached until then is left in ``run.w``."""
    try:
        search.search(run)
    except FloatingPointError as error:
        return str(error)
    return None
