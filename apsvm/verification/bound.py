"""Lower bounds of ½‖w‖² + C·r(w) from cutting planes. Each plane is that of the most violated rankings at a point,
which ``apsvm.verification.plain`` finds in the data.

    r(w) ≥ a_t·w + b_t for every w   ⇒   minimum ≥ Σ α_t b_t − ½‖Σ α_t a_t‖²   for any α ≥ 0, Σ α_t = C

The α come from a quadratic programme over the planes. Its solver need not be trusted: any α, made feasible, proves a
bound. The final bound is summed without rounding (``exact``).

Planes are taken at the minimiser of the current planes, and nearer to the lowest point found (a level method:
Lemaréchal, Nemirovskii and Nesterov 1995). Distance is measured by the change of scores: the search uses coordinates in
which the rows have deviation 1 in all directions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from apsvm.verification.exact import UNIT, dot, float64_error, total
from apsvm.verification.plain import Array
from apsvm.verification.risk import Plane

#: Target value of the planes at the next point, as a fraction between lower and upper bound, and its tolerance.
LEVEL, BAND = 0.3, 0.15
#: Maximum number of quadratic programmes for one such point.
TRIALS = 12
#: Largest curvature of ½‖w‖²/C in the coordinates of the planes' problem.
MOST_CURVATURE = 1e8
#: Number of successive solutions without a plane before it is dropped; proved bounds stay valid.
IDLE = 15


class RowProducts(Protocol):
    """Products with the rows X, mapped and scaled as in training."""

    @property
    def count(self) -> int:
        """Number of rows."""

    def scores(self, w: Array) -> Array:
        """Xw, (n,) float64."""

    def combine(self, slopes: Array) -> Array:
        """Xᵀ slopes, (d,) float64."""

    def exact_scores(self, w: Array, level: float) -> Array:
        """Xw − level, each rounded once."""

    def exact_combine(self, slopes: Array) -> Array:
        """Xᵀ slopes, each rounded once."""

    def sizes(self, w: Array) -> Array:
        """|X||w|, (n,): the summed magnitudes of the terms of each score."""

    def combined_sizes(self, slopes: Array) -> Array:
        """|X|ᵀ slopes, (d,)."""

    def directions(self) -> Array | None:
        """(d, k): orthogonal directions in which the rows have deviation 1; None if rows are too wide."""


class Measured(NamedTuple):
    """A value and a bound on its rounding error."""

    value: float
    rounding: float


@dataclass(frozen=True)
class Convex:
    """½‖w‖² + C·r(Xw).

    Attributes
    ----------
    rows : X
    risk : r of scores (n,), convex, with its plane there
    rounding : the rounding error of ``risk`` at scores that are each rounded once
    largest_loss : upper bound on the magnitudes of the terms of a plane's offset
    fixed : a plane of r known in advance
    C : > 0
    level_free : True if a number added to all scores changes nothing
    sizes : (n,) summed magnitudes of the terms of the model's scores
    terms : summed magnitudes of the terms of the claimed bound in training
    """

    rows: RowProducts
    risk: Callable[[Array], Plane]
    rounding: Callable[[Array], float]
    largest_loss: float
    fixed: Plane
    C: float
    level_free: bool
    sizes: Array
    terms: float

    def at(self, w: Array, scores: Array) -> Measured:
        """Objective at w from its ``exact_scores``, and its rounding error; the sum is rounded once."""
        value = exact_value(self.risk(scores), scores)
        length = 0.5 * total(dot(w, w))
        of_scores = self.rounding(scores) + 16.0 * UNIT**2 * float(self.sizes.max(initial=0.0))
        return Measured(length + self.C * value, 4.0 * UNIT * length + self.C * of_scores)


def exact_scores(rows: RowProducts, w: Array, *, level_free: bool) -> Array:
    """Scores, each rounded once; less their mean if ``level_free``, which keeps them small."""
    return rows.exact_scores(w, float(rows.scores(w).mean()) if level_free else 0.0)


def exact_value(plane: Plane, scores: Array) -> float:
    """Value of the plane at ``scores``, rounded once."""
    return total([plane.offset, *dot(plane.slopes, scores)])


@dataclass(frozen=True)
class Limits:
    """Limits of a proof: ``seconds`` (None: no limit), ``iterations``."""

    seconds: float | None = None
    iterations: int = 1000


@dataclass(frozen=True)
class Claim:
    """Claimed lower bound of the minimum.

    Attributes
    ----------
    lower : float, claimed bound, rounded in float64
    open : float, distance below ``lower`` at which the proof may end
    least : float, bound to be proved without allowance; −inf: none
    """

    lower: float
    open: float
    least: float

    def proved_by(self, lower: float, slack: float) -> bool:
        """True if a lower bound proves the claim; rounding may have raised the claim by ``slack``."""
        return lower >= max(self.lower - self.open - slack, self.least)

    def refuted(self, value: float, slack: float) -> bool:
        """True if a value that was attained refutes the claim."""
        return value < max(self.lower - slack, self.least)


@dataclass(frozen=True)
class ProvedBound:
    """Result of a proof.

    Attributes
    ----------
    lower : float, the best lower bound of the minimum, less its rounding error
    slack : float, the rounding error of the claim
    lowest : float, the lowest value found, plus its rounding error
    iterations, planes : int, number of iterations, and of planes in the last bound
    """

    lower: float
    slack: float
    lowest: float
    iterations: int
    planes: int


def prove(problem: Convex, w: Array, value: float, claim: Claim, rounding: float, limits: Limits) -> ProvedBound:
    """Adds planes until the claim is proved or refuted, or a limit is reached.

    Parameters
    ----------
    w : (d,) float64, start
    value : the objective at w, plus its rounding error
    rounding : the rounding error of the claim, besides that of a bound of planes
    """
    began, iterations = time.monotonic(), 0
    planes = _BoundPlanes(problem, w)
    lowest = value
    while True:
        nearest = planes.minimise()
        slack = rounding + planes.slack
        if claim.proved_by(planes.lower, slack) and claim.proved_by(planes.prove(), slack):
            break
        if claim.refuted(min(planes.lowest, lowest), slack):
            scores = exact_scores(problem.rows, planes.best, level_free=problem.level_free)
            lowest = min(lowest, sum(problem.at(planes.best, scores)))
        enough = iterations >= limits.iterations
        enough |= limits.seconds is not None and time.monotonic() - began >= limits.seconds
        if claim.refuted(lowest, slack) or enough or not math.isfinite(lowest):
            planes.prove()
            break
        iterations += 1
        planes.take(nearest)
        planes.take(planes.between())
        planes.forget_idle()
    return ProvedBound(planes.proved, slack, lowest, iterations, planes.used)


class _BoundPlanes:
    """Planes of one problem; at first the fixed one and that at w.

    Attributes
    ----------
    best, lowest : the lowest point found, and its value in float64
    lower, proved : the best lower bound in float64, and the best one that holds despite rounding
    slack : the rounding error of the last α's bound in float64
    used : the number of planes of the last α
    """

    def __init__(self, problem: Convex, w: Array) -> None:
        self._problem, self._directions = problem, problem.rows.directions()
        self._slopes, self._planes = np.empty((0, w.size)), list[Plane]()
        self._idle, self._terms = np.empty(0, dtype=np.int64), np.empty(0)
        self._nearness = 1.0
        self.best, self.lowest, self.lower, self.proved = w, np.inf, -np.inf, -np.inf
        self._add(problem.fixed)
        self.take(w)
        self._best_alpha, self._best_planes = np.array([problem.C, 0.0]), self._planes
        self.slack, self.used = 0.0, 0

    def _add(self, plane: Plane) -> None:
        self._slopes = np.vstack([self._slopes, self._problem.rows.combine(plane.slopes)])
        self._planes = [*self._planes, plane]
        self._idle = np.append(self._idle, 0)
        of_loss = self._problem.largest_loss if plane.offset else 0.0
        self._terms = np.append(self._terms, of_loss + float(np.abs(plane.slopes) @ self._problem.sizes))

    def take(self, w: Array) -> None:
        """Adds the plane at w."""
        plane = self._problem.risk(self._problem.rows.scores(w))
        self._add(plane)
        value = 0.5 * float(w @ w) + self._problem.C * plane.value
        if value < self.lowest:
            self.best, self.lowest = w, value

    def minimise(self) -> Array:
        """Minimiser (d,) of ½‖w‖² + C·max over the planes. Its α update the lower bound."""
        self._set_coordinates()
        z, share = _solve(self._curvature, np.zeros_like(self._curvature), self._in_coordinates, self._offsets)
        shares = [share, _polished(self._curvature, self._in_coordinates, self._offsets, share)]
        alphas = [self._problem.C * share for share in shares]
        alpha = max(alphas, key=self._bound)
        self.slack = self._slack(alpha)
        only_fixed = np.where(np.arange(alpha.size) == 0, self._problem.C, 0.0)
        self._use(alpha)
        self.used = int((alpha > 1e-9 * self._problem.C).sum())
        for candidate in (only_fixed, alpha):
            bound = self._bound(candidate)
            if bound > self.lower:
                self.lower, self._best_alpha, self._best_planes = bound, candidate, self._planes
        return self._coordinates @ z

    def between(self) -> Array:
        """A point between the best one and the last minimiser at which the planes are near the level."""
        self._set_coordinates()
        best = (self.best @ self._coordinates) / (self._coordinates**2).sum(axis=0)
        level = self.lower + LEVEL * (self.lowest - self.lower)
        band = BAND * (self.lowest - self.lower)
        too_near = too_far = None
        for _ in range(TRIALS):
            pull = self._nearness
            z, share = _solve(self._curvature + pull, -pull * best, self._in_coordinates, self._offsets)
            w = self._coordinates @ z
            height = 0.5 * float(w @ w) + self._problem.C * float((self._slopes @ w + self._offsets).max())
            if height > level + band:
                too_near = pull
                pull = pull / 10.0 if too_far is None else math.sqrt(pull * too_far)
            elif height < level - band:
                too_far = pull
                pull = pull * 10.0 if too_near is None else math.sqrt(pull * too_near)
            else:
                break
            self._nearness = min(max(pull, 1e-25), 1e25)
        self._use(share)
        return w

    def prove(self) -> float:
        """Proves the bound of the best α, with its rounding error subtracted, and returns the best proved bound."""
        problem, planes = self._problem, self._best_planes
        count = np.count_nonzero(self._best_alpha)
        # The fixed plane gets the rest of C, which is ≥ 0 and close to its α.
        alpha = self._best_alpha * (1.0 - 4.0 * (count + 1) * UNIT)
        alpha[0] = max(problem.C - total(alpha[1:].tolist()), 0.0)
        slopes, sizes = np.zeros(problem.sizes.size), problem.C * np.abs(problem.fixed.slopes)
        for weight, plane in zip(alpha, planes, strict=True):
            if weight > 0.0:
                slopes += weight * plane.slopes
                sizes += weight * np.abs(plane.slopes)
        step = problem.rows.exact_combine(slopes)
        # Slopes are products of whole numbers, weights and α, each rounded.
        away = (count + 16) * UNIT * problem.rows.combined_sizes(sizes) + UNIT * np.abs(step)
        offset = total(dot(alpha, np.array([plane.offset for plane in planes])))
        of_offsets = (count + slopes.size + 32) * UNIT * problem.largest_loss * float(alpha[1:].sum())
        square = 0.5 * total(dot(np.abs(step) + away, np.abs(step) + away))
        bound = offset - of_offsets - square * (1.0 + 4.0 * UNIT)
        self.proved = max(self.proved, bound if math.isfinite(bound) else -np.inf)
        return self.proved

    def forget_idle(self) -> None:
        """Drops planes that the last ``IDLE`` solutions have not used, except the fixed one."""
        keep = np.flatnonzero((self._idle < IDLE) | (np.arange(self._idle.size) == 0))
        self._slopes, self._idle, self._terms = self._slopes[keep], self._idle[keep], self._terms[keep]
        self._planes = [self._planes[place] for place in keep]

    @property
    def _offsets(self) -> Array:
        return np.array([plane.offset for plane in self._planes])

    def _bound(self, alpha: Array) -> float:
        step = alpha @ self._slopes
        return float(alpha @ self._offsets) - 0.5 * float(step @ step)

    def _use(self, weights: Array) -> None:
        in_use = weights > 1e-9 * weights.max(initial=0.0)
        self._idle = np.where(in_use, 0, self._idle + 1)

    def _slack(self, alpha: Array) -> float:
        return float64_error(self._problem.rows.count) * (self._problem.terms + float(alpha @ self._terms))

    def _set_coordinates(self) -> None:
        """Sets coordinates z, w = coordinates·z. Planes are ``in_coordinates``, and ½‖w‖²/C is ½ Σ curvature·z²."""
        columns = self._directions
        if columns is None:
            some = np.vstack([self._slopes, self.best])
            columns = np.linalg.qr(some.T)[0] if np.isfinite(some).all() else np.empty((self.best.size, 0))
        planes = self._slopes @ columns
        sizes = np.abs(planes).max(axis=0)
        units = np.where(sizes > 0.0, sizes, 1.0) if self._directions is None else 1.0
        self._coordinates, self._in_coordinates = columns / units, planes / units
        self._curvature = (self._coordinates**2).sum(axis=0) / self._problem.C


def _solve(curvature: Array, slope: Array, planes: Array, offsets: Array) -> tuple[Array, Array]:
    """Approximate minimiser z (k,) of ½ Σ curvature·z² + slope·z + max (planes·z + offsets), and the planes' shares
    (t,) ≥ 0, whose sum is 1."""
    import clarabel
    from scipy import sparse

    t, k = planes.shape
    # Beyond about 1e150 the interior point does not terminate.
    curvature = np.minimum(curvature, np.finfo(np.float64).max)
    shrunk = 1.0 / np.sqrt(np.maximum(curvature / MOST_CURVATURE, 1.0))
    curvature, slope, planes = curvature * shrunk**2, slope * shrunk, planes * shrunk
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    solver = clarabel.DefaultSolver(
        sparse.diags_array(np.append(curvature, 0.0), format="csc"),
        np.append(slope, 1.0),
        sparse.csc_matrix(np.hstack([planes, -np.ones((t, 1))])),
        -offsets,
        [clarabel.NonnegativeConeT(t)],
        settings,
    )
    solution = solver.solve()
    z, share = (np.where(np.isfinite(part), part, 0.0) for part in (np.asarray(solution.x)[:k], np.asarray(solution.z)))
    z, share = shrunk * z, np.maximum(share, 0.0)
    sum_of_shares = float(share.sum())
    return z, share / sum_of_shares if sum_of_shares > 0.0 else np.full(t, 1.0 / t)


def _polished(curvature: Array, planes: Array, offsets: Array, share: Array) -> Array:
    """Shares (t,) that make the planes in use equally high at their minimiser; ``share`` if there are none. They
    correct the interior point's error, which grows as ½‖w‖² counts less."""
    used = np.flatnonzero(share > 1e-7 * share.max())
    k, count = curvature.size, used.size
    system = np.zeros((k + count + 1, k + count + 1))
    system[:k, :k] = np.diag(curvature)
    system[:k, k:-1], system[k:-1, :k] = planes[used].T, planes[used]
    system[k:-1, -1], system[-1, k:-1] = -1.0, 1.0
    if not np.isfinite(system).all():
        return share
    try:
        polished = np.linalg.lstsq(system, np.concatenate([np.zeros(k), -offsets[used], [1.0]]), rcond=1e-15)[0][k:-1]
    except np.linalg.LinAlgError:
        return share
    result = np.zeros_like(share)
    result[used] = np.maximum(polished, 0.0)
    return result / result.sum() if np.isfinite(polished).all() and polished.min() > -1e-12 and result.any() else share
