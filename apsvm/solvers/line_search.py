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
from typing import Generic, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from apsvm.score_space import ScoreFunction, Tangent, V
from apsvm.solvers.saving import Saved, array
from apsvm.solvers.state import not_finite

#: The search stops when it can gain at most this share of the current gap.
GAP_SHARE = 0.01
#: Most evaluations in one search.
MOST_TRIALS = 12
#: How much farther each trial goes while the objective still falls there.
STEP_OUT = 2.0


class Cut(NamedTuple):
    """What a cutter found.

    Attributes
    ----------
    point : (dimension,) float64, a candidate for the best point
    risk : the risk there
    plane : (dimension,) float64
    offset : risk(w') ≥ plane·w' + offset for every w'
    memo : what the risk remembers of the plane
    """

    point: NDArray[np.float64]
    risk: float
    plane: NDArray[np.float64]
    offset: float
    memo: NDArray[np.float64] | None = None


class Cutter(Protocol):
    """Decides where to cut, given the QP's point."""

    @property
    def lower_bound(self) -> float:
        """A number that the risk is nowhere below."""

    @property
    def levels(self) -> bool:
        """Whether the points it is given are better not the QP's own (``levels``)."""

    def __call__(self, point: NDArray[np.float64], C: float, gap: float, centre: NDArray[np.float64]) -> Cut:
        """``gap``: between the bounds of ½‖w − centre‖² + C·risk so far (infinite at first)."""

    def restart(self) -> None:
        """Forgets the best point."""

    def verified_risk(self, point: NDArray[np.float64]) -> float:
        """The risk at a point the cutter returned, computed afresh."""

    def state(self) -> Saved:
        """What later cuts depend on, for ``restore``."""

    def restore(self, saved: Saved) -> None:
        """Takes over what ``state`` returned in another cutter of the same risk."""


@dataclass(frozen=True, slots=True)
class _Known(Generic[V]):
    """A point, its scores, and the risk's value and slopes there."""

    point: NDArray[np.float64]
    scores: V
    slopes: V
    tangent: Tangent

    @property
    def risk(self) -> float:
        return self.tangent.value


def _known(risk: ScoreFunction[V], point: NDArray[np.float64], scores: V, slopes: V) -> _Known[V]:
    """The risk at a point with these scores; ``slopes`` become its slopes."""
    tangent = risk.tangent(scores, slopes)
    if not np.isfinite(tangent.value):
        raise not_finite("risk")
    return _Known(point, scores, slopes, tangent)


def _plane(risk: ScoreFunction[V], known: _Known[V]) -> tuple[NDArray[np.float64], float, NDArray[np.float64] | None]:
    """The cutting plane that touches the risk at a point, its offset, and what the risk remembers of it."""
    value, offset = known.tangent
    if offset is None:
        offset = value - risk.vectors.dot(known.slopes, known.scores)
    return risk.combine(known.slopes), offset, risk.memo(known.slopes)


class AtTheQPsPoint(Generic[V]):
    """The plain cutting-plane method (Joachims et al. 2009)."""

    levels = False

    def __init__(self, risk: ScoreFunction[V]) -> None:
        self._risk = risk
        self._scores, self._slopes = risk.vectors.empty(), risk.vectors.empty()

    @property
    def lower_bound(self) -> float:
        return self._risk.lower_bound

    def __call__(self, point: NDArray[np.float64], C: float, gap: float, centre: NDArray[np.float64]) -> Cut:
        here = self._know(point)
        return Cut(point, here.risk, *_plane(self._risk, here))

    def restart(self) -> None:
        pass

    def verified_risk(self, point: NDArray[np.float64]) -> float:
        return self._know(point).risk

    def state(self) -> Saved:
        return {}

    def restore(self, saved: Saved) -> None:
        pass

    def _know(self, point: NDArray[np.float64]) -> _Known[V]:
        return _known(self._risk, point, self._risk.scores(point, self._scores), self._slopes)


