"""A cutter that survives lost workers: planes, QP and bounds are the solver's and on the driver, so that all there is
to do again is the iteration, from the best point, whose scores are computed afresh."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from apsvm.dask.crew import ShardLostError
from apsvm.dask.vectors import HandleVectors
from apsvm.solvers.line_search import Cut, MovableCutter

T = TypeVar("T")


def repeated(vectors: HandleVectors, attempt: Callable[[], T], on_loss: Callable[[], None] = lambda: None) -> T:
    """What ``attempt`` returns; again, from the beginning, whenever a shard was lost, once it is back."""
    while True:
        try:
            return attempt()
        except ShardLostError:
            vectors.forget_all()
            vectors.crew.recover()
            on_loss()


class Recovering:
    """Takes the planes that ``cutter`` takes; see the module. ``remark`` is told of each loss."""

    def __init__(self, cutter: MovableCutter, vectors: HandleVectors, remark: Callable[[str], None]) -> None:
        self._cutter, self._vectors, self._remark = cutter, vectors, remark
        self._best: NDArray[np.float64] | None = None

    @property
    def lower_bound(self) -> float:
        return self._cutter.lower_bound

    @property
    def levels(self) -> bool:
        return self._cutter.levels

    def __call__(self, point: NDArray[np.float64], C: float, gap: float, centre: NDArray[np.float64]) -> Cut:
        cut = self._guarded(lambda: self._cutter(point, C, gap, centre))
        self._best = cut.point
        return cut

    def restart(self) -> None:
        self._best = None
        self._cutter.restart()

    def verified_risk(self, point: NDArray[np.float64]) -> float:
        return self._guarded(lambda: self._cutter.verified_risk(point))

    def _guarded(self, attempt: Callable[[], T]) -> T:
        """What ``attempt`` returns, from the best point again after each loss."""
        best, reach, is_lost = self._best, self._cutter.reach, False

        def from_best() -> T:
            if is_lost:
                if best is None:
                    self._cutter.restart()  # it may know a point by now, whose scores are lost
                else:
                    self._cutter.stand_at(best, reach)
            return attempt()

        def on_loss() -> None:
            nonlocal is_lost
            is_lost = True
            self._remark(f"a worker was lost: its parts were read again ({self._vectors.crew.losses} so far)")

        return repeated(self._vectors, from_best, on_loss)
