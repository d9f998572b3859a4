"""Average precision through a blackbox ranker (Rolínek, Musil, Paulus, Vlastelica, Michaelis, Martius 2020).

The loss is 1 − 1/P Σ_{i ∈ pos} rank⁺_i / rank_i with exact ranks, which have no useful derivative. It is replaced by
that of a piecewise affine interpolation,

    dL/ds = (r(s + λ dL/dr) − r(s)) / λ,      r = ranks / n

A margin keeps the loss above 0 when the order is only just right: positives are ranked at s − α/2, negatives at s +
α/2. Equal scores share their mean rank. O(n log n) for value and gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor

from apsvm.torch.base import ListLoss, Values, attached
from apsvm.torch.lists import Block, Reduction


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
    reduction : Reduction
        See ``ListLoss``.
    ignore_index : int, optional
        See ``ListLoss``.

    Raises
    ------
    ValueError
        ``lam`` is not positive, or ``margin`` is negative.

    Notes
    -----
    ``1 − 1/P Σ_{i ∈ pos} rank⁺_i / rank_i``, from 0 to 1, with exact ranks of positives at s − α/2 and negatives at s +
    α/2. Its derivative is replaced by ``(r(s + λ dL/dr) − r(s))/λ``, r = ranks/n (Rolínek, Musil, Paulus, Vlastelica,
    Michaelis and Martius 2020). O(n log n).
    """

    def __init__(
        self,
        lam: float = 4.0,
        margin: float = 0.2,
        *,
        normalize: bool = True,
        reduction: Reduction = "mean",
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(reduction=reduction, ignore_index=ignore_index)
        if not 0.0 < lam < float("inf"):
            raise ValueError(f"lam must be a positive number, found {lam!r}")
        if not 0.0 <= margin < float("inf"):
            raise ValueError(f"margin must be a number from 0 on, found {margin!r}")
        self.lam = float(lam)
        self.margin = float(margin)
        self.normalize = normalize

    def values_of(self, block: Block) -> Values:
        scores = block.standardized if self.normalize else block.wide_scores
        valid = torch.ones_like(block.positive) if block.valid is None else block.valid
        values, slopes = self._interpolated(scores.detach(), block.positive, valid)
        return Values(block.settle(attached(scores, values, slopes)), block.counts)

    def _interpolated(self, scores: Tensor, positive: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        """(values (b,), gradients (b, n)). Each gradient is that of the list's own value, so that a later mean or a
        scaler's factor does not change the reach of the interpolation."""
        ranked = scores - self.margin * (positive.to(scores.dtype) - 0.5)
        ranks = mean_ranks(ranked, valid)
        share = positive.to(scores.dtype) / positive.sum(1, keepdim=True).clamp(min=1)
        precision = share * mean_ranks(ranked, positive) / ranks.clamp(min=1)
        n = valid.sum(1, keepdim=True).clamp(min=1)
        reach = self.lam * n
        moved = mean_ranks(ranked + reach * precision / ranks.clamp(min=1), valid)
        return 1.0 - precision.sum(1), (moved - ranks) / reach

    def extra_repr(self) -> str:
        return f"lam={self.lam:g}, margin={self.margin:g}, normalize={self.normalize}, {super().extra_repr()}"


def mean_ranks(scores: Tensor, counted: Tensor) -> Tensor:
    """Ranks 1, 2, … of the rows ``counted`` (b, n) bool, by descending score; equal scores get their mean rank, other
    rows 0. (b, n), of the scores' type."""
    n = scores.shape[1]
    if n == 0:
        return scores
    x, order = torch.sort(torch.where(counted, scores, -torch.inf), dim=1, descending=True, stable=True)
    numbers = torch.arange(n, device=x.device).expand_as(x)
    # Rows that do not count come last, separately, so that an infinite score does not tie with them.
    new = torch.ones_like(counted)
    new[:, 1:] = (x[:, 1:] != x[:, :-1]) | ~counted.gather(1, order)[:, 1:]
    behind = torch.cat([new[:, 1:], torch.ones_like(new[:, :1])], 1)
    begin = torch.cummax(torch.where(new, numbers, 0), 1).values
    last = torch.cummin(torch.where(behind, numbers, n).flip(1), 1).values.flip(1)
    ranks = torch.empty_like(x).scatter_(1, order, 0.5 * (begin + last + 2).to(x.dtype))
    return torch.where(counted, ranks, 0.0)
