"""Exact ranks, which have no useful gradient, and standardised scores, with which sorters begin.

rk(s)_i = (1 + #{j : s_j > s_i} + ½ #{j ≠ i : s_j = s_i}) / L: descending and normalised (Engilberge, Chevallier, Pérez,
Cord 2019, §3). The largest of L scores has rank 1/L, the smallest 1; equal scores share their mean rank.
"""

from __future__ import annotations

import torch
from torch import Tensor


def compute_dtype(device: torch.device) -> torch.dtype:
    """Type of computation: float64, or float32 on a device without float64 (Apple's MPS)."""
    return torch.float32 if device.type == "mps" else torch.float64


def exact_ranks(scores: Tensor, counted: Tensor | None = None) -> Tensor:
    """Descending normalised ranks along the last dimension, by a sort: O(L log L) for each list, without gradient.

    Parameters
    ----------
    scores : (…, L) of any real type
    counted : (…, L) bool, the rows of the list, whose number is then L; other rows have rank 0. None: all

    Returns
    -------
    ranks : (…, L) in (0, 1], of the scores' type if it is floating point, else torch's default type; a list with a NaN
        is all NaN
    """
    scores = scores.detach()
    dtype = scores.dtype if scores.is_floating_point() else torch.get_default_dtype()
    if scores.dtype in (torch.bool, torch.float16, torch.bfloat16):  # types without searchsorted on some devices
        scores = scores.float()
    length: Tensor | int = scores.shape[-1]
    if counted is not None:
        scores, length = torch.where(counted, scores, torch.inf), counted.sum(dim=-1, keepdim=True)
    ascending, order = scores.contiguous().sort(dim=-1)
    below, not_above = (torch.searchsorted(ascending, ascending, right=right) for right in (False, True))
    # Of e equal scores with a above: a + (e + 1)/2, where a = L − not_above and e = not_above − below.
    places = length + 0.5 - 0.5 * (below + not_above).to(compute_dtype(scores.device))
    normalised = places / (max(length, 1) if isinstance(length, int) else length.clamp(min=1))
    ranks = torch.empty_like(normalised).scatter_(-1, order, normalised)
    ranks = ranks.masked_fill(scores.isnan().any(dim=-1, keepdim=True), torch.nan)
    return (ranks if counted is None else torch.where(counted, ranks, 0.0)).to(dtype)


def standardized(scores: Tensor, counted: Tensor | None = None) -> Tensor:
    """(…, L) scores minus their list's mean, divided by its standard deviation (of all L, not of L − 1); a list of
    equal scores becomes zeros. The gradient includes mean and deviation. Rows that are not ``counted``, (…, L) bool,
    have score 0 and keep it."""
    length: Tensor | int = max(1, scores.shape[-1])
    if counted is not None:
        length = counted.sum(dim=-1, keepdim=True).clamp(min=1)
    centred = scores - scores.sum(dim=-1, keepdim=True) / length
    if counted is not None:
        centred = torch.where(counted, centred, 0.0)
    # Squares neither overflow nor vanish. The quotient does not depend on this factor, so neither does its gradient.
    largest = centred.detach().abs().amax(dim=-1, keepdim=True) if scores.shape[-1] else centred.detach()
    centred = centred / torch.where(largest == 0, 1.0, largest)
    variance = centred.square().sum(dim=-1, keepdim=True) / length
    return centred / torch.where(variance == 0, 1.0, variance).sqrt()
