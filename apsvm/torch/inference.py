"""Loss-augmented inference in tensors, for any device: the most violated rankings of all lists of a batch together.

Notation and theory are those of ``apsvm.oracles``: with the scores of the positives a_1 ≥ … ≥ a_P and of the negatives
b_1 ≥ … ≥ b_N, measured from a_1,

    g_j(k) = u_k [D(k+j−1) − D(k+j)] − 2/(PN) (a_k − b_j),    f_j(r) = Σ_{k=r..P} g_j(k),    r_j = last argmax f_j

and the ranks ascend with j. ``levels`` is divide and conquer on the median negative (Mohapatra, Rolínek et al. 2018)
with all intervals of one depth, of all lists, in the same few operations: log₂ N rounds of O(P + intervals). ``dense``
stores all of g, b × P × N. It is a reference, and faster for few and short lists, for which the number of operations
decides.

Here j, k and ranks count from 0, the rank being the number of positives above, and the lists' classes stand one list
after another, without padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from apsvm.torch.lists import Block, compute_dtype
from apsvm.torch.tables import Tables

Form: TypeAlias = Literal["hinge", "ramp"]

#: Entries of g up to which ``dense`` is faster than ``levels``.
DENSE = 50_000


class Answer(NamedTuple):
    """Results for b lists of n rows, without a graph. The first two are NumPy arrays if native code wrote them.

    Attributes
    ----------
    values : (b,), max_R {F + Δ}, minus F of the ranking by score for the ramp; NaN for a list that is not finite, and 0
        for one without both classes
    counts : (b,) bool, the lists with both classes
    row_weights : (b, n), or (n,) for scores (n,): gradients with respect to the scores, equal for rows of one class and
        equal score
    """

    values: Tensor | NDArray[np.float64]
    counts: Tensor | NDArray[np.bool_]
    row_weights: Tensor


def spoilt_by_target(block: Block, answer: Answer) -> Answer:
    """The answer, set to NaN for lists with a target that is not finite, which would otherwise count as a negative."""
    if not block.rows.target.is_floating_point() or block.has_classes:
        return answer
    spoilt = ~block.target.isfinite().all(1)
    rows = spoilt.unsqueeze(1) if block.valid is None else block.valid & spoilt.unsqueeze(1)
    row_weights = answer.row_weights.view_as(block.scores).masked_fill(rows, torch.nan)
    return Answer(torch.as_tensor(answer.values).masked_fill(spoilt, torch.nan), answer.counts, row_weights)


@dataclass(frozen=True, eq=False)
class _Ordered:
    """The classes of the lists that can be ranked, one list after another.

    Attributes
    ----------
    n_pos, n_neg : (l,) int64
    first_pos, first_neg : (l,) int64, where each list begins among them
    list_of_pos, list_of_neg : (ΣP,), (ΣN,) int64
    a, b : (ΣP,), (ΣN,) their scores, descending, from the highest positive of the list
    share : (l,) 2/(PN)
    weights : (ΣP,) u_k
    discount, drops : D(p) and D(p) − D(p+1) of list l at ``places[l] + p − 1``
    places : (l,) int64
    """

    n_pos: Tensor
    n_neg: Tensor
    first_pos: Tensor
    first_neg: Tensor
    list_of_pos: Tensor
    list_of_neg: Tensor
    a: Tensor
    b: Tensor
    share: Tensor
    weights: Tensor
    discount: Tensor
    drops: Tensor
    places: Tensor


def infer(scores: Tensor, positive: Tensor, valid: Tensor | None, tables: Tables, form: Form, algorithm: str) -> Answer:
    """The most violated rankings of b lists of n rows.

    Parameters
    ----------
    scores : (b, n) floating point
    positive, valid : (b, n) bool; ``valid`` None: all rows count
    algorithm : ``"levels"``, ``"dense"`` or ``"auto"``
    """
    x = scores.detach().to(compute_dtype(scores.device))
    counted = torch.ones_like(positive) if valid is None else valid
    positive = positive & counted
    n_pos = positive.sum(1)
    n_neg = counted.sum(1) - n_pos
    counts = (n_pos > 0) & (n_neg > 0)
    finite = (x.isfinite() | ~counted).all(1)
    usable = (counts & finite).unsqueeze(1)
    keys = torch.where(counted, x, -torch.inf)
    x, order = torch.sort(keys, dim=1, descending=True, stable=True)
    pos = positive.gather(1, order) & usable
    neg = counted.gather(1, order) & usable & ~pos
    top = torch.where(pos, x, -torch.inf).amax(1, keepdim=True) if x.shape[1] else x.new_zeros((x.shape[0], 1))
    x = torch.where(pos | neg, x - top, 0.0)
    at_pos, at_neg = pos.flatten().nonzero().squeeze(1), neg.flatten().nonzero().squeeze(1)
    a, b = x.flatten().index_select(0, at_pos), x.flatten().index_select(0, at_neg)
    lists = _ordered(a, b, n_pos[usable[:, 0]], n_neg[usable[:, 0]], tables)
    if algorithm == "auto":
        entries = lists.n_pos.numel() * int(lists.n_pos.amax()) * int(lists.n_neg.amax()) if lists.a.numel() else 0
        algorithm = "dense" if entries <= DENSE else "levels"
    ranks = (_dense if algorithm == "dense" else _levels)(lists)
    above = _negatives_above(lists, ranks)
    at = lists.places.index_select(0, lists.list_of_pos) + _number(lists.list_of_pos, lists.first_pos)
    lost = lists.weights * (lists.discount.index_select(0, at) - lists.discount.index_select(0, at + above))
    below = lists.n_pos.index_select(0, lists.list_of_neg) - ranks
    c_pos = -_mean_of_ties(above, lists.a, lists.list_of_pos)
    c_neg = _mean_of_ties(below, lists.b, lists.list_of_neg)
    if form == "ramp":
        above, below = _ranking_by_score(x, pos, neg)
        c_pos = c_pos + above.flatten().index_select(0, at_pos)
        c_neg = c_neg - below.flatten().index_select(0, at_neg)
    c = torch.zeros_like(x)
    c.view(-1).index_copy_(0, at_pos, c_pos * lists.share.index_select(0, lists.list_of_pos))
    c.view(-1).index_copy_(0, at_neg, c_neg * lists.share.index_select(0, lists.list_of_neg))
    loss = torch.zeros_like(x)
    loss.view(-1).index_copy_(0, at_pos, lost)
    values = (loss + c * x).sum(1)
    row_weights = torch.empty_like(c).scatter_(1, order, c)
    values = values.masked_fill(~finite, torch.nan)
    row_weights = row_weights.masked_fill(counted & ~finite.unsqueeze(1), torch.nan)
    return Answer(values, counts, row_weights.to(scores.dtype))


def _ordered(a: Tensor, b: Tensor, n_pos: Tensor, n_neg: Tensor, tables: Tables) -> _Ordered:
    device, dtype = a.device, a.dtype
    written = tables.of_lists([*zip(n_pos.tolist(), n_neg.tolist(), strict=True)])
    numbers = torch.arange(n_pos.numel(), device=device)
    list_of_pos = torch.repeat_interleave(numbers, n_pos)
    list_of_neg = torch.repeat_interleave(numbers, n_neg)
    first_pos = torch.cumsum(n_pos, 0) - n_pos
    weights_begin = torch.from_numpy(written.weights_begin).to(device)
    at = weights_begin.index_select(0, list_of_pos) + _number(list_of_pos, first_pos)
    return _Ordered(
        n_pos=n_pos,
        n_neg=n_neg,
        first_pos=first_pos,
        first_neg=torch.cumsum(n_neg, 0) - n_neg,
        list_of_pos=list_of_pos,
        list_of_neg=list_of_neg,
        a=a,
        b=b,
        share=2.0 / (n_pos.to(dtype) * n_neg.to(dtype)),
        weights=torch.from_numpy(written.weights).to(device, dtype).index_select(0, at),
        discount=torch.from_numpy(written.discount).to(device, dtype),
        drops=torch.from_numpy(written.drops).to(device, dtype),
        places=torch.from_numpy(written.discount_begin).to(device),
    )


def _number(list_of: Tensor, first: Tensor) -> Tensor:
    """0, 1, … within each list."""
    return torch.arange(list_of.numel(), device=list_of.device) - first.index_select(0, list_of)


def _levels(lists: _Ordered) -> Tensor:
    """(ΣN,) int64: the number of positives above each negative."""
    ranks = torch.zeros_like(lists.list_of_neg)
    # Each list's gains divided by their size, since the running sum below covers lists of different scales.
    size = _size_of_gains(lists)
    gain = lists.weights / size.index_select(0, lists.list_of_pos)
    unit = lists.share / size
    a = lists.a * unit.index_select(0, lists.list_of_pos)
    b = lists.b * unit.index_select(0, lists.list_of_neg)
    of = torch.arange(lists.n_pos.numel(), device=ranks.device)
    # The negatives low … high of a list, whose ranks are from `least` to `most`.
    low, high, least, most = torch.zeros_like(of), lists.n_neg - 1, torch.zeros_like(of), lists.n_pos
    while of.numel():
        middle = (low + high) >> 1
        first_pos, first_neg = lists.first_pos.index_select(0, of), lists.first_neg.index_select(0, of)
        width = most - least
        ends = torch.cumsum(width, 0)
        begin = ends - width
        total = int(ends[-1])
        node = torch.repeat_interleave(torch.arange(of.numel(), device=of.device), width, output_size=total)
        here = torch.arange(total, device=of.device)
        k = here + (first_pos + least - begin).index_select(0, node)
        p = here + (lists.places.index_select(0, of) + least + middle - begin).index_select(0, node)
        g = gain.index_select(0, k) * lists.drops.index_select(0, p) - a.index_select(0, k)
        g = g + b.index_select(0, first_neg + middle).index_select(0, node)
        # f(least) − f(k + 1), least where f is highest.
        sums = torch.cumsum(g, 0)
        fall = sums - (sums - g).index_select(0, begin).index_select(0, node)
        lowest = torch.zeros_like(b[:1]).expand(of.numel()).scatter_reduce(0, node, fall, "amin")
        hits = (fall == lowest.index_select(0, node)).nonzero().squeeze(1)
        last = (begin - 1).scatter_reduce(0, node.index_select(0, hits), hits, "amax")
        rank = least + (last - begin + 1)
        ranks.index_copy_(0, first_neg + middle, rank)
        # Both halves side by side: intervals stay in the order of lists and negatives.
        of = torch.stack([of, of], 1).flatten()
        low, high = torch.stack([low, middle + 1], 1).flatten(), torch.stack([middle - 1, high], 1).flatten()
        least, most = torch.stack([least, rank], 1).flatten(), torch.stack([rank, most], 1).flatten()
        filled, is_settled = low <= high, least == most
        # The first of an interval of one rank; those behind it get theirs below, as ranks ascend.
        settled = (filled & is_settled).nonzero().squeeze(1)
        place = lists.first_neg.index_select(0, of.index_select(0, settled)) + low.index_select(0, settled)
        ranks.index_copy_(0, place, least.index_select(0, settled))
        left = (filled & ~is_settled).nonzero().squeeze(1)
        of, low, high, least, most = (part.index_select(0, left) for part in (of, low, high, least, most))
    step = lists.list_of_neg * (int(lists.n_pos.amax()) + 1 if lists.n_pos.numel() else 1)
    return torch.cummax(ranks + step, 0).values - step if ranks.numel() else ranks


def _size_of_gains(lists: _Ordered) -> Tensor:
    """(l,) > 0: bound on the terms of a list's g_j(k), from the loss and from the scores."""
    heaviest = torch.zeros_like(lists.share).scatter_reduce(0, lists.list_of_pos, lists.weights, "amax")
    scores = [
        lists.a.index_select(0, lists.first_pos + lists.n_pos - 1),  # of the lowest positive; the highest is 0
        lists.b.index_select(0, lists.first_neg),
        lists.b.index_select(0, lists.first_neg + lists.n_neg - 1),
    ]
    sizes = [heaviest * lists.drops.index_select(0, lists.places), *(lists.share * score.abs() for score in scores)]
    return torch.stack(sizes).amax(0).clamp(min=torch.finfo(lists.a.dtype).tiny)


