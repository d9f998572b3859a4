"""F_β over labellings: with a true and b false positives, Δ = 1 − (1+β²) a / (a + b + β²P).

The signs of the scores are the predicted labels: h bounds 1 − F_β at the threshold 0 (Joachims 2005), so a model needs
a bias. β > 1 weighs recall, β < 1 precision.
"""

from __future__ import annotations

from math import isfinite

from apsvm.losses.base import LossError, LossOverLabellings


class FMeasureLoss(LossOverLabellings):
    """One minus F_β. Raises LossError unless 0 < β < 1e6."""

    parameter = float
    kernel = "f(beta)"

    def __init__(self, beta: float = 1.0) -> None:
        if not (isfinite(beta) and 0.0 < beta < 1e6):
            raise LossError(f"loss f(beta) needs 0 < beta < 1e6, found {beta!r}")
        self.beta = self.kernel_parameter = float(beta)
        self.name = "f1" if beta == 1.0 else f"f({self.beta!r})"
        self.metric = f"F{self.beta!r}".removesuffix(".0")

    def of_labelling(self, true_positives: int, false_positives: int, n_pos: int, n_neg: int) -> float:
        square = self.beta**2
        return 1.0 - (1.0 + square) * true_positives / (true_positives + false_positives + square * n_pos)
