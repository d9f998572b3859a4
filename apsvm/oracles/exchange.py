"""P@k over rankings, exactly: m positives of the first k by score change places with m negatives.

Those are the m lowest positives inside and the m highest negatives outside. Δ gains m/k; the margins lose 2/(PN) times
the differences s⁺ − s⁻ ≥ 0 of the exchanged rows. Sums of the sorted scores give these in O(1) for each m. O(n log n),
n = P + N.
"""

from __future__ import annotations

from typing import ClassVar

from apsvm.losses.precision_at_k import PrecisionAtKLoss
from apsvm.oracles.measures import Measure, MeasureOracle


class Exchange(MeasureOracle[PrecisionAtKLoss]):
    """Exchanges m positives for m negatives."""

    name: ClassVar[str] = "exchange"
    serves = (PrecisionAtKLoss,)
    why_not = "it is made for P@k over rankings"

    def measure(self, loss: PrecisionAtKLoss, n: int) -> Measure:
        return Measure("p@k", float(loss.k))
