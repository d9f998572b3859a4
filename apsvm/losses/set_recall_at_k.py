"""R@k over labellings with k positive labels (Joachims 2005): Δ = (min(P, k) − a)/P, a the true positives.

``set-p@k`` in units of recall; its remarks apply here.
"""

from __future__ import annotations

from apsvm.losses.base import LossOverLabellings
from apsvm.losses.ndcg_at_k import check_cutoff


class SetRecallAtKLoss(LossOverLabellings):
    """Shortfall of recall at k against the best labelling. Raises LossError unless k ≥ 1."""

    parameter = int
    starts_from = "ap"
    kernel = "set-r@k"

    def __init__(self, k: int = 10) -> None:
        self.k = check_cutoff("set-r@k", k)
        self.kernel_parameter = float(k)
        self.ranks_like = f"p@{k}"
        self.name = f"set-r@{k}"
        self.metric = f"R@{k}"

    def of_labelling(self, true_positives: int, false_positives: int, n_pos: int, n_neg: int) -> float:
        return (min(n_pos, self.k) - true_positives) / n_pos
