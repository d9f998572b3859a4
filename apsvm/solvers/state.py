"""Why a solver stopped."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """The honest end states; only ``CONVERGED`` is what was asked for."""

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    STALLED = "stalled"
    INTERRUPTED = "interrupted"