def _dense(lists: _Ordered) -> Tensor:
    """The same ranks by trying all."""
    if lists.a.numel() == 0:
        return torch.zeros_like(lists.list_of_neg)
    n_lists, longest = lists.n_pos.numel(), int(lists.n_pos.amax())
    k, j = _number(lists.list_of_pos, lists.first_pos), _number(lists.list_of_neg, lists.first_neg)
    of_pos, of_neg = lists.list_of_pos * longest + k, lists.list_of_neg

    def padded(values: Tensor) -> Tensor:
        return values.new_zeros(n_lists * longest).index_copy(0, of_pos, values).view(n_lists, longest)

    u, a = padded(lists.weights), padded(lists.a)
    there = padded(torch.ones_like(lists.a)).index_select(0, of_neg)
    p = lists.places.index_select(0, of_neg) + j
    at = (p.unsqueeze(1) + torch.arange(longest, device=p.device)).clamp(max=lists.drops.numel() - 1)
    g = u.index_select(0, of_neg) * lists.drops[at]
    g = g - lists.share.index_select(0, of_neg).unsqueeze(1) * (a.index_select(0, of_neg) - lists.b.unsqueeze(1))
    f = torch.nn.functional.pad((g * there).flip(1).cumsum(1), (1, 0))
    # f of the ranks P, P − 1, … 0 after padding: the first maximum has the largest rank. Padding is 0, as is f at rank
    # P.
    n_pos = lists.n_pos.index_select(0, of_neg)
    return (longest - f.argmax(1)).clamp(max=n_pos)


