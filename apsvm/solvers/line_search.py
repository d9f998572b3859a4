"""Where the next cutting plane is taken: at the QP's own point, or after a line search on scores.

Between two points whose scores are known, every point's scores are known: an evaluation of the risk along the segment
costs an oracle call and no pass over X. From the best point w_b the line search goes towards the QP's point w_n,

    φ(t) = ½‖w_b + t(w_n − w_b) − c‖² + C·h(s_b + t(s_n − s_b)),   0 ≤ t ≤ 1,

convex, a quadratic plus a piecewise linear function. Each evaluation bounds h from below by a tangent, the next t
minimises the quadratic plus the larger of the two nearest tangents, and the difference to the best φ seen bounds what
is left to gain. The new best point is the best one seen. The plane is taken at the nearest point tried beyond the
minimum, where φ rises again: like the point 0.9·w_b + 0.1·w_n of OCAS (Franc and Sonnenburg 2009) it lies a little
towards w_n, nearer than theirs, which saves iterations, and its hinge is known, which saves an oracle call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

#: The search stops when it can gain at most this share of the current gap.
GAP_SHARE = 0.01
#: Most evaluations in one search.
MOST_TRIALS = 12
#: How much farther each trial goes while the objective still falls there.
STEP_OUT = 2.0


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
    """A risk that sees w only through the n scores X·w. Results go to ``out`` (n,) float64 where it is given."""

    @property
    def n_scores(self) -> int: ...

    def scores(self, w: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """X·w: (n,) float64."""

    def hinge(self, scores: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> HingeT:
        """The risk at these scores; ``out`` becomes its weights."""

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

    def __call__(self, point: NDArray[np.float64], C: float, gap: float, centre: NDArray[np.float64]) -> Step:
        """``gap``: between the bounds of ½‖w − centre‖² + C·risk so far (infinite at first)."""

    def restart(self) -> None:
        """Forgets the best point."""

    def verified_risk(self, point: NDArray[np.float64]) -> float:
        """The risk at a point the cutter returned, computed afresh."""


class AtTheQPsPoint(Generic[HingeT]):
    """The plain cutting-plane method (Joachims et al. 2009)."""

    def __init__(self, risk: ScoredRisk[HingeT]) -> None:
        self._risk = risk
        self._scores, self._weights = np.empty(risk.n_scores), np.empty(risk.n_scores)

    def __call__(self, point: NDArray[np.float64], C: float, gap: float, centre: NDArray[np.float64]) -> Step:
        hinge = self._hinge(point)
        return Step(point, hinge.value, self._risk.cut(hinge))

    def restart(self) -> None:
        pass

    def verified_risk(self, point: NDArray[np.float64]) -> float:
        return self._hinge(point).value

    def _hinge(self, point: NDArray[np.float64]) -> HingeT:
        return self._risk.hinge(self._risk.scores(point, out=self._scores), out=self._weights)


@dataclass(frozen=True, slots=True)
class _Known(Generic[HingeT]):
    """A point, its scores and its hinge."""

    point: NDArray[np.float64]
    scores: NDArray[np.float64]
    hinge: HingeT


class AfterLineSearch(Generic[HingeT]):
    """See the module. Arrays as long as the scores are used again and again: fresh ones cost more than the oracle."""

    def __init__(self, risk: ScoredRisk[HingeT]) -> None:
        self._risk = risk
        self._best: _Known[HingeT] | None = None
        self._unused: list[NDArray[np.float64]] = []
        self._reach = 1.0

    def __call__(self, point: NDArray[np.float64], C: float, gap: float, centre: NDArray[np.float64]) -> Step:
        if self._best is None:
            self._best = there = self._know(point)
            return Step(point, there.hinge.value, self._risk.cut(there.hinge))
        here, scores = self._best, self._risk.scores(point, out=self._array())
        best, beyond = self._search(here, point, scores, C, gap, centre)
        step = Step(best.point, best.hinge.value, self._risk.cut(beyond.hinge))
        self._best = best
        self._forget([here, beyond], but=[best])
        self._unused.append(scores)
        return step

    def restart(self) -> None:
        if self._best is not None:
            self._forget([self._best])
            self._best, self._reach = None, 1.0

    def verified_risk(self, point: NDArray[np.float64]) -> float:
        fresh = self._know(point)
        if self._best is not None and point is self._best.point:
            self._forget([self._best])
            self._best = fresh  # rid of what rounding has added up
        else:
            self._forget([fresh])
        return fresh.hinge.value

    def _array(self) -> NDArray[np.float64]:
        """(n_scores,) float64 of any content."""
        return self._unused.pop() if self._unused else np.empty(self._risk.n_scores)

    def _know(self, point: NDArray[np.float64]) -> _Known[HingeT]:
        scores = self._risk.scores(point, out=self._array())
        return _Known(point, scores, self._risk.hinge(scores, out=self._array()))

    def _forget(self, known: list[_Known[HingeT]], but: Sequence[_Known[HingeT] | None] = ()) -> None:
        """Takes back the arrays of each but those."""
        for one in {id(one): one for one in known}.values():
            if not any(one is other for other in but):
                self._unused += [one.scores, one.hinge.weights]

    def _search(
        self,
        here: _Known[HingeT],
        point: NDArray[np.float64],
        scores: NDArray[np.float64],
        C: float,
        gap: float,
        centre: NDArray[np.float64],
    ) -> tuple[_Known[HingeT], _Known[HingeT]]:
        """The best of ``here``, the QP's ``point`` and the points tried between them, and the nearest one tried beyond
        the minimum (the best, where there is none). The arrays of the others are taken back, but those of ``here``."""
        direction = point - here.point
        change = np.subtract(scores, here.scores, out=self._array())
        away = here.point - centre
        constant, linear, square = (
            0.5 * float(away @ away),
            float(away @ direction),
            0.5 * float(direction @ direction),
        )

        def objective(t: float, hinge: HingeT) -> float:
            return constant + t * (linear + t * square) + C * hinge.value

        def tangent(t: float, hinge: HingeT) -> _Tangent:
            slope = C * float(hinge.weights @ change)
            return _Tangent(t, slope, C * hinge.value - slope * t)

        def evaluated(t: float) -> _Known[HingeT]:
            between = np.multiply(change, t, out=self._array())
            between += here.scores
            hinge = self._risk.hinge(between, out=self._array())
            return _Known(point if t == 1.0 else here.point + t * direction, between, hinge)

        # Of a convex function's tangents only the nearest on either side count between them. Before there is one on the
        # right, trials step out from where the last search ended: the QP's point itself is mostly far too far.
        left, right = tangent(0.0, here.hinge), None
        best, value, at = here, objective(0.0, here.hinge), 0.0
        beyond: _Known[HingeT] | None = None
        reach = self._reach
        for _ in range(MOST_TRIALS):
            t, lower = _minimum(linear, square, left, right)
            if right is None:
                t = min(t, reach)
                reach *= STEP_OUT
            if value - (constant + lower) <= GAP_SHARE * gap or not left.t < t or (right is not None and t >= right.t):
                break
            trial = evaluated(t)
            found = tangent(t, trial.hinge)
            others = [trial, best] if beyond is None else [trial, best, beyond]
            if linear + 2.0 * square * t + found.slope < 0.0:
                left = found
            else:
                right, beyond = found, trial
            if objective(t, trial.hinge) < value:
                best, value, at = trial, objective(t, trial.hinge), t
            self._forget(others, but=[here, best, beyond])
        if best is here and beyond is None:
            beyond = evaluated(1.0)  # nothing to search: a plane is needed all the same
        self._unused.append(change)
        self._reach = at if at > 0.0 else self._reach / STEP_OUT
        return best, best if beyond is None else beyond


@dataclass(frozen=True, slots=True)
class _Tangent:
    """Of C·h at ``t``: slope·t' + at_zero ≤ C·h(t')."""

    t: float
    slope: float
    at_zero: float


def _minimum(linear: float, square: float, left: _Tangent, right: _Tangent | None) -> tuple[float, float]:
    """argmin and minimum of linear·t + square·t² + the larger of two tangents, between their points; without a right
    one of the left one alone, up to t = 1."""
    t = end = 1.0 if right is None else right.t
    if right is not None:
        rise = right.slope - left.slope
        t = (left.at_zero - right.at_zero) / rise if rise > 0.0 else left.t
    # Before the tangents cross the left one counts, behind it the right one.
    if square > 0.0:
        if linear + 2.0 * square * t + left.slope > 0.0:
            t = -(linear + left.slope) / (2.0 * square)
        elif right is not None and linear + 2.0 * square * t + right.slope < 0.0:
            t = -(linear + right.slope) / (2.0 * square)
    t = min(max(t, left.t), end)
    larger = max(tangent.slope * t + tangent.at_zero for tangent in (left, right) if tangent is not None)
    return t, t * (linear + t * square) + larger
