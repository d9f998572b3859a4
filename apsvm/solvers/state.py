"""End states of a solver."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """End states; only ``CONVERGED`` is the requested end. ``NUMERICAL_TROUBLE``: a value became infinite or NaN after
    a good point was found, which is the result."""

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


def not_finite(name: str) -> FloatingPointError:
    """Error for a value, plane or product that exceeds float64."""
    return FloatingPointError(
        f"the {name} is not finite: feature values, bias, costs or C are too large, scale them down"
    )
