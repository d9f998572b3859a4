"""The NDCG loss: one minus normalised discounted cumulative gain, u_k = 1/Z, D(p) = 1/log2(1 + p).

    Δ = 1 − (1/Z) Σ_k D(k + n_k),      Z = Σ_{k≤P} D(k)

(Järvelin and Kekäläinen 2002, with the discount usual since.) Not unimodal: u_k [D(k+j−1) − D(k+j)] falls in k. The
greedy oracle is Chakrabarti et al.'s (2008); their own discount, D(1) = D(2) = 1, is not convex and needs another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import RankingLoss


def log_discount(n: int) -> NDArray[np.float64]:
    """1/log2(1 + p) for p = 1..n."""
    return 1.0 / np.log2(np.arange(2, n + 2))


class NDCG(RankingLoss):
    """One minus NDCG."""

    name = "ndcg"

    def weights(self, n_pos: int) -> NDArray[np.float64]:
        return np.full(n_pos, 1.0 / log_discount(n_pos).sum())

    def discount(self, n: int) -> NDArray[np.float64]:
        return log_discount(n)
