"""One minimisation by cutting planes: its bounds, its progress and its end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm._support.clock import Span
from apsvm.solvers.certificate import Certificate
from apsvm.solvers.qp.base import QPSolution
from apsvm.solvers.state import State

#: A run has stalled if this many iterations reduced the gap by less than this share (10,000 at that rate would not
#: halve it twice) and raised the lower bound by less than a tenth.
STALL_ITERATIONS, STALL_GAP, STALL_DUAL = 30, 1e-3, 0.1


def never(primal: float, dual: float) -> bool:
    """Default of ``good_enough``: only ε ends a run."""
    return False


@dataclass(frozen=True, slots=True)
class Limits:
    """Stopping limits of a run; see ``cutting_plane.Solver.minimise``.

    Attributes
    ----------
    tolerance : requested gap, as an objective value
    max_iterations : int
    time_limit : seconds, or None
    should_stop : True ends it as ``INTERRUPTED``
    good_enough : called with the primal and dual objective; True ends the run as ``CONVERGED``
    """

    tolerance: float
    max_iterations: int
    time_limit: float | None
    should_stop: Callable[[], bool]
    good_enough: Callable[[float, float], bool]


class Run:
    """See the module.

    Attributes
    ----------
    tolerance : the requested gap, as an objective value
    primal, dual : the objective of the best point so far, and the best lower bound
    point : (dimension,) float64, the point of the next plane
    iterations : number completed
    state : reason for the end; None while running
    trouble : name of the value that was not finite, if the state is ``NUMERICAL_TROUBLE``
    qp, qp_span, planes : solution, time and number of planes of the last QP
    """

    qp: QPSolution
    qp_span: Span

    def __init__(self, limits: Limits, dual: float, point: NDArray[np.float64]) -> None:
        self.primal, self.dual = np.inf, dual
        self.point = point
        self.iterations = 0
        self.planes = 0
        self.state: State | None = None
        self.trouble: str | None = None
        self.tolerance = limits.tolerance
        self._limits = limits
        self._began = time.perf_counter()
        self._last_progress = (0, math.inf, dual)  # iteration, gap and lower bound at the last check

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._began

    @property
    def certificate(self) -> Certificate:
        return Certificate(self.primal, self.dual, self.tolerance)

    @property
    def enough(self) -> bool:
        return self.primal - self.dual <= self.tolerance or self._limits.good_enough(self.primal, self.dual)

    def raise_dual(self, dual: float) -> None:
        """Raises the lower bound if ``dual`` is higher. QPs are solved to a tolerance, so a later bound may be
        lower."""
        self.dual = max(self.dual, dual)

    def attempt(self, step: Callable[[Run], None]) -> None:
        """Runs an iteration. A non-finite value ends the run if there is a good point, and is an error otherwise."""
        try:
            step(self)
        except FloatingPointError as error:
            if not math.isfinite(self.primal):
                raise
            self.state, self.trouble = State.NUMERICAL_TROUBLE, str(error)

    def complete_iteration(self) -> None:
        """Counts the iteration and records its progress."""
        self.iterations += 1
        _, gap, dual = self._last_progress
        current_gap = self.primal - self.dual
        if current_gap < (1.0 - STALL_GAP) * gap or self.dual - dual > STALL_DUAL * abs(dual):
            self._last_progress = (self.iterations, current_gap, self.dual)

    def decide(self) -> None:
        """Decides whether the last iteration ends the run."""
        limits = self._limits
        if self.enough:
            self.state = State.CONVERGED
        elif limits.should_stop():
            self.state = State.INTERRUPTED
        elif self.iterations >= limits.max_iterations:
            self.state = State.ITERATION_LIMIT
        elif limits.time_limit is not None and self.seconds >= limits.time_limit:
            self.state = State.TIME_LIMIT
        elif self.iterations - self._last_progress[0] >= STALL_ITERATIONS:
            self.state = State.STALLED
