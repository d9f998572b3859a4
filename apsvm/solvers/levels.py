"""Level steps (Lemaréchal, Nemirovskii, Nesterov 1995): where to cut next, nearer to the best point w_b than the
minimiser of the planes is.

    next point = argmin ½‖w − w_b‖²   subject to   m(w) = ½‖w‖² − c·w + C·max_t(a_t·w + b_t) ≤ dual + λ·(primal − dual)

m is what the planes know of J; its minimum is the dual bound. Where that knowledge is poor, its minimiser is far away,
and planes taken there say little of J near its own minimum. With a multiplier for the constraint the problem is the
working set's QP once more, moved and shrunk:

    centre (1 − θ)·w_b + θ·c,   cap θ·C,     0 < θ < 1

θ = 0 gives w_b, θ = 1 the minimiser of m, and m falls in between: any θ will do that takes m near the level. The bounds
do not depend on any of this: the dual one comes from the plain QP.

Which λ is best differs from problem to problem, and in the course of one (``Heights``).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.solvers.working_set import WorkingSet

#: Values of λ to choose from, 0 being the plain method's, and how far off the level m may be, as a share of the gap.
HEIGHTS = (0.0, 0.25, 0.75)
BAND = 0.15
#: Of the gap asked for, what one QP may leave.
QP_SHARE = 1e-3
#: Iterations from one decision on λ to the next, and to the first one.
BLOCK, FIRST_BLOCK = 4, 12
#: A fall of log(gap) in an iteration that leaves nothing to look for.
FAST = 0.2
#: Blocks from one trial of another λ to the next.
PATIENCE = 4


class Heights:
    """Chooses λ by what iterations with it have done to the gap, in blocks of a few. It begins with the plain method
    and stays with what divides the gap fast; otherwise all are tried, and the best one goes on. The others are tried
    again every now and then, less and less often while they stay behind."""

    def __init__(self) -> None:
        self._at = 0
        self._rates = [-math.inf] * len(HEIGHTS)  # of log(gap), an iteration, in the last block of each
        self._blocks = [0] * len(HEIGHTS)  # the number, from 1, of that block; 0: none
        self._iterations = 0  # in this block
        self._gap_before = math.inf  # this block
        self._trial = False
        self._patience = PATIENCE
        self._left = 0  # blocks to the next trial

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
    """See the module; steps of one solver, whose planes mostly stay from one to the next."""

    def __init__(self) -> None:
        self._heights = Heights()
        self._ratios = [1.0] * len(HEIGHTS)  # θ/(1 − θ), where the last step of each height ended
        self._native = _kernels.LevelSteps()

    def begin(self) -> None:
        """Another problem, with another gap."""
        self._heights = Heights()

    def step(
        self, working_set: WorkingSet, best: NDArray[np.float64], primal: float, dual: float, tolerance: float
    ) -> NDArray[np.float64] | None:
        """The next point, (dimension,), for the best one so far and the bounds; None for the minimiser of m,
        where λ is 0 or numbers fail. The planes that bear it count as in use. ``tolerance``: the gap asked for."""
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
