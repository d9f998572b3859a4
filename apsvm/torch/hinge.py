"""The exact structured hinge of a ranking loss, its ramp and direct loss minimisation, for networks.

    hinge(s) = max_R [Δ(R*, R) + F(R)] − F(R*)
    ramp(s)  = max_R [Δ(R*, R) + F(R)] − max_R F(R)            F(R) = 1/(PN) Σ_{i ∈ pos, j ∈ neg} R_ij (s_i − s_j)

Δ of the ranking by score ≤ ramp ≤ hinge. The ramp is at most 1, so that hopeless positives cannot dominate. As scores
grow, it becomes flat and falls towards Δ: training could lower it by inflating the scores, which ``normalize``
prevents. With scores divided by ε it is direct loss minimisation (Song, Schwing, Zemel and Urtasun 2016),

    ramp(s/ε) = (1/ε) {max_R [F + εΔ] − max_R F}

The gradient with respect to the scores is exact. At a kink it is a subgradient, equal for rows of one class and equal
score. O(n log n) time, O(n) memory.
"""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from apsvm.losses.graded import takes_grades
from apsvm.torch.base import ListLoss, ListOptions, attached
from apsvm.torch.lists import Block, Values, as_lists
from apsvm.torch.native import READ, Answer, Form, infer
from apsvm.torch.soft_rank import above_zero
from apsvm.torch.tables import gain_of, tables_of


class _InferredLoss(ListLoss):
    """A loss whose values and gradients come from loss-augmented inference."""

    form: Form = "hinge"

    def __init__(self, loss: str | object = "ap", **lists: Unpack[ListOptions]) -> None:
        super().__init__(**lists)
        self.tables = tables_of(loss)

    @property
    def loss(self) -> str:
        """The name of the loss."""
        return self.tables.loss.name

    @property
    def takes_fractions(self) -> bool:
        return takes_grades(self.tables.loss)

    @property
    def knows_slopes(self) -> bool:
        return True

    def scaled(self, block: Block) -> Block:
        """The block with scores scaled for ranking."""
        return block

    def values_of(self, block: Block) -> Values:
        block = self.scaled(block)
        with torch._C._DisableFuncTorch():  # inside a transform of torch.func, tensors have no data
            values, counts, slopes = self._inferred(block.cpu())
        device = block.scores.device
        with_graph = attached(block.scores, torch.as_tensor(values), slopes.to(device))
        return Values(with_graph, torch.as_tensor(counts).to(device))

    def answer_of(self, block: Block) -> Answer:
        return self._inferred(block)

    def extra_repr(self) -> str:
        return f"loss={self.loss!r}, {super().extra_repr()}"

    def _inferred(self, block: Block) -> Answer:
        """Answer for scaled scores."""
        scores, target, positive, valid = block.rows
        if scores.dtype not in READ:
            scores = scores.float()
        thresholds: list[float] = []
        if target.dtype != torch.bool and takes_grades(self.tables.loss):
            thresholds = torch.unique(block.target[block.target > 0]).tolist()
        if len(thresholds) > 1:
            return self._graded(block, as_lists(scores), thresholds)
        return infer(scores, positive, valid, self.tables, self.form)

    def _graded(self, block: Block, scores: Tensor, thresholds: list[float]) -> Answer:
        """Σ_l v_l of the binary tasks "grade ≥ l" (``apsvm.losses.graded``), at the grades of all lists. If a list
        lacks a grade, that task equals the next higher one, and their weights add up."""
        loss = self.tables.loss
        assert takes_grades(loss)
        finite = [threshold for threshold in thresholds if threshold != float("inf")]
        gains = gain_of(loss, [0.0, *finite])
        tasks = torch.stack([block.target >= threshold for threshold in finite])  # (levels, b, n)
        n_pos = tasks.sum(2)
        ideals = torch.from_numpy(self.tables.ideals(n_pos.numpy()))
        shares = torch.from_numpy(gains[1:] - gains[:-1]).unsqueeze(1) * ideals
        shares = shares / shares.sum(0).clamp(min=torch.finfo(shares.dtype).tiny)
        shares = torch.where((n_pos > 0) & (n_pos < block.counted.sum(1)), shares, 0.0)
        values, slopes = torch.zeros_like(shares[0]), torch.zeros_like(scores)
        for positive, share in zip(tasks, shares, strict=True):
            answer = infer(scores, positive, block.valid, self.tables, self.form)
            values = values + share * torch.as_tensor(answer.values)
            slopes = slopes + share.unsqueeze(1).to(slopes) * answer.slopes
        return Answer(values, (shares > 0).any(0), slopes)


