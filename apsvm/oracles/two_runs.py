"""NDCG with Chakrabarti's discount, exactly: the better of two restricted runs. O(n log n), n = P + N.

Its first drop, D(1) − D(2) = 0, is the only one out of line, and touches the pair of the first positive and the first
negative alone. Either that negative has rank 1, and the others follow from the later drops; or, ranks being monotone,
all ranks are 2 or more. Each half is a problem of the two-array family, solved by divide and conquer as in ``qs``.
"""

from __future__ import annotations

from typing import ClassVar

from apsvm.losses.ndcg_chakrabarti import ChakrabartiNDCGLoss
from apsvm.oracles.measures import Measure, MeasureOracle


class TwoRuns(MeasureOracle[ChakrabartiNDCGLoss]):
    """The top negative first, or not."""

    name: ClassVar[str] = "two-runs"
    serves = (ChakrabartiNDCGLoss,)
    why_not = "it is made for NDCG with Chakrabarti's discount"

    def measure(self, loss: ChakrabartiNDCGLoss, n: int) -> Measure:
        return Measure("ndcg-chakrabarti", discount=loss.discount(n))
