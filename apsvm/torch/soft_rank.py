"""Soft ranks: the number of rows above each row, counted by a kernel that is smooth in the scores.

    rank_i = 1 + Σ_{j≠i} K((s_j − s_i)/τ),      K(0) = 1/2, K from 0 to 1

Two kernels. The logistic function (Qin, Liu and Li 2010; Brown et al. 2020) takes O(n) for each row. Rows are processed
in chunks, recomputed in the backward pass, so that memory is that of one chunk. The Laplace distribution's K(d) = 1 −
e^{−d}/2 for d ≥ 0, e^{d}/2 below (LapSum: Struski et al. 2025) is exact in O(n log n): with x = s/τ in descending
order, the rows above row i contribute

    A_i = Σ_{j<i} e^{x_i − x_j} = e^{x_i − x_{i−1}} (A_{i−1} + 1),      B_i likewise from the other end,
    rank_i = i − A_i/2 + B_i/2,      i = 1 .. n

a linear recurrence with factors of at most 1, so that nothing overflows. Its transpose, needed for the gradient, is the
same recurrence backwards.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.utils.checkpoint import checkpoint

from apsvm._native import _kernels
from apsvm.torch.ranks import compute_dtype

Kernel: TypeAlias = Literal["laplace", "logistic"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)

#: Entries of a chunk of the logistic kernel's matrix.
CHUNK = 1 << 20


class SoftRank(nn.Module):
    """Soft ranks as a module.

    Parameters
    ----------
    tau : float
        Width of the kernel, > 0, in units of the scores.
    kernel : Kernel
        ``"laplace"``, O(n log n), or ``"logistic"``, O(n²).

    Raises
    ------
    ValueError
        ``tau`` is not positive, or the kernel is unknown.

    Examples
    --------
    >>> SoftRank(tau=0.01)(torch.tensor([0.5, 2.0, -1.0])).tolist()
    [2.0, 1.0, 3.0]
    """

    def __init__(self, tau: float = 1.0, kernel: Kernel = "laplace") -> None:
        super().__init__()
        self.tau, self.kernel = above_zero("tau", tau), check_kernel(kernel)

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        """See ``soft_ranks``."""
        return soft_ranks(scores, self.tau, self.kernel, mask)

    def extra_repr(self) -> str:
        return f"tau={self.tau:g}, kernel={self.kernel!r}"


def soft_ranks(scores: Tensor, tau: float = 1.0, kernel: Kernel = "laplace", mask: Tensor | None = None) -> Tensor:
    """Soft rank of each row of each list, from 1 (the highest score) to n.

    Parameters
    ----------
    scores : Tensor
        (…, n) floating point.
    tau : float
        Width of the kernel, > 0, in units of the scores.
    kernel : Kernel
        ``"laplace"`` or ``"logistic"``.
    mask : Tensor, optional
        Same shape as scores, bool, True for rows that count; None: all. Other rows have rank 0.

    Returns
    -------
    of the shape and type of scores

    Raises
    ------
    TypeError, ValueError
        Arguments that do not fit together; an unknown kernel; a width that is not positive.
    """
    above_zero("tau", tau)
    check_kernel(kernel)
    if not scores.is_floating_point() or scores.ndim == 0:
        raise TypeError(f"scores must be (…, n) floating point, found {scores.dtype} {tuple(scores.shape)}")
    if mask is not None and (mask.shape != scores.shape or mask.dtype != torch.bool):
        expected = f"bool {tuple(scores.shape)}"
        raise ValueError(
            f"mask must be {expected}, True for the rows that count, found {mask.dtype} {tuple(mask.shape)}"
        )
    batch = scores.reshape(math.prod(scores.shape[:-1]), scores.shape[-1])
    counted = torch.ones_like(batch, dtype=torch.bool) if mask is None else mask.reshape(batch.shape)
    batch = torch.where(counted, batch, 0)
    ranks = 0.5 + soft_counts(batch, counted.unsqueeze(0), tau, kernel, None if mask is None else counted)[0]
    return torch.where(counted, ranks, 0.0).to(scores.dtype).reshape(scores.shape)


def soft_counts(scores: Tensor, among: Tensor, tau: float, kernel: Kernel, valid: Tensor | None = None) -> Tensor:
    """Number of rows of each set that stand above each row, Σ_{j ∈ set} K((s_j − s_i)/τ).

    A row of the set counts itself by one half.

    Parameters
    ----------
    scores : Tensor
        (b, n), 0 where a row does not count.
    among : Tensor
        (c, b, n) bool, the sets, without rows that do not count.
    valid : Tensor, optional
        (b, n) bool, the rows that count; None: all.

    Returns
    -------
    (c, b, n), undefined for rows that do not count. The Laplace kernel returns float64 if the device has it; the
    logistic one float32, or float64 for float64 scores
    """
    if kernel == "laplace":
        return _laplace_counts(scores, among, tau, valid)
    scores = scores.to(scores.dtype if scores.dtype == torch.float64 else torch.float32)
    return logistic_counts(scores, scores, among, tau)


def logistic_counts(at: Tensor, scores: Tensor, among: Tensor, tau: float) -> Tensor:
    """Σ_{j ∈ set} σ((s_j − a_i)/τ), (c, b, m), for the values a ``at`` (b, m), the scores (b, n) and the sets ``among``
    (c, b, n). O(b m n) time."""
    scores, weights = scores / tau, among.to(scores.dtype)
    chunks = (at / tau).split(max(1, CHUNK // max(1, scores.numel())), dim=1)
    if len(chunks) == 1:
        return _logistic_counts(chunks[0], scores, weights)
    return torch.cat([checkpoint(_logistic_counts, part, scores, weights, use_reentrant=False) for part in chunks], 2)


def above_zero(name: str, value: float) -> float:
    """The value; raises ValueError unless it is above 0 and finite."""
    if not 0.0 < value < float("inf"):
        raise ValueError(f"{name} must be a positive number, found {value!r}")
    return float(value)


def check_kernel(kernel: Kernel) -> Kernel:
    """The kernel; raises ValueError for an unknown name."""
    if kernel not in KERNELS:
        raise ValueError(f"kernel must be one of {', '.join(KERNELS)}, found {kernel!r}")
    return kernel


def _laplace_counts(scores: Tensor, among: Tensor, tau: float, valid: Tensor | None) -> Tensor:
    x, n = scores.to(compute_dtype(scores.device)) / tau, scores.shape[1]
    # Rows that do not count go last with weight 0: the sums equal those of a shorter list, bit for bit.
    keys = x.detach() if valid is None else x.detach().masked_fill(~valid, -torch.inf)
    order = torch.argsort(keys, dim=1, descending=True, stable=True)
    places = torch.empty_like(order).scatter_(1, order, torch.arange(n, device=order.device).expand_as(order))
    x = x.gather(1, order)
    steps = x[:, :-1] - x[:, 1:]
    if valid is not None:
        steps = torch.where(valid.gather(1, order)[:, 1:], steps, 0.0)
    decay = torch.exp(-steps)
    weights = among.gather(2, order.expand_as(among)).to(x.dtype)
    above = decaying_sums(decay, weights, reverse=False) - weights
    below = decaying_sums(decay, weights, reverse=True) - weights
    counts = torch.cumsum(weights, 2) - 0.5 * weights - 0.5 * above + 0.5 * below
    return counts.gather(2, places.expand_as(counts))


def decaying_sums(decay: Tensor, values: Tensor, *, reverse: bool) -> Tensor:
    """h with h_i = v_i + d_i h_{i−1}, where d_i belongs to the step from i − 1 to i; with ``reverse``, v_i + d_{i+1}
    h_{i+1}.

    Parameters
    ----------
    decay : Tensor
        (b, n − 1), 0..1.
    values : Tensor
        (c, b, n), of the same type.

    Returns
    -------
    (c, b, n), differentiable any number of times
    """
    sums: Tensor = _DecayingSums.apply(decay, values, reverse)
    return sums


class _DecayingSums(torch.autograd.Function):
    """Computed on the CPU in double precision. The transpose of the recurrence is the recurrence from the other end."""

    @staticmethod
    def forward(decay: Tensor, values: Tensor, reverse: bool) -> Tensor:
        channels, lists, _ = values.shape
        like = values
        decay, values = (tensor.detach().cpu().double().contiguous() for tensor in (decay, values))
        sums = torch.empty_like(values)
        if sums.numel():
            d, v, h = (tensor.numpy().reshape(-1) for tensor in (decay, values, sums))
            _kernels.decaying_sums(d, v, h, channels, lists, reverse, torch.get_num_threads())
        return sums.to(like)

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Tensor, Tensor, bool], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)
        ctx.reverse = inputs[2]

    @staticmethod
    def backward(ctx: FunctionCtx, *slopes: Tensor) -> tuple[Tensor, Tensor, None]:
        decay, sums = ctx.saved_tensors
        back = decaying_sums(decay, slopes[0], reverse=not ctx.reverse)
        products = back[..., :-1] * sums[..., 1:] if ctx.reverse else back[..., 1:] * sums[..., :-1]
        return products.sum(0), back, None


def _logistic_counts(at: Tensor, scores: Tensor, weights: Tensor) -> Tensor:
    return torch.einsum("bmn,cbn->cbm", torch.sigmoid(scores.unsqueeze(1) - at.unsqueeze(2)), weights)
