"""Lists of rows from tensors of any supported shape; other modules see blocks only.

The user passes scores (n,) or (B, n), a mask of rows that count, or the query of each row. A loss receives blocks of b
lists of n rows each, padded if lengths differ, and returns a value for each list:

    lists = lists_of(scores, target, mask=mask, qid=qid)
    values, counts = zip(*(values_of(block) for block in lists.blocks))
    loss = lists.reduce(values, counts, "mean")

Only the lengths of queries wait for a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias, get_args

import torch
from torch import Tensor

from apsvm._support.caller import warn_caller
from apsvm.torch.ranks import compute_dtype, standardized

Reduction: TypeAlias = Literal["mean", "sum", "none"]
REDUCTIONS: tuple[Reduction, ...] = get_args(Reduction)

#: Queries are padded to the longest if this at most multiplies the rows by this factor.
PADDING = 4


class Values(NamedTuple):
    """``values`` (b,) of a block's lists, with their graph; ``counts`` (b,) bool, True for lists that count in a
    mean."""

    values: Tensor
    counts: Tensor


class Rows(NamedTuple):
    """Tensors of a block: (n,) for one list, or (b, n). Rows that do not count have score 0 and target 0.

    Attributes
    ----------
    scores : floating point, with its graph
    target : bool or numbers
    positive : bool, target above 0
    valid : bool, the rows that count; None: all of them
    """

    scores: Tensor
    target: Tensor
    positive: Tensor
    valid: Tensor | None


@dataclass(eq=False)
class Block:
    """b lists of n rows each. Native code uses ``rows`` directly: on short lists, views take most of the time."""

    rows: Rows

    @cached_property
    def scores(self) -> Tensor:
        """(b, n) with its graph."""
        return as_lists(self.rows.scores)

    @cached_property
    def target(self) -> Tensor:
        """(b, n) bool or numbers."""
        return as_lists(self.rows.target)

    @cached_property
    def valid(self) -> Tensor | None:
        """(b, n) bool, the rows that count; None: all of them."""
        return None if self.rows.valid is None else as_lists(self.rows.valid)

    @cached_property
    def counted(self) -> Tensor:
        """(b, n) bool, the rows that count."""
        return torch.ones_like(self.positive) if self.valid is None else self.valid

    @cached_property
    def positive(self) -> Tensor:
        """(b, n) bool."""
        return as_lists(self.rows.positive)

    @cached_property
    def has_classes(self) -> bool:
        """True if all targets are 0 or 1."""
        _, target, positive, _ = self.rows
        return target is positive or torch.equal(target, positive.to(target.dtype))

    @cached_property
    def negative(self) -> Tensor:
        """(b, n) bool."""
        return self.counted & ~self.positive

    @cached_property
    def n_pos(self) -> Tensor:
        """(b,) int64."""
        return self.positive.sum(1)

    @cached_property
    def n_neg(self) -> Tensor:
        """(b,) int64."""
        return self.negative.sum(1)

    @cached_property
    def lengths(self) -> Tensor:
        """(b,) numbers of rows that count, in the type of computation."""
        return self.counted.sum(1).to(compute_dtype(self.counted.device))

    @cached_property
    def counts(self) -> Tensor:
        """(b,) bool: True for lists with both classes, which count in a mean."""
        return (self.n_pos > 0) & (self.n_neg > 0)

    @cached_property
    def finite(self) -> Tensor:
        """(b,) bool: True for lists whose counting rows have finite scores and targets."""
        return self.scores.detach().isfinite().all(1)

    @cached_property
    def wide_scores(self) -> Tensor:
        """(b, n) scores in the type of computation: float64, or float32 on a device without float64."""
        return self.scores.to(compute_dtype(self.scores.device))

    @cached_property
    def standardized(self) -> Tensor:
        """(b, n) ``wide_scores`` standardised by list; 0 in a list of equal scores."""
        return standardized(self.wide_scores, self.valid)

    def cpu(self) -> Block:
        """The block on the CPU, without its graph, for native code."""
        return Block(Rows(*(None if rows is None else _plain(rows) for rows in self.rows)))

    def mean_of_positives(self, values: Tensor) -> Tensor:
        """(b,) mean of the ``values`` (b, n) of each list's positives; 0 without any."""
        return torch.where(self.positive, values, 0.0).sum(1) / self.n_pos.clamp(min=1)

    def settle(self, values: Tensor, counts: Tensor | None = None) -> Values:
        """The ``values`` (b,), replaced by 0 without gradient for lists that do not count, and by NaN with NaN
        gradients for lists that are not finite. ``counts`` (b,) bool; None: lists with both classes count."""
        counts = self.counts if counts is None else counts
        factor = torch.ones_like(values).masked_fill(~self.finite, torch.nan)
        return Values(torch.where(counts | ~self.finite, values, 0.0) * factor, counts)


