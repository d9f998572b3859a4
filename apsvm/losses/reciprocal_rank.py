"""The reciprocal-rank loss (MRR over queries): Δ = 1 − 1/(1 + n_1), u_1 = 1 and the other u_k = 0, D(p) = 1/p.

Only the top positive counts. Not unimodal: the gain falls from k = 1 to k = 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import RankingLoss


class ReciprocalRankLoss(RankingLoss):
    """One minus the reciprocal of the first positive's position."""

    name = "mrr"
    metric = "RR"
    starts_from = "ap"

    def weights(self, n_pos: int) -> NDArray[np.float64]:
        weights = np.zeros(n_pos)
        weights[0] = 1.0
        return weights

    def discount(self, n: int) -> NDArray[np.float64]:
        return 1.0 / np.arange(1, n + 1)
