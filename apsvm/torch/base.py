"""Base class of the losses: a module that takes lists and returns one value for each."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, TypeAlias, TypedDict

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx

from apsvm._support.caller import warn_caller
from apsvm.torch.lists import REDUCTIONS, Block, Reduction, Values, in_transform, lists_of, require_classes
from apsvm.torch.native import Answer

#: Number of successive calls without a list that counts, after which a warning is given.
CALLS_WATCHED = 20
#: Sizes up to which a gradient counts as rounding.
NO_GRADIENT = 1e-12

#: Arguments of ``lists_of`` besides the scores: target, mask, qid, dim and ignore_index.
Others: TypeAlias = tuple[Tensor, Tensor | None, Tensor | None, int, int | None]


class ListOptions(TypedDict, total=False):
    """Keyword arguments of ``ListLoss``, which all losses take."""

    reduction: Reduction
    ignore_index: int | None


class _Streak:
    """Number of successive calls with a fault; below 0: calls left before the next check. Not each call is checked,
    since a check takes a tenth of a small call, and waits for the device."""

    calls = 0.0

    def is_due(self) -> bool:
        self.calls += self.calls < 0
        return self.calls >= 0

    def is_to_warn(self, has_fault: bool) -> bool:
        """Records a checked call; True once, after ``CALLS_WATCHED`` successive ones with the fault."""
        self.calls = self.calls + 1 if has_fault else -CALLS_WATCHED
        if self.calls < CALLS_WATCHED:
            return False
        self.calls = -math.inf
        return True


class ListLoss(nn.Module):
    """A loss over lists of rows.

    Parameters
    ----------
    reduction : Reduction
        ``"mean"`` or ``"sum"`` over the lists that count, or ``"none"``: a value for each list.
    ignore_index : int, optional
        Rows with this target do not count; None: all count.

    Raises
    ------
    ValueError
        Unknown reduction.

    Warns
    -----
    UserWarning
        Once, after 20 successive calls without a list that counts, if scores require a gradient; and once, after 20
        successive calls with gradient 0 and a loss above 0.
    """

    #: Requirement for a list to count, and advice for sampling such lists.
    needs: ClassVar[str] = "rows of both classes, which torch.utils.data.WeightedRandomSampler gives to every batch"

    #: True if the slopes from ``answer_of`` may have nonzero derivatives.
    is_smooth: ClassVar[bool] = False

    def __init__(self, *, reduction: Reduction = "mean", ignore_index: int | None = None) -> None:
        super().__init__()
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, found {reduction!r}")
        self.reduction = reduction
        self.ignore_index = ignore_index
        self._without_lists, self._without_gradient = _Streak(), _Streak()

    def forward(
        self,
        scores: Tensor,
        target: Tensor,
        mask: Tensor | None = None,
        qid: Tensor | None = None,
        dim: int = -1,
    ) -> Tensor:
        """The loss of the lists.

        Parameters
        ----------
        scores : Tensor
            (n,) for one list, or (B, n), a list in each row; floating point, higher is better.
        target : Tensor
            Same shape; bool, or 0 and 1 (or -1 and 1), 1 for the positives. Losses of grades (ndcg) and
            SpearmanLoss take any numbers.
        mask : Tensor, optional
            Same shape, bool: True for the rows that count; None: all.
        qid : Tensor, optional
            (n,) integers in any order: rows with equal values form a list.
        dim : int
            Dimension of scores (B, n) along which a list lies; 0 for (rows, classes).

        Returns
        -------
        Tensor
            Of the scores' type, float32 for half precision. A list without a positive or a negative row has value and
            gradient 0 and does not count in a mean. A list with a NaN or an infinity has value and gradient NaN.

        Raises
        ------
        TypeError, ValueError
            Arguments that do not fit together; a target of two classes other than 0 and 1 (or -1 and 1).
        """
        if torch.compiler.is_compiling():
            return _outside_compiled_graphs()(self, scores, target, mask, qid, dim)
        return _evaluate(self, scores, target, mask, qid, dim)

    @property
    def takes_fractions(self) -> bool:
        """True if targets may have values besides 0 and 1."""
        return False

    @abstractmethod
    def values_of(self, block: Block) -> Values:
        """The values of a block's lists."""

    @property
    def knows_slopes(self) -> bool:
        """True if ``answer_of`` returns values and slopes at once."""
        return False

    def answer_of(self, block: Block) -> Answer:
        """Values, slopes and counting lists of a block on the CPU without a graph."""
        raise NotImplementedError

    def watch(self, counts: Sequence[Tensor]) -> None:
        """Records which lists of a call counted, (b,) bool for each block; warns after many calls without any."""
        if self._without_lists.is_to_warn(not any(any(part.tolist()) for part in counts)):
            warn_caller(
                f"{type(self).__name__}: {CALLS_WATCHED} calls in a row had no list that counts, so that loss and "
                f"gradient were 0: a list needs {self.needs}"
            )

    def watch_gradient(self, value: Tensor, gradient: Tensor | None) -> None:
        """Records the gradient of a call, None if the loss has none; warns if it stays 0 with a loss above 0."""
        is_still = gradient is not None and bool(gradient.abs().sum() <= NO_GRADIENT) and bool((value > 0).any())
        if self._without_gradient.is_to_warn(is_still):
            warn_caller(
                f"{type(self).__name__}: the gradient of {CALLS_WATCHED} calls in a row was 0 and the loss above 0: "
                "scores that are all equal, or far apart, teach nothing; start from other weights, or from binary "
                "cross-entropy"
            )

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"