class AfterLineSearch(Generic[V]):
    """See the module. Score vectors are used again and again: fresh arrays cost more than the oracle."""

    levels = True

    def __init__(self, risk: ScoreFunction[V]) -> None:
        self._risk = risk
        self._vectors = risk.vectors
        self._best: _Known[V] | None = None
        self._unused: list[V] = []
        self._reach = 1.0

    @property
    def lower_bound(self) -> float:
        return self._risk.lower_bound

    def __call__(self, point: NDArray[np.float64], C: float, gap: float, centre: NDArray[np.float64]) -> Cut:
        if self._best is None:
            there = self._know(point)
            cut = Cut(point, there.risk, *_plane(self._risk, there))
            self._best = there
            return cut
        here, scores = self._best, self._risk.scores(point, self._vector())
        best, beyond = self._search(here, point, scores, C, gap, centre)
        cut = Cut(best.point, best.risk, *_plane(self._risk, beyond))
        self._best = best
        self._forget([here, beyond], but=[best])
        self._unused.append(scores)
        return cut

    def restart(self) -> None:
        if self._best is not None:
            self._forget([self._best])
            self._best, self._reach = None, 1.0

    def verified_risk(self, point: NDArray[np.float64]) -> float:
        fresh = self._know(point)
        if self._best is not None and np.array_equal(point, self._best.point):
            self._forget([self._best])
            self._best = fresh  # rid of what rounding has added up
        else:
            self._forget([fresh])
        return fresh.risk

    def state(self) -> Saved:
        """The best point's scores are a part of it: computed afresh they would not be the same bits."""
        if self._best is None:
            return {"reach": self._reach}
        scores = self._vectors.gather(self._best.scores)
        return {"reach": self._reach, "best": self._best.point, "scores": scores}

    def restore(self, saved: Saved) -> None:
        self.restart()
        self._reach = float(saved["reach"])
        if "best" in saved:
            self._best = self._know(array(saved["best"]), self._vectors.scatter(array(saved["scores"])))

    def _vector(self) -> V:
        """A score vector of any content."""
        return self._unused.pop() if self._unused else self._vectors.empty()

    def _know(self, point: NDArray[np.float64], scores: V | None = None) -> _Known[V]:
        """The point with its scores, computed unless they are given, and the risk there."""
        if scores is None:
            scores = self._risk.scores(point, self._vector())
        slopes = self._vector()
        return _known(self._risk, point, scores, slopes)

    def _forget(self, known: list[_Known[V]], but: Sequence[_Known[V] | None] = ()) -> None:
        """Takes back the vectors of each but those."""
        for one in {id(one): one for one in known}.values():
            if not any(one is other for other in but):
                self._unused += [one.scores, one.slopes]

    def _search(
        self,
        here: _Known[V],
        point: NDArray[np.float64],
        scores: V,
        C: float,
        gap: float,
        centre: NDArray[np.float64],
    ) -> tuple[_Known[V], _Known[V]]:
        """The best of ``here``, the QP's ``point`` and the points tried between them, and the nearest one tried beyond
        the minimum (the best, where there is none). The vectors of the others are taken back, but those of ``here``."""
        direction = point - here.point
        change = self._vector()
        self._vectors.subtract(scores, here.scores, change)
        regular = _Quadratic.of(here.point - centre, direction)

        def tangent(t: float, known: _Known[V]) -> _Line:
            slope = C * self._vectors.dot(known.slopes, change)
            return _Line(t, slope, C * known.risk - slope * t)

        def evaluated(t: float) -> _Known[V]:
            between = self._vector()
            self._vectors.add(here.scores, t, change, between)
            return self._know(point if t == 1.0 else here.point + t * direction, between)

        # Of a convex function's tangents only the nearest on either side count between them. Before there is one on the
        # right, trials step out from where the last search ended: the QP's point itself is mostly far too far.
        left, right = tangent(0.0, here), None
        best, value, at = here, regular.at(0.0) + C * here.risk, 0.0
        beyond: _Known[V] | None = None
        reach = self._reach
        for _ in range(MOST_TRIALS):
            t, lower = _minimum(regular, left, right)
            if right is None:
                t = min(t, reach)
                reach *= STEP_OUT
            open_gain = value - (regular.constant + lower)
            if open_gain <= GAP_SHARE * gap or not left.t < t or (right is not None and t >= right.t):
                break
            trial = evaluated(t)
            touching = tangent(t, trial)
            others = [trial, best] if beyond is None else [trial, best, beyond]
            if regular.slope(t) + touching.slope < 0.0:
                left = touching
            else:
                right, beyond = touching, trial
            if regular.at(t) + C * trial.risk < value:
                best, value, at = trial, regular.at(t) + C * trial.risk, t
            self._forget(others, but=[here, best, beyond])
        if best is here and beyond is None:
            beyond = evaluated(1.0)  # nothing to search: a plane is needed all the same
        self._unused.append(change)
        self._reach = at if at > 0.0 else self._reach / STEP_OUT
        return best, best if beyond is None else beyond


class _Quadratic(NamedTuple):
    """½‖away + t·direction‖² = constant + linear·t + square·t²."""

    constant: float
    linear: float
    square: float

    @classmethod
    def of(cls, away: NDArray[np.float64], direction: NDArray[np.float64]) -> _Quadratic:
        return cls(0.5 * float(away @ away), float(away @ direction), 0.5 * float(direction @ direction))

    def at(self, t: float) -> float:
        return self.constant + t * (self.linear + t * self.square)

    def slope(self, t: float) -> float:
        return self.linear + 2.0 * self.square * t


@dataclass(frozen=True, slots=True)
class _Line:
    """A tangent of C·risk at ``t`` along the segment: slope·t' + at_zero ≤ C·h(t')."""

    t: float
    slope: float
    at_zero: float


def _minimum(regular: _Quadratic, left: _Line, right: _Line | None) -> tuple[float, float]:
    """argmin and minimum of the quadratic, less its constant, and the larger of two tangents, between their points;
    without a right one of the left one alone, up to t = 1."""
    _, linear, square = regular
    t = end = 1.0 if right is None else right.t
    if right is not None:
        rise = right.slope - left.slope
        t = (left.at_zero - right.at_zero) / rise if rise > 0.0 else left.t
    # Before the tangents cross the left one counts, behind it the right one.
    if square > 0.0:
        if regular.slope(t) + left.slope > 0.0:
            t = -(linear + left.slope) / (2.0 * square)
        elif right is not None and regular.slope(t) + right.slope < 0.0:
            t = -(linear + right.slope) / (2.0 * square)
    t = min(max(t, left.t), end)
    larger = max(tangent.slope * t + tangent.at_zero for tangent in (left, right) if tangent is not None)
    return t, t * (linear + t * square) + larger
