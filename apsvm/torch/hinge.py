"""The exact structured hinge of a ranking loss, its ramp and direct loss minimisation, for networks.

    hinge(s) = max_R [Δ(R*, R) + F(R)] − F(R*)
    ramp(s)  = max_R [Δ(R*, R) + F(R)] − max_R F(R)            F(R) = 1/(PN) Σ_{i ∈ pos, j ∈ neg} R_ij (s_i − s_j)

Δ of the ranking by score ≤ ramp ≤ hinge. The ramp is at most 1, so that hopeless positives cannot dominate. As scores
grow, it becomes flat and falls towards Δ: training could lower it by inflating the scores, which ``normalize``
prevents. With scores divided by ε it is the positive update of direct loss minimisation (Song, Schwing, Zemel and
Urtasun 2016),

    ramp(s/ε) = (1/ε) {max_R [F + εΔ] − max_R F},       the negative update     (1/ε) {max_R F − max_R [F − εΔ]} ≤ Δ

The gradient with respect to the scores is exact. At a kink it is a subgradient, equal for rows of one class and equal
score. O(n log n) time, O(n) memory.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from apsvm.losses.graded import takes_grades
from apsvm.torch.base import ListLoss, Values, attached
from apsvm.torch.inference import Answer, Form, infer, spoilt_by_target
from apsvm.torch.lists import Block, Reduction, as_lists, in_transform
from apsvm.torch.native import READ, infer_native
from apsvm.torch.tables import gain_of, tables_of

Engine: TypeAlias = Literal["auto", "native", "levels", "dense"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
Update: TypeAlias = Literal["positive", "negative"]
UPDATES: tuple[Update, ...] = get_args(Update)


class _InferredLoss(ListLoss):
    """A loss whose values and gradients come from loss-augmented inference."""

    form: Form = "hinge"
    algorithm = "bucket"

    def __init__(
        self,
        loss: str | object,
        *,
        engine: Engine = "auto",
        reduction: Reduction = "mean",
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(reduction=reduction, ignore_index=ignore_index)
        if engine not in ENGINES:
            raise ValueError(f"engine must be one of {', '.join(ENGINES)}, found {engine!r}")
        self.engine = engine
        self.tables = tables_of(loss)

    @property
    def loss(self) -> str:
        """The name of the loss."""
        return self.tables.loss.name

    @property
    def takes_fractions(self) -> bool:
        return takes_grades(self.tables.loss)

    def scaled(self, block: Block) -> Block:
        """The block with scores scaled for ranking."""
        return block

    def knows_slopes(self, kind: str) -> bool:
        return True

    def values_of(self, block: Block) -> Values:
        block = self.scaled(block)
        still = Block(block.rows._replace(scores=block.scores.detach()))
        values, counts, row_weights = _InferredLoss.answer_of(self, still)
        return Values(attached(block.scores, torch.as_tensor(values), row_weights), torch.as_tensor(counts))

    def answer_of(self, block: Block) -> Answer:
        """Answer for the block's lists, from unscaled scores."""
        scores, target, positive, valid = block.rows
        if scores.dtype not in READ:
            scores = scores.float()
        thresholds: list[float] = []
        if target.dtype != torch.bool and takes_grades(self.tables.loss):
            thresholds = torch.unique(block.target[block.target > 0]).tolist()
        if len(thresholds) > 1:
            answer = self._graded(block, as_lists(scores), thresholds)
        else:
            answer = self._binary(scores, positive, valid)
        return spoilt_by_target(block, answer)

    def _binary(self, scores: Tensor, positive: Tensor, valid: Tensor | None) -> Answer:
        if self.engine == "native" or (self.engine == "auto" and scores.is_cpu and not in_transform(scores)):
            if not scores.is_cpu or in_transform(scores):
                where = "not for torch.func: engine='levels' is" if scores.is_cpu else "for tensors on the CPU"
                raise ValueError(f"{type(self).__name__}: the native engine is {where}")
            return infer_native(scores, positive, valid, self.tables, self.form, self.algorithm)
        valid = None if valid is None else as_lists(valid)
        return infer(as_lists(scores), as_lists(positive), valid, self.tables, self.form, self.engine)

    def _graded(self, block: Block, scores: Tensor, thresholds: list[float]) -> Answer:
        """Σ_l v_l of the binary tasks "grade ≥ l" (``apsvm.losses.graded``), at the grades of all lists. If a list
        lacks a grade, that task equals the next higher one, and their weights add up."""
        loss = self.tables.loss
        assert takes_grades(loss)
        finite = [threshold for threshold in thresholds if threshold != float("inf")]
        gains = gain_of(loss, [0.0, *finite])
        tasks = torch.stack([block.target >= threshold for threshold in finite])  # (levels, b, n)
        n_pos = tasks.sum(2)
        n = scores.shape[1] if block.valid is None else block.valid.sum(1)
        ideals = torch.from_numpy(self.tables.ideals(n_pos.cpu().numpy())).to(scores.device, block.wide_scores.dtype)
        shares = torch.from_numpy(gains[1:] - gains[:-1]).to(ideals).unsqueeze(1) * ideals
        shares = shares / shares.sum(0).clamp(min=torch.finfo(shares.dtype).tiny)
        shares = torch.where((n_pos > 0) & (n_pos < n), shares, 0.0)
        values, row_weights = torch.zeros_like(shares[0]), torch.zeros_like(scores)
        for positive, share in zip(tasks, shares, strict=True):
            answer = self._binary(scores, positive, block.valid)
            values = values + share * torch.as_tensor(answer.values)
            row_weights = row_weights + share.unsqueeze(1).to(row_weights) * answer.row_weights
        return Answer(values, (shares > 0).any(0), row_weights)


