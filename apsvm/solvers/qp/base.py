"""The dual of the working set, its solution and the certificate of a solution.

    max_α  b·α − ½ αᵀGα      α ≥ 0,  Σ_soft α_t ≤ C            G = A Aᵀ, rows of A the planes

The cap is an inequality because the null plane (a = 0, b = 0) always exists: its α is the rest of C. Hard planes
(constraints a·w + b ≤ 0 on w itself) have no cap. With w = −Aᵀα and ξ = max(0, max_soft (b − Gα)_t), weak duality
bounds the error of α by the gap ½αᵀGα + Cξ − (b·α − ½αᵀGα), once no hard plane is violated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

_NAMELESS = np.empty(0, dtype=np.int64)


class Problem(NamedTuple):
    """The QP of the current planes.

    Attributes
    ----------
    gram : ndarray
        (t, t) float64.
    offsets : ndarray
        (t,) float64, b.
    soft : ndarray of bool
        (t,) bool.
    C : float
        Weight of the risk, > 0.
    names : NDArray[int64]
        (t,) int64, ascending, or (0,). A name denotes the same plane in successive problems, so a backend may keep its
        computations.
    """

    gram: NDArray[np.float64]
    offsets: NDArray[np.float64]
    soft: NDArray[np.bool_]
    C: float
    names: NDArray[np.int64] = _NAMELESS

    def gap(self, alpha: NDArray[np.float64]) -> float:
        """Duality gap of a feasible ``alpha`` (t,), plus the violation of hard planes, priced by the scale of their
        multipliers so that both are objective values. inf if float64 cannot hold it."""
        product = self.gram @ alpha
        gradient = self.offsets - product
        slack = max(0.0, float(gradient[self.soft].max(initial=0.0)))
        gap = float(alpha @ product) - float(self.offsets @ alpha) + self.C * slack
        lacking = float(gradient[~self.soft].max(initial=0.0))
        result = max(gap, 0.0) + max(lacking, 0.0) * max(self.C, float(alpha.sum()))
        return np.inf if np.isnan(result) else result

    def rounding(self, alpha: NDArray[np.float64]) -> float:
        """Gap that rounding alone can cause at ``alpha``; no solver can do better."""
        epsilon = float(np.finfo(np.float64).eps)
        return 4.0 * epsilon * float(alpha @ (np.abs(self.gram) @ alpha) + np.abs(self.offsets) @ alpha)


class QPSolution(NamedTuple):
    """alpha : (t,) float64, feasible; gap : ``Problem.gap`` of it; backend : name of the solver; fell_back : why
    another backend was used, or None."""

    alpha: NDArray[np.float64]
    gap: float
    backend: str
    fell_back: str | None = None


class Backend(ABC):
    """Solves one growing problem after another."""

    name: ClassVar[str]

    @abstractmethod
    def solve(self, problem: Problem, start: NDArray[np.float64], tolerance: float) -> QPSolution:
        """Solves to a gap of ``tolerance`` (objective value), or as near as the backend can. ``start`` (t,) is
        feasible, usually the last solution with zeros for new planes."""
