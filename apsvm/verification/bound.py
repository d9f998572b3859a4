"""A lower bound of ½‖w‖² + C·r(w), proved anew: by planes of its own, each of the most violated rankings at some point,
which ``apsvm.verification.plain`` finds in the data.

    r(w) ≥ a_t·w + b_t for every w   ⇒   minimum ≥ Σ α_t b_t − ½‖Σ α_t a_t‖²   for any α ≥ 0, Σ α_t = C

The α come from a quadratic programme over the planes, but nothing has to be believed of its solver: whatever α it
gives, made feasible, proves the bound that it proves.

Planes are taken at the minimiser of those there are, and on the way to it from the lowest point met.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from apsvm.verification.plain import Array
from apsvm.verification.risk import Plane

#: Where planes are taken between the lowest point met, 0, and the minimiser of the planes, 1.
PLACES = (0.1, 1.0)
#: A plane that no solution has needed for so long is dropped; a bound that is proved stays so.
IDLE = 40


class RowProducts(Protocol):
    """The rows X as the weights see them."""

    def scores(self, w: Array) -> Array:
        """Xw, (n,) float64."""

    def combine(self, slopes: Array) -> Array:
        """Xᵀ slopes, (d,) float64."""


@dataclass(frozen=True)
class Convex:
    """½‖w‖² + C·r(Xw).

    Attributes
    ----------
    rows : X
    risk : r of scores (n,), convex, with its plane there
    known : a plane of r that is known from the start
    C : > 0
    """

    rows: RowProducts
    risk: Callable[[Array], Plane]
    fixed: Plane
    C: float


@dataclass(frozen=True)
class Limits:
    """When to give up: ``seconds`` (None: never), ``iterations``."""

    seconds: float | None = None
    iterations: int = 1000


@dataclass(frozen=True)
class ProvedBound:
    """What a proof came to.

    Attributes
    ----------
    lower : float, the best lower bound of the minimum
    lowest : float, the lowest value met
    iterations, planes : int, passes there and back over the rows, and the planes of the last bound
    """

    lower: float
    lowest: float
    iterations: int
    planes: int


def prove(problem: Convex, w: Array, wanted: float, refuting: float, limits: Limits) -> ProvedBound:
    """Goes on until the lower bound is ``wanted``, a value below ``refuting`` is met, or a limit is reached.

    Parameters
    ----------
    w : (d,) float64, where to begin
    """
    began = time.monotonic()
    planes = _BoundPlanes(problem)
    scores = problem.rows.scores(w)
    lowest = planes.take(w, scores)
    lower = -np.inf
    iterations = 0
    while True:
        minimiser, proved = planes.minimise()
        lower = max(lower, proved)
        seconds = time.monotonic() - began
        enough = iterations >= limits.iterations or (limits.seconds is not None and seconds >= limits.seconds)
        if lower >= wanted or lowest < refuting or enough:
            return ProvedBound(lower, lowest, iterations, planes.used)
        iterations += 1
        scores_there = problem.rows.scores(minimiser)
        from_w, from_scores = w, scores
        for place in PLACES:
            point = from_w + place * (minimiser - from_w)
            scores_here = from_scores + place * (scores_there - from_scores)
            value = planes.take(point, scores_here)
            if value < lowest:
                lowest, w, scores = value, point, scores_here


class _BoundPlanes:
    """The planes of one problem."""

    def __init__(self, problem: Convex) -> None:
        self._problem = problem
        fixed = problem.rows.combine(problem.fixed.slopes)
        self._slopes = fixed[None, :]
        self._offsets = np.array([problem.fixed.offset])
        self._idle = np.zeros(1, dtype=np.int64)
        self._gram = np.array([[fixed @ fixed]])
        self.used = 0

    def take(self, w: Array, scores: Array) -> float:
        """Adds the plane at w, and returns the objective there."""
        value, offset, slopes = self._problem.risk(scores)
        plane = self._problem.rows.combine(slopes)
        across = self._slopes @ plane
        self._gram = np.block([[self._gram, across[:, None]], [across[None, :], np.array([[plane @ plane]])]])
        self._slopes = np.vstack([self._slopes, plane])
        self._offsets = np.append(self._offsets, offset)
        self._idle = np.append(self._idle, 0)
        return 0.5 * float(w @ w) + self._problem.C * value

    def minimise(self) -> tuple[Array, float]:
        """The minimiser of ½‖w‖² + C·max over the planes, (d,), and the lower bound that is proved there."""
        alpha = _solve(self._gram, self._offsets, self._problem.C)
        step = alpha @ self._slopes
        lower = float(alpha @ self._offsets) - 0.5 * float(step @ step)
        in_use = alpha > 1e-9 * alpha.max(initial=0.0)
        self.used = int(in_use.sum())
        self._idle = np.where(in_use, 0, self._idle + 1)
        keep = np.flatnonzero(self._idle < IDLE)
        self._slopes, self._offsets, self._idle = self._slopes[keep], self._offsets[keep], self._idle[keep]
        self._gram = self._gram[np.ix_(keep, keep)]
        return -step, lower


def _solve(gram: Array, offsets: Array, C: float) -> Array:
    """α (t,) ≥ 0 of sum C, to rounding, with α·offsets − ½ α·gram·α nearly as large as can be."""
    import clarabel
    from scipy import sparse

    t = offsets.size
    unit = max(float(np.abs(offsets).max()), C * float(np.diag(gram).max()), 1e-300)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(gram) * (C / unit)),
        -offsets / unit,
        sparse.csc_matrix(np.vstack([np.ones((1, t)), -np.eye(t)])),
        np.append(1.0, np.zeros(t)),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(t)],
        settings,
    )
    share = np.nan_to_num(np.asarray(solver.solve().x), nan=0.0, posinf=0.0, neginf=0.0)
    share = np.maximum(share, 0.0)
    total = float(share.sum())
    return C * (share / total if total > 0.0 else np.full(t, 1.0 / t))
