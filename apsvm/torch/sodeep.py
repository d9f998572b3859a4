"""Losses of ranks that a sorter gives (Engilberge, Chevallier, Pérez, Cord 2019, §3.2): f is smooth, and about rk.

Spearman (4)     6 L²/(L² − 1) · mean_i (f(y)_i − rk(y*)_i)²                 1 − ρ, if f were rk and no scores tie
mAP (7)          Σ_{i positive} f(y)_i                                       the seed's, with f = rk the ROC area
                 1 − mean_{i positive} r⁺_i / r_i,   r = L f(y)              average precision
triplets (9, 10) mean_{i positive} max(0, margin + f(y)_i − min_{j negative} f(y)_j)
recall (8)       mean_{i positive} f(y)_i, or 1 − σ((k + ½ − r_i)/τ)

where L is a list's length and ranks are normalised, 1/L for the largest score. A sorter is any callable from (B, L)
scores to (B, L) ranks: a module, ``apsvm.torch.ranks.exact_ranks``, or the name of one that ``load_sorter`` knows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from apsvm.torch.checkpoint import load_sorter
from apsvm.torch.lists import Block, Lists, Reduction, check_reduction, compute_dtype, lists_of
from apsvm.torch.ranks import exact_ranks
from apsvm.torch.sorter_quality import AnySorter

MAPForm: TypeAlias = Literal["ap", "seed"]


class SorterLoss(nn.Module):
    """A loss of the ranks that a sorter gives; what the losses below share.

    Parameters
    ----------
    sorter : a callable (B, L) → (B, L), or a name of ``load_sorter``: ``"laplace(10)"``, ``"handcrafted(10)"``,
        ``"attention"``, a file of ``apsvm sorter train``
    dim : the dimension along which a list lies, of scores (B, n)
    reduction : over the lists that count: ``"mean"``, ``"sum"`` or ``"none"``
    ignore_index : rows of this target do not count; None: all count

    Raises
    ------
    ValueError : no such reduction, or no such sorter
    """

    def __init__(
        self,
        sorter: AnySorter | str,
        *,
        dim: int = -1,
        reduction: Reduction = "mean",
        ignore_index: int | None = None,
    ) -> None:
        super().__init__()
        self.sorter: AnySorter = load_sorter(sorter) if isinstance(sorter, str) else sorter
        self.dim = dim
        self.reduction: Reduction = check_reduction(reduction)
        self.ignore_index = ignore_index

    def forward(self, scores: Tensor, target: Tensor, mask: Tensor | None = None, qid: Tensor | None = None) -> Tensor:
        """The loss; a list that does not count has value 0, one that holds a NaN or an infinity is NaN.

        Parameters
        ----------
        scores : (n,) or (B, n) floating point, higher is better
        target : of the same shape; bool, or numbers of which those above 0 are positive
        mask : of the same shape, bool: the rows that count; None: all
        qid : (n,) integers, rows of one value are a list; not with (B, n)

        Raises
        ------
        TypeError, ValueError : arguments that do not fit, as ``lists_of`` says
        SorterError : (a ValueError) lists of a length that the sorter does not take
        """
        return self._reduced(self._lists(scores, target, mask, qid, self.dim))

    def values(self, block: Block) -> Tensor:
        """(b,) the lists' values; those that do not count may have any finite one."""
        raise NotImplementedError

    def _lists(self, scores: Tensor, target: Tensor, mask: Tensor | None, qid: Tensor | None, dim: int) -> Lists:
        return lists_of(scores, target, mask=mask, qid=qid, dim=dim, ignore_index=self.ignore_index)

    def _reduced(self, lists: Lists) -> Tensor:
        # Autocast would round what the sorter computes, down to ranks that are equal.
        with torch.autocast(lists.blocks[0].scores.device.type, enabled=False):
            values = [
                block.settle(self.values(block) if block.scores.numel() else block.scores.sum(1))
                for block in lists.blocks
            ]
            return lists.reduce(values, self.reduction)

    def extra_repr(self) -> str:
        return "" if isinstance(self.sorter, nn.Module) else f"sorter={self.sorter!r}"


