"""Starting points for training on bags; they decide which local optimum is found.

Annealing replaces each bag by the mean of its ⌈q·size⌉ best instances under the current w, for q = 1, ½, ¼, … until
every bag is one instance. Each q is an ordinary convex training with one row for each bag, started at the last w. It
runs with the loss itself and with the 0-1 loss, which finds the right instances in some scenes where the loss does not.
The lower objective of the two is kept.

w = 0 is not a start, because all instances are equal there. A ranking loss would have to put the first instance of a
positive bag above the best of every negative one, and usually stays at w = 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.losses import make_loss
from apsvm.losses.base import Loss
from apsvm.oracles import make_oracle
from apsvm.solvers.cutting_plane import CuttingPlaneSolution
from apsvm.solvers.state import State
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.default_c import default_C
from apsvm.trainers.structured_svm.objective import risk_of
from apsvm.trainers.structured_svm.settings import StructuredSettings, random_starts
from apsvm.trainers.structured_svm.stage import Stage, StageReport

#: Smallest requested gap: only the order of a bag's instances matters.
EPSILON = 1e-2


class StartsOfBags:
    """Starting points by ``settings.start``, and the solution for the previous C.

    Parameters
    ----------
    data : rows in bags
    start : (dimension,) float64, replaces ``settings.start``; only its order of a bag's rows counts, not its length
    is_rough : the first C begins at the end of the annealing with the loss itself, later ones only at the previous
        solution
    """

    def __init__(
        self,
        data: TrainingSet,
        loss: Loss,
        settings: StructuredSettings,
        watch: Watch,
        start: NDArray[np.float64] | None,
        *,
        is_rough: bool,
    ) -> None:
        self._data = replace(data, rows=data.rows.for_many_passes())
        self._loss, self._settings, self._watch = loss, settings, watch
        self._start, self._is_rough = start, is_rough

    def __call__(
        self, C: float, before: NDArray[np.float64] | None, hinge: StageReport | None
    ) -> dict[str, NDArray[np.float64]]:
        """Starting points for C by log name; ``before``: the solution for the previous C; ``hinge``: result of the
        descent by the hinge, from which the ramp continues."""
        if hinge is not None:
            return {"from the hinge": hinge.solution.w}
        trainings, start = _OneRowABag(self._data, self._loss, self._settings, C, self._watch), self._start
        if self._is_rough:
            start = before if before is not None else trainings.annealed() if start is None else start
        points = self._requested(trainings) if start is None else [start]
        if start is not None and start.any():
            # First trains on its best instances: rounds from a point of another scale would gain much at first and
            # leave them.
            points.append(trainings.at_best_share(0.0, start).w)
        if before is not None and not self._is_rough:
            points.append(before)
        return {f"from start {number}": point for number, point in enumerate(points, 1)}

    def _requested(self, trainings: _OneRowABag) -> list[NDArray[np.float64]]:
        """Starting points named by ``settings.start``."""
        settings, offsets = self._settings, self._data.bags
        assert offsets is not None
        count = random_starts(settings.start)
        if count is not None:
            rng, sizes = np.random.default_rng(settings.seed), np.diff(offsets)
            return [trainings.at(offsets[:-1] + rng.integers(sizes), np.ones_like(sizes)).w for _ in range(count)]
        if settings.start == "bag-means":
            return [trainings.at_best_share(1.0, None).w]
        points = [trainings.annealed()]
        if self._loss.over_rankings:
            points.append(trainings.by_zero_one())
        return points


class _OneRowABag:
    """Convex training with one row a bag."""

    def __init__(self, data: TrainingSet, loss: Loss, settings: StructuredSettings, C: float, watch: Watch) -> None:
        assert data.bags is not None
        # A loss of the top would use only a few bags.
        self._loss = loss if loss.starts_from is None else make_loss(loss.starts_from)
        self._data = data
        self._offsets = data.bags
        self._settings = replace(settings, epsilon=max(settings.epsilon, EPSILON))
        self._C = C
        # A dozen short trainings would fill the display.
        self._watch = replace(watch, progress=lambda progress: None)

    def annealed(self) -> NDArray[np.float64]:
        """End of the annealing, (dimension,) float64; see the module."""
        sizes = np.diff(self._offsets)
        share, w = 1.0, None
        while True:
            solution = self.at_best_share(share, w)
            w = solution.w
            if solution.state is not State.CONVERGED or share * sizes.max() <= 1.0:
                return w
            share *= 0.5

    def by_zero_one(self) -> NDArray[np.float64]:
        """Anneals with the 0-1 loss, then trains the loss itself on the selected instances."""
        data, loss = self._data, make_loss("zero-one")
        # The 0-1 loss uses the sign of a score.
        with_bias = replace(data, rows=data.rows.with_bias(1.0))
        factor = self._C / default_C(data, self._loss)
        annealing = _OneRowABag(with_bias, loss, self._settings, factor * default_C(with_bias, loss), self._watch)
        return self.at_best_share(0.0, annealing.annealed()[: data.rows.dimension]).w

    def at_best_share(self, share: float, w: NDArray[np.float64] | None) -> CuttingPlaneSolution:
        """Trains on the mean of each bag's ⌈share·size⌉ best instances at w; of all instances if w is None."""
        if w is None:
            return self.at(np.arange(len(self._data.rows)), np.diff(self._offsets))
        counts = np.maximum(np.ceil(share * np.diff(self._offsets)), 1.0).astype(np.int64)
        best = np.empty(int(counts.sum()), dtype=np.int64)
        rows = self._data.rows
        _kernels.top_of_bags(rows.scores(w), self._offsets, counts, best, rows.threads)
        return self.at(best, counts, w)

    def at(
        self, which: NDArray[np.int64], counts: NDArray[np.int64], w: NDArray[np.float64] | None = None
    ) -> CuttingPlaneSolution:
        """Trains from w on the means of the rows ``which``, this many of each bag."""
        means = self._data.rows.means(which, np.concatenate([[0], np.cumsum(counts)]))
        oracle = make_oracle("auto", self._loss)
        risk = risk_of(replace(self._data, rows=means, bags=None), self._loss, oracle)
        stage = Stage(risk, means.dimension, self._settings, self._watch, oracle=oracle.name, start=w)
        return stage.run("anneal", self._C).solution
