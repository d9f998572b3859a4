"""The NDCG loss: one minus normalised discounted cumulative gain, u_k = 1/Z, D(p) = 1/log2(1 + p).

    Δ = 1 − (1/Z) Σ_k D(k + n_k),      Z = Σ_{k≤P} D(k)

(Järvelin and Kekäläinen 2002, with the discount usual since.) Not unimodal: u_k [D(k+j−1) − D(k+j)] falls in k. The
greedy oracle is Chakrabarti et al.'s (2008); their own discount, D(1) = D(2) = 1, is not convex and needs another.

With grades it is a weighted sum of such losses (``apsvm.losses.graded``), the gain 2^grade − 1 or the grade itself.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import LossError, RankingLoss
from apsvm.losses.graded import GAINS, GradedLoss


def log_discount(n: int) -> NDArray[np.float64]:
    """1/log2(1 + p) for p = 1..n."""
    return 1.0 / np.log2(np.arange(2, n + 2))


@lru_cache(maxsize=1 << 12)
def log_discounts_sum(n: int) -> float:
    """Sum of the discounts of the positions 1..n. Cached, since many short lists share few lengths."""
    return float(log_discount(n).sum())


class NDCGLoss(RankingLoss, GradedLoss):
    """One minus NDCG. ``gain`` of grades: "exponential" or "linear"; raises LossError on another."""

    parameter = str
    starts_from = None

    def __init__(self, gain: str = "exponential") -> None:
        if gain not in GAINS:
            raise LossError(f"loss ndcg(gain) needs one of {', '.join(GAINS)}, found {gain!r}")
        self.gain = gain
        self.name = "ndcg" if gain == "exponential" else f"ndcg({gain})"
        self.metric = "nDCG(exp)" if gain == "exponential" else "nDCG"

    def weights(self, n_pos: int) -> NDArray[np.float64]:
        return np.full(n_pos, 1.0 / self.ideal(n_pos))

    def discount(self, n: int) -> NDArray[np.float64]:
        return log_discount(n)

    def ideal(self, n_pos: int) -> float:
        return log_discounts_sum(n_pos)
