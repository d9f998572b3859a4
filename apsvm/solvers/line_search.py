"""Where the next cutting plane is taken: at the QP's own point, or after a line search on scores.

Between two points whose scores are known, every point's scores are known: an evaluation of the risk along the segment
costs an oracle call and no pass over X. From the best point w_b the line search goes towards the QP's point w_n,

    φ(t) = ½‖w_b + t(w_n − w_b)‖² + C·h(s_b + t(s_n − s_b)),   0 ≤ t ≤ 1,

convex, a quadratic plus a piecewise linear function. Each evaluation bounds h from below by a line, the next t
minimises the quadratic plus the largest line, and the difference to the best φ seen bounds what is left to gain. The
new best point is the best one seen; the plane is taken at 0.9·w_b + 0.1·w_n (Franc and Sonnenburg 2009, OCAS).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

#: Share of the QP's point in the point of the cut.
TOWARDS_QP = 0.1
#: The search stops when it can gain at most this share of the current gap.
GAP_SHARE = 0.01
#: Most evaluations in one search.
MOST_TRIALS = 12


class Cut(Protocol):
    """risk(w') ≥ plane·w' + offset for every w'."""

    @property
    def plane(self) -> NDArray[np.float64]: ...
    @property
    def offset(self) -> float: ...


class Hinge(Protocol):
    """The risk at given scores: its ``value`` and row ``weights`` (n,), a subgradient with respect to the scores."""

    @property
    def value(self) -> float: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...


HingeT = TypeVar("HingeT", bound=Hinge)


class ScoredRisk(Protocol[HingeT]):
    """A risk that sees w only through the scores X·w."""

    def scores(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """X·w: (n,) float64."""

    def hinge(self, scores: NDArray[np.float64]) -> HingeT:
        """The risk at these scores."""

    def cut(self, hinge: HingeT) -> Cut:
        """The plane of a hinge: one pass over the rows that violate."""


@dataclass(frozen=True, slots=True)
class Step:
    """point : (dimension,) float64, a candidate for the best point, and ``risk`` there; cut : the new plane."""

    point: NDArray[np.float64]
    risk: float
    cut: Cut


class Cutter(Protocol):
    """Decides where to cut, given the QP's point."""

    def __call__(self, point: NDArray[np.float64], C: float, gap: float) -> Step:
        """``gap``: between the bounds of ½‖w‖² + C·risk so far (infinite at first)."""

    def verified_risk(self, point: NDArray[np.float64]) -> float:
        """The risk at a point the cutter returned, computed afresh."""


class AtTheQPsPoint(Generic[HingeT]):
    """The plain cutting-plane method (Joachims et al. 2009)."""

    def __init__(self, risk: ScoredRisk[HingeT]) -> None:
        self._risk = risk

    def __call__(self, point: NDArray[np.float64], C: float, gap: float) -> Step:
        hinge = self._risk.hinge(self._risk.scores(point))
        return Step(point, hinge.value, self._risk.cut(hinge))

    def verified_risk(self, point: NDArray[np.float64]) -> float:
        return self._risk.hinge(self._risk.scores(point)).value


@dataclass(frozen=True, slots=True)
class _Known(Generic[HingeT]):
    """A point, its scores and its hinge."""

    point: NDArray[np.float64]
    scores: NDArray[np.float64]
    hinge: HingeT


class AfterLineSearch(Generic[HingeT]):
    """See the module."""

    def __init__(self, risk: ScoredRisk[HingeT]) -> None:
        self._risk = risk
        self._best: _Known[HingeT] | None = None

    def __call__(self, point: NDArray[np.float64], C: float, gap: float) -> Step:
        scores = self._risk.scores(point)
        there = _Known(point, scores, self._risk.hinge(scores))
        if self._best is None:
            self._best = there
            return Step(point, there.hinge.value, self._risk.cut(there.hinge))
        self._best = best = self._search(self._best, there, C, gap)
        mixed = (1.0 - TOWARDS_QP) * best.scores + TOWARDS_QP * scores
        return Step(best.point, best.hinge.value, self._risk.cut(self._risk.hinge(mixed)))

    def verified_risk(self, point: NDArray[np.float64]) -> float:
        scores = self._risk.scores(point)
        hinge = self._risk.hinge(scores)
        if self._best is not None and point is self._best.point:
            self._best = _Known(point, scores, hinge)  # rid of what rounding has added up
        return hinge.value

    def _search(self, here: _Known[HingeT], there: _Known[HingeT], C: float, gap: float) -> _Known[HingeT]:
        direction = there.point - here.point
        change = there.scores - here.scores
        constant, linear, square = (
            0.5 * float(here.point @ here.point),
            float(here.point @ direction),
            0.5 * float(direction @ direction),
        )

        def quadratic(t: float) -> float:
            return constant + t * (linear + t * square)

        def line(t: float, hinge: HingeT) -> tuple[float, float]:
            """Of C·h: its slope along the segment, and its value at t = 0 prolonged from t."""
            slope = C * float(hinge.weights @ change)
            return slope, C * hinge.value - slope * t

        lines = [line(0.0, here.hinge), line(1.0, there.hinge)]
        known = {0.0: here, 1.0: there}
        objective = {t: quadratic(t) + C * at.hinge.value for t, at in known.items()}
        for _ in range(MOST_TRIALS):
            t, lower = _minimum(linear, square, lines)
            best = min(objective, key=objective.__getitem__)
            if objective[best] - (constant + lower) <= GAP_SHARE * gap or t in known:
                break
            scores = here.scores + t * change
            hinge = self._risk.hinge(scores)
            lines.append(line(t, hinge))
            known[t] = _Known(here.point + t * direction, scores, hinge)
            objective[t] = quadratic(t) + C * hinge.value
        return known[min(objective, key=objective.__getitem__)]


def _minimum(linear: float, square: float, lines: list[tuple[float, float]]) -> tuple[float, float]:
    """argmin and minimum over 0 ≤ t ≤ 1 of linear·t + square·t² + max over lines of (slope·t + value)."""

    def value(t: float) -> float:
        return t * (linear + t * square) + max(slope * t + at_zero for slope, at_zero in lines)

    candidates = {0.0, 1.0}
    for i, (slope, at_zero) in enumerate(lines):
        if square > 0.0:
            candidates.add(-(linear + slope) / (2.0 * square))
        for other_slope, other_at_zero in lines[:i]:
            if slope != other_slope:
                candidates.add((other_at_zero - at_zero) / (slope - other_slope))
    t = min((t for t in candidates if 0.0 <= t <= 1.0), key=value)
    return t, value(t)
