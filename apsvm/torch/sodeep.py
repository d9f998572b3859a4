"""Losses of the ranks from a sorter f, which is smooth and approximates rk (Engilberge, Chevallier, Pérez, Cord 2019,
§3.2).

Spearman (4)     6 L²/(L² − 1) · mean_i (f(y)_i − rk(y*)_i)²                 1 − ρ, if f were rk and no scores tie
mAP (7)          Σ_{i positive} f(y)_i                                       the seed's, with f = rk the ROC area
                 1 − mean_{i positive} r⁺_i / r_i,   r = L f(y)              average precision
triplets (9, 10) mean_{i positive} max(0, 1/L + f(y)_i − min_{j negative} f(y)_j)
recall (8)       mean_{i positive} f(y)_i, or 1 − σ((k + ½ − r_i)/τ)

where L is a list's length and ranks are normalised, 1/L for the largest score. A sorter is any callable from (B, L)
scores to (B, L) ranks: a module, ``apsvm.torch.ranks.exact_ranks``, or the name of one that ``load_sorter`` knows.
"""

from __future__ import annotations

import copy
from typing import Literal, TypeAlias, Unpack

import torch
from torch import Tensor, nn

from apsvm._support.caller import warn_caller
from apsvm.torch.base import ListLoss, ListOptions
from apsvm.torch.checkpoint import load_sorter
from apsvm.torch.lists import Block, Values
from apsvm.torch.ranks import compute_dtype, exact_ranks
from apsvm.torch.soft_rank import above_zero
from apsvm.torch.sorters import Sorter, SorterError
from apsvm.torch.sorters.quality import AnySorter, climb_caution

MAPForm: TypeAlias = Literal["ap", "seed"]

#: Default sorter: any length, O(L log L), and its gradient leads further than that of a trained one.
DEFAULT = "laplace(10)"


class SorterLoss(ListLoss):
    """Base class of losses of a sorter's ranks. ``sorter``: see ``SpearmanLoss``."""

    def __init__(self, sorter: AnySorter | str = DEFAULT, **lists: Unpack[ListOptions]) -> None:
        super().__init__(**lists)
        self.sorter: AnySorter = _usable(load_sorter(sorter) if isinstance(sorter, str) else sorter)

    def ranks_of(self, scores: Tensor, valid: Tensor | None) -> Tensor:
        """(b, n) the sorter's normalised ranks of each list's counting rows; 0 for other rows.

        Lists of equal length are passed to the sorter together, without padding."""
        scores = scores.to(_dtype_of(self.sorter, scores))
        if valid is None:
            return self.sorter(scores)
        ranks = scores * 0.0
        rows_first = torch.argsort(~valid, dim=1, stable=True)
        lengths = valid.sum(1)
        for length in lengths.unique().tolist():
            if length:
                lists = (lengths == length).nonzero()
                places = rows_first[lists.squeeze(1), :length]
                ranks = ranks.index_put((lists, places), self.sorter(scores[lists, places]).to(ranks.dtype))
        return ranks

    def extra_repr(self) -> str:
        sorter = "" if isinstance(self.sorter, nn.Module) else f"sorter={self.sorter!r}, "
        return f"{sorter}{super().extra_repr()}"


class SpearmanLoss(SorterLoss):
    """One minus Spearman's correlation of scores and targets; a sorter ranks the scores.

    Targets are numbers; equal ones share their mean rank. Lists of one row or of one target value do not count. The
    paper's loss is this one times (L² − 1)/(6 L²).

    Parameters
    ----------
    sorter : AnySorter or str
        A callable (B, L) → (B, L), or a name of ``load_sorter``: ``"laplace(10)"``, ``"handcrafted(10)"``,
        ``"neighbours"``, a file of ``write_checkpoint``. A sorter for one length raises a SorterError (a ValueError)
        for other lengths. The loss keeps a frozen copy of a trainable module, since an optimiser of the loss would also
        train the sorter.
    **lists
        ``reduction`` and ``ignore_index`` of ``ListLoss``.

    Raises
    ------
    ValueError
        Unknown reduction or sorter; a sorter of ``make_sorter`` that was not trained (SorterError).

    Warns
    -----
    UserWarning
        The ``climb`` in the sorter's file is not above chance: its gradient is useless.

    Notes
    -----
    ``6 L²/(L² − 1) · mean_i (f(s)_i − rk(y)_i)²`` with normalised ranks (equation 4). With exact ranks it is 0 for
    equal orders and 2 for opposite ones.
    """

    needs = "two rows of different targets"

    @property
    def takes_fractions(self) -> bool:
        return True

    def values_of(self, block: Block) -> Values:
        target_ranks = exact_ranks(block.target.to(compute_dtype(block.scores.device)), block.valid)
        squares = (self.ranks_of(block.scores, block.valid).to(target_ranks.dtype) - target_ranks).square().sum(1)
        values: Tensor = 6 * block.lengths / (block.lengths.square() - 1).clamp(min=1) * squares
        return block.settle(values, _differ(block))


