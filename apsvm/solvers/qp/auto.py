"""The default: the active-set method, then cvxpy if the certificate is not reached, which is recorded. Without cvxpy
the active-set solution is returned."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.solvers.qp.active_set import ActiveSet
from apsvm.solvers.qp.base import Backend, Problem, QPSolution
from apsvm.solvers.qp.cvxpy_clarabel import Cvxpy


class Auto(Backend):
    """See the module."""

    name: ClassVar[str] = "auto"

    def __init__(self) -> None:
        self._first = ActiveSet()
        self._second = Cvxpy()

    def solve(self, problem: Problem, start: NDArray[np.float64], tolerance: float) -> QPSolution:
        first = self._first.solve(problem, start, tolerance)
        if first.gap <= tolerance or first.gap <= problem.rounding(first.alpha):
            return first
        why = f"active-set left a gap of {first.gap:.3e}, {tolerance:.3e} was requested"
        try:
            second = self._second.solve(problem, first.alpha, tolerance)
        except ImportError as error:
            return first._replace(fell_back=f"{why}; {error}")
        return (second if second.gap < first.gap else first)._replace(fell_back=why)
