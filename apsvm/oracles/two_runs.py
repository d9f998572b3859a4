"""NDCG with Chakrabarti's discount, exactly: the better of two restricted runs. O(n log n), n = P + N.

Only the first drop, D(1) − D(2) = 0, breaks convexity, and it concerns only the first positive and the first negative.
Either that negative has rank 1, and the others follow from the later drops; or all ranks are at least 2, since they are
monotone. Each half is a problem of the two-array family, solved by divide and conquer as in ``qs``.
"""

from __future__ import annotations

from typing import ClassVar

from apsvm.losses.ndcg_chakrabarti import ChakrabartiNDCGLoss
from apsvm.oracles.measures import Measure, MeasureOracle


class TwoRuns(MeasureOracle[ChakrabartiNDCGLoss]):
    """Solves the cases with and without the top negative first."""

    name: ClassVar[str] = "two-runs"
    serves = (ChakrabartiNDCGLoss,)
    why_not = "it is made for NDCG with Chakrabarti's discount"

    def measure(self, loss: ChakrabartiNDCGLoss, n: int) -> Measure:
        return Measure("ndcg-chakrabarti", discount=loss.discount(n))
