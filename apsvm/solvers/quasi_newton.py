"""Descend J(w) = ½‖w‖² + C·r(Xw) where r is neither smooth nor convex: L-BFGS with a weak Wolfe search.

    d = −H g,   H from the last steps and changes of gradient (Nocedal 1980), at first diagonal;
    a by doubling and halving until   J(w + a d) ≤ J(w) + 10⁻⁴ a g·d   and   g(w + a d)·d ≥ 0.9 g·d

Where J has kinks, quasi-Newton steps still head for a local minimum: the search stops beyond a kink, where the gradient
is another, and H learns it (Lewis and Overton 2013). Along a direction the scores are known, so that a trial costs one
evaluation of r; an iteration costs two passes over X. J only falls; how near the end is to stationary is not proved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.solvers.smooth import Scored

#: Pairs of steps and gradient changes that are kept.
MEMORY = 10
#: A step must gain this share of what the slope promises, and leave at most that share of the slope.
GAIN, SLOPE_SHARE = 1e-4, 0.9
MOST_TRIALS = 40
#: The first step, relative to the length of w.
FIRST_STEP = 0.1
#: Iterations in a row that gain too little, or restarts, before the end.
PATIENCE = 5


class Step(NamedTuple):
    """An iteration: J, and how often r has been evaluated so far."""

    number: int
    objective: float
    evaluations: int


def descend(
    problem: Scored,
    C: float,
    w: NDArray[np.float64],
    *,
    enough: float,
    curvature: NDArray[np.float64] | None = None,
    max_iterations: int = 10_000,
    on_step: Callable[[Step], None] = lambda step: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> NDArray[np.float64]:
    """A point with J at most that of ``w`` (dimension,), from which steps gain less than ``enough``.

    curvature : (dimension,) float64 > 0, how much J curves in each weight, up to a factor; None: alike
    """
    diagonal = np.ones(w.size) if curvature is None else 1.0 / curvature
    here = _Here(problem, C, w)
    history: deque[_Pair] = deque(maxlen=MEMORY)
    idle = 0
    for number in range(1, max_iterations + 1):
        if should_stop() or not here.gradient.any():
            break
        direction = -_inverse_hessian(history, here.gradient, diagonal)
        if not history:
            length = float(np.linalg.norm(here.w))
            largest = float(np.abs(direction).max())
            if length > 0.0 and largest > 0.0:
                direction /= largest  # whose squares may be too small for float64
                direction *= FIRST_STEP * length / float(np.linalg.norm(direction))
            else:
                direction *= 1.0 / C
        before, gradient, objective = here.w, here.gradient, here.objective
        if not here.search(direction):
            idle += 1
            if not history or idle == PATIENCE:
                break
            history.clear()
            continue
        pair = _Pair.of(here.w - before, here.gradient - gradient)
        if pair is not None:
            history.append(pair)
        on_step(Step(number, here.objective, here.evaluations))
        idle = idle + 1 if objective - here.objective < enough else 0
        if idle == PATIENCE:
            break
    return here.w


class _Pair(NamedTuple):
    """A step, the change of the gradient over it, and their product, > 0."""

    step: NDArray[np.float64]
    change: NDArray[np.float64]
    product: float

    @classmethod
    def of(cls, step: NDArray[np.float64], change: NDArray[np.float64]) -> _Pair | None:
        product = float(step @ change)
        return cls(step, change, product) if product > 0.0 else None


def _inverse_hessian(
    history: deque[_Pair], gradient: NDArray[np.float64], diagonal: NDArray[np.float64]
) -> NDArray[np.float64]:
    """H g by the two loops; without history H is ``diagonal``."""
    result = gradient.copy()
    shares = []
    for step, change, product in reversed(history):
        share = float(step @ result) / product
        result -= share * change
        shares.append(share)
    result *= diagonal
    if history:
        _, change, product = history[-1]
        curved = float(change @ (diagonal * change))
        if curved > 0.0:  # or it underflows
            result *= product / curved
    for (step, change, product), share in zip(history, reversed(shares), strict=True):
        result += (share - float(change @ result) / product) * step
    return result


class _Here:
    """The point reached, its scores, objective and gradient."""

    def __init__(self, problem: Scored, C: float, w: NDArray[np.float64]) -> None:
        self._problem = problem
        self._C = C
        self.w = w
        self._scores = problem.scores(w)
        self._change, self._trial, self._c = (np.empty(self._scores.size) for _ in range(3))
        self.evaluations = 1
        self.objective = 0.5 * float(w @ w) + C * problem.loss(self._scores, self._c)
        self.gradient = self._gradient()

    def _gradient(self) -> NDArray[np.float64]:
        gradient: NDArray[np.float64] = self.w + self._C * self._problem.combine(self._c)
        return gradient

    def search(self, direction: NDArray[np.float64]) -> bool:
        """Moves along ``direction`` to a lower J; False, and stays, if there is none."""
        slope = float(self.gradient @ direction)
        if not -np.inf < slope < 0.0:
            return False
        self._problem.scores(direction, self._change)
        square, linear, length = (float(a @ b) for a, b in ((self.w, self.w), (self.w, direction), (direction,) * 2))
        step, low, high = 1.0, 0.0, np.inf
        for _ in range(MOST_TRIALS):
            np.multiply(self._change, step, out=self._trial)
            self._trial += self._scores
            risk = self._problem.loss(self._trial, self._c)
            self.evaluations += 1
            objective = 0.5 * (square + step * (2.0 * linear + step * length)) + self._C * risk
            if not objective <= self.objective + GAIN * step * slope:
                high = step
            elif linear + step * length + self._C * float(self._c @ self._change) < SLOPE_SHARE * slope:
                low = step
            else:
                break
            step = 0.5 * (low + high) if high < np.inf else 2.0 * step
        if not objective < self.objective:
            return False
        self.w = self.w + step * direction
        self._scores, self._trial = self._trial, self._scores
        self.objective = objective
        self.gradient = self._gradient()
        return True