# Not functools.cache, which makes the compiler warn.
_outside: dict[str, Callable[..., Tensor]] = {}


def _outside_compiled_graphs() -> Callable[..., Tensor]:
    """``_evaluate`` for code made by torch.compile, which cannot trace it: it depends on the data and calls native
    code. Made on first use, since it loads the compiler."""
    if "evaluate" not in _outside:
        _outside["evaluate"] = torch.compiler.disable(_evaluate)
    return _outside["evaluate"]


def _evaluate(
    loss: ListLoss, scores: Tensor, target: Tensor, mask: Tensor | None, qid: Tensor | None, dim: int
) -> Tensor:
    kind = "cpu" if getattr(scores, "is_cpu", True) else scores.device.type  # lists_of refuses other than tensors
    if torch.is_autocast_enabled(kind):
        # Scores of half precision are widened here; autocast would narrow results again.
        with torch.autocast(kind, enabled=False):
            return _evaluate(loss, scores, target, mask, qid, dim)
    others = target, mask, qid, dim, loss.ignore_index
    if in_transform(scores):
        return _by_values(loss, scores, others)[0]
    watched = scores
    if scores.requires_grad and torch.is_grad_enabled() and loss._without_gradient.is_due():
        scores = scores.view_as(scores)
    # If the lists are stored like the scores, the slopes of the reduced loss overwrite those of the lists.
    if qid is None and loss.reduction != "none" and loss.knows_slopes:
        total, counts = _by_slopes(loss, scores, others)
    else:
        total, counts = _by_values(loss, scores, others)
    if scores.requires_grad and loss._without_lists.is_due():
        loss.watch(counts)
    if scores is not watched:
        value = total.detach()
        scores.register_hook(lambda gradient: loss.watch_gradient(value, gradient))
    return total


def _by_values(loss: ListLoss, scores: Tensor, others: Others) -> tuple[Tensor, list[Tensor]]:
    """The loss, differentiable by autograd, and for each block a bool tensor of the lists that count."""
    lists = lists_of(scores, *others)
    if not loss.takes_fractions:
        for block in lists.blocks:
            require_classes(block)
    parts = [loss.values_of(block) for block in lists.blocks]
    counts = [part.counts for part in parts]
    return lists.reduce([part.values for part in parts], counts, loss.reduction), counts


def _by_slopes(loss: ListLoss, scores: Tensor, others: Others) -> tuple[Tensor, list[Tensor]]:
    """The same by ``answer_of``, as a graph of one node."""
    lists = lists_of(scores, *others, detached=True)
    block = lists.blocks[0]
    if block.rows.target.dtype != torch.bool and not loss.takes_fractions:
        require_classes(block)
    values, counts, slopes = loss.answer_of(block)
    if len(values) == 1:
        # Not a tensor: making one takes a fifth of a short call.
        total = values[0] if isinstance(values, Tensor) else values.item()
    else:
        counts = torch.as_tensor(counts)
        total = lists.reduce([torch.as_tensor(values)], [counts], loss.reduction)
        if loss.reduction == "mean":
            slopes = slopes / counts.sum().clamp(min=1)
    if not (scores.requires_grad and torch.is_grad_enabled()):
        return torch.as_tensor(total, dtype=lists.dtype, device=scores.device), [counts]
    slopes = slopes.to(scores.device)
    if scores.ndim == 2:
        slopes = slopes.t() if others[3] in (0, -2) else slopes
    elif slopes.ndim == 2:
        slopes = slopes.view(-1)
    wide = scores if scores.dtype == slopes.dtype else scores.to(slopes.dtype)
    if loss.is_smooth:
        return _Attached.apply(wide, total, slopes, partial(_by_values, loss, others=others)), [counts]
    # Its backward pass avoids Python.
    with_graph = torch.dot(wide, slopes) if scores.ndim == 1 else torch.dot(wide.flatten(), slopes.flatten())
    with_graph.detach().fill_(total)
    return with_graph, [counts]


class _Attached(torch.autograd.Function):
    """A number with known slopes. For second derivatives, the first result of ``again`` is the number with its
    graph."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        scores: Tensor,
        value: Tensor | float,
        slopes: Tensor,
        again: Callable[[Tensor], tuple[Tensor, list[Tensor]]],
    ) -> Tensor:
        ctx.save_for_backward(scores, slopes)
        ctx.again = again
        return scores.new_empty(()).fill_(value)

    @staticmethod
    def backward(ctx: FunctionCtx, *above: Tensor) -> tuple[Tensor, None, None, None]:
        scores, slopes = ctx.saved_tensors
        if torch.is_grad_enabled():
            (slopes,) = torch.autograd.grad(ctx.again(scores)[0], scores, create_graph=True)
        return above[0] * slopes, None, None, None


def attached(scores: Tensor, values: Tensor, slopes: Tensor) -> Tensor:
    """``values`` (b,) with ``slopes`` (b, n) for their gradients with respect to ``scores`` (b, n).

    The gradient is constant almost everywhere: the second derivative is 0."""
    with_graph = (scores * slopes).sum(1)  # its backward pass avoids Python
    with_graph.detach().copy_(values)
    return with_graph