class Lists(NamedTuple):
    """All lists of a call.

    Attributes
    ----------
    blocks : the lists, those of similar length together
    order : (l,) int64, position among the blocks' lists of each list of ``reduction="none"``; None: the same order
    shape : shape of the values of ``reduction="none"``: () for scores (n,), (B,) for (B, n), (l,) for queries
    dtype : type of the loss: that of the scores, or float32 for half precision
    """

    blocks: tuple[Block, ...]
    order: Tensor | None
    shape: tuple[int, ...]
    dtype: torch.dtype

    def reduce(self, values: Sequence[Tensor], counts: Sequence[Tensor], reduction: Reduction) -> Tensor:
        """Reduces the ``values`` (b,) of each block's lists, 0 for lists that do not count: to the mean over the
        counting ones (0 without any), the sum, or all values by ascending query. ``counts``: (b,) bool for each block.
        """
        joined = values[0] if len(values) == 1 else torch.cat([*values])
        if reduction == "none":
            ordered = joined if self.order is None else joined[self.order]
            return ordered.to(self.dtype).reshape(self.shape)
        if joined.numel() == 1:
            return joined.to(self.dtype).reshape(())
        total = joined.sum()
        if reduction == "mean":
            total = total / torch.cat([*counts]).sum().clamp(min=1)
        return total.to(self.dtype)


def in_transform(scores: Tensor) -> bool:
    """True inside grad, vmap … of torch.func, where native code cannot read the scores."""
    return isinstance(scores, Tensor) and torch._C._functorch.is_functorch_wrapped_tensor(scores)


def _plain(rows: Tensor) -> Tensor:
    while torch._C._functorch.is_gradtrackingtensor(rows):
        rows = torch._C._functorch.get_unwrapped(rows)
    return rows.detach().cpu()


def lists_of(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int = -1,
    ignore_index: int | None = None,
    detached: bool = False,
) -> Lists:
    """Lists from the arguments of a loss.

    Parameters
    ----------
    scores : (n,) or (B, n) floating point; higher is better
    target : same shape; bool, or numbers, positive above 0
    mask : same shape, bool, True for rows that count; None: all
    qid : (n,) integers in any order: rows with equal values form a list
    dim : dimension of scores (B, n) along which a list lies
    ignore_index : rows with this target do not count
    detached : True to drop the graph of the scores, and for lists on the CPU

    Raises
    ------
    TypeError : an argument that is not a tensor, or has a wrong type
    ValueError : shapes or devices that differ, more than two dimensions, ``qid`` with a batch
    """
    _check(scores, target, mask, qid, dim)
    if detached:
        scores, target, mask = scores.detach().cpu(), target.cpu(), None if mask is None else mask.cpu()
    valid = mask
    if ignore_index is not None:
        counted = target != ignore_index
        valid = counted if valid is None else valid & counted
    dtype = scores.dtype if scores.dtype == torch.float64 else torch.float32
    if qid is not None:
        return _by_query(scores, target, valid, qid, dtype)
    shape: tuple[int, ...] = ()
    if scores.ndim == 2:
        if dim in (0, -2):
            scores, target = scores.t(), target.t()
            valid = None if valid is None else valid.t()
        shape = (scores.shape[0],)
        if scores.shape[0] > 1 and scores.shape[1] == 1:
            warn_caller(
                f"scores are {shape[0]} lists of one row each, and none counts: for one list, pass scores.squeeze(1) "
                "and target.squeeze(1)"
            )
    return Lists((_block(scores, target, valid),), None, shape, dtype)


def require_classes(block: Block) -> None:
    """Raises ValueError for targets other than 0 and 1, or −1 and 1: smoothed labels and grades would count as equal
    positives. Targets that are not finite are allowed; they make their list NaN."""
    if block.has_classes:
        return
    target = block.target
    odd = target[(target != 0) & (target != 1) & (target != -1)]
    if target.is_floating_point():
        odd = odd[odd.isfinite()]
    if odd.numel():
        raise ValueError(
            f"target must be bool, or 0 and 1 (or -1 and 1), found {odd[0].item():g}: for smoothed labels "
            "or grades, pass which rows are positive (target > 0.5); RankingHingeLoss('ndcg') takes grades"
        )


