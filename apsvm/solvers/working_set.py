"""Planes of a cutting-plane solver, with Gram matrix and dual variables; idle planes are dropped."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.solvers.certificate import feasible
from apsvm.solvers.qp.base import Problem
from apsvm.solvers.state import not_finite

#: A plane whose α is zero for this many solves is dropped. Proved bounds stay valid.
IDLE_LIMIT = 50


class WorkingSet:
    """Planes a_t·w + b_t ≤ risk(w) (soft) or ≤ 0 (hard), with dual variables α.

    Parameters
    ----------
    dimension : length of w
    lower_bound : L ≤ risk(w) for every w. The plane (0, L) always exists, and its α is the rest of C. The QP is that of
        risk − L, with offsets b_t − L, and C·L is added to its objective

    Attributes
    ----------
    C : the cap on the sum of the soft planes' α; it may change between solves
    centre : (dimension,) float64, c of ½‖w‖² − c·w, whose minimum is −½‖c‖²; see ``recentre``
    """

    C: float

    def __init__(self, dimension: int, lower_bound: float = 0.0) -> None:
        self._size, room = 0, 8
        self._lower_bound = lower_bound
        self.centre = np.zeros(dimension)
        self._from_centre = np.empty(room)
        self._planes = np.empty((room, dimension))
        self._gram = np.empty((room, room))
        self._offsets = np.empty(room)
        self._soft = np.ones(room, dtype=bool)
        self._solves = 0
        self._used = np.zeros(room, dtype=np.int64)  # number of the solve in which a plane was added or last had an α
        self._names = np.arange(room)
        self._next_name = 0
        self._memos: list[NDArray[np.float64] | None] = []
        self.alpha = np.zeros(0)

    def __len__(self) -> int:
        return self._size

    def recentre(self, point: NDArray[np.float64]) -> None:
        """Sets the centre and keeps the planes; their offsets become a_t·c + b_t."""
        self.centre = point
        self._from_centre[: self._size] = self.offsets_from(point)

    def offsets_from(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """(t,) float64, a_t·point + b_t (minus the lower bound for soft planes)."""
        return self._offsets[: self._size] + self._planes[: self._size] @ point

    def combine(self, alpha: NDArray[np.float64]) -> NDArray[np.float64]:
        """Σ α_t a_t, (dimension,) float64."""
        return alpha @ self._planes[: self._size]

    @property
    def dual_of_nothing(self) -> float:
        """The dual objective at α = 0."""
        return self.C * self._lower_bound - 0.5 * float(self.centre.dot(self.centre))

    def add(
        self, plane: NDArray[np.float64], offset: float, *, soft: bool, memo: NDArray[np.float64] | None = None
    ) -> None:
        """Adds a copy of a plane (dimension,) float64 with α = 0. Raises FloatingPointError, without adding it, if its
        products with the others are not finite. ``memo``: passed to ``move``."""
        if self._size == self._offsets.size:
            self._grow()
        t = self._size
        self._planes[t] = plane
        row = self._planes[: t + 1] @ plane
        if soft:
            offset -= self._lower_bound
        if not (math.isfinite(offset) and _kernels.all_within(row, sys.float_info.max)):
            raise not_finite("cutting plane")
        self._gram[t, : t + 1] = row
        self._gram[: t + 1, t] = row
        self._offsets[t] = offset
        self._from_centre[t] = offset + float(plane.dot(self.centre))
        self._soft[t] = soft
        self._used[t] = self._solves
        self._names[t] = self._next_name
        self._next_name += 1
        self._size = t + 1
        self._memos.append(memo)
        before, self.alpha = self.alpha, np.zeros(t + 1)
        self.alpha[:t] = before

    def problem(self) -> Problem:
        """The QP over the current planes; its arrays are views, valid until the next change."""
        t = self._size
        return Problem(self._gram[:t, :t], self._from_centre[:t], self._soft[:t], self.C, self._names[:t])

    def accept(self, alpha: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Takes a solution α and returns w = c − Σ α_t a_t and the dual objective at α (made feasible)."""
        t = self._size
        self.alpha = feasible(alpha, self._soft[:t], self.C)
        w = self.centre - self.combine(self.alpha)
        dual = float(self.alpha.dot(self._offsets[:t])) - 0.5 * float(w.dot(w))
        return w, dual + self.C * self._lower_bound

    def use(self, planes: NDArray[np.bool_]) -> None:
        """Marks these planes, (t,) bool, as used, even without an α."""
        self._used[: self._size][planes] = self._solves

    def forget_idle(self) -> None:
        """Drops planes whose α was zero, up to rounding, for ``IDLE_LIMIT`` solves in a row."""
        t = self._size
        # Interior-point solutions have no exact zeros.
        support = self.alpha > 1e-9 * self.alpha.max(initial=0.0)
        self._solves += 1
        self._used[:t][support] = self._solves
        if self._solves >= IDLE_LIMIT:
            keep = self._used[:t] > self._solves - IDLE_LIMIT
            if not keep.all():
                self._keep(np.flatnonzero(keep))

    def move(self, change: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> None:
        """Adds ``change`` of its memo, (dimension,), to each plane with a memo and an α, and drops the others. Offsets
        stay. For planes Σ c_i x_i whose x_i have changed."""
        if not self._size:
            return
        self._keep(np.flatnonzero([memo is not None for memo in self._memos] & (self.alpha > 0.0)))
        t = self._size
        for at, memo in enumerate(self._memos):
            assert memo is not None
            self._planes[at] += change(memo)
        self._names[:t] = np.arange(self._next_name, self._next_name + t)
        self._next_name += t
        self._gram[:t, :t] = self._planes[:t] @ self._planes[:t].T
        self._from_centre[:t] = self.offsets_from(self.centre)

    def _keep(self, keep: NDArray[np.int64]) -> None:
        """Keeps the planes ``keep``, ascending, and drops the others."""
        n = keep.size
        self._planes[:n] = self._planes[keep]
        # Copies runs of rows between dropped planes: indexing entry by entry takes five times as long.
        rows, at = self._gram[keep, : self._size], 0
        for run in np.split(keep, np.flatnonzero(np.diff(keep) > 1) + 1) if n > 0 else ():
            self._gram[:n, at : at + run.size] = rows[:, run[0] : run[-1] + 1]
            at += run.size
        for kept in (self._offsets, self._from_centre, self._soft, self._used, self._names):
            kept[:n] = kept[keep]
        self._memos = [self._memos[at] for at in keep.tolist()]
        self.alpha = self.alpha[keep]
        self._size = n

    def _grow(self) -> None:
        old, new = self._size, max(8, 2 * self._size)
        planes, gram = np.empty((new, self._planes.shape[1])), np.empty((new, new))
        planes[:old] = self._planes
        gram[:old, :old] = self._gram
        self._planes, self._gram = planes, gram
        self._offsets, self._from_centre, self._soft, self._used, self._names = (
            np.concatenate([kept[:old], np.empty(new - old, dtype=kept.dtype)])
            for kept in (self._offsets, self._from_centre, self._soft, self._used, self._names)
        )
