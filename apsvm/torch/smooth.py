"""Average precision and recall with soft ranks: smooth in the scores, but not bounds.

    Smooth-AP (Brown, Xie, Kalogeiton, Zisserman 2020)      1 − 1/P Σ_{i ∈ pos} rank⁺_i / rank_i
    Recall@K (Patel, Tolias, Matas 2022)                    1 − mean_K 1/min(K, P) Σ_{i ∈ pos} σ((K + ½ − rank_i)/τ′)

with the soft ranks of ``apsvm.torch.soft_rank``; rank⁺ is the rank among the positives. For τ, τ′ → 0 the second is
exactly one minus recall among the first K (divided by K if P > K).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import ClassVar, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from apsvm.torch.base import ListLoss, ListOptions
from apsvm.torch.lists import Block, Values
from apsvm.torch.native import NO_PLACES, READ, Answer, soft_rank_losses
from apsvm.torch.soft_rank import Kernel, above_zero, check_kernel, logistic_counts, soft_counts


class _SoftRankLoss(ListLoss):
    """A loss of the soft ranks of the positives."""

    is_smooth = True
    #: Default width, in standard deviations of a list's scores: the best of those tried by mAP@R on unseen classes of
    #: three sets of images (digits and letters).
    default_tau: ClassVar[float]

    def __init__(self, tau: float | None = None, kernel: Kernel = "laplace", **lists: Unpack[ListOptions]) -> None:
        super().__init__(**lists)
        self.tau, self.kernel = None if tau is None else above_zero("tau", tau), check_kernel(kernel)

    @property
    def knows_slopes(self) -> bool:
        return self.kernel == "laplace"

    def extra_repr(self) -> str:
        return f"tau={self.tau}, kernel={self.kernel!r}, {super().extra_repr()}"

    def _answer(self, block: Block, places: NDArray[np.float64], tau_rank: float) -> Answer:
        rows = block.rows
        scores = rows.scores if rows.scores.dtype in READ else rows.scores.float()
        width, is_relative = (self.default_tau, True) if self.tau is None else (self.tau, False)
        return soft_rank_losses(scores, rows.positive, rows.valid, width, is_relative, places, tau_rank)

    def ranks_of_positives(self, block: Block) -> tuple[Tensor, Tensor, Tensor]:
        """Ranks, ranks among the positives, and a mask of positives, (b, m) each; ranks are at least 1/2."""
        sets = torch.stack([block.counted, block.positive])
        scores, tau = (block.standardized, self.default_tau) if self.tau is None else (block.scores, self.tau)
        if self.kernel == "laplace":
            counts = soft_counts(scores, sets, tau, "laplace", block.valid)
            return 0.5 + counts[0].clamp(min=0), 0.5 + counts[1].clamp(min=0), block.positive
        scores = scores if scores.dtype == torch.float64 else scores.float()
        most = int(block.n_pos.amax()) if block.n_pos.numel() else 0
        first = torch.argsort(block.positive, dim=1, descending=True, stable=True)[:, :most]
        counts = logistic_counts(scores.gather(1, first), scores, sets, tau)
        return 0.5 + counts[0], 0.5 + counts[1], block.positive.gather(1, first)


class SmoothAPLoss(_SoftRankLoss):
    """One minus average precision, with soft ranks.

    Parameters
    ----------
    tau : float, optional
        Width of the kernel, > 0, in units of the scores. None: a tenth of the standard deviation of the list's scores;
        the gradient includes that deviation.
    kernel : Kernel
        ``"laplace"``, O(n log n); ``"logistic"``, the paper's, O(Pn).
    **lists
        ``reduction`` and ``ignore_index`` of ``ListLoss``.

    Raises
    ------
    ValueError
        ``tau`` is not positive, or the kernel is unknown.

    Notes
    -----
    ``1 − 1/P Σ_{i ∈ pos} rank⁺_i / rank_i``, from 0 to 1, with soft ranks in the list and among its positives (Brown,
    Xie, Kalogeiton and Zisserman 2020, with the logistic kernel and ``tau`` .01 for cosines).

    To compare the rows of a batch with each other, pass the matrix of their similarities (B, B). The target is True for
    equal labels, the mask ``~torch.eye(B, dtype=torch.bool)``.

    Examples
    --------
    >>> SmoothAPLoss(tau=0.01)(torch.tensor([0.1, 0.3, -0.2]), torch.tensor([1, 0, 0])).item()
    0.5
    """

    default_tau = 0.1

    def answer_of(self, block: Block) -> Answer:
        return self._answer(block, NO_PLACES, 1.0)

    def values_of(self, block: Block) -> Values:
        ranks, among_positives, positive = self.ranks_of_positives(block)
        precision = torch.where(positive, among_positives / ranks, 0.0).sum(1) / block.n_pos.clamp(min=1)
        return block.settle(1.0 - precision)


class RecallAtKLoss(_SoftRankLoss):
    """One minus recall among the first K, averaged over several K.

    Parameters
    ----------
    ks : Sequence[int]
        The numbers K ≥ 1.
    tau : float, optional
        Width of the kernel, > 0, in units of the scores. None: .03 of the standard deviation of the list's scores, as
        in ``SmoothAPLoss``.
    tau_rank : float
        Width of the step at K, > 0, in places.
    kernel : Kernel
        See ``SmoothAPLoss``.
    **lists
        ``reduction`` and ``ignore_index`` of ``ListLoss``.

    Raises
    ------
    TypeError
        A K is not an integer.
    ValueError
        A width or a K is not positive, ``ks`` is empty, or the kernel is unknown.

    Notes
    -----
    ``1 − mean_K 1/min(K, P) Σ_{i ∈ pos} σ((K + ½ − rank_i)/tau_rank)`` with soft ranks (Patel, Tolias and Matas 2022).
    The paper has K in place of K + ½, so that the K-th place counts one half. The loss is at most 1. With more than K
    positives at the top, those beyond the K-th place count a little, so that the loss can fall below 0, by default to
    −.07.
    """

    default_tau = 0.03

    def __init__(
        self,
        ks: Sequence[int] = (1, 2, 4, 8, 16),
        tau: float | None = None,
        tau_rank: float = 1.0,
        kernel: Kernel = "laplace",
        **lists: Unpack[ListOptions],
    ) -> None:
        super().__init__(tau, kernel, **lists)
        self.ks = tuple(operator.index(k) for k in ks)
        if not self.ks or min(self.ks) < 1:
            raise ValueError(f"ks must be one or more numbers from 1 on, found {ks!r}")
        self.tau_rank = above_zero("tau_rank", tau_rank)

    def answer_of(self, block: Block) -> Answer:
        return self._answer(block, np.array(self.ks, dtype=np.float64), self.tau_rank)

    def values_of(self, block: Block) -> Values:
        ranks, _, positive = self.ranks_of_positives(block)
        recalls = [
            torch.where(positive, torch.sigmoid((k + 0.5 - ranks) / self.tau_rank), 0.0).sum(1)
            / block.n_pos.clamp(min=1, max=k)
            for k in self.ks
        ]
        return block.settle(1.0 - torch.stack(recalls).mean(0))

    def extra_repr(self) -> str:
        return f"ks={self.ks}, tau_rank={self.tau_rank:g}, {super().extra_repr()}"