class SpearmanLoss(SorterLoss):
    """One minus Spearman's correlation of scores and targets, the scores' ranks by the sorter.

    Targets are numbers, equal ones share their mean rank; lists of one row or of one target value do not count. The
    paper's loss is this one times (L² − 1)/(6 L²).

    Parameters
    ----------
    sorter, dim, reduction, ignore_index : as ``SorterLoss``
    l1 : weight of mean |score − target| beside it, which the paper's authors switch on for the first epochs (their 1 is
        about 6 here)
    """

    def __init__(self, sorter: AnySorter | str, *, l1: float = 0.0, **options: Any) -> None:
        super().__init__(sorter, **options)
        self.l1 = l1

    def forward(self, scores: Tensor, target: Tensor, mask: Tensor | None = None, qid: Tensor | None = None) -> Tensor:
        lists = self._lists(scores, target, mask, qid, self.dim)
        return self._reduced(replace(lists, blocks=tuple(_Graded(b.scores, b.target, b.valid) for b in lists.blocks)))

    def values(self, block: Block) -> Tensor:
        lengths = _lengths(block)
        wanted = _ranks_of(exact_ranks, block.target.to(compute_dtype(block.scores.device)), block.valid)
        squares = (_ranks_of(self.sorter, block.scores, block.valid).to(wanted.dtype) - wanted).square().sum(1)
        values: Tensor = 6 * lengths / (lengths.square() - 1).clamp(min=1) * squares
        if self.l1:
            values = values + self.l1 * (block.wide_scores - block.target).abs().sum(1) / lengths.clamp(min=1)
        return values


class SoDeepMAPLoss(SorterLoss):
    """Average precision, or the sum of the positives' ranks, by the sorter's ranks.

    Lists are classes in the paper: with scores (rows, classes) say ``dim=0``.

    Parameters
    ----------
    sorter, dim, reduction, ignore_index : as ``SorterLoss``
    form : ``"seed"``, equation (7), is Σ f over the positives, which with exact ranks is (P(P+1)/2 + PN (1 − AUC))/L:
        the ROC area, not average precision; ``"ap"`` is 1 − mean r⁺/r, 0 to 1, where r⁺ are ranks among the positives:
        those of the same list with the negatives moved below

    Raises
    ------
    ValueError : no such form
    """

    def __init__(self, sorter: AnySorter | str, *, form: MAPForm = "ap", **options: Any) -> None:
        super().__init__(sorter, **options)
        if form not in ("ap", "seed"):
            raise ValueError(f"form must be 'ap' or 'seed', found {form!r}")
        self.form: MAPForm = form

    def values(self, block: Block) -> Tensor:
        ranks = _ranks_of(self.sorter, block.scores, block.valid)
        if self.form == "seed":
            return _sum_over(block.positive, ranks)
        lengths = _lengths(block).unsqueeze(1)
        # A sorter's ranks are only about right: no row is above the first place, or below itself among fewer.
        among_all = (lengths * ranks).clamp(min=1)
        among_positives = (lengths * _ranks_of(self.sorter, _negatives_below(block), block.valid)).clamp(min=1)
        precision = torch.minimum(among_positives, among_all) / among_all
        return 1 - _mean_over(block.positive, precision)

    def extra_repr(self) -> str:
        return f"form={self.form!r}"


class _MatrixLoss(SorterLoss):
    """Of queries and candidates: each row of a matrix is a list, and each column one more."""

    def __init__(self, sorter: AnySorter | str, *, both: bool = True, **options: Any) -> None:
        super().__init__(sorter, **options)
        self.both = both

    def forward(
        self,
        scores: Tensor,
        target: Tensor | None = None,
        mask: Tensor | None = None,
        qid: Tensor | None = None,
    ) -> Tensor:
        """As ``SorterLoss.forward``; without a target, of a square matrix, the diagonal is positive."""
        if target is None:
            if scores.ndim != 2 or scores.shape[0] != scores.shape[1]:
                raise ValueError(f"without a target scores must be a square matrix, found {tuple(scores.shape)}")
            target = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
        lists = self._lists(scores, target, mask, qid, self.dim)
        if self.both and scores.ndim == 2:
            others = self._lists(scores, target, mask, None, -1 - self.dim % 2)
            blocks = (*lists.blocks, *others.blocks)
            lists = Lists(blocks, None, (sum(len(block.scores) for block in blocks),), lists.dtype)
        return self._reduced(lists)


class RankTripletLoss(_MatrixLoss):
    """Each positive shall be ahead, in rank, of the first of the negatives by a margin: the triplet loss on ranks.

    Parameters
    ----------
    sorter, dim, reduction, ignore_index : as ``SorterLoss``
    margin : in normalised ranks; None: 1/L, one place, with which exact ranks of positives that are all first have no
        loss
    both : of a matrix, rows and columns are lists (text to image and image to text); False: only those along ``dim``
    """

    def __init__(
        self, sorter: AnySorter | str, *, margin: float | None = None, both: bool = True, **options: Any
    ) -> None:
        super().__init__(sorter, both=both, **options)
        self.margin = margin

    def values(self, block: Block) -> Tensor:
        ranks = _ranks_of(self.sorter, block.scores, block.valid)
        first = torch.where(block.negative, ranks, torch.inf).amin(1, keepdim=True)
        first = torch.where(block.counts.unsqueeze(1), first, 0.0)
        margin = 1 / _lengths(block).clamp(min=1).unsqueeze(1) if self.margin is None else self.margin
        return _mean_over(block.positive, (margin + ranks - first).relu())