class SoDeepMAPLoss(SorterLoss):
    """One minus average precision, or the sum of the positives' ranks, by the sorter's ranks.

    In the paper, lists are classes: for scores (rows, classes) pass ``dim=0``.

    Parameters
    ----------
    sorter : AnySorter or str
        See ``SpearmanLoss``.
    form : MAPForm
        ``"seed"``, equation (7), is Σ f over the positives, which with exact ranks is (P(P+1)/2 + PN (1
        − AUC))/L: the ROC area, not average precision; ``"ap"`` is 1 − mean r⁺/r, 0 to 1, where r⁺ are ranks
        among the positives: those of the same list with the negatives moved below.
    **lists
        ``reduction`` and ``ignore_index`` of ``ListLoss``.

    Raises
    ------
    ValueError
        Unknown form.
    """

    def __init__(
        self,
        sorter: AnySorter | str = DEFAULT,
        *,
        form: MAPForm = "ap",
        **lists: Unpack[ListOptions],
    ) -> None:
        super().__init__(sorter, **lists)
        if form not in ("ap", "seed"):
            raise ValueError(f"form must be 'ap' or 'seed', found {form!r}")
        self.form: MAPForm = form

    def values_of(self, block: Block) -> Values:
        # Converted once, since gradients of half precision would otherwise be summed in that type.
        scores = block.scores.to(torch.promote_types(block.scores.dtype, torch.float32))
        ranks = self.ranks_of(scores, block.valid)
        if self.form == "seed":
            return block.settle(torch.where(block.positive, ranks, 0.0).sum(1))
        lengths = block.lengths.unsqueeze(1)
        # Ranks of a sorter are approximate: they are clamped to be at least 1, and r⁺ to at most r.
        among_all = (lengths * ranks).clamp(min=1)
        among_positives = (lengths * self.ranks_of(_negatives_below(block, scores), block.valid)).clamp(min=1)
        # In a list of equal scores no negative can be moved below: positives keep their mean rank.
        mean = scores.sum(1, keepdim=True) / lengths.clamp(min=1)
        rounding = 4 * torch.finfo(scores.dtype).eps * mean.abs()
        tied = ((scores - mean).abs() <= rounding).logical_or(~block.counted).all(1, keepdim=True)
        among_positives = torch.where(tied, (block.n_pos.unsqueeze(1) + 1) / 2, among_positives)
        precision = torch.minimum(among_positives, among_all) / among_all
        return block.settle(1 - block.mean_of_positives(precision))

    def extra_repr(self) -> str:
        return f"form={self.form!r}, {super().extra_repr()}"


class _MatrixLoss(SorterLoss):
    """Loss of a matrix of queries and candidates: each row is a list and, with ``both``, each column too."""

    def __init__(self, sorter: AnySorter | str = DEFAULT, *, both: bool = True, **lists: Unpack[ListOptions]) -> None:
        super().__init__(sorter, **lists)
        self.both = both

    def forward(
        self,
        scores: Tensor,
        target: Tensor | None = None,
        mask: Tensor | None = None,
        qid: Tensor | None = None,
        dim: int = -1,
    ) -> Tensor:
        """Same as ``ListLoss.forward``; without a target the diagonal of a square matrix is positive. With ``both``,
        the lists of a square matrix without a mask are its rows, then its columns, whatever ``dim`` is."""
        if target is None:
            if scores.ndim != 2 or scores.shape[0] != scores.shape[1]:
                raise ValueError(f"without a target scores must be a square matrix, found {tuple(scores.shape)}")
            target = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
        square = scores.ndim == 2 and scores.shape[0] == scores.shape[1]
        if self.both and square and mask is None and qid is None and scores.shape == target.shape:
            scores, target, dim = torch.cat([scores, scores.t()]), torch.cat([target, target.t()]), -1
        return super().forward(scores, target, mask, qid, dim)


class RankTripletLoss(_MatrixLoss):
    """Triplet loss on ranks: each positive should be ahead of the first negative by a place.

    Parameters
    ----------
    sorter : AnySorter or str
        See ``SpearmanLoss``.
    both : bool
        True: rows and columns of a matrix are lists (text to image and image to text). False: only those along ``dim``.
    **lists
        ``reduction`` and ``ignore_index`` of ``ListLoss``.

    Notes
    -----
    ``mean_{i positive} max(0, 1/L + f(s)_i − min_{j negative} f(s)_j)``, equations (9) and (10) with a mean instead of
    the sum; from 0, with exact ranks if all positives are first, to 1 + 1/L. Without a target the diagonal of a square
    matrix is positive.
    """

    def values_of(self, block: Block) -> Values:
        ranks = self.ranks_of(block.scores, block.valid)
        if not ranks.numel():
            return block.settle(ranks.sum(1))
        first = torch.where(block.negative, ranks, torch.inf).amin(1, keepdim=True)
        first = torch.where(block.counts.unsqueeze(1), first, 0.0)
        margin = 1 / block.lengths.clamp(min=1).unsqueeze(1)
        return block.settle(block.mean_of_positives((margin + ranks - first).relu()))


