"""Cutters choose the point of the next cutting plane: the QP's minimiser, or the result of a line search on scores.

If the scores at two points are known, so are those of every point between them. An evaluation of the risk along the
segment costs an oracle call and no pass over X. The line search goes from the best point w_b towards the QP's point
w_n,

    φ(t) = ½‖w_b + t(w_n − w_b) − c‖² + C·h(s_b + t(s_n − s_b)),   0 ≤ t ≤ 1,

φ is convex, a quadratic plus a piecewise linear function. Each evaluation bounds h from below by a tangent. The minimum
of the quadratic plus the larger of the two nearest tangents bounds the remaining gain. The next t is the root of φ' if
φ' were linear between these two, which is nearly true with many rows; the crossing of the tangents would need more
trials. The new best point is the best one seen. The plane is taken at the nearest trial beyond the minimum, where φ
rises again. It lies a little towards w_n, as the point 0.9·w_b + 0.1·w_n of OCAS (Franc and Sonnenburg 2009) but
nearer, which saves iterations. Its hinge is known, which saves an oracle call.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from apsvm.solvers.score_space import ScoreFunction, Vector, move
from apsvm.solvers.state import not_finite

#: The search stops when it can gain at most this share of the current gap.
GAP_SHARE = 0.003
#: Maximum number of evaluations in one search.
MOST_TRIALS = 12
#: Fraction of the first slope that counts as 0. If φ' is linear between two trials, the next one hits its root, and
#: rounding must not decide its side.
LEVEL = 1e-9
#: Factor between trials while the objective still falls.
STEP_OUT = 2.0


class Cut(NamedTuple):
    """Result of a cutter.

    Attributes
    ----------
    point : (dimension,) float64, a candidate for the best point
    risk : the risk at that point
    plane : (dimension,) float64
    offset : risk(w') ≥ plane·w' + offset for every w'
    memo : the risk's data on the plane
    """

    point: NDArray[np.float64]
    risk: float
    plane: NDArray[np.float64]
    offset: float
    memo: NDArray[np.float64] | None = None


class Cutter(Protocol):
    """Chooses where to cut, given the QP's point."""

    @property
    def lower_bound(self) -> float:
        """Lower bound of the risk."""

    @property
    def levels(self) -> bool:
        """True if the cutter prefers level-set points to the QP minimiser (``levels``)."""

    def __call__(self, point: NDArray[np.float64], C: float, gap: float, centre: NDArray[np.float64]) -> Cut:
        """``gap``: current gap of ½‖w‖² − centre·w + C·risk (infinite at first)."""

    def restart(self) -> None:
        """Forgets the best point."""

    def verified_risk(self, point: NDArray[np.float64]) -> float:
        """The risk at a point the cutter returned, computed afresh."""


@dataclass(slots=True)
class _Sample:
    """A point with its risk.

    Attributes
    ----------
    point : (dimension,) float64
    risk : its value
    offset : the offset of the tangent plane there
    slopes : its slopes; None once their memory was reused
    """

    point: NDArray[np.float64]
    risk: float
    offset: float
    slopes: Vector | None


def _evaluate(risk: ScoreFunction, point: NDArray[np.float64], scores: Vector, slopes: Vector) -> _Sample:
    """Evaluates the risk at a point with these scores; overwrites ``slopes``."""
    value, offset = risk.tangent(scores, slopes)
    if not math.isfinite(value):
        raise not_finite("risk")
    if offset is None:
        offset = value - float(slopes.dot(scores))
    return _Sample(point, value, offset, slopes)


def _cut(risk: ScoreFunction, best: _Sample, touching: _Sample) -> Cut:
    """A cut with the best point, and the plane that touches the risk at another point with known slopes."""
    assert touching.slopes is not None
    plane = risk.combine(touching.slopes)
    return Cut(best.point, best.risk, plane, touching.offset, risk.memo(touching.slopes))


class AtTheQPsPoint:
    """The plain cutting-plane method (Joachims et al. 2009)."""

    levels = False

    def __init__(self, risk: ScoreFunction) -> None:
        self._risk, self.lower_bound = risk, risk.lower_bound
        self._scores, self._slopes = np.empty(risk.n_scores), np.empty(risk.n_scores)

    def __call__(self, point: NDArray[np.float64], C: float, gap: float, centre: NDArray[np.float64]) -> Cut:
        sample = self._sampled(point)
        return _cut(self._risk, sample, sample)

    def restart(self) -> None:
        pass

    def verified_risk(self, point: NDArray[np.float64]) -> float:
        return self._sampled(point).risk

    def _sampled(self, point: NDArray[np.float64]) -> _Sample:
        return _evaluate(self._risk, point, self._risk.scores(point, self._scores), self._slopes)


class AfterLineSearch:
    """See the module. It holds at most four score vectors: scores moved along the segment, the change between its ends,
    and slopes at two points. The slopes of a third point overwrite those of the best point; if that stays the best, the
    oracle computes them again."""

    levels = True

    def __init__(self, risk: ScoreFunction) -> None:
        self._risk, self.lower_bound = risk, risk.lower_bound
        self._best: _Sample | None = None
        self._scores: Vector | None = None  # of the best point, between searches
        self._is_exact = False  # False once moves along a search have added rounding
        self._unused: list[Vector] = []
        self._reach = 1.0  # of the first trial of the next search along its segment

    def __call__(self, point: NDArray[np.float64], C: float, gap: float, centre: NDArray[np.float64]) -> Cut:
        if self._best is None:
            self._best = self._sampled(point)
            return _cut(self._risk, self._best, self._best)
        self._is_exact = False
        try:
            best, beyond = self._search(self._best, point, C, gap, centre)
        except FloatingPointError:
            self.restart()  # the scores are no longer the best point's
            raise
        self._best = best
        cut = _cut(self._risk, best, beyond)
        if beyond is not best:
            self._forget(beyond)
        return cut

    def restart(self) -> None:
        """Forgets the best point and releases the score vectors, whose memory a restart may need."""
        self._best, self._scores, self._reach = None, None, 1.0
        self._unused.clear()

    def verified_risk(self, point: NDArray[np.float64]) -> float:
        if self._best is not None and np.array_equal(point, self._best.point):
            if not self._is_exact:  # except for accumulated rounding
                self._forget(self._best)
                self._best = self._sampled(point)
            self._unused.clear()  # usually the run ends here
            return self._best.risk
        scores = self._risk.scores(point, self._vector())
        fresh = _evaluate(self._risk, point, scores, self._vector())
        self._unused.append(scores)
        self._forget(fresh)
        return fresh.risk

    def _vector(self) -> Vector:
        """A score vector of any content, reused because fresh arrays cost more than the oracle."""
        return self._unused.pop() if self._unused else np.empty(self._risk.n_scores)

    def _sampled(self, point: NDArray[np.float64]) -> _Sample:
        """Evaluates the point; keeps its freshly computed scores."""
        self._scores = self._risk.scores(point, self._vector() if self._scores is None else self._scores)
        sample = _evaluate(self._risk, point, self._scores, self._vector())
        self._is_exact = True
        return sample

    def _forget(self, sample: _Sample) -> None:
        """Releases the point's slopes."""
        if sample.slopes is not None:
            self._unused.append(sample.slopes)
            sample.slopes = None

    def _slopes_at(self, best: _Sample) -> Vector:
        """Slopes at the best point, from its current scores."""
        if best.slopes is None:
            assert self._scores is not None
            best.slopes = self._vector()
            self._risk.tangent(self._scores, best.slopes)
        return best.slopes

    def _search(
        self,
        origin: _Sample,
        point: NDArray[np.float64],
        C: float,
        gap: float,
        centre: NDArray[np.float64],
    ) -> tuple[_Sample, _Sample]:
        """Returns the best of ``origin``, the QP's ``point`` and the trials between them, and the nearest trial beyond
        the minimum (else the best point). The scores become those of the best point."""
        assert self._scores is not None
        slopes_here = self._slopes_at(origin)  # before the change is made, to save a vector
        change = self._risk.scores(point, self._vector())
        change -= self._scores
        segment = _Segment(self._risk, origin.point, point, self._scores, change)
        regular = _Quadratic.of(origin.point - centre, segment.direction)

        # Between trials only the nearest tangent on either side matters. Until there is one on the right, trials step
        # out from the end of the last search; the QP's point is usually much too far.
        left, right = segment.tangent(0.0, C, origin.risk, slopes_here), None
        level = LEVEL * (regular.slope(0.0) + left.slope)
        best, value, at = origin, regular.at(0.0) + C * origin.risk, 0.0
        beyond: _Sample | None = None
        reach = self._reach
        for _ in range(MOST_TRIALS):
            t, lower = _minimum(regular, left, right)
            if right is None:
                t = min(t, reach)
                reach *= STEP_OUT
            else:
                t = _where_level(regular, left, right)
            open_gain = value - (regular.constant + lower)
            if open_gain <= GAP_SHARE * gap or not left.t < t or (right is not None and t >= right.t):
                break
            if beyond is not None and beyond is not best:
                self._forget(best)
            trial = segment.evaluated(t, self._vector())
            assert trial.slopes is not None
            touching = segment.tangent(t, C, trial.risk, trial.slopes)
            others = [best] if beyond is None or beyond is best else [best, beyond]
            if regular.slope(t) + touching.slope < level:
                left = touching
            else:
                right, beyond = touching, trial
            if regular.at(t) + C * trial.risk < value:
                best, value, at = trial, regular.at(t) + C * trial.risk, t
            for sample in [*others, trial]:
                if sample is not best and sample is not beyond:
                    self._forget(sample)
        if best is origin and beyond is None:
            beyond = segment.evaluated(1.0, self._vector())  # nothing to search, but a plane is needed
        segment.move(at)
        self._unused.append(change)
        self._reach = at if at > 0.0 else self._reach / STEP_OUT
        return best, best if beyond is None else beyond


class _Segment:
    """Points from ``start`` (t = 0) to ``end`` (t = 1), with scores that move along.

    scores : initially at ``start``
    change : change of the scores from one end to the other
    """

    def __init__(
        self, risk: ScoreFunction, start: NDArray[np.float64], end: NDArray[np.float64], scores: Vector, change: Vector
    ) -> None:
        self._risk, self._start, self._end = risk, start, end
        self.direction = end - start
        self._scores, self._change = scores, change
        self._moved = 0.0  # position of the scores along the segment
        self._starts_at_0 = not start.any()

    def move(self, t: float) -> None:
        """Moves the scores to t. From w = 0 they are scaled, not added to: back at 0 all are equal, and rounding does
        not rank them."""
        if t == self._moved:
            return
        if self._starts_at_0:
            np.multiply(self._change, t, out=self._scores)
        else:
            move(self._scores, t - self._moved, self._change)
        self._moved = t

    def tangent(self, t: float, C: float, risk: float, slopes: Vector) -> _Line:
        """Tangent of C·risk at t, given the risk and its slopes."""
        slope = C * float(slopes.dot(self._change))
        return _Line(t, slope, C * risk - slope * t)

    def evaluated(self, t: float, slopes: Vector) -> _Sample:
        """Evaluates the risk at t; overwrites ``slopes``."""
        self.move(t)
        return _evaluate(self._risk, self._end if t == 1.0 else self._start + t * self.direction, self._scores, slopes)


class _Quadratic(NamedTuple):
    """½‖away + t·direction‖² = constant + linear·t + square·t²."""

    constant: float
    linear: float
    square: float

    @classmethod
    def of(cls, away: NDArray[np.float64], direction: NDArray[np.float64]) -> _Quadratic:
        square = 0.5 * float(direction.dot(direction))
        return cls(0.5 * float(away.dot(away)), float(away.dot(direction)), square)

    def at(self, t: float) -> float:
        return self.constant + t * (self.linear + t * self.square)

    def slope(self, t: float) -> float:
        return self.linear + 2.0 * self.square * t


class _Line(NamedTuple):
    """A tangent of C·risk at ``t`` along the segment: slope·t' + at_zero ≤ C·h(t')."""

    t: float
    slope: float
    at_zero: float


def _minimum(regular: _Quadratic, left: _Line, right: _Line | None) -> tuple[float, float]:
    """Minimiser and minimum of the quadratic, without its constant, plus the larger of two tangents, between their
    points. Without a right tangent, the left one is used up to t = 1."""
    _, linear, square = regular
    t = end = 1.0 if right is None else right.t
    if right is not None:
        rise = right.slope - left.slope
        t = (left.at_zero - right.at_zero) / rise if rise > 0.0 else left.t
    # The left tangent is larger before they cross, the right one after.
    if square > 0.0:
        if regular.slope(t) + left.slope > 0.0:
            t = -(linear + left.slope) / (2.0 * square)
        elif right is not None and regular.slope(t) + right.slope < 0.0:
            t = -(linear + right.slope) / (2.0 * square)
    t = min(max(t, left.t), end)
    larger = left.slope * t + left.at_zero
    if right is not None:
        larger = max(larger, right.slope * t + right.at_zero)
    return t, t * (linear + t * square) + larger


def _where_level(regular: _Quadratic, left: _Line, right: _Line) -> float:
    """Root of φ' if it were linear between two points; the left point if φ does not fall there."""
    falling, rising = (regular.slope(line.t) + line.slope for line in (left, right))
    return left.t - (right.t - left.t) * falling / (rising - falling) if falling < 0.0 else left.t