def _block(scores: Tensor, target: Tensor, valid: Tensor | None) -> Block:
    if valid is not None:
        # By selection, since a product would keep the NaN of a row that does not count.
        scores, target = torch.where(valid, scores, 0), torch.where(valid, target, torch.zeros_like(target))
    positive = target if target.dtype == torch.bool else target > 0
    if target.is_floating_point() and not target.isfinite().all():
        scores = scores + (target - target).to(scores.dtype)  # NaN, where it would count as a negative
    return Block(Rows(scores, target, positive, valid))


def as_lists(rows: Tensor) -> Tensor:
    """(b, n); (n,) becomes a single list."""
    return rows.unsqueeze(0) if rows.ndim == 1 else rows


def _by_query(scores: Tensor, target: Tensor, valid: Tensor | None, qid: Tensor, dtype: torch.dtype) -> Lists:
    """Lists by ascending ``qid``, in blocks of similar length."""
    _, query, lengths = torch.unique(qid, return_inverse=True, return_counts=True)
    if qid.numel() == 0:
        empty = torch.empty((0, 0), dtype=torch.bool, device=scores.device)
        return Lists((_block(scores.reshape(0, 0), empty, None),), None, (0,), dtype)
    rows, starts, widths = torch.argsort(query, stable=True), torch.cumsum(lengths, 0) - lengths, _widths(lengths)
    blocks, numbers = [], []
    for width in torch.unique(widths).tolist():
        number = (widths == width).nonzero().squeeze(1)
        place = torch.arange(width, device=scores.device)
        counted = place < lengths[number].unsqueeze(1)
        # Slots without a row get the first: its gradient there is 0.
        index = rows[torch.where(counted, starts[number].unsqueeze(1) + place, 0)]
        of_scores, of_target = (part.index_select(0, index.flatten()).view(index.shape) for part in (scores, target))
        blocks.append(_block(of_scores, of_target, counted if valid is None else counted & valid[index]))
        numbers.append(number)
    order = torch.argsort(torch.cat(numbers)) if len(blocks) > 1 else None
    return Lists(tuple(blocks), order, (lengths.numel(),), dtype)


def _widths(lengths: Tensor) -> Tensor:
    """(l,) int64: padded length of each list: the longest length, or if that wastes memory, the longest length between
    the same powers of two."""
    longest = int(lengths.max())
    if lengths.numel() * longest <= PADDING * int(lengths.sum()):
        return torch.full_like(lengths, longest)
    powers = torch.frexp(lengths.to(compute_dtype(lengths.device))).exponent.long()
    longest_of_power = torch.zeros(int(powers.max()) + 1, dtype=lengths.dtype, device=lengths.device)
    return longest_of_power.scatter_reduce(0, powers, lengths, "amax")[powers]


def _check(scores: Tensor, target: Tensor, mask: Tensor | None, qid: Tensor | None, dim: int) -> None:
    if not isinstance(scores, Tensor):
        raise TypeError(f"scores must be a tensor, found {type(scores).__name__}")
    shape, device = scores.shape, scores.device
    for name, tensor in (("target", target), ("mask", mask), ("qid", qid)):
        if tensor is None and name != "target":
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a tensor, found {type(tensor).__name__}")
        if tensor.shape != shape:
            hint = ""
            if name == "target" and tensor.shape == shape[:1]:
                K = shape[1]
                hint = f"; for numbers of {K} classes, pass torch.nn.functional.one_hot(target, {K}) and dim=0"
                if K <= 2:
                    hint = f"; for one list, pass scores{'[:, 1] - scores[:, 0]' if K == 2 else '.squeeze(1)'}"
            raise ValueError(f"{name} must have the shape of scores, {tuple(shape)}, found {tuple(tensor.shape)}{hint}")
        if tensor.device != device:
            raise ValueError(f"{name} is on {tensor.device}, scores are on {device}")
    if not scores.is_floating_point() or scores.layout != torch.strided:
        raise TypeError(f"scores must be dense and floating point, found {scores.dtype}, {scores.layout}")
    if target.is_complex():
        raise TypeError(f"target must be bool or real numbers, found {target.dtype}")
    if scores.ndim not in (1, 2):
        raise ValueError(f"scores must be (n,) or (B, n), found {tuple(scores.shape)}")
    if not -scores.ndim <= dim < scores.ndim:
        raise ValueError(f"scores {tuple(scores.shape)} have no dimension {dim}")
    if mask is not None and mask.dtype != torch.bool:
        raise TypeError(f"mask must be bool, True for the rows that count, found {mask.dtype}")
    if qid is not None:
        if scores.ndim != 1:
            raise ValueError(f"qid goes with scores (n,), found {tuple(scores.shape)}")
        if qid.is_floating_point() or qid.is_complex() or qid.dtype == torch.bool:
            raise TypeError(f"qid must be integers, found {qid.dtype}")
