"""Why a solver stopped."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """The honest end states; only ``CONVERGED`` is an end as requested. ``NUMERICAL_TROUBLE``: a number came out beyond
    float64, or as no number, after a good point had been found; the best one until then is the result."""

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    STALLED = "stalled"
    INTERRUPTED = "interrupted"
    NUMERICAL_TROUBLE = "numerical trouble"

    @property
    def is_cut_short(self) -> bool:
        """True if more time could have improved the result."""
        return self in (State.ITERATION_LIMIT, State.TIME_LIMIT, State.INTERRUPTED)


def not_finite(what: str) -> FloatingPointError:
    """The error for a value, plane or product that float64 does not hold."""
    return FloatingPointError(
        f"the {what} is not finite: feature values, bias, costs or C are too large, scale them down"
    )
