"""Average precision through a blackbox ranker (Rolínek, Musil, Paulus, Vlastelica, Michaelis, Martius 2020).

The loss is 1 − 1/P Σ_{i ∈ pos} rank⁺_i / rank_i with exact ranks, which have no useful derivative. It is replaced by
that of a piecewise affine interpolation,

    dL/ds = (r(s + λ dL/dr) − r(s)) / λ,      r = ranks / n

A margin keeps the loss above 0 when the order is only just right: positives are ranked at s − α/2, negatives at s +
α/2. Equal scores share their mean rank. O(n log n) for value and gradient.
"""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from apsvm.torch.base import ListLoss, ListOptions, attached
from apsvm.torch.lists import Block, Values
from apsvm.torch.ranks import exact_ranks
from apsvm.torch.soft_rank import above_zero


class BlackboxAPLoss(ListLoss):
    """One minus average precision, with the gradient of an interpolation.

    Parameters
    ----------
    lam : float
        λ > 0, the reach of the interpolation.
    margin : float
        α ≥ 0; in standard deviations of the scores if ``normalize``.
    normalize : bool
        True to standardise the scores of each list.
    **lists
        ``reduction`` and ``ignore_index`` of ``ListLoss``.

    Raises
    ------
    ValueError
        ``lam`` is not positive, or ``margin`` is negative.
    """

    def __init__(
        self,
        lam: float = 4.0,
        margin: float = 0.2,
        *,
        normalize: bool = True,
        **lists: Unpack[ListOptions],
    ) -> None:
        super().__init__(**lists)
        if not 0.0 <= margin < float("inf"):
            raise ValueError(f"margin must be a number from 0 on, found {margin!r}")
        self.lam = above_zero("lam", lam)
        self.margin = float(margin)
        self.normalize = normalize

    def values_of(self, block: Block) -> Values:
        scores = block.standardized if self.normalize else block.wide_scores
        values, slopes = self._interpolated(scores.detach(), block.positive, block.counted)
        return block.settle(attached(scores, values, slopes))

    def _interpolated(self, scores: Tensor, positive: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
        """(values (b,), gradients (b, n)). Each gradient is that of the list's own value, so that a later mean or a
        scaler's factor does not change the reach of the interpolation."""
        ranked = scores - self.margin * (positive.to(scores.dtype) - 0.5)
        ranks = exact_ranks(ranked, counted)
        place = (ranks * counted.sum(1, keepdim=True)).clamp(min=1)
        precision = exact_ranks(ranked, positive) / place
        moved = exact_ranks(ranked + self.lam * precision / torch.where(counted, ranks, 1.0), counted)
        return 1.0 - precision.sum(1), (moved - ranks) / self.lam

    def extra_repr(self) -> str:
        return f"lam={self.lam:g}, margin={self.margin:g}, normalize={self.normalize}, {super().extra_repr()}"