class RankRecallLoss(_MatrixLoss):
    """The mean normalised rank of the positives, or with ``k`` one minus a smooth recall: the share of them among the
    first k.

    Parameters
    ----------
    sorter, dim, reduction, ignore_index : as ``SorterLoss``
    k : positives of rank k or better are recalled; None: their ranks themselves are the loss
    tau : > 0, the width of the step at k, in places
    both : as ``RankTripletLoss``

    Raises
    ------
    ValueError : ``k`` is below 1, or ``tau`` is not a positive number
    """

    def __init__(
        self, sorter: AnySorter | str, *, k: int | None = None, tau: float = 1.0, both: bool = True, **options: Any
    ) -> None:
        super().__init__(sorter, both=both, **options)
        if k is not None and k < 1:
            raise ValueError(f"k must be 1 or more, found {k!r}")
        if not 0.0 < tau < float("inf"):
            raise ValueError(f"tau must be a positive number, found {tau!r}")
        self.k = k
        self.tau = tau

    def values(self, block: Block) -> Tensor:
        ranks = _ranks_of(self.sorter, block.scores, block.valid)
        if self.k is None:
            return _mean_over(block.positive, ranks)
        places = _lengths(block).unsqueeze(1) * ranks
        return _mean_over(block.positive, ((places - self.k - 0.5) / self.tau).sigmoid())


@dataclass(frozen=True, eq=False)
class _Graded(Block):
    """A block whose targets are numbers to be ranked by."""

    @cached_property
    def counts(self) -> Tensor:
        """(b,) bool: the lists of two rows or more, of which not all have the same target."""
        if not self.target.numel():
            return torch.zeros(len(self.target), dtype=torch.bool, device=self.target.device)
        valid = torch.ones_like(self.target, dtype=torch.bool) if self.valid is None else self.valid
        target = self.target.to(compute_dtype(self.target.device))
        highest = target.masked_fill(~valid, -torch.inf).amax(1)
        lowest = target.masked_fill(~valid, torch.inf).amin(1)
        return highest > lowest


def _lengths(block: Block) -> Tensor:
    """(b,) rows that count, in the type that is computed in."""
    dtype = compute_dtype(block.scores.device)
    if block.valid is None:
        return torch.full((len(block.scores),), block.scores.shape[1], dtype=dtype, device=block.scores.device)
    return block.valid.sum(1).to(dtype)


def _ranks_of(sorter: AnySorter, scores: Tensor, valid: Tensor | None) -> Tensor:
    """(b, n) the sorter's normalised ranks of each list among its own rows; 0 where a row does not count.

    A sorter sees whole lists: those of equal length go through it together.
    """
    scores = scores.to(_dtype_of(sorter, scores))
    if valid is None:
        return sorter(scores)
    ranks = scores * 0.0
    rows_first = torch.argsort(~valid, dim=1, stable=True)
    lengths = valid.sum(1)
    for length in lengths.unique().tolist():
        if length:
            lists = (lengths == length).nonzero()
            places = rows_first[lists.squeeze(1), :length]
            ranks = ranks.index_put((lists, places), sorter(scores[lists, places]).to(ranks.dtype))
    return ranks


def _dtype_of(sorter: AnySorter, scores: Tensor) -> torch.dtype:
    """What the sorter computes in: its parameters' type; without any float64 stays, all else becomes float32."""
    if isinstance(sorter, nn.Module):
        for parameter in sorter.parameters():
            if parameter.is_floating_point():
                return parameter.dtype
    return scores.dtype if scores.dtype == torch.float64 else torch.float32


def _negatives_below(block: Block) -> Tensor:
    """(b, n) the scores, those of the negatives lowered until all positives are ahead, by a mean distance at least."""
    scores = block.scores
    lowest_positive = scores.masked_fill(~block.positive, torch.inf).amin(1)
    highest_negative = scores.masked_fill(~block.negative, -torch.inf).amax(1)
    valid = block.positive | block.negative
    spread = scores.masked_fill(~valid, -torch.inf).amax(1) - scores.masked_fill(~valid, torch.inf).amin(1)
    distance = spread / _lengths(block).clamp(min=1).to(scores.dtype)
    shift = (highest_negative - lowest_positive + distance).clamp(min=0)
    shift = torch.where(block.counts, shift, 0.0)
    return torch.where(block.negative, scores - shift.unsqueeze(1), scores)


def _sum_over(rows: Tensor, values: Tensor) -> Tensor:
    return torch.where(rows, values, 0.0).sum(1)


def _mean_over(rows: Tensor, values: Tensor) -> Tensor:
    return _sum_over(rows, values) / rows.sum(1).clamp(min=1)
