"""A dense primal active-set method, warm-started: exact to rounding in a handful of small Cholesky solves a plane.

The null plane is made a variable, so that the cap is an equality, Σ_soft α = C. Variables outside the support S are
zero. On S a Newton step

    Mp + λe = r,  e·p = 0,     M = G + σeeᵀ,  r = g = b − Gα   (e = 1 for soft planes)

is taken, or cut short where a variable reaches zero, which then leaves S. When r vanishes except for a multiple of e,
the plane outside S with the largest reduced gradient enters. σ only makes M regular: M is the Gram matrix of planes
with an additional entry √σ. Its Cholesky factor gains a row in O(m²) and loses one by Givens rotations (Gill, Golub,
Murray and Saunders 1974), and is kept for the next problem, in which most of S is the same.

Planes soon become linearly dependent. M stays regular, because a plane that depends on those in S enters by an
exchange: along the direction without curvature, until one of them leaves. Steps use the gradient at the current α, so
each corrects the rounding of the last; if that fails, S is factored from scratch.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.solvers.qp.base import Backend, Problem, QPSolution


class ActiveSet(Backend):
    """See the module; ``apsvm/_native/core/solvers/qp.cpp`` is the method."""

    name: ClassVar[str] = "active-set"

    def __init__(self) -> None:
        self._native = _kernels.ActiveSet()

    def solve(self, problem: Problem, start: NDArray[np.float64], tolerance: float) -> QPSolution:
        alpha, gap = self._native.solve(*problem, start, tolerance)
        return QPSolution(alpha, gap, self.name)
