"""A dense primal active-set method, warm-started: exact to rounding in a handful of small Cholesky solves a plane.

The null plane is made a variable, so that the cap is an equality, Σ_soft α = C. Free variables S start as the support
of the last solution. On S, one soft variable (the largest, the pivot) is eliminated by the equality and a Newton step

    H p = r,   H_ij = (a_i − e_i a_pivot)·(a_j − e_j a_pivot),   r_i = g_i − e_i g_pivot,   g = b − Gα   (e = 1 if soft)

is taken, or cut short where a variable reaches zero, which then leaves S. When r vanishes, the plane outside S with the
largest reduced gradient enters. Planes soon are linearly dependent; H stays regular all the same, because a plane that
depends on those in S enters by an exchange: along the direction of no curvature, until one of them leaves. Steps are
computed from the gradient at the current α, so that rounding in one is corrected by the next.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.solvers.certificate import feasible
from apsvm.solvers.qp.base import Backend, Problem, QPSolution


class ActiveSet(Backend):
    """See the module; ``apsvm/_native/core/qp.cpp`` is the method."""

    name: ClassVar[str] = "active-set"

    def solve(self, problem: Problem, start: NDArray[np.float64], tolerance: float) -> QPSolution:
        begin = feasible(start, problem.soft, problem.C)
        result = _kernels.active_set(problem.gram, problem.offsets, problem.soft, problem.C, begin, tolerance)
        alpha = feasible(result, problem.soft, problem.C)
        gap = problem.gap(alpha)
        if gap > tolerance:
            # The start may be the better one where the problem is at the limits of rounding.
            before = problem.gap(begin)
            if before < gap:
                return QPSolution(begin, before, self.name)
        return QPSolution(alpha, gap, self.name)
