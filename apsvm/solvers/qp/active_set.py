"""A dense primal active-set method, warm-started: exact to rounding in a handful of small Cholesky solves a plane.

Free variables S start as the support of the last solution. One step maximises over S with only the cap, in closed form:

    α_S = K⁻¹(b_S + δ α) − λ K⁻¹ e_S,   K = G_SS + δI,   λ ≥ 0 the multiplier of Σ_soft α ≤ C  (e = 1 on soft planes)

walks towards it until a variable reaches zero and leaves S, and when it arrives lets in the plane with the largest
reduced gradient b − Gα − λe. G is singular as soon as planes are linearly dependent; the proximal term δ/2‖α − α_k‖²
(δ about 1e-12 of G's diagonal) makes every solve regular and vanishes at a solution: what it leaves behind is taken
away by solving again around the new point, and measured by the gap, which knows nothing of δ.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from apsvm.solvers.certificate import feasible
from apsvm.solvers.qp.base import Backend, Problem, Solution

PROXIMAL = 1e-12
ROUNDS = 6


class ActiveSet(Backend):
    """See the module."""

    name: ClassVar[str] = "active-set"

    def solve(self, problem: Problem, start: NDArray[np.float64], tolerance: float) -> Solution:
        best = feasible(start, problem.soft, problem.C)
        best_gap = problem.gap(best)
        alpha = best
        for _ in range(ROUNDS):
            if best_gap <= tolerance:
                break
            alpha = feasible(_proximal_step(problem, alpha, tolerance), problem.soft, problem.C)
            gap = problem.gap(alpha)
            if gap >= best_gap:
                break
            best, best_gap = alpha, gap
        return Solution(best, best_gap, self.name)


def _proximal_step(problem: Problem, center: NDArray[np.float64], tolerance: float) -> NDArray[np.float64]:
    """argmax of the problem with −δ/2‖α − center‖² added, started at ``center``."""
    size = center.size
    soft = problem.soft.astype(np.float64)
    diagonal = float(problem.gram.diagonal().max(initial=0.0))
    delta = PROXIMAL * (diagonal if diagonal > 0.0 else 1.0)
    # A plane enters only for a gain that the tolerance can see.
    entry = 0.1 * tolerance / max(problem.C, float(center.sum()))
    alpha = center.copy()
    free = alpha > 0.0
    for _ in range(50 * size + 100):
        at = np.flatnonzero(free)
        if at.size:
            target, multiplier, delta = _free_maximum(problem, soft, center, at, delta)
            step = target - alpha[at]
            falling = step < 0.0
            ratios = np.full(at.size, np.inf)
            ratios[falling] = alpha[at][falling] / -step[falling]
            blocking = int(np.argmin(ratios))
            if ratios[blocking] < 1.0:
                alpha[at] += ratios[blocking] * step
                alpha[at[blocking]] = 0.0
                free[at[blocking]] = False
                continue
            alpha[at] = target
            free[at[target <= 0.0]] = False
        else:
            multiplier = 0.0
        reduced = problem.offsets - problem.gram @ alpha + delta * (center - alpha) - multiplier * soft
        reduced[free] = -np.inf
        entering = int(np.argmax(reduced))
        if reduced[entering] <= entry:
            break
        free[entering] = True
    return alpha


def _free_maximum(
    problem: Problem, soft: NDArray[np.float64], center: NDArray[np.float64], at: NDArray[np.intp], delta: float
) -> tuple[NDArray[np.float64], float, float]:
    """The maximiser over the variables ``at`` with only the cap, its multiplier, and the δ that it took."""
    while True:
        kernel = problem.gram[np.ix_(at, at)]
        kernel.flat[:: at.size + 1] += delta
        factor, info = dpotrf(kernel, lower=1, overwrite_a=1)
        if info == 0:
            break
        delta *= 10.0
    cap = soft[at]
    solutions, _ = dpotrs(factor, np.column_stack([problem.offsets[at] + delta * center[at], cap]), lower=1)
    target, direction = solutions[:, 0], solutions[:, 1]
    excess = float(cap @ target) - problem.C
    if excess <= 0.0:
        return target, 0.0, delta
    multiplier = excess / float(cap @ direction)
    return target - multiplier * direction, multiplier, delta
