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

#: A run has stalled where this many iterations took less than this share off the gap (at that rate 10,000 would not
#: halve it twice), and the lower bound, which may rise from far below, rose by less than a tenth of itself.
STALL_ITERATIONS, STALL_GAP, STALL_DUAL = 30, 1e-3, 0.1


def never(primal: float, dual: float) -> bool:
    """Nothing is good enough before ε is reached."""
    return False


@dataclass(frozen=True, slots=True)
class Limits:
    """Stopping limits of a run; see ``cutting_plane.Solver.minimise``.

    Attributes
    ----------
    tolerance : the gap asked for, as an objective value
    max_iterations : int
    time_limit : seconds; None: none
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
    tolerance : the gap asked for
    primal, dual : the objective of the best point so far, and the best lower bound
    point : (dimension,) float64, where the next plane is taken
    iterations : those completed
    state : why it ended, None while it goes on
    trouble : the value that was not finite, if the state is ``NUMERICAL_TROUBLE``
    qp, qp_span, planes : the last QP's solution, how long it took, and the planes it was of
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
        self._last_progress = (0, math.inf, dual)  # the iteration, the gap and the lower bound there

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.perf_counter() - self._began

    @property
    def certificate(self) -> Certificate:
        return Certificate(self.primal, self.dual, self.tolerance)

    @property
    def enough(self) -> bool:
        return self.primal - self.dual <= self.tolerance or self._limits.good_enough(self.primal, self.dual)

    def raise_dual(self, dual: float) -> None:
        """A QP that is solved to its own tolerance only may come out below one before; both bounds hold."""
        self.dual = max(self.dual, dual)

    def attempt(self, step: Callable[[Run], None]) -> None:
        """An iteration. What is not finite ends the run if there is a good point, and is an error before."""
        try:
            step(self)
        except FloatingPointError as error:
            if not math.isfinite(self.primal):
                raise
            self.state, self.trouble = State.NUMERICAL_TROUBLE, str(error)

    def complete_iteration(self) -> None:
        """Counts it, and whether it got anywhere."""
        self.iterations += 1
        _, gap, dual = self._last_progress
        here = self.primal - self.dual
        if here < (1.0 - STALL_GAP) * gap or self.dual - dual > STALL_DUAL * abs(dual):
            self._last_progress = (self.iterations, here, self.dual)

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
