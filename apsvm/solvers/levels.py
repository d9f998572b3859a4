"""Level steps (Lemaréchal, Nemirovskii, Nesterov 1995): the next point lies nearer to the best point w_b than the
minimiser of the planes.

    next point = argmin ½‖w − w_b‖²   subject to   m(w) = ½‖w‖² − c·w + C·max_t(a_t·w + b_t) ≤ dual + λ·(primal − dual)

m is the model of J by the planes; its minimum is the dual bound. If the model is poor, its minimiser is far away, and
planes taken there say little about J near its minimum. With a multiplier for the constraint the problem is the working
set's QP again, moved and shrunk:

    centre (1 − θ)·w_b + θ·c,   cap θ·C,     0 < θ < 1

θ = 0 gives w_b, θ = 1 the minimiser of m, and m falls in between: any θ that brings m near the level will do. The
bounds do not depend on any of this: the dual one comes from the plain QP.

The best λ differs between problems and changes during a run (``Heights``).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.solvers.working_set import WorkingSet

#: Values of λ to choose from (0: the plain method), and the tolerance on m around the level, as a share of the gap.
HEIGHTS = (0.0, 0.25, 0.75)
BAND = 0.15
#: Fraction of the requested gap that one QP may leave open.
QP_SHARE = 1e-3
#: Iterations between decisions on λ, and before the first one.
BLOCK, FIRST_BLOCK = 4, 12
#: Decrease of log(gap) in an iteration that makes a search for a better λ unnecessary.
FAST = 0.2
#: Blocks between trials of another λ.
PATIENCE = 4


class Heights:
    """Chooses λ by the decrease of the gap in short blocks of iterations. It begins with the plain method and keeps any
    λ that divides the gap fast. Otherwise it tries all and continues with the best; the others are tried again now and
    then, less often while they stay behind."""

    def __init__(self) -> None:
        self._at = 0
        self._rates = [-math.inf] * len(HEIGHTS)  # of log(gap), an iteration, in the last block of each
        self._blocks = [0] * len(HEIGHTS)  # the number, from 1, of that block; 0: none
        self._iterations = 0  # in this block
        self._gap_before = math.inf  # this block
        self._trial = False
        self._patience = PATIENCE
        self._left = 0  # blocks until the next trial

    def next(self, gap: float) -> int:
        """Index in ``HEIGHTS`` of λ, for a step from this gap > 0."""
        length = BLOCK if any(self._blocks) else FIRST_BLOCK
        if self._iterations == length:
            self._rates[self._at] = math.log(self._gap_before / gap) / length
            self._blocks[self._at] = max(self._blocks) + 1
            self._iterations = 0
            self._decide()
        if self._iterations == 0:
            self._gap_before = gap
        self._iterations += 1
        return self._at

    def _decide(self) -> None:
        """Chooses the height of the next block."""
        at, best, longest_ago = self._at, self._rates.index(max(self._rates)), self._blocks.index(min(self._blocks))
        trial, self._trial = self._trial, False
        if self._rates[at] >= FAST:
            return
        if self._blocks[longest_ago] == 0:
            self._at = longest_ago
        elif trial or best != at:
            self._patience = 2 * self._patience if trial and best != at else PATIENCE
            self._left, self._at = self._patience, best
        else:
            self._left -= 1
            if self._left <= 0:
                self._trial, self._at = True, longest_ago


class Levels:
    """Level steps of one solver, whose planes mostly stay the same between steps; see the module."""

    def __init__(self) -> None:
        self._heights = Heights()
        self._ratios = [1.0] * len(HEIGHTS)  # θ/(1 − θ) at the end of the last step of each height
        self._native = _kernels.LevelSteps()

    def begin(self) -> None:
        """Prepares for another problem, with another gap."""
        self._heights = Heights()

    def step(
        self, working_set: WorkingSet, best: NDArray[np.float64], primal: float, dual: float, tolerance: float
    ) -> NDArray[np.float64] | None:
        """The next point, (dimension,), given the best point so far and the bounds; None stands for the minimiser of m,
        if λ is 0 or numbers fail. Planes that determine it count as used. ``tolerance``: the requested gap."""
        gap = primal - dual
        if not 0.0 < gap < math.inf:
            return None
        at = self._heights.next(gap)
        height, ratio = HEIGHTS[at], self._ratios[at]
        if height == 0.0:
            return None
        plain, from_centre = working_set.problem(), best - working_set.centre
        step = self._native.step(
            plain.gram,
            plain.offsets,
            plain.soft,
            plain.C,
            plain.names,
            working_set.offsets_from(best),
            float(from_centre @ from_centre),
            dual + (height - BAND) * gap - working_set.dual_of_nothing,
            dual + (height + BAND) * gap - working_set.dual_of_nothing,
            ratio,
            QP_SHARE * tolerance,
        )
        if step is None:
            return None
        alpha, theta, self._ratios[at] = step
        working_set.use(alpha > 0.0)
        return working_set.centre + (1.0 - theta) * from_centre - working_set.combine(alpha)
