"""NDCG@k: one minus the discounted gain of the first k positions over that of the best ranking.

    Δ = 1 − (1/Z) Σ_{k' : k'+n_k' ≤ k} D(k' + n_k'),      D(p) = 1/log2(1 + p),   Z = Σ_{p ≤ min(P, k)} D(p)

The discount, 0 from position k + 1 on, is not convex: the loss is outside the two-array family, and the oracle
``lattice`` serves it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import LossError
from apsvm.losses.graded import GradedLoss
from apsvm.losses.ndcg import log_discount, log_discounts_sum


def check_cutoff(form: str, k: int) -> int:
    """``k``, or LossError unless 1 ≤ k ≤ 2^53."""
    if not 1 <= k <= 2**53:
        raise LossError(f"loss {form} needs a whole number k ≥ 1, found {k}")
    return k


class NDCGAtKLoss(GradedLoss):
    """One minus NDCG@k. Raises LossError unless k ≥ 1."""

    parameter = int
    starts_from = "ndcg"

    def __init__(self, k: int = 10) -> None:
        self.k = check_cutoff("ndcg@k", k)
        self.name = f"ndcg@{k}"
        self.metric = f"nDCG(exp)@{k}"

    def discount(self, n: int) -> NDArray[np.float64]:
        """D at the positions 1..min(n, k)."""
        return log_discount(min(n, self.k))

    def ideal(self, n_pos: int) -> float:
        return log_discounts_sum(min(n_pos, self.k))

    def of_ranking(self, negatives_above: NDArray[np.int64], n_neg: int) -> float:
        n_pos = negatives_above.size
        discount = self.discount(n_pos + n_neg)
        places = np.arange(n_pos) + negatives_above
        return float(1.0 - discount[places[places < self.k]].sum() / self.ideal(n_pos))