class RankingHingeLoss(_InferredLoss):
    """The structured hinge of a ranking loss: convex in the scores, and an upper bound of the loss.

    Parameters
    ----------
    loss : str or object
        A loss of two arrays by its name: ``"ap"``, ``"ndcg"`` (of grades, too), ``"mrr"``, ``"auc"``,
        ``"rbp(0.8)"``; or one of your own, an object with ``weights(n_pos)`` and ``discount(n)``.
    **lists
        ``reduction`` and ``ignore_index`` of ``ListLoss``.

    Raises
    ------
    UnknownNameError
        (a ValueError) no such loss.
    LossError
        (a ValueError) a loss without the two arrays, or one that breaks their contract.

    Notes
    -----
    ``max_R [Δ(R*, R) + F(R)] − F(R*)``, where ``F(R) = 1/(PN) Σ_{i ∈ pos, j ∈ neg} R_ij (s_i − s_j)``: 0
    or more (Yue, Finley, Radlinski and Joachims 2007; Mohapatra, Rolinek, Jawahar, Kolmogorov and Kumar 2018). With
    grades it is the sum over their levels. Computed in float64, in O(n log n).

    Examples
    --------
    >>> loss = RankingHingeLoss("ap")(torch.tensor([0.1, 0.3, -0.2]), torch.tensor([1, 0, 0]))
    >>> round(loss.item(), 4)
    0.7
    """


class APHingeLoss(RankingHingeLoss):
    """The hinge of average precision; see ``RankingHingeLoss``."""

    def __init__(self, **lists: Unpack[ListOptions]) -> None:
        super().__init__("ap", **lists)


class NDCGHingeLoss(RankingHingeLoss):
    """The hinge of NDCG, ``RankingHingeLoss("ndcg")``.

    Parameters
    ----------
    gain : str
        Gain of a grade: ``"exponential"``, 2^grade − 1, or ``"linear"``, the grade.
    **lists
        ``reduction`` and ``ignore_index`` of ``ListLoss``.
    """

    def __init__(self, gain: str = "exponential", **lists: Unpack[ListOptions]) -> None:
        super().__init__(f"ndcg({gain})", **lists)


class RankingRampLoss(_InferredLoss):
    """The ramp of a ranking loss at scores divided by ε: at most 1, at least the loss of the ranking by score.

    Parameters
    ----------
    loss : str or object
        See ``RankingHingeLoss``.
    eps : float
        ε > 0; in standard deviations of a list's scores if ``normalize``.
    normalize : bool
        True to standardise the scores of each list; the gradient includes mean and deviation.
    **lists
        ``reduction`` and ``ignore_index`` of ``ListLoss``.

    Raises
    ------
    ValueError
        ``eps`` is not positive. LossError, UnknownNameError: see ``RankingHingeLoss``.

    Notes
    -----
    ``max_R [Δ(R*, R) + F(R)] − max_R F(R)`` at scores s/ε, with F as in ``RankingHingeLoss``: from 0 to 1. With ε it is
    ``(1/ε) {max_R [F + εΔ] − max_R F}``, direct loss minimisation (Song, Schwing, Zemel and Urtasun 2016). O(n log n).
    """

    form: Form = "ramp"

    def __init__(
        self,
        loss: str | object = "ap",
        *,
        eps: float = 1.0,
        normalize: bool = False,
        **lists: Unpack[ListOptions],
    ) -> None:
        super().__init__(loss, **lists)
        self.eps, self.normalize = above_zero("eps", eps), normalize

    def scaled(self, block: Block) -> Block:
        if not self.normalize and self.eps == 1.0:
            return block
        scores = block.standardized if self.normalize else block.rows.scores
        return Block(block.rows._replace(scores=scores / self.eps))

    @property
    def knows_slopes(self) -> bool:
        return not self.normalize

    def answer_of(self, block: Block) -> Answer:
        answer = self._inferred(self.scaled(block))
        return answer if self.eps == 1.0 else answer._replace(slopes=answer.slopes / self.eps)

    def extra_repr(self) -> str:
        return f"eps={self.eps:g}, normalize={self.normalize}, {super().extra_repr()}"


class DirectLoss(RankingRampLoss):
    """Direct loss minimisation (Song, Schwing, Zemel and Urtasun 2016): ``RankingRampLoss`` of normalised scores, by
    default with ε = .3."""

    def __init__(
        self,
        loss: str | object = "ap",
        *,
        eps: float = 0.3,
        normalize: bool = True,
        **lists: Unpack[ListOptions],
    ) -> None:
        super().__init__(loss, eps=eps, normalize=normalize, **lists)
