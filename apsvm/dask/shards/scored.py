"""The scores that a model gives the rows of a shard, and counts of them; no score vector is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.dask.messages import narrow
from apsvm.dask.shards.rows import ShardRows
from apsvm.models.base import ScoreError

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray
    from apsvm.models.base import Ranker


class ScoredShard(ShardRows):
    """See the module. The rows are those of the parts, all of them."""

    def score_positives(self, model: Ranker) -> NDArray[np.float64] | None:
        """(p,) the scores of its positives; None where one of any row is not finite."""
        try:
            return self._scored(model)[self._target.relevant]
        except ScoreError:
            return None

    def count_negatives(self, model: Ranker, thresholds: NDArray[np.float64]) -> tuple[AnyArray, AnyArray]:
        """``counted``, of the scores of its negatives."""
        return counted(self._scored(model)[~self._target.relevant], thresholds)

    def highest_below(self, model: Ranker, score: float) -> float:
        """The highest score of its rows below this one; −∞ where there is none."""
        scores = self._scored(model)
        return float(np.max(scores, initial=-np.inf, where=scores < score))

    def _scored(self, model: Ranker) -> NDArray[np.float64]:
        return model.score(self._X, threads=self._threads)


def counted(scores: NDArray[np.float64], thresholds: NDArray[np.float64]) -> tuple[AnyArray, AnyArray]:
    """How many of the scores (n,) stand at each of the ``thresholds`` (k ≥ 1,), ascending, or above it and below the
    next, after those below all of them, (k + 1,); and how many equal each, (k,), counted by the last of equal ones."""
    right = thresholds.size - _kernels.count_below(-thresholds, -scores)
    last = right - 1  # the highest threshold that is not above; of a score below all of them −1, which equals none
    equal = np.bincount(last[thresholds[last] == scores], minlength=thresholds.size)
    return narrow(np.bincount(right, minlength=thresholds.size + 1)), narrow(equal)
