"""Interface of a solver to its objective: functions r(Xw) of the scores s = Xw.

If the scores at two points are known, so are those of every point on their line. A solver adds and scales score
vectors, and a trial costs one evaluation of r and no pass over X.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: (n_scores,) float64: scores themselves, their changes along a direction, or slopes.
Vector: TypeAlias = NDArray[np.float64]
#: Entries of a vector processed while in the cache.
_BLOCK = 1 << 15


def move(x: Vector, t: float, y: Vector) -> None:
    """x += t·y"""
    for start in range(0, x.size, _BLOCK):  # avoids a full vector t·y
        block = slice(start, start + _BLOCK)
        x[block] += t * y[block]


def add_multiple(x: Vector, t: float, y: Vector, out: Vector) -> None:
    """out = x + t·y; ``out`` is not x."""
    np.multiply(y, t, out=out)
    out += x


class Tangent(NamedTuple):
    """Value of r at scores s, and the offset of the tangent there; the slopes c are kept apart.

    Attributes
    ----------
    value : float
        r(s).
    offset : float, optional
        r(s) − c·s, the value at 0 of the linear function that touches r at s; None if only that difference gives it.
    """

    value: float
    offset: float | None = None


class Majoriser(NamedTuple):
    """Function that touches r at scores s from above: r(s') ≤ h(s') − c·s' for every s', with equality at s and convex
    h.

    Attributes
    ----------
    value, convex_value : float
        r(s) and h(s).
    slopes : Vector, optional
        The slopes c; None: 0.
    held : NDArray[int64], optional
        Rows that select h (``ScoreFunction.hold``); None if there is only one h.
    """

    value: float
    convex_value: float
    slopes: Vector | None = None
    held: NDArray[np.int64] | None = None


class Evaluated(NamedTuple):
    """A point with J(w) = λ/2 ‖w‖² + C·r(Xw) and its gradient.

    Attributes
    ----------
    w : NDArray[np.float64]
        (dimension,) float64.
    scores, slopes : Vector
        Freshly computed Xw and c, until overwritten.
    objective : float
        J.
    gradient : NDArray[np.float64]
        (dimension,) float64, ∇J.
    """

    w: NDArray[np.float64]
    scores: Vector
    slopes: Vector
    objective: float
    gradient: NDArray[np.float64]

    @property
    def norm(self) -> float:
        """‖∇J‖∞"""
        return float(np.abs(self.gradient).max(initial=0.0))


class ScoreFunction(Protocol):
    """A function of w through its scores only: r(Xw). By default it is convex and its own majoriser.

    Any method raises FloatingPointError if a number exceeds float64.
    """

    @property
    def n_scores(self) -> int:
        """Number of scores."""

    @property
    def lower_bound(self) -> float:
        """Lower bound of r; −inf if unknown."""

    @abstractmethod
    def scores(self, w: NDArray[np.float64], out: Vector | None = None) -> Vector:
        """Xw for w (dimension,) float64, written into ``out`` if given. One pass over X."""

    @abstractmethod
    def tangent(self, scores: Vector, slopes: Vector) -> Tangent:
        """Evaluates r at these scores; overwrites ``slopes`` with c = ∂r/∂s or a subgradient."""

    def slopes(self, scores: Vector, out: Vector) -> None:
        """Writes c into ``out``; may cost less than ``tangent``, as no value is needed."""
        self.tangent(scores, out)

    @abstractmethod
    def combine(self, slopes: Vector) -> NDArray[np.float64]:
        """Xᵀc: (dimension,) float64. One pass over the rows with a slope."""

    def memo(self, slopes: Vector) -> NDArray[np.float64] | None:
        """Data for moving the plane of these slopes with the function (``Solver.move``); None if not needed."""
        return None

    @property
    def convex(self) -> ScoreFunction:
        """Convex part h of the majorisers, with the rows held last (``hold``)."""
        return self

    def majoriser(self, scores: Vector) -> Majoriser:
        """Majoriser that touches r at these scores."""
        value = self.tangent(scores, np.empty(self.n_scores)).value
        return Majoriser(value, value)

    def hold(self, held: NDArray[np.int64] | None) -> Callable[[NDArray[np.float64]], NDArray[np.float64]] | None:
        """Sets ``convex`` to the h of a majoriser. Returns a function from a plane's ``memo`` to its change,
        (dimension,); None if planes do not change."""
        return None
