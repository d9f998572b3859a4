"""Interface of a solver to its objective: functions r(Xw) of the scores s = Xw, and vectors of scores as handles.

If the scores at two points are known, so are those of every point on their line. A solver adds and scales score
vectors, and a trial costs one evaluation of r and no pass over X. It never reads the entries of a vector. A vector may
thus be an array in this process (``ArrayVectors``) or lie in parts on other machines.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

#: A vector with one entry a score: scores themselves, their changes along a direction, or slopes.
V = TypeVar("V")
#: Entries of a vector processed while in the cache.
_BLOCK = 1 << 15


class ScoreVectors(Protocol[V]):
    """Operations on score vectors. Results overwrite ``out``, which may be an operand, except ``x`` of ``add``."""

    def empty(self) -> V:
        """A vector of any content."""

    def add(self, x: V, t: float, y: V, out: V) -> None:
        """out = x + t·y"""

    def move(self, x: V, t: float, y: V) -> None:
        """x += t·y"""

    def subtract(self, x: V, y: V, out: V) -> None:
        """out = x − y"""

    def scale(self, t: float, x: V, out: V) -> None:
        """out = t·x"""

    def absolute(self, x: V, out: V) -> None:
        """out = |x|, entry by entry"""

    def dot(self, x: V, y: V) -> float:
        """x·y"""


class ArrayVectors:
    """Score vectors that are arrays, (size,) float64, in this process."""

    def __init__(self, size: int) -> None:
        self._size = size

    def empty(self) -> NDArray[np.float64]:
        return np.empty(self._size)

    def add(self, x: NDArray[np.float64], t: float, y: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        np.multiply(y, t, out=out)
        out += x

    def move(self, x: NDArray[np.float64], t: float, y: NDArray[np.float64]) -> None:
        for start in range(0, self._size, _BLOCK):  # avoids a full vector t·y
            block = slice(start, start + _BLOCK)
            x[block] += t * y[block]

    def subtract(self, x: NDArray[np.float64], y: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        np.subtract(x, y, out=out)

    def scale(self, t: float, x: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        np.multiply(x, t, out=out)

    def absolute(self, x: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        np.abs(x, out=out)

    def dot(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
        return float(x.dot(y))


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


class Majoriser(NamedTuple, Generic[V]):
    """Function that touches r at scores s from above: r(s') ≤ h(s') − c·s' for every s', with equality at s and convex
    h.

    Attributes
    ----------
    value, convex_value : float
        r(s) and h(s).
    slopes : V, optional
        The slopes c; None: 0.
    held : NDArray[int64], optional
        Rows that select h (``ScoreFunction.hold``); None if there is only one h.
    """

    value: float
    convex_value: float
    slopes: V | None = None
    held: NDArray[np.int64] | None = None


class Evaluated(NamedTuple, Generic[V]):
    """A point with J(w) = λ/2 ‖w‖² + C·r(Xw) and its gradient.

    Attributes
    ----------
    w : NDArray[np.float64]
        (dimension,) float64.
    scores, slopes : V
        Freshly computed Xw and c, until overwritten.
    objective : float
        J.
    gradient : NDArray[np.float64]
        (dimension,) float64, ∇J.
    """

    w: NDArray[np.float64]
    scores: V
    slopes: V
    objective: float
    gradient: NDArray[np.float64]

    @property
    def norm(self) -> float:
        """‖∇J‖∞"""
        return float(np.abs(self.gradient).max(initial=0.0))


class ScoreFunction(Protocol[V]):
    """A function of w through its scores only: r(Xw). By default it is convex and its own majoriser.

    Any method raises FloatingPointError if a number exceeds float64.
    """

    @property
    def n_scores(self) -> int:
        """Number of scores."""

    @property
    def vectors(self) -> ScoreVectors[V]:
        """Factory and operations of vectors of this many scores."""

    @property
    def lower_bound(self) -> float:
        """Lower bound of r; −inf if unknown."""

    @abstractmethod
    def scores(self, w: NDArray[np.float64], out: V | None = None) -> V:
        """Xw for w (dimension,) float64, written into ``out`` if given. One pass over X."""

    @abstractmethod
    def tangent(self, scores: V, slopes: V) -> Tangent:
        """Evaluates r at these scores; overwrites ``slopes`` with c = ∂r/∂s or a subgradient."""

    def slopes(self, scores: V, out: V) -> None:
        """Writes c into ``out``; may cost less than ``tangent``, as no value is needed."""
        self.tangent(scores, out)

    @abstractmethod
    def combine(self, slopes: V) -> NDArray[np.float64]:
        """Xᵀc: (dimension,) float64. One pass over the rows with a slope."""

    def memo(self, slopes: V) -> NDArray[np.float64] | None:
        """Data for moving the plane of these slopes with the function (``Solver.move``); None if not needed."""
        return None

    @property
    def convex(self) -> ScoreFunction[V]:
        """Convex part h of the majorisers, as last held."""
        return self

    def majoriser(self, scores: V) -> Majoriser[V]:
        """Majoriser that touches r at these scores."""
        value = self.tangent(scores, self.vectors.empty()).value
        return Majoriser(value, value)

    def hold(self, held: NDArray[np.int64] | None) -> Callable[[NDArray[np.float64]], NDArray[np.float64]] | None:
        """Sets ``convex`` to the h of a majoriser. Returns a function from a plane's ``memo`` to its change,
        (dimension,); None if planes do not change."""
        return None
