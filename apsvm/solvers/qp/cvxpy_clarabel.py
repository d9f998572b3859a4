"""The working-set QP through cvxpy and Clarabel, an interior-point method: slower by two orders, independent of ours.

Clarabel is named because cvxpy's default for QPs left gaps of 1e-3 and negative α on singular Gram matrices. Planes of
raw features differ by many orders of magnitude, so the problem is scaled to order one: by the size of α that each
plane's curvature allows, or by the cap.
"""

from __future__ import annotations

import threading
import warnings
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.solvers.certificate import feasible
from apsvm.solvers.qp.base import Backend, Problem, QPSolution

#: Clarabel returns nothing if it cannot reach the requested precision: lower it until it does.
PRECISIONS = (1e-12, 1e-9)
NEEDS = "the QP solver cvxpy needs the packages cvxpy and clarabel: pip install cvxpy clarabel"
#: Neither cvxpy nor ``warnings.catch_warnings`` is thread-safe.
_ALONE = threading.Lock()


class Cvxpy(Backend):
    """See the module."""

    name: ClassVar[str] = "cvxpy"

    def solve(self, problem: Problem, start: NDArray[np.float64], tolerance: float) -> QPSolution:
        best = feasible(start, problem.soft, problem.C)
        best_gap = problem.gap(best)
        for unit, precision in product(_units(problem), PRECISIONS):
            if best_gap <= max(tolerance, problem.rounding(best)):
                break
            result = _interior_point(problem, unit, precision)
            if result is None:
                continue
            alpha = feasible(result, problem.soft, problem.C)
            gap = problem.gap(alpha)
            if gap < best_gap:
                best, best_gap = alpha, gap
        return QPSolution(best, best_gap, self.name)


def _units(problem: Problem) -> list[NDArray[np.float64]]:
    """Candidate units of α, (t,) float64 each: those that give the Gram matrix a unit diagonal, and C."""
    norms = np.sqrt(problem.gram.diagonal())
    largest = float(norms.max(initial=0.0)) or 1.0
    norms = np.maximum(norms, 1e-8 * largest)
    size = min(float(np.abs(problem.offsets / norms).max()), problem.C * largest) or 1.0
    return [size / norms, np.full(norms.size, problem.C)]


def _interior_point(problem: Problem, unit: NDArray[np.float64], precision: float) -> NDArray[np.float64] | None:
    """Clarabel's α, feasible to its ``precision``; None if it gave up or these units overflow float64."""
    try:
        import cvxpy as cp
    except ImportError as error:
        raise ImportError(NEEDS) from error

    linear = problem.offsets * unit
    curvature = problem.gram * np.outer(unit, unit)
    scale = max(float(np.abs(linear).max()), float(curvature.max())) or 1.0
    linear, curvature, share = linear / scale, curvature / scale, (unit / problem.C)[problem.soft]
    if not all(np.isfinite(array).all() for array in (linear, curvature, share)):
        return None
    gamma = cp.Variable(problem.offsets.size, nonneg=True)
    objective = cp.Maximize(linear @ gamma - 0.5 * cp.quad_form(gamma, cp.psd_wrap(curvature)))
    soft = np.flatnonzero(problem.soft)  # older versions of cvxpy cannot sum an empty vector
    cap = [cp.sum(cp.multiply(share, gamma[soft])) <= 1.0] if soft.size else []
    program = cp.Problem(objective, cap)
    with _ALONE, warnings.catch_warnings():
        # The caller's certificate measures the accuracy, so the warning is not needed.
        warnings.simplefilter("ignore", UserWarning)
        try:
            program.solve(solver=cp.CLARABEL, tol_gap_abs=precision, tol_gap_rel=precision, tol_feas=precision)
        except cp.SolverError:
            return None
    return None if gamma.value is None else unit * gamma.value
