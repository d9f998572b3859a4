"""P@k over labellings with k positive labels (Joachims 2005): Δ = (min(P, k) − a)/k, a the true positives.

    h(s) = max(0, max over those labellings)

If k ≠ P, the true labelling does not have k positive labels. h then need not bound the precision of the k highest
scores, since it also requires the other positives to score above 0. ``p@k`` is the same measure over rankings and
bounds it.
"""

from __future__ import annotations

from apsvm.losses.base import LossOverLabellings
from apsvm.losses.ndcg_at_k import check_cutoff


class SetPrecisionAtKLoss(LossOverLabellings):
    """Shortfall of precision at k against the best labelling. Raises LossError unless k ≥ 1."""

    parameter = int
    starts_from = "ap"
    kernel = "set-p@k"

    def __init__(self, k: int = 10) -> None:
        self.k = check_cutoff("set-p@k", k)
        self.kernel_parameter = float(k)
        self.ranks_like = f"p@{k}"
        self.name = f"set-p@{k}"
        self.metric = f"P@{k}"

    def of_labelling(self, true_positives: int, false_positives: int, n_pos: int, n_neg: int) -> float:
        return (min(n_pos, self.k) - true_positives) / self.k
