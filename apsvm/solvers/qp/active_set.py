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
from scipy.linalg.lapack import dpotrf, dpotrs

from apsvm.solvers.certificate import feasible
from apsvm.solvers.qp.base import Backend, Problem, Solution

#: Relative to the planes' squared norms, a curvature below this is rounding.
NO_CURVATURE = 1e-13
#: Newton steps on one S before what is left of r is taken for rounding.
REFINEMENTS = 4


class ActiveSet(Backend):
    """See the module."""

    name: ClassVar[str] = "active-set"

    def solve(self, problem: Problem, start: NDArray[np.float64], tolerance: float) -> Solution:
        begin = feasible(start, problem.soft, problem.C)
        alpha = feasible(_Run(problem, begin, tolerance).alpha(), problem.soft, problem.C)
        # The start may be the better one where the problem is at the limits of rounding.
        best = min((begin, alpha), key=problem.gap)
        return Solution(best, problem.gap(best), self.name)


class _Run:
    """One solve; the null plane is the last variable."""

    def __init__(self, problem: Problem, start: NDArray[np.float64], tolerance: float) -> None:
        n = start.size
        self._capped = bool(problem.soft.any())
        self._gram = np.zeros((n + 1, n + 1))
        self._gram[:n, :n] = problem.gram
        self._offsets = np.append(problem.offsets, 0.0)
        self._soft = np.append(problem.soft, self._capped).astype(np.float64)
        rest = problem.C - float(start[problem.soft].sum()) if self._capped else 0.0
        self._alpha = np.append(start, max(rest, 0.0))
        self._free = self._alpha > 0.0
        self._noise = NO_CURVATURE * float(self._gram.diagonal().max())
        # What a unit of α outside the optimum may gain before the gap shows it.
        self._entry = 0.1 * tolerance / max(problem.C, float(self._alpha.sum()))

    def alpha(self) -> NDArray[np.float64]:
        for _ in range(50 * self._alpha.size + 100):
            self._maximise_on_free()
            gradient = self._gradient()
            pivot = self._pivot()
            reduced = gradient - self._soft * (gradient[pivot] if pivot >= 0 else 0.0)
            reduced[self._free] = -np.inf
            if not self._capped:
                reduced[-1] = -np.inf
            entering = int(np.argmax(reduced))
            if reduced[entering] <= self._entry:
                break
            if not self._enter(entering, pivot):
                break
        solution: NDArray[np.float64] = self._alpha[:-1]
        return solution

    def _gradient(self) -> NDArray[np.float64]:
        gradient: NDArray[np.float64] = self._offsets - self._gram @ self._alpha
        return gradient

    def _pivot(self) -> int:
        """The free soft variable with the largest α, or −1."""
        size = self._alpha * self._soft * self._free
        largest = int(np.argmax(size))
        return largest if size[largest] > 0.0 else -1

    def _others(self, pivot: int) -> NDArray[np.intp]:
        at: NDArray[np.intp] = np.flatnonzero(self._free)
        others: NDArray[np.intp] = at[at != pivot]
        return others

    def _curvature(self, rows: NDArray[np.intp], columns: NDArray[np.intp], pivot: int) -> NDArray[np.float64]:
        """H between ``rows`` and ``columns``."""
        block = self._gram[np.ix_(rows, columns)]
        if pivot >= 0:
            left, right = self._soft[rows], self._soft[columns]
            block -= np.outer(left, self._gram[pivot, columns])
            block -= np.outer(self._gram[rows, pivot], right)
            block += self._gram[pivot, pivot] * np.outer(left, right)
        return block

    def _solved(self, at: NDArray[np.intp], pivot: int, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """H⁻¹ ``right`` on the variables ``at``; where rounding made H indefinite, a ridge is added."""
        curvature = self._curvature(at, at, pivot)
        ridge = 0.0
        while True:
            factor, info = dpotrf(curvature, lower=1)
            if info == 0:
                break
            grown = 10.0 * ridge if ridge else self._noise or 1.0
            curvature.flat[:: at.size + 1] += grown - ridge
            ridge = grown
        solution: NDArray[np.float64] = dpotrs(factor, right, lower=1)[0]
        return solution

    def _maximise_on_free(self) -> None:
        """Newton steps on the free variables until their reduced gradient vanishes."""
        refinements = 0
        while refinements < REFINEMENTS:
            pivot = self._pivot()
            at = self._others(pivot)
            if at.size == 0:
                return
            gradient = self._gradient()
            reduced = gradient[at] - self._soft[at] * (gradient[pivot] if pivot >= 0 else 0.0)
            if np.abs(reduced).max() <= self._entry:
                return
            if self._walk(at, pivot, self._solved(at, pivot, reduced), longest=1.0):
                refinements = 0  # a smaller S: start afresh
            else:
                refinements += 1

    def _enter(self, entering: int, pivot: int) -> bool:
        """Frees ``entering``; exchanges it for another where its plane depends on the free ones. False if neither can
        be done, at the limits of rounding."""
        at = self._others(pivot)
        self._free[entering] = True
        new = np.array([entering])
        own = float(self._curvature(new, new, pivot)[0, 0])
        cross = self._curvature(at, new, pivot)[:, 0]
        dependence = self._solved(at, pivot, cross) if at.size else np.zeros(0)
        if own - float(cross @ dependence) > self._noise:
            return True
        direction = np.append(-dependence, 1.0)
        return self._walk(np.append(at, entering), pivot, direction, longest=np.inf)

    def _walk(self, at: NDArray[np.intp], pivot: int, step: NDArray[np.float64], *, longest: float) -> bool:
        """Moves along ``step`` (on ``at``; the pivot keeps the sum), at most ``longest`` times its length, until a
        variable reaches zero: that one leaves, and the answer is True. A walk without end moves nothing."""
        if pivot >= 0:
            at = np.append(at, pivot)
            step = np.append(step, -float(self._soft[at[:-1]] @ step))
        falling = np.flatnonzero(step < 0.0)
        lengths = self._alpha[at[falling]] / -step[falling]
        shortest = int(np.argmin(lengths)) if falling.size else -1
        if shortest < 0 or lengths[shortest] >= longest:
            if np.isfinite(longest):
                self._alpha[at] = np.maximum(self._alpha[at] + longest * step, 0.0)
            return False
        self._alpha[at] = np.maximum(self._alpha[at] + lengths[shortest] * step, 0.0)
        leaving = at[falling[shortest]]
        self._alpha[leaving] = 0.0
        self._free[leaving] = False
        return True
