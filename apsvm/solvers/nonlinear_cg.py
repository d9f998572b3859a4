"""Nonlinear conjugate gradients after Polak and Ribière, with a line search that sees only gradients.

    d = −g + β d,   β = max(0, g·(g − g_before) / g_before·g_before),   d = −g where g·d ≥ 0

The step is a root of φ'(a) = c(s + a t)·t + λ (w·d + a d·d), with t = Xd: along the direction the scores are known, so
a trial costs one evaluation of c and no pass over X; an iteration costs two passes, t and the new Xᵀc. J itself is not
evaluated. φ' increases, since J is convex: secant steps go outwards until it changes sign, then false position narrows
the bracket.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.solvers.score_space import add_multiple
from apsvm.solvers.smooth import SmoothRun, SmoothSearch, Stop
from apsvm.solvers.state import State, not_finite

#: The search ends when the slope is at most this share of the first slope.
SLOPE_SHARE = 0.1
#: A step outwards is at least and at most this many times the step before.
OUTWARDS = (1.1, 10.0)
#: A step inwards leaves at least this share of the bracket on either side.
MARGIN = 0.05
#: Maximum number of trials in one search.
MOST_TRIALS = 50


class NonlinearCG(SmoothSearch):
    """See the module."""

    name: ClassVar[str] = "prcg"

    def search(self, run: SmoothRun) -> None:
        w, gradient = run.point.w, run.point.gradient
        step: float | None = None
        line = _Line(run)
        norm, fresh = run.point.norm, True  # the scores are still as computed
        direction = -gradient
        while True:
            if norm <= run.target:
                if fresh:
                    return
                # Recomputed without accumulated rounding: the gradient must be small at Xw itself.
                gradient = run.evaluate(w, line.scores, line.c).gradient
                norm, fresh = run.point.norm, True
                run.evaluated(objective=run.point.objective, gradient_norm=norm)
                continue
            steepest = float(gradient @ direction) >= 0.0
            if steepest:
                direction = -gradient
            step = line.minimise(w, direction, float(gradient @ direction), step)
            if step is None:
                if steepest or (direction == -gradient).all():
                    raise Stop(State.STALLED)
                direction = -gradient
                continue
            w = w + step * direction
            before, gradient = gradient, run.gradient(w, line.c)
            norm, fresh = float(np.abs(gradient).max()), False
            run.moved(w, norm)
            beta = max(0.0, float(gradient @ (gradient - before)) / float(before @ before))
            direction = beta * direction - gradient


class _Line:
    """Searches along one direction after another.

    scores : at the start of the search; ``minimise`` moves them to its end
    c : ∂L/∂s at these scores
    """

    def __init__(self, run: SmoothRun) -> None:
        self.scores, self.c = run.point.scores, run.point.slopes
        self._run = run
        self._trial, self._change = np.empty(run.problem.n_scores), np.empty(run.problem.n_scores)

    def minimise(
        self, w: NDArray[np.float64], direction: NDArray[np.float64], slope: float, step: float | None
    ) -> float | None:
        """Step from w along ``direction`` with slope < 0; ``step`` is the first trial. None if no step brings the slope
        closer to zero."""
        run = self._run
        change = run.problem.scores(direction, self._change)
        linear, square = (run.regularisation * float(v @ direction) for v in (w, direction))
        if step is None:
            spread = float(np.sqrt(change.dot(change) / run.problem.n_scores))
            step = 1.0 / spread if spread > 0.0 else 1.0
        low, slope_low = 0.0, slope
        high = slope_high = np.inf
        before, slope_before = 0.0, slope
        best, slope_best = 0.0, slope
        tried = 0.0
        for _ in range(MOST_TRIALS):
            tried = step
            slope_now = self._slope(step, linear + step * square)
            if abs(slope_now) < abs(slope_best):
                best, slope_best = step, slope_now
            if abs(slope_now) <= SLOPE_SHARE * abs(slope):
                break
            # A side kept twice counts half (Illinois); otherwise false position creeps.
            if slope_now < 0.0:
                low, slope_low = step, slope_now
                slope_high *= 0.5 if slope_before < 0.0 and high < np.inf else 1.0
            else:
                high, slope_high = step, slope_now
                slope_low *= 0.5 if slope_before > 0.0 else 1.0
            last, slope_last = before, slope_before
            before, slope_before = step, slope_now
            if high == np.inf:
                rise = slope_now - slope_last
                ahead = step - slope_now * (step - last) / rise if rise > 0.0 else np.inf
                step = min(max(ahead, OUTWARDS[0] * step), OUTWARDS[1] * step)
            else:
                width = high - low
                step = low - slope_low * width / (slope_high - slope_low)
                step = min(max(step, low + MARGIN * width), high - MARGIN * width)
            if not low < step < high or not np.isfinite(step):
                break
        if best == 0.0:
            run.problem.slopes(self.scores, self.c)
            return None
        if best != tried:
            self._slope(best, linear + best * square)
        self.scores, self._trial = self._trial, self.scores
        return best

    def _slope(self, step: float, regular: float) -> float:
        """φ' at this step; updates the scores and c of the trial."""
        add_multiple(self.scores, step, self._change, self._trial)
        self._run.problem.slopes(self._trial, self.c)
        slope = float(self.c.dot(self._change)) + regular
        if not np.isfinite(slope):
            raise not_finite("slope")
        self._run.evaluated(step=step, slope=slope)
        return slope
