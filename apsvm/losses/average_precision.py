"""The AP loss: Δ = 1 − (1/P) Σ_k k/(k + n_k), that is u_k = k/P and D(p) = 1/p.

One minus the average precision of the ranking (Yue, Finley, Radlinski, Joachims 2007). Unimodal: the increment
u_k [D(k+j−1) − D(k+j)] = (1/P)·k/((k+j−1)(k+j)) grows with k while k ≤ j (Mohapatra et al. 2014, Proposition 1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import RankingLoss


class AveragePrecisionLoss(RankingLoss):
    """One minus average precision."""

    name = "ap"
    metric = "AP"
    starts_from = None
    unimodal = True

    def weights(self, n_pos: int) -> NDArray[np.float64]:
        return np.arange(1, n_pos + 1) / n_pos

    def discount(self, n: int) -> NDArray[np.float64]:
        return 1.0 / np.arange(1, n + 1)

    def of_ranking(self, negatives_above: NDArray[np.int64], n_neg: int) -> float:
        places = np.arange(1, negatives_above.size + 1) + negatives_above
        return float((negatives_above / places).sum() / places.size)
