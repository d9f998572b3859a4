"""The working-set QP through cvxpy and Clarabel, an interior-point method: slower by two orders, independent of ours.

Clarabel is named because cvxpy's default for QPs left gaps of 1e-3 and negative α on singular Gram matrices. Planes of
raw features differ by many orders, so the problem is handed over in units in which it is of order one: α_t = κγ_t/√G_tt
gives the Gram matrix a unit diagonal, and κ is the size of γ that either the curvature or the cap allows.
"""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.solvers.certificate import feasible
from apsvm.solvers.qp.base import Backend, Problem, Solution


class Cvxpy(Backend):
    """See the module."""

    name: ClassVar[str] = "cvxpy"

    def solve(self, problem: Problem, start: NDArray[np.float64], tolerance: float) -> Solution:
        best = feasible(start, problem.soft, problem.C)
        best_gap = problem.gap(best)
        if best_gap > tolerance:
            found = _interior_point(problem)
            if found is not None:
                alpha = feasible(found, problem.soft, problem.C)
                gap = problem.gap(alpha)
                if gap < best_gap:
                    best, best_gap = alpha, gap
        return Solution(best, best_gap, self.name)


def _interior_point(problem: Problem) -> NDArray[np.float64] | None:
    """Clarabel's α, feasible only to its own tolerance, or None where it gave up."""
    import cvxpy as cp

    norms = np.sqrt(problem.gram.diagonal())
    largest = float(norms.max(initial=0.0)) or 1.0
    norms = np.maximum(norms, 1e-8 * largest)
    size = min(float(np.abs(problem.offsets / norms).max()), problem.C * largest) or 1.0
    unit = size / norms  # α = unit · γ
    gamma = cp.Variable(problem.offsets.size, nonneg=True)
    curvature = cp.quad_form(gamma, cp.psd_wrap(problem.gram / np.outer(norms, norms)))
    objective = cp.Maximize((problem.offsets / (norms * size)) @ gamma - 0.5 * curvature)
    cap = [cp.sum(cp.multiply((unit / problem.C)[problem.soft], gamma[np.flatnonzero(problem.soft)])) <= 1.0]
    program = cp.Problem(objective, cap if problem.soft.any() else [])
    with warnings.catch_warnings():
        # What "may be inaccurate" is worth, the caller's own certificate measures.
        warnings.simplefilter("ignore", UserWarning)
        try:
            program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
        except cp.SolverError:
            return None
    return None if gamma.value is None else unit * gamma.value
