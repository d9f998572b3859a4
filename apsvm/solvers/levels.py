"""Level steps (Lemaréchal, Nemirovskii, Nesterov 1995): where to cut next, nearer to the best point w_b than the
minimiser of the planes is.

    next point = argmin ½‖w − w_b‖²   subject to   m(w) = ½‖w − c‖² + C·max_t(a_t·w + b_t) ≤ dual + λ·(primal − dual)

m is what the planes know of J; its minimum is the dual bound. Where that knowledge is poor, its minimiser is far away,
and planes taken there say little of J near its own minimum. With a multiplier for the constraint the problem is the
working set's QP once more, moved and shrunk:

    centre (1 − θ)·w_b + θ·c,   cap θ·C,     0 < θ < 1

θ = 0 gives w_b, θ = 1 the minimiser of m, and m falls in between: any θ will do that takes m near the level. The bounds
do not depend on any of this: the dual one comes from the plain QP.

Which λ is best differs from problem to problem, and in the course of one (``Heights``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apsvm.solvers.qp.active_set import ActiveSet
from apsvm.solvers.saving import Saved, array, part, prefixed
from apsvm.solvers.working_set import WorkingSet

#: Values of λ to choose from, and how far off the level m may be, as a share of the gap.
HEIGHTS = (0.25, 0.75)
BAND = 0.15
#: Most QPs for one step; by how much θ/(1 − θ) changes from one to the next until the level lies between two.
MOST_QPS = 4
FACTOR = 4.0
#: Of the gap asked for, what one QP may leave.
QP_SHARE = 1e-3
#: Iterations from one decision on λ to the next, and decisions from one trial of the other λ to the next.
BLOCK = 4
PATIENCE = 3


class Heights:
    """Chooses λ by what an iteration with it has done to the gap: block by block of iterations the one that divides the
    gap by more. The other is tried again every now and then, less and less often while it stays behind."""

    def __init__(self) -> None:
        self._at = 0
        self._rates = [-np.inf, -np.inf]  # of log(gap), an iteration, in the last block of each
        self._iterations = 0  # in this block
        self._gap_before = np.inf  # this block
        self._trial = False
        self._patience = PATIENCE
        self._left = 1  # the other λ comes next

    def next(self, gap: float) -> int:
        """Which of ``HEIGHTS`` is λ for a step from this gap, > 0."""
        if self._iterations == BLOCK:
            self._rates[self._at] = float(np.log(self._gap_before / gap)) / BLOCK
            self._iterations = 0
            if self._decide():
                self._at = 1 - self._at
        if self._iterations == 0:
            self._gap_before = gap
        self._iterations += 1
        return self._at

    def _decide(self) -> bool:
        """Whether to change to the other λ."""
        behind = self._rates[self._at] < self._rates[1 - self._at]
        if self._trial:
            self._patience = 2 * self._patience if behind else PATIENCE
            self._left, self._trial = self._patience, False
            return behind
        if behind:
            self._left = self._patience = PATIENCE
            return True
        self._left -= 1
        self._trial = self._left == 0
        return self._trial

    def state(self) -> Saved:
        """Everything there is, for ``restore``."""
        return {
            "at": self._at,
            "rates": np.array(self._rates),
            "iterations": self._iterations,
            "gap_before": self._gap_before,
            "trial": self._trial,
            "patience": self._patience,
            "left": self._left,
        }

    def restore(self, saved: Saved) -> None:
        """Takes over what ``state`` returned."""
        counts = ("at", "iterations", "patience", "left")
        self._at, self._iterations, self._patience, self._left = (int(saved[key]) for key in counts)
        self._rates, self._gap_before = array(saved["rates"]).tolist(), float(saved["gap_before"])
        self._trial = bool(saved["trial"])


class Levels:
    """See the module; steps of one solver, whose planes mostly stay from one to the next."""

    def __init__(self) -> None:
        self._heights = Heights()
        self._ratios = np.ones(len(HEIGHTS))  # θ/(1 − θ), where the last step of each height ended
        self._backend = ActiveSet()
        self._names = np.empty(0, dtype=np.int64)  # of the planes that had an α then
        self._alpha = np.empty(0)

    def begin(self) -> None:
        """Another problem, with another gap."""
        self._heights = Heights()

    def step(
        self, working_set: WorkingSet, best: NDArray[np.float64], primal: float, dual: float, tolerance: float
    ) -> NDArray[np.float64] | None:
        """The next point, (dimension,), for the best one so far and the bounds; None where numbers fail. The planes
        that bear it count as in use. ``tolerance``: the gap asked for."""
        gap = primal - dual
        if not 0.0 < gap < np.inf:
            return None
        at = self._heights.next(gap)
        height, ratio = HEIGHTS[at], float(self._ratios[at])
        plain, from_best = working_set.problem(), working_set.offsets_from(best)
        alpha = self._last_alpha(plain.names)
        lowest, highest = 0.0, np.inf
        for _ in range(MOST_QPS):
            theta = ratio / (1.0 + ratio)
            offsets = (1.0 - theta) * from_best + theta * plain.offsets
            moved = replace(plain, offsets=offsets, C=theta * plain.C)
            alpha = self._backend.maximiser(moved, alpha, QP_SHARE * tolerance)
            away = (1.0 - theta) * (best - working_set.centre) - working_set.combine(alpha)
            slack = max(0.0, float((offsets - plain.gram @ alpha)[plain.soft].max(initial=0.0)))
            model = 0.5 * float(away @ away) + plain.C * slack + working_set.dual_of_nothing
            share = (model - dual) / gap
            if not np.isfinite(share):
                return None
            if abs(share - height) <= BAND:
                break
            lowest, highest = (lowest, ratio) if share < height else (ratio, highest)
            ratio = _between(lowest, highest)
        self._ratios[at] = ratio
        used = alpha > 0.0
        self._names, self._alpha = plain.names[used], alpha[used]
        working_set.use(used)
        return working_set.centre + away

    def _last_alpha(self, names: NDArray[np.int64]) -> NDArray[np.float64]:
        """The last step's α, for the planes of these names, ascending."""
        alpha = np.zeros(names.size)
        places = np.searchsorted(names, self._names)
        places[places == names.size] = 0
        there = names[places] == self._names
        alpha[places[there]] = self._alpha[there]
        return alpha

    def state(self) -> Saved:
        """Everything that later steps depend on, for ``restore``."""
        return {
            "ratios": self._ratios.copy(),
            "names": self._names,
            "alpha": self._alpha,
            **prefixed("heights", self._heights.state()),
            **prefixed("qp", self._backend.state()),
        }

    def restore(self, saved: Saved) -> None:
        """Takes over what ``state`` returned."""
        self._ratios, self._alpha = array(saved["ratios"]), array(saved["alpha"])
        self._names = np.array(saved["names"], dtype=np.int64)
        self._heights.restore(part(saved, "heights"))
        self._backend.restore(part(saved, "qp"))


def _between(lowest: float, highest: float) -> float:
    """Where to look next for θ/(1 − θ), which is positive and lies between these."""
    if lowest == 0.0:
        return highest / FACTOR
    return FACTOR * lowest if highest == np.inf else float(np.sqrt(lowest * highest))
