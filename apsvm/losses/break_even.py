"""The precision/recall break-even point, PRBEP: precision (= recall) where P rows are labelled positive.

Δ = 1 − a/P over the labellings with P positive labels (Joachims 2005), a the true positives: h bounds one minus the
precision of the P highest scores, R-precision.
"""

from __future__ import annotations

from typing import ClassVar

from apsvm.losses.base import LossOverLabellings


class BreakEvenLoss(LossOverLabellings):
    """One minus the break-even precision."""

    name = "prbep"
    metric = "Rprec"
    kernel = "prbep"
    depends_on_level: ClassVar[bool] = False

    def of_labelling(self, true_positives: int, false_positives: int, n_pos: int, n_neg: int) -> float:
        return 1.0 - true_positives / n_pos
