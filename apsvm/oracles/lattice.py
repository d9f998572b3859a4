"""NDCG@k, exactly: a dynamic programme over who stands in the first k places. O(n log n + k²), n = P + N.

F(a, b): the best of the first a + b places holding the a highest positives and the b highest negatives, filled place by
place. At a + b = k the rest is in the order of the scores. Differences against that order are summed, so that nothing
cancels; the ranks inside the first k are a problem of the two-array family once the best (a, b) is known.
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
