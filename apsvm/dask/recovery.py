"""A cutter that survives lost workers: planes, QP and bounds are the solver's and on the driver, so that all there is
to do again is the iteration. Score vectors are computed anew from the best point."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from apsvm.dask.crew import ShardLostError
from apsvm.dask.vectors import HandleVectors
from apsvm.solvers.line_search import AfterLineSearch, Cut, Cutter
from apsvm.solvers.saving import Saved, array

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
    """Takes the planes that ``cutter`` takes; see the module.

    ``remark`` is told of each loss.
    """

    def __init__(self, cutter: Cutter, vectors: HandleVectors, remark: Callable[[str], None]) -> None:
        self._cutter, self._vectors, self._remark = cutter, vectors, remark
        self._best: NDArray[np.float64] | None = None
        self._lost = False

    @property
    def lower_bound(self) -> float:
        return self._cutter.lower_bound

    @property
    def levels(self) -> bool:
        return self._cutter.levels

    def __call__(self, point: NDArray[np.float64], C: float, gap: float, centre: NDArray[np.float64]) -> Cut:
        def attempt() -> Cut:
            self._stand_at_best(C, gap, centre)
            return self._cutter(point, C, gap, centre)

        cut = repeated(self._vectors, attempt, self._on_loss)
        self._best = cut.point
        return cut

    def restart(self) -> None:
        self._best = None
        self._cutter.restart()

    def verified_risk(self, point: NDArray[np.float64]) -> float:
        def attempt() -> float:
            self._stand_at_best(1.0, np.inf, np.zeros_like(point))
            return self._cutter.verified_risk(point)

        return repeated(self._vectors, attempt, self._on_loss)

    def state(self) -> Saved:
        """The best point: its scores are computed anew."""
        return {} if self._best is None else {"best": self._best}

    def restore(self, saved: Saved) -> None:
        self._best, self._lost = (array(saved["best"]), True) if "best" in saved else (None, False)

    def _on_loss(self) -> None:
        self._lost = True
        self._remark(f"a worker was lost: its parts were read again ({self._vectors.crew.losses} so far)")

    def _stand_at_best(self, C: float, gap: float, centre: NDArray[np.float64]) -> None:
        """The cutter knows the best point again."""
        if not self._lost:
            return
        reach = self._cutter.reach if isinstance(self._cutter, AfterLineSearch) else 1.0
        self._cutter.restart()
        if self._best is not None:
            self._cutter(self._best, C, gap, centre)
        if isinstance(self._cutter, AfterLineSearch):
            self._cutter.reach = reach
        self._lost = False
