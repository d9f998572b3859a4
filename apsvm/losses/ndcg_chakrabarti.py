"""NDCG with the discount of Chakrabarti, Khanna, Sawant and Bhattacharyya (2008): D(1) = D(2) = 1, D(p) = 1/log2 p.

    Δ = 1 − (1/Z) Σ_k D(k + n_k),      Z = Σ_{k≤P} D(k)

The discount does not fall from the first position to the second and is not convex there. The best rank of each negative
on its own would therefore be wrong. The oracle ``two-runs`` serves this loss.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.graded import GradedLoss
from apsvm.losses.ndcg import log_discount


class ChakrabartiNDCGLoss(GradedLoss):
    """One minus NDCG; the first two positions count alike."""

    name = "ndcg-chakrabarti"

    def discount(self, n: int) -> NDArray[np.float64]:
        """D at the positions 1..n."""
        discount = np.ones(n)
        discount[1:] = log_discount(n - 1)
        return discount

    def ideal(self, n_pos: int) -> float:
        return float(self.discount(n_pos).sum())

    def of_ranking(self, negatives_above: NDArray[np.int64], n_neg: int) -> float:
        n_pos = negatives_above.size
        discount = self.discount(n_pos + n_neg)
        return float(1.0 - discount[np.arange(n_pos) + negatives_above].sum() / self.ideal(n_pos))
