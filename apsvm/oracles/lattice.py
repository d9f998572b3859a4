"""NDCG@k, exactly: a dynamic programme over the first k places. O(n log n + k²), n = P + N.

F(a, b) is the best value of the first a + b places with the a highest positives and the b highest negatives, filled
place by place. At a + b = k the rest follows in the order of the scores. Differences against that order are summed, to
avoid cancellation. Once the best (a, b) is known, the ranks inside the first k are a problem of the two-array family.
"""

from __future__ import annotations

from typing import ClassVar

from apsvm.losses.ndcg_at_k import NDCGAtKLoss
from apsvm.oracles.measures import Measure, MeasureOracle


class Lattice(MeasureOracle[NDCGAtKLoss]):
    """Paths over (positives, negatives) in the first k places."""

    name: ClassVar[str] = "lattice"
    serves = (NDCGAtKLoss,)
    why_not = "it is made for NDCG@k"

    def measure(self, loss: NDCGAtKLoss, n: int) -> Measure:
        return Measure("ndcg@k", float(loss.k), loss.discount(n))
