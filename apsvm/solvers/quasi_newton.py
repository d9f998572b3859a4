"""L-BFGS with a weak Wolfe search on scores: descend J(w) = λ/2 ‖w‖² + C·r(Xw).

    d = −H g,   H from the last steps and changes of gradient (Nocedal 1980), at first diagonal;
    a by doubling and halving until   J(w + a d) ≤ J(w) + 10⁻⁴ a g·d   and   g(w + a d)·d ≥ 0.9 g·d

Scores along a direction are known, so a trial costs one evaluation of r; an iteration costs two passes over X.

If J has kinks, quasi-Newton steps still approach a local minimum: the search stops beyond a kink, and H learns the
change of the gradient (Lewis and Overton 2013). J only falls; stationarity of the end is not proved (``descend``). If r
is smooth and convex (``lbfgs``), the gradient proves it. The search then continues within rounding of J(w), if the
slopes show that J fell (Hager and Zhang 2005, approximate Wolfe conditions).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.solvers.score_space import Evaluated, ScoreFunction, add_multiple
from apsvm.solvers.state import not_finite

#: Pairs of steps and gradient changes that are kept.
MEMORY = 10
#: Wolfe conditions: a step must gain at least the first share of the slope's prediction, and leave at most the second
#: share of the slope.
GAIN, SLOPE_SHARE = 1e-4, 0.9
MOST_TRIALS = 40
#: The first step, relative to the length of w.
FIRST_STEP = 0.1
#: Successive iterations with too little gain, or restarts, before the end.
PATIENCE = 5
#: Relative rounding error of J.
ROUNDING = 1e-12


class DescentStep(NamedTuple):
    """An iteration of a descent.

    Attributes
    ----------
    number : int, from 1
    objective : float, J
    """

    number: int
    objective: float


def descend(
    risk: ScoreFunction,
    C: float,
    w: NDArray[np.float64],
    *,
    enough: float,
    curvature: NDArray[np.float64] | None = None,
    max_iterations: int = 10_000,
    on_step: Callable[[DescentStep], None] = lambda step: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> NDArray[np.float64]:
    """Descends ½‖w‖² + C·r(Xw) from ``w`` (dimension,) until steps gain less than ``enough``.

    curvature : (dimension,) float64 > 0, curvature of J in each weight, up to a factor; None: equal in all

    Raises FloatingPointError if J is not finite at ``w``; later that ends the descent.
    """
    descent = QuasiNewton(risk, w, C=C, curvature=curvature)
    idle = 0
    for number in range(1, max_iterations + 1):
        if should_stop():
            break
        objective, afresh = descent.objective, descent.is_fresh
        try:
            moved = descent.step()
        except FloatingPointError:
            break
        if moved:
            on_step(DescentStep(number, descent.objective))
            idle = idle + 1 if objective - descent.objective < enough else 0
        else:
            idle += 1
            descent.forget()
        if idle == PATIENCE or (afresh and not moved):
            break
    return descent.w


class QuasiNewton:
    """Current point of a descent, with its value, gradient and curvature information.

    Parameters
    ----------
    function : r
    w : (dimension,) float64, the start; or an ``Evaluated`` start, whose vectors are reused
    regularisation, C : λ and the weight of r
    curvature : (dimension,) float64 > 0, curvature of J in each weight, up to a factor; None: equal in all
    smooth : r is smooth and convex
    on_trial : called after each trial of a search with the step along the direction, J and the slope there

    Attributes
    ----------
    w : (dimension,) float64, the point
    objective : float, J there
    gradient : (dimension,) float64, there
    """

    def __init__(
        self,
        function: ScoreFunction,
        w: NDArray[np.float64] | Evaluated,
        *,
        regularisation: float = 1.0,
        C: float = 1.0,
        curvature: NDArray[np.float64] | None = None,
        smooth: bool = False,
        on_trial: Callable[[float, float, float], None] = lambda step, objective, slope: None,
    ) -> None:
        self._function = function
        self._regularisation, self._C = regularisation, C
        self._smooth = smooth
        self._on_trial = on_trial
        # Recent steps, the changes of the gradient along them, and their products, > 0.
        self._history: tuple[list[NDArray[np.float64]], list[NDArray[np.float64]], list[float]] = [], [], []
        self._change, self._trial = np.empty(function.n_scores), np.empty(function.n_scores)
        if isinstance(w, Evaluated):
            self.w, self._scores, self._slopes, self.objective, self.gradient = w
        else:
            self.w, self._scores, self._slopes = w, np.empty(function.n_scores), np.empty(function.n_scores)
            self.refresh()
        self._diagonal = np.ones(self.w.size) if curvature is None else 1.0 / curvature

    @property
    def is_fresh(self) -> bool:
        """True without curvature information: the next step follows the gradient."""
        return not self._history[0]

    def forget(self) -> None:
        """Drops the curvature information."""
        self._history = [], [], []

    def refresh(self) -> Evaluated:
        """Recomputes scores, value and gradient, without accumulated rounding."""
        self._function.scores(self.w, self._scores)
        value = self._function.tangent(self._scores, self._slopes).value
        self.objective = 0.5 * self._regularisation * float(self.w.dot(self.w)) + self._C * value
        if not math.isfinite(self.objective):
            raise not_finite("objective")
        self.gradient = self._gradient(self.w)
        return Evaluated(self.w, self._scores, self._slopes, self.objective, self.gradient)

    def step(self) -> bool:
        """Moves to a lower J; stays and returns False if the direction has none lower."""
        direction = newton_direction(self.gradient, self._diagonal, *self._history)
        if self.is_fresh and not self._smooth:
            direction = self._short(direction)
        before, gradient = self.w, self.gradient
        if not self._search(direction):
            return False
        moved, changed = self.w - before, self.gradient - gradient
        product = float(moved.dot(changed))
        if product > 0.0:
            steps, changes, products = self._history
            steps.append(moved)
            changes.append(changed)
            products.append(product)
            if len(products) > MEMORY:
                del steps[0], changes[0], products[0]
        return True

    def _gradient(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gradient at ``w``, from ``_slopes``."""
        gradient: NDArray[np.float64] = self._regularisation * w + self._C * self._function.combine(self._slopes)
        if not _kernels.all_within(gradient, sys.float_info.max):
            raise not_finite("gradient")
        return gradient

    def _short(self, direction: NDArray[np.float64]) -> NDArray[np.float64]:
        """First direction, with a length relative to w."""
        length = float(np.linalg.norm(self.w))
        largest = float(np.abs(direction).max())
        if length > 0.0 and largest > 0.0:
            direction /= largest  # whose squares may be too small for float64
            direction *= FIRST_STEP * length / float(np.linalg.norm(direction))
        else:
            direction *= 1.0 / self._C
        return direction

    def _search(self, direction: NDArray[np.float64]) -> bool:
        """Moves along ``direction`` to a lower J; stays and returns False if no point is lower."""
        slope = float(self.gradient.dot(direction))
        if not -np.inf < slope < 0.0:
            return False
        self._function.scores(direction, self._change)
        w = self.w
        squares = _Squares(float(w.dot(w)), float(w.dot(direction)), float(direction.dot(direction)))
        step, low, high = self._first_trial(), 0.0, np.inf
        passed = False
        for _ in range(MOST_TRIALS):
            tried = step
            objective, slope_there = self._try(tried, squares)
            if not self._falls(tried, slope, objective, slope_there):
                high = tried
            elif slope_there < SLOPE_SHARE * slope:
                low = tried
            else:
                passed = True
                break
            step = 0.5 * (low + high) if high < np.inf else 2.0 * tried
        if not objective < self.objective and not (self._smooth and passed):
            return False
        w = w + tried * direction
        if not passed:
            self._function.slopes(self._trial, self._slopes)
        self.w, self.gradient, self.objective = w, self._gradient(w), objective
        self._scores, self._trial = self._trial, self._scores
        return True

    def _first_trial(self) -> float:
        """First trial step: 1 with curvature information; without it, and for smooth J, the step that changes the
        scores by 1."""
        if not (self._smooth and self.is_fresh):
            return 1.0
        spread = float(np.sqrt(self._change.dot(self._change) / self._function.n_scores))
        return 1.0 / spread if 0.0 < spread < np.inf else 1.0

    def _try(self, step: float, squares: _Squares) -> tuple[float, float]:
        """Evaluates J and its slope at this step."""
        add_multiple(self._scores, step, self._change, self._trial)
        value = self._function.tangent(self._trial, self._slopes).value
        _, linear, square = squares
        objective = 0.5 * self._regularisation * squares.at(step) + self._C * value
        along = float(self._slopes.dot(self._change))
        slope = self._regularisation * (linear + step * square) + self._C * along
        self._on_trial(step, objective, slope)
        return objective, slope

    def _falls(self, step: float, slope: float, objective: float, slope_there: float) -> bool:
        """True if J falls as much as the slope requires; if the difference is within rounding, the slopes decide."""
        if objective <= self.objective + GAIN * step * slope:
            return True
        level = objective <= self.objective + ROUNDING * abs(self.objective)
        return self._smooth and level and slope_there <= (2.0 * GAIN - 1.0) * slope


def newton_direction(
    gradient: NDArray[np.float64],
    diagonal: NDArray[np.float64],
    steps: Sequence[NDArray[np.float64]],
    changes: Sequence[NDArray[np.float64]],
    products: Sequence[float],
) -> NDArray[np.float64]:
    """−H g by the two-loop recursion over recent steps, gradient changes and their products. The initial H is a
    multiple of the ``diagonal``."""
    result = gradient.copy()
    shares = [0.0] * len(steps)
    for t in reversed(range(len(steps))):
        shares[t] = float(steps[t].dot(result)) / products[t]
        result -= shares[t] * changes[t]
    scale = -1.0
    if steps:
        curved = float(changes[-1].dot(diagonal * changes[-1]))
        if curved > 0.0:  # it may underflow
            scale *= products[-1] / curved
    result *= scale * diagonal
    # The sign is that of −Hg.
    for step, change, product, share in zip(steps, changes, products, shares, strict=True):
        result -= (share + float(change.dot(result)) / product) * step
    return result


class _Squares(NamedTuple):
    """w·w, w·d and d·d."""

    point: float
    linear: float
    square: float

    def at(self, step: float) -> float:
        """‖w + step·d‖²"""
        return self.point + step * (2.0 * self.linear + step * self.square)
