"""Losses and their slopes on a CPU: one native call for all lists of a batch, threads over lists, the GIL released.

Scores of single and double precision are read where they are, and the row weights written as the scores' type; what is
computed in between is double. Lists are answered each on its own: neither padding nor the other lists of a batch, nor
the number of threads, changes a bit.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from apsvm._native import _kernels
from apsvm.torch.inference import Answer, Form
from apsvm.torch.tables import Tables

_ALL = np.empty(0, dtype=np.uint8)
#: Of Smooth-AP.
NO_PLACES = np.empty(0)


@lru_cache(maxsize=64)
def _starts(n_lists: int, n: int) -> NDArray[np.int64]:
    """Where lists of n rows begin, and the last ends."""
    return np.arange(n_lists + 1, dtype=np.int64) * n


def _flags(marks: Tensor | None) -> NDArray[np.uint8]:
    return _ALL if marks is None else marks.contiguous().numpy().view(np.uint8).reshape(-1)


def infer_native(
    scores: Tensor, positive: Tensor, valid: Tensor | None, tables: Tables, form: Form, algorithm: str
) -> Answer:
    """The most violated rankings of b lists of n rows.

    Parameters
    ----------
    scores : (b, n) float32 or float64, on the CPU
    positive, valid : (b, n) bool; ``valid`` None: all rows count
    algorithm : ``"bucket"``; or ``"against-loss"``, for the rankings that maximise F − Δ: the values are then
        max_R {F − Δ}, and of the form "ramp" F of the ranking by score minus that
    """
    s, starts = scores.detach().contiguous(), _starts(*scores.shape)
    flags, counted = _flags(positive), _flags(valid)
    n_pos, n_neg = _kernels.count_classes(starts, flags, counted)
    written = tables.of_lists(n_pos, n_neg)
    values, losses = np.empty(len(s)), np.empty(len(s))
    row_weights = torch.empty_like(s)
    _kernels.solve_lists(
        algorithm,
        tables.loss.unimodal,
        form,
        s.numpy().reshape(-1),
        starts,
        flags,
        counted,
        written.weights_begin,
        written.weights,
        written.discount_begin,
        written.discount,
        values,
        losses,
        row_weights.numpy().reshape(-1),
        torch.get_num_threads(),
    )
    return Answer(torch.from_numpy(values), row_weights, torch.from_numpy((n_pos > 0) & (n_neg > 0)))


def soft_rank_native(
    scores: Tensor,
    positive: Tensor,
    valid: Tensor | None,
    tau: float,
    relative: bool,
    places: NDArray[np.float64] = NO_PLACES,
    tau_rank: float = 1.0,
) -> Answer:
    """Smooth-AP of b lists of n rows by the Laplace kernel, or with ``places`` K recall among the first K, as the mean
    over them.

    Parameters
    ----------
    scores : (b, n) float32 or float64, on the CPU
    positive, valid : (b, n) bool; ``valid`` None: all rows count
    tau : the kernel's width in units of the scores, or if ``relative`` in standard deviations of each list's
    """
    s, starts = scores.detach().contiguous(), _starts(*scores.shape)
    flags, counted = _flags(positive), _flags(valid)
    n_pos, n_neg = _kernels.count_classes(starts, flags, counted)
    values, slopes = np.empty(len(s)), torch.empty_like(s)
    _kernels.soft_rank_losses(
        s.numpy().reshape(-1),
        starts,
        flags,
        counted,
        tau,
        relative,
        places,
        tau_rank,
        values,
        slopes.numpy().reshape(-1),
        torch.get_num_threads(),
    )
    return Answer(torch.from_numpy(values), slopes, torch.from_numpy((n_pos > 0) & (n_neg > 0)))
