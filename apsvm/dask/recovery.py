"""A cutter that survives lost workers, and drivers that die: planes, QP and bounds are the solver's and on the driver,
so that all there is to do again is the iteration.

Score vectors are never brought to the driver. Those of the best point are what line searches have added up since they
were last computed afresh, and so that a training which goes on in another driver comes to the same bits, the questions
of these searches are kept, in w, and asked again there. They stay few, since every ``FRESH_AFTER`` searches, and where
C or the centre changes, the scores are computed afresh. After a loss they are computed afresh from the best point too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from apsvm.dask.crew import ShardLostError
from apsvm.dask.vectors import HandleVectors
from apsvm.solvers.line_search import AfterLineSearch, Cut, Cutter
from apsvm.solvers.saving import Saved, array

T = TypeVar("T")

#: Line searches between two computations of the best point's scores: vectors of w's length that are kept.
FRESH_AFTER = 32


def repeated(vectors: HandleVectors, attempt: Callable[[], T], on_loss: Callable[[], None] = lambda: None) -> T:
    """What ``attempt`` returns; again, from the beginning, whenever a shard was lost, once it is back."""
    while True:
        try:
            return attempt()
        except ShardLostError:
            vectors.forget_all()
            vectors.crew.recover()
            on_loss()


class _History:
    """How a line search came to where it is: the point whose scores were computed afresh, how far the next search's
    first trial went then, and the points and gaps that searches were asked about since, for one C and centre."""

    def __init__(self, point: NDArray[np.float64], reach: float, C: float, centre: NDArray[np.float64]) -> None:
        self.point, self.reach, self.C, self.centre = point, reach, C, centre
        self.points: list[NDArray[np.float64]] = []
        self.gaps: list[float] = []

    def goes_on(self, C: float, centre: NDArray[np.float64]) -> bool:
        """Whether a search for this C and centre belongs to it."""
        return len(self.points) < FRESH_AFTER and C == self.C and np.array_equal(centre, self.centre)

    def ask_again(self, search: AfterLineSearch[Any]) -> NDArray[np.float64]:
        """Has the search come to where it was; the best point there."""
        search.restart()
        best = search(self.point, self.C, np.inf, self.centre).point
        search.reach = self.reach
        for point, gap in zip(self.points, self.gaps, strict=True):
            best = search(point, self.C, gap, self.centre).point
        return best

    def state(self) -> Saved:
        points = np.array(self.points).reshape(-1, self.point.size)
        numbers = {"reach": self.reach, "C": self.C}
        return {**numbers, "from": self.point, "centre": self.centre, "points": points, "gaps": np.array(self.gaps)}

    @classmethod
    def of_state(cls, saved: Saved) -> _History:
        history = cls(array(saved["from"]), float(saved["reach"]), float(saved["C"]), array(saved["centre"]))
        history.points, history.gaps = list(array(saved["points"])), array(saved["gaps"]).tolist()
        return history


class Recovering:
    """Takes the planes that ``cutter`` takes; see the module.

    Parameters
    ----------
    remark : told of each loss
    discount : called when a driver that goes on has asked again what the one before had asked: that was counted there
    """

    def __init__(
        self,
        cutter: Cutter,
        vectors: HandleVectors,
        remark: Callable[[str], None],
        discount: Callable[[], object] = lambda: None,
    ) -> None:
        self._cutter, self._vectors = cutter, vectors
        self._remark, self._discount = remark, discount
        #: The cutter, where what it was asked before decides over the next cut.
        self._search = cutter if isinstance(cutter, AfterLineSearch) else None
        self._best: NDArray[np.float64] | None = None
        self._history: _History | None = None
        self._lost = self._is_resumed = False

    @property
    def lower_bound(self) -> float:
        return self._cutter.lower_bound

    @property
    def levels(self) -> bool:
        return self._cutter.levels

    def __call__(self, point: NDArray[np.float64], C: float, gap: float, centre: NDArray[np.float64]) -> Cut:
        def attempt() -> Cut:
            self._stand_at_best(C, centre)
            if self._history is not None and not self._history.goes_on(C, centre):
                self._compute_afresh(C, centre)
            return self._cutter(point, C, gap, centre)

        cut = self._guarded(attempt)
        if self._search is not None and self._history is None:
            self._history = _History(cut.point, 1.0, C, centre)
        elif self._history is not None:
            self._history.points.append(point)
            self._history.gaps.append(gap)
        self._best = cut.point
        return cut

    def restart(self) -> None:
        self._forget()
        self._cutter.restart()

    def verified_risk(self, point: NDArray[np.float64]) -> float:
        def attempt() -> float:
            self._stand_at_best(1.0, np.zeros_like(point))
            return self._cutter.verified_risk(point)

        risk = self._guarded(attempt)
        if self._history is not None and self._best is not None and np.array_equal(point, self._best):
            self._begin_history(self._history.C, self._history.centre)
        return risk

    def state(self) -> Saved:
        """How the best point's scores come about."""
        if self._history is None or self._best is None:
            return {}
        return {"best": self._best, **self._history.state()}

    def restore(self, saved: Saved) -> None:
        self.restart()
        if "best" in saved:
            self._best, self._history, self._is_resumed = array(saved["best"]), _History.of_state(saved), True

    def _guarded(self, attempt: Callable[[], T]) -> T:
        try:
            return repeated(self._vectors, attempt, self._on_loss)
        except FloatingPointError:
            self.restart()  # as the cutter does itself in the midst of a search
            raise

    def _forget(self) -> None:
        self._best = self._history = None
        self._lost = self._is_resumed = False

    def _on_loss(self) -> None:
        self._lost = True
        self._remark(f"a worker was lost: its parts were read again ({self._vectors.crew.losses} so far)")

    def _stand_at_best(self, C: float, centre: NDArray[np.float64]) -> None:
        """The cutter knows the best point again."""
        search, history = self._search, self._history
        if search is not None and history is not None and self._is_resumed and not self._lost:
            # Where rows are cut into other shards sums are rounded otherwise, and the end may be another point.
            assert self._best is not None
            self._lost = not np.array_equal(history.ask_again(search), self._best)
            self._discount()
        self._is_resumed = False
        if self._lost and search is not None:
            reach = search.reach
            search.restart()
            if self._best is not None:
                search(self._best, C, np.inf, centre)
                search.reach = reach
                self._begin_history(C, centre)
        self._lost = False

    def _compute_afresh(self, C: float, centre: NDArray[np.float64]) -> None:
        assert self._best is not None
        self._cutter.verified_risk(self._best)
        self._begin_history(C, centre)

    def _begin_history(self, C: float, centre: NDArray[np.float64]) -> None:
        assert self._search is not None
        assert self._best is not None
        self._history = _History(self._best, self._search.reach, C, centre)
