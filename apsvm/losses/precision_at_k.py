"""P@k over rankings: Δ = (min(P, k) − a)/k, a the positives in the first k positions.

That is P@k(R*) − P@k(R), and 1 − P@k where P ≥ k. For P@k over labellings (Joachims 2005) see ``set-p@k``; this one
bounds 1 − P@k for every k. Its discount, 1 up to k and then 0, is not convex: the oracle ``exchange`` serves it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import LossOverRankings
from apsvm.losses.ndcg_at_k import check_cutoff


class PrecisionAtKLoss(LossOverRankings):
    """Shortfall of precision at k against the best ranking. Raises LossError unless k ≥ 1."""

    parameter = int
    starts_from = "ap"

    def __init__(self, k: int = 10) -> None:
        self.k = check_cutoff("p@k", k)
        self.name = f"p@{k}"
        self.metric = f"P@{k}"

    def of_ranking(self, negatives_above: NDArray[np.int64], n_neg: int) -> float:
        n_pos = negatives_above.size
        result = int((np.arange(n_pos) + negatives_above < self.k).sum())
        return (min(n_pos, self.k) - result) / self.k
