"""The concave-convex procedure (Yuille and Rangarajan 2003): to a stationary point of

    J(w) = ½‖w‖² + C·{ h(w) − g(w) },     h and g convex, and g(t·w) = t·g(w) for t ≥ 0

For a slope a of g at w_t, g(w) ≥ a·w. So J lies below a convex majorant that touches it at w_t,

    J(w) ≤ M_t(w) = ½‖w‖² − C·a·w + C·h(w),

which has the minimiser of ½‖w − C·a‖² + C·h(w). ½‖C·a‖² may exceed J by many digits and is never added.

    repeat  w_{t+1} = a point of low M_t, by a solver of convex problems
    until   J(w_t) − (a lower bound of M_t) ≤ ε·C

J only falls: J(w_{t+1}) ≤ M_t(w_{t+1}) < M_t(w_t) = J(w_t). The last round proves w_t stationary: no point lowers the
majorant there by more than ε·C. Rounds need not solve M_t to its end (``OPEN_SHARE``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.solvers.certificate import Certificate
from apsvm.solvers.cutting_plane import CuttingPlaneSolution
from apsvm.solvers.state import State

#: A round ends when its gap is at most this share of its gain.
OPEN_SHARE = 0.5
MOST_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Majorant:
    """M(w) = ½‖w‖² − centre·w + C·h(w), at least J everywhere and equal to it at one point.

    Attributes
    ----------
    point : ndarray
        (dimension,) float64, the point where it touches J.
    objective : float
        J at the point.
    risk : float
        h at the point.
    centre : ndarray
        (dimension,) float64.
    lower_bound : float
        Lower bound of M.
    held : NDArray[int64], optional
        Rows that select h (``ScoreFunction.hold``); None if there is only one h.
    """

    point: NDArray[np.float64]
    objective: float
    risk: float
    centre: NDArray[np.float64]
    lower_bound: float
    held: NDArray[np.int64] | None = None


#: Minimises a majorant until a function of its primal and dual objective returns True.
ConvexSolver = Callable[[Majorant, Callable[[float, float], bool]], CuttingPlaneSolution]


@dataclass(frozen=True, slots=True)
class Round:
    """A round: its number, from 1; J at its start, and the gap of the majorant there."""

    number: int
    certificate: Certificate


@dataclass(frozen=True, slots=True)
class StationaryPoint:
    """Result of the procedure.

    Attributes
    ----------
    best : Majorant
        The lowest point, and its majorant.
    certificate : Certificate
        J at that point, and a lower bound of that majorant.
    state : State
        ``CONVERGED`` if the certificate is reached; otherwise the reason for the early end.
    trouble : str, optional
        Name of the value that was not finite.
    """

    best: Majorant
    certificate: Certificate
    state: State
    trouble: str | None = None


def descend(
    majorise: Callable[[NDArray[np.float64]], Majorant],
    minimise: ConvexSolver,
    start: NDArray[np.float64],
    tolerance: float,
    *,
    most_rounds: int = MOST_ROUNDS,
    on_round: Callable[[Round], None] = lambda round_: None,
) -> StationaryPoint:
    """Runs rounds from ``start`` until none can gain more than ``tolerance``, ε·C, or the solver stops.

    Parameters
    ----------
    majorise : Callable[[ndarray], Majorant]
        The majorant that touches J at a given point, (dimension,) float64.
    minimise : ConvexSolver
        Solves a round; its first point should be the majorant's ``point`` or a better one.

    Raises
    ------
    FloatingPointError
        J or its majorant at ``start`` is not finite.
    """
    current = majorise(start)
    certificate = _certificate(current, current.lower_bound, tolerance)
    for number in range(1, most_rounds + 1):
        try:
            solution = minimise(current, _gained_enough(current.objective))
        except FloatingPointError as error:
            return _ended(current, certificate, State.NUMERICAL_TROUBLE, str(error))
        certificate = _certificate(current, solution.certificate.dual, tolerance)
        on_round(Round(number, certificate))
        if certificate.reached:
            return _ended(current, certificate, State.CONVERGED)
        try:
            candidate = majorise(solution.w)
        except FloatingPointError as error:
            return _ended(current, certificate, State.NUMERICAL_TROUBLE, str(error))
        lower = candidate.objective < current.objective
        if lower:
            current, certificate = candidate, _certificate(candidate, candidate.lower_bound, tolerance)
        if solution.state is not State.CONVERGED:
            return _ended(current, certificate, solution.state, solution.trouble)
        if not lower:
            return _ended(current, certificate, State.STALLED)  # rounding: the majorant fell, so J did too
    return _ended(current, certificate, State.ITERATION_LIMIT)


def _ended(best: Majorant, certificate: Certificate, state: State, trouble: str | None = None) -> StationaryPoint:
    """The result, ``CONVERGED`` if the certificate is reached, even if the last round ended early."""
    return StationaryPoint(best, certificate, State.CONVERGED if certificate.reached else state, trouble)


def _certificate(majorant: Majorant, lower: float, tolerance: float) -> Certificate:
    return Certificate(majorant.objective, min(lower, majorant.objective), tolerance)


def _gained_enough(began: float) -> Callable[[float, float], bool]:
    """Returns the stopping test of a round that begins at this value."""
    return lambda primal, dual: primal - dual <= OPEN_SHARE * (began - primal)