def _negatives_above(lists: _Ordered, ranks: Tensor) -> Tensor:
    """(ΣP,) int64: n_k of each positive, the number of negatives with at most k positives above them (k from 0)."""
    if ranks.numel() == 0:
        return torch.zeros_like(lists.list_of_pos)
    step = int(lists.n_pos.amax()) + 1
    k = _number(lists.list_of_pos, lists.first_pos)
    behind = torch.searchsorted(ranks + lists.list_of_neg * step, k + lists.list_of_pos * step, right=True)
    return behind - lists.first_neg.index_select(0, lists.list_of_pos)


def _mean_of_ties(numbers: Tensor, scores: Tensor, list_of: Tensor) -> Tensor:
    """The mean of the ``numbers`` (m,) int64 of rows of equal score, which stand side by side."""
    new = torch.ones_like(numbers, dtype=torch.bool)
    new[1:] = (scores[1:] != scores[:-1]) | (list_of[1:] != list_of[:-1])
    group = torch.cumsum(new, 0) - 1
    begin = new.nonzero().squeeze(1)
    end = torch.cat([begin[1:], begin.new_tensor([numbers.numel()])]) if begin.numel() else begin
    sums = torch.nn.functional.pad(torch.cumsum(numbers, 0), (1, 0))
    means = (sums.index_select(0, end) - sums.index_select(0, begin)).to(scores.dtype) / (end - begin).to(scores.dtype)
    return means.index_select(0, group)


def _ranking_by_score(x: Tensor, pos: Tensor, neg: Tensor) -> tuple[Tensor, Tensor]:
    """(b, n) each: number of negatives with a higher score than a row, and of positives with a lower one."""
    n = x.shape[1]
    numbers = torch.arange(n, device=x.device).expand_as(x)
    ranked = pos | neg
    new = torch.ones_like(pos)
    new[:, 1:] = (x[:, 1:] != x[:, :-1]) | ~ranked[:, 1:]
    begin = torch.cummax(torch.where(new, numbers, 0), 1).values  # of the rows of equal score
    behind = torch.cat([new[:, 1:], torch.ones_like(new[:, :1])], 1)
    last = torch.cummin(torch.where(behind, numbers, n).flip(1), 1).values.flip(1)
    negatives, positives = torch.cumsum(neg, 1), torch.cumsum(pos, 1)
    above = (negatives - neg.long()).gather(1, begin)
    below = positives[:, -1:] - positives.gather(1, last)
    return above, below
