"""The most violated labelling for F_β, PRBEP, and P@k and R@k over labellings, exactly. O(n log n), n = P + N.

Joachims (2005, Algorithm 2) tries all counts (a, b) of true and false positives, O(n²). With k labels b = k − a, and
only the k highest scores of each class need an order: O(n + k log k). For each a, F_β's Δ and the sum of the b highest
scores are concave in b, so bisection finds the best b.
"""

from __future__ import annotations

from typing import ClassVar

from apsvm.losses.base import LossOverLabellings
from apsvm.losses.break_even import BreakEvenLoss
from apsvm.losses.f_measure import FMeasureLoss
from apsvm.losses.set_precision_at_k import SetPrecisionAtKLoss
from apsvm.losses.set_recall_at_k import SetRecallAtKLoss
from apsvm.oracles.measures import Measure, MeasureOracle


class Labelling(MeasureOracle[LossOverLabellings]):
    """Labels the highest positives and negatives, choosing the best number of each."""

    name: ClassVar[str] = "labelling"
    serves = (FMeasureLoss, SetPrecisionAtKLoss, SetRecallAtKLoss, BreakEvenLoss)
    why_not = "it is made for measures over labellings"

    def measure(self, loss: LossOverLabellings, n: int) -> Measure:
        return Measure(loss.kernel, loss.kernel_parameter)
