"""Minimise J(w) = λ/2 ‖w‖² + L(Xw) for a smooth convex L of the scores: what the solvers of this kind share.

∇J(w) = λw + Xᵀc with c = ∂L/∂s at s = Xw. A search ends when ‖∇J(w)‖∞ ≤ tolerance · ‖∇J(0)‖∞, wherever it began. What
is reported is evaluated afresh at the point returned.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from apsvm.registry import Registry
from apsvm.solvers.state import State

#: Of the sum of its terms' sizes, what rounding leaves of a gradient entry that is zero.
ROUNDING = 16 * np.finfo(np.float64).eps


class Scored(Protocol):
    """L and X. Results go to ``out`` (n_scores,) float64 where it is given."""

    @property
    def n_scores(self) -> int: ...

    def scores(self, w: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Xw: (n_scores,) float64."""

    def loss(self, scores: NDArray[np.float64], out: NDArray[np.float64]) -> float:
        """L, and ``out`` becomes c."""

    def combine(self, c: NDArray[np.float64]) -> NDArray[np.float64]:
        """Xᵀc: (dimension,) float64."""


class Problem(Scored, Protocol):
    """One whose slopes are had without its value."""

    def slopes(self, scores: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """``out`` becomes c."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation of the problem. A line search that sees only gradients gives ``step``, along its direction, and
    ``slope`` there; others the objective and the gradient's norm."""

    index: int
    iteration: int
    objective: float | None = None
    gradient_norm: float | None = None
    step: float | None = None
    slope: float | None = None


@dataclass(frozen=True, slots=True)
class Iteration:
    """A new point; its objective is None where the solver does not compute it. Norms are ‖·‖∞."""

    index: int
    objective: float | None
    gradient_norm: float
    evaluations: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Solution:
    """w : (dimension,) float64; objective and gradient_norm : at w; asked : the gradient norm to be reached."""

    w: NDArray[np.float64]
    objective: float
    gradient_norm: float
    asked: float
    state: State
    iterations: int
    evaluations: int
    seconds: float


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


class Run:
    """One minimisation: what a search asks, counts and tells.

    w : (dimension,) float64, the point reached so far; the search moves it
    asked : the gradient norm at which it has arrived
    """

    def __init__(
        self,
        problem: Problem,
        regularisation: float,
        w: NDArray[np.float64],
        limits: Limits,
        on_evaluation: Callable[[Evaluation], None],
        on_iteration: Callable[[Iteration], None],
    ) -> None:
        self.problem = problem
        self.regularisation = regularisation
        self.w = w
        self.limits = limits
        self.asked = 0.0
        self.iterations = self.evaluations = 0
        self._began = time.perf_counter()
        self._on_evaluation = on_evaluation
        self._on_iteration = on_iteration

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def gradient(self, w: NDArray[np.float64], c: NDArray[np.float64]) -> NDArray[np.float64]:
        gradient: NDArray[np.float64] = self.regularisation * w + self.problem.combine(c)
        if not np.isfinite(gradient).all():
            raise FloatingPointError("the gradient is not finite: the feature values are too large, scale them down")
        return gradient

    def evaluated(
        self,
        *,
        objective: float | None = None,
        gradient_norm: float | None = None,
        step: float | None = None,
        slope: float | None = None,
    ) -> None:
        """To be called after each evaluation; raises Stop when time is up or somebody asked for it."""
        self.evaluations += 1
        self._on_evaluation(Evaluation(self.evaluations, self.iterations, objective, gradient_norm, step, slope))
        if self.limits.should_stop():
            raise Stop(State.INTERRUPTED)
        if self.limits.time_limit is not None and self.seconds >= self.limits.time_limit:
            raise Stop(State.TIME_LIMIT)

    def moved(self, w: NDArray[np.float64], gradient_norm: float, objective: float | None = None) -> None:
        """To be called with each new point but the first; raises Stop at the limit of iterations."""
        self.w = w
        self.iterations += 1
        self._on_iteration(Iteration(self.iterations, objective, gradient_norm, self.evaluations, self.seconds))
        if gradient_norm > self.asked and self.iterations >= self.limits.max_iterations:
            raise Stop(State.ITERATION_LIMIT)


class Search(ABC):
    """A way to get from ``run.w`` to a point whose gradient is small enough."""

    name: ClassVar[str]

    @abstractmethod
    def search(self, run: Run) -> None:
        """Moves ``run.w`` until the gradient's norm is at most ``run.asked``; raises Stop if it ends before that."""


SEARCHES: Registry[Search] = Registry(
    "optimizer", {"lbfgs": "apsvm.solvers.lbfgs:LBFGS", "prcg": "apsvm.solvers.nonlinear_cg:NonlinearCG"}
)


def minimise(
    problem: Problem,
    dimension: int,
    regularisation: float,
    search: Search,
    limits: Limits,
    *,
    start: NDArray[np.float64] | None = None,
    on_evaluation: Callable[[Evaluation], None] = lambda evaluation: None,
    on_iteration: Callable[[Iteration], None] = lambda iteration: None,
) -> Solution:
    """The minimiser of λ/2 ‖w‖² + L(Xw), from ``start`` (dimension,) or 0; ``regularisation`` is λ ≥ 0.

    Raises
    ------
    FloatingPointError : scores, objective or gradient are not finite
    """
    from threadpoolctl import threadpool_limits

    # More BLAS threads would make the last bits depend on their number, and small products slow.
    with threadpool_limits(1, user_api="blas"):
        return _minimise(problem, dimension, regularisation, search, limits, start, on_evaluation, on_iteration)


def _minimise(
    problem: Problem,
    dimension: int,
    regularisation: float,
    search: Search,
    limits: Limits,
    start: NDArray[np.float64] | None,
    on_evaluation: Callable[[Evaluation], None],
    on_iteration: Callable[[Iteration], None],
) -> Solution:
    origin = np.zeros(dimension)
    run = Run(problem, regularisation, origin if start is None else start, limits, on_evaluation, on_iteration)
    state = State.CONVERGED
    c = np.empty(problem.n_scores)
    try:
        problem.slopes(problem.scores(origin), c)
        gradient = run.gradient(origin, c)
        # Constant features leave a gradient of rounding errors, and no share of those can be asked for.
        rounding = ROUNDING * float(np.abs(problem.combine(np.abs(c))).max(initial=0.0))
        norm = float(np.abs(gradient).max(initial=0.0))
        run.asked = max(limits.tolerance * norm, rounding)
        run.evaluated(gradient_norm=norm)
        if start is not None or norm > run.asked:
            search.search(run)
    except Stop as stop:
        state = stop.state
    w = run.w
    loss = problem.loss(problem.scores(w), c)
    objective = 0.5 * regularisation * float(w @ w) + loss
    if not np.isfinite(objective):
        raise FloatingPointError("the objective is not finite: the feature values are too large, scale them down")
    norm = float(np.abs(run.gradient(w, c)).max(initial=0.0))
    if norm <= run.asked:
        state = State.CONVERGED
    elif state is State.CONVERGED:
        state = State.STALLED
    return Solution(w, objective, norm, run.asked, state, run.iterations, run.evaluations + 1, run.seconds)
