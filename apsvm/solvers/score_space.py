"""Interface of a solver to its objective: functions r(Xw) of the scores s = Xw, and vectors of scores as handles.

Between two points whose scores are known, the scores of every point are known: along a line a solver adds and scales
score vectors, and a trial costs one evaluation of r and no pass over X. It never looks into a vector, which may
therefore be an array in this process (``ArrayVectors``) or lie in parts on other machines.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

#: A vector with one entry a score: scores themselves, their changes along a direction, or slopes.
V = TypeVar("V")
#: Entries of a vector that are worked at while they are in the cache.
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
        for start in range(0, self._size, _BLOCK):  # so that t·y is never a whole vector
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
        r(s) − c·s, the value at 0 of the linear function that touches r at s; None where it is known
        no better than by that difference.
    """

    value: float
    offset: float | None = None


class Majoriser(NamedTuple, Generic[V]):
    """Function that touches r at scores s from above: r(s') ≤ h(s') − c·s' for every s', with equality at s; h is
    convex.

    Attributes
    ----------
    value, convex_value : float
        r(s) and h(s).
    slopes : V, optional
        The slopes c; None: 0.
    held : NDArray[int64], optional
        Which h it is (``ScoreFunction.hold``); None: there is one only.
    """

    value: float
    convex_value: float
    slopes: V | None = None
    held: NDArray[np.int64] | None = None


class Evaluated(NamedTuple, Generic[V]):
    """A point and what J(w) = λ/2 ‖w‖² + C·r(Xw) is there.

    Attributes
    ----------
    w : NDArray[np.float64]
        (dimension,) float64.
    scores, slopes : V
        Xw, computed afresh, and c there, until they are overwritten.
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
    """A function of w that sees w only through its scores: r(Xw). It is convex, and its own majoriser, unless it says
    otherwise.

    FloatingPointError, from any method, says that a number is beyond float64.
    """

    @property
    def n_scores(self) -> int:
        """Number of scores."""

    @property
    def vectors(self) -> ScoreVectors[V]:
        """Factory and operations of vectors of this many scores."""

    @property
    def lower_bound(self) -> float:
        """A number that r is nowhere below; −inf if none is known."""

    @abstractmethod
    def scores(self, w: NDArray[np.float64], out: V | None = None) -> V:
        """Xw, for w (dimension,) float64; in ``out`` if it is given. One pass over X."""

    @abstractmethod
    def tangent(self, scores: V, slopes: V) -> Tangent:
        """r at these scores; ``slopes`` becomes c = ∂r/∂s there, or a subgradient."""

    def slopes(self, scores: V, out: V) -> None:
        """``out`` becomes c; for callers that do not need the value, which may cost less."""
        self.tangent(scores, out)

    @abstractmethod
    def combine(self, slopes: V) -> NDArray[np.float64]:
        """Xᵀc: (dimension,) float64. One pass over the rows with a slope."""

    def memo(self, slopes: V) -> NDArray[np.float64] | None:
        """Data needed to move the plane of these slopes with the function (``Solver.move``); None if not needed."""
        return None

    @property
    def convex(self) -> ScoreFunction[V]:
        """h of its majorisers, the one that was held last."""
        return self

    def majoriser(self, scores: V) -> Majoriser[V]:
        """The one that touches r at these scores."""
        value = self.tangent(scores, self.vectors.empty()).value
        return Majoriser(value, value)

    def hold(self, held: NDArray[np.int64] | None) -> Callable[[NDArray[np.float64]], NDArray[np.float64]] | None:
        """Makes ``convex`` the h of a majoriser. Returns by how much that changes a plane, (dimension,), given its
        ``memo``; None where all planes stay."""
        return None