class RankingHingeLoss(_InferredLoss):
    """The structured hinge of a ranking loss: convex in the scores, and an upper bound of the loss.

    Parameters
    ----------
    loss : str or object
        A loss of two arrays by its name: ``"ap"``, ``"ndcg"`` (of grades, too), ``"mrr"``, ``"auc"``,
        ``"rbp(0.8)"``; or one of your own, an object with ``weights(n_pos)`` and ``discount(n)``.
    engine : Engine
        ``"native"``, on the CPU; ``"levels"`` or ``"dense"``, on any device; ``"auto"``.
    reduction : Reduction
        See ``ListLoss``.
    ignore_index : int, optional
        See ``ListLoss``.

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

    def __init__(
        self,
        loss: str | object = "ap",
        *,
        engine: Engine = "auto",
        reduction: Reduction = "mean",
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(loss, engine=engine, reduction=reduction, ignore_index=ignore_index)

    def extra_repr(self) -> str:
        return f"loss={self.loss!r}, {super().extra_repr()}"


class APHingeLoss(RankingHingeLoss):
    """The hinge of average precision; see ``RankingHingeLoss``."""

    def __init__(
        self, *, engine: Engine = "auto", reduction: Reduction = "mean", ignore_index: int | None = None
    ) -> None:
        super().__init__("ap", engine=engine, reduction=reduction, ignore_index=ignore_index)


class NDCGHingeLoss(RankingHingeLoss):
    """The hinge of NDCG, ``RankingHingeLoss("ndcg")``.

    Parameters
    ----------
    gain : str
        Gain of a grade: ``"exponential"``, 2^grade − 1, or ``"linear"``, the grade.
    engine : Engine
        See ``RankingHingeLoss``.
    reduction : Reduction
        See ``ListLoss``.
    ignore_index : int, optional
        See ``ListLoss``.
    """

    def __init__(
        self,
        gain: str = "exponential",
        *,
        engine: Engine = "auto",
        reduction: Reduction = "mean",
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(f"ndcg({gain})", engine=engine, reduction=reduction, ignore_index=ignore_index)


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
    engine : Engine
        See ``RankingHingeLoss``.
    reduction : Reduction
        See ``ListLoss``.
    ignore_index : int, optional
        See ``ListLoss``.

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
        engine: Engine = "auto",
        reduction: Reduction = "mean",
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(loss, engine=engine, reduction=reduction, ignore_index=ignore_index)
        if not 0.0 < eps < float("inf"):
            raise ValueError(f"eps must be a positive number, found {eps!r}")
        self.eps = float(eps)
        self.normalize = normalize

    def scaled(self, block: Block) -> Block:
        if not self.normalize and self.eps == 1.0:
            return block
        scores = block.standardized if self.normalize else block.rows.scores
        return Block(block.rows._replace(scores=scores / self.eps))

    def knows_slopes(self, kind: str) -> bool:
        return not self.normalize

    def answer_of(self, block: Block) -> Answer:
        answer = super().answer_of(self.scaled(block))
        return answer if self.eps == 1.0 else answer._replace(row_weights=answer.row_weights / self.eps)

    def extra_repr(self) -> str:
        return f"loss={self.loss!r}, eps={self.eps:g}, normalize={self.normalize}, {super().extra_repr()}"


class DirectLoss(RankingRampLoss):
    """Direct loss minimisation: the ramp at normalised scores, or the corresponding lower bound.

    Parameters
    ----------
    update : Update
        ``"positive"`` minimises an upper bound, away from worse rankings; ``"negative"`` a lower bound, towards better
        rankings, on the CPU only, in O(swapped pairs).
    loss : str or object
        See ``RankingHingeLoss``.
    eps : float
        See ``RankingRampLoss``.
    normalize : bool
        See ``RankingRampLoss``.
    engine : Engine
        See ``RankingHingeLoss``.
    reduction : Reduction
        See ``ListLoss``.
    ignore_index : int, optional
        See ``ListLoss``.

    Notes
    -----
    ``(1/ε) {max_R [F + εΔ] − max_R F}``, at least the loss Δ, or by the negative update ``(1/ε) {max_R F − max_R [F −
    εΔ]}``, at most Δ; from 0 to 1 (Song, Schwing, Zemel and Urtasun 2016).
    """

    def __init__(
        self,
        loss: str | object = "ap",
        *,
        eps: float = 0.3,
        normalize: bool = True,
        update: Update = "positive",
        engine: Engine = "auto",
        reduction: Reduction = "mean",
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(
            loss, eps=eps, normalize=normalize, engine=engine, reduction=reduction, ignore_index=ignore_index
        )
        if update not in UPDATES:
            raise ValueError(f"update must be one of {', '.join(UPDATES)}, found {update!r}")
        if update == "negative":
            if engine not in ("auto", "native"):
                raise ValueError("the negative update has the native engine only")
            self.engine = "native"
            self.algorithm = "against-loss"
        self.update = update

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, update={self.update!r}"
