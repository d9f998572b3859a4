"""The certificate of a solution: bounds on the optimum from two feasible points, by this project's own arithmetic.

    primal(w) = ½‖w‖² + C·risk(w)  ≥  optimum  ≥  dual(α) = Σ α_t b_t − ½‖Σ α_t a_t‖²,   α ≥ 0, Σ_soft α_t ≤ C

for planes a_t·w + b_t ≤ risk(w) (soft) and, for hard constraints, a_t·w + b_t ≤ 0 (their α is not capped by C).
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels


class Certificate(NamedTuple):
    """``primal`` and ``dual`` objective of feasible points; ``tolerance`` is the requested gap, ε·C."""

    primal: float
    dual: float
    tolerance: float

    @property
    def gap(self) -> float:
        """At an exact optimum, rounding decides which of the two is larger."""
        return max(self.primal - self.dual, 0.0)

    @property
    def reached(self) -> bool:
        return self.gap <= self.tolerance


def tolerance_of(epsilon: float, C: float) -> float:
    """ε·C, or the largest float64 if that is larger."""
    return min(epsilon * C, sys.float_info.max)


def feasible(alpha: NDArray[np.float64], soft: NDArray[np.bool_], C: float) -> NDArray[np.float64]:
    """A feasible copy of a dual point, (t,) float64: negative entries and NaN become 0, soft ones are scaled to a sum
    of at most C."""
    return _kernels.feasible(alpha, soft, C)