class RankRecallLoss(_MatrixLoss):
    """The mean normalised rank of the positives, or with ``k`` one minus a smooth recall among the first k.

    Parameters
    ----------
    sorter : AnySorter or str
        See ``SpearmanLoss``.
    k : int, optional
        Number of first ranks that count for recall; None: the mean rank is the loss.
    tau : float
        Width of the step at k, > 0, in places.
    both : bool
        As ``RankTripletLoss``.
    **lists
        ``reduction`` and ``ignore_index`` of ``ListLoss``.

    Raises
    ------
    ValueError
        ``k`` is below 1, or ``tau`` is not positive.

    Notes
    -----
    ``mean_{i positive} f(s)_i``, or ``1 − mean_{i positive} σ((k + ½ − L f(s)_i)/tau)``, a smooth form of equation (8).
    from 0 to 1.
    """

    def __init__(
        self,
        sorter: AnySorter | str = DEFAULT,
        *,
        k: int | None = None,
        tau: float = 1.0,
        both: bool = True,
        **lists: Unpack[ListOptions],
    ) -> None:
        super().__init__(sorter, both=both, **lists)
        if k is not None and k < 1:
            raise ValueError(f"k must be 1 or more, found {k!r}")
        self.k, self.tau = k, above_zero("tau", tau)

    def values_of(self, block: Block) -> Values:
        ranks = self.ranks_of(block.scores, block.valid)
        if self.k is None:
            return block.settle(block.mean_of_positives(ranks))
        places = block.lengths.unsqueeze(1) * ranks
        return block.settle(block.mean_of_positives(((places - self.k - 0.5) / self.tau).sigmoid()))


def _usable(sorter: AnySorter) -> AnySorter:
    """The sorter, or a frozen copy if it can be trained. Raises SorterError for an untrained one."""
    if not isinstance(sorter, nn.Module):
        return sorter
    if isinstance(sorter, Sorter):
        if sorter.is_untrained:
            raise SorterError(
                f"sorter {sorter.name!r} must be trained first: scripts/reproduce/sodeep.py --train makes a file for "
                "load_sorter; call freeze() on one that you trained yourself"
            )
        if caution := climb_caution(sorter.climb):
            warn_caller(f"sorter {sorter.name!r}: {caution}")
    if not any(parameter.requires_grad for parameter in sorter.parameters()):
        return sorter
    frozen = copy.deepcopy(sorter)
    # An optimiser would use an existing gradient, even of a frozen parameter.
    frozen.zero_grad(set_to_none=True)
    return frozen.freeze() if isinstance(frozen, Sorter) else frozen.requires_grad_(False)


def _differ(block: Block) -> Tensor:
    """(b,) bool: True for lists with different targets."""
    if not block.target.numel():
        return torch.zeros(len(block.target), dtype=torch.bool, device=block.target.device)
    target = block.target.to(compute_dtype(block.target.device))
    highest = target.masked_fill(~block.counted, -torch.inf).amax(1)
    return highest > target.masked_fill(~block.counted, torch.inf).amin(1)


def _dtype_of(sorter: AnySorter, scores: Tensor) -> torch.dtype:
    """Type in which the sorter computes: that of its parameters. Without parameters, this package's sorters use
    float64 if the device has it; others keep float64 and get float32 otherwise."""
    if isinstance(sorter, Sorter) and not sorter.trained:
        return compute_dtype(scores.device)
    if isinstance(sorter, nn.Module):
        for parameter in sorter.parameters():
            if parameter.is_floating_point():
                return parameter.dtype
    return scores.dtype if scores.dtype == torch.float64 else torch.float32


def _negatives_below(block: Block, scores: Tensor) -> Tensor:
    """(b, n) the scores, with negatives lowered by one amount until all positives are ahead by at least a mean
    distance."""
    if not scores.numel():
        return scores
    lowest_positive = scores.masked_fill(~block.positive, torch.inf).amin(1)
    highest_negative = scores.masked_fill(~block.negative, -torch.inf).amax(1)
    highest, lowest = scores.masked_fill(~block.counted, -torch.inf), scores.masked_fill(~block.counted, torch.inf)
    distance = (highest.amax(1) - lowest.amin(1)) / block.lengths.clamp(min=1).to(scores.dtype)
    shift = (highest_negative - lowest_positive + distance).clamp(min=0)
    shift = torch.where(block.counts, shift, 0.0)
    return torch.where(block.negative, scores - shift.unsqueeze(1), scores)
