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

#: The types of scores that native code reads.
READ = torch.float32, torch.float64
_ALL = np.empty(0, dtype=np.uint8)
#: Of Smooth-AP.
NO_PLACES = np.empty(0)


@lru_cache(maxsize=64)
def _starts(shape: torch.Size) -> NDArray[np.int64]:
    """Where the lists of rows (n,) or (b, n) begin, and the last ends."""
    n_lists, n = shape if len(shape) == 2 else (1, *shape)
    return np.arange(n_lists + 1, dtype=np.int64) * n


def _flags(marks: Tensor | None) -> NDArray[np.uint8]:
    return _ALL if marks is None else marks.contiguous().numpy().view(np.uint8)


def infer_native(
    scores: Tensor, positive: Tensor, valid: Tensor | None, tables: Tables, form: Form, algorithm: str
) -> Answer:
    """The most violated rankings of b lists of n rows.

    Parameters
    ----------
    scores : (n,) or (b, n) float32 or float64, on the CPU, without a graph
    positive, valid : of the same shape, bool; ``valid`` None: all rows count
    algorithm : ``"bucket"``; or ``"against-loss"``, for the rankings that maximise F − Δ: the values are then
        max_R {F − Δ}, and of the form "ramp" F of the ranking by score minus that
    """
    s, starts, flags, counted = scores.contiguous(), _starts(scores.shape), _flags(positive), _flags(valid)
    sizes = _kernels.count_classes(starts, flags, counted)
    of_lists = tables.of_lists(sizes)
    values, counts, row_weights = np.empty(len(sizes)), np.empty(len(sizes), dtype=np.bool_), torch.empty_like(s)
    _kernels.solve_lists(
        algorithm,
        tables.loss.unimodal,
        form,
        s.numpy(),
        starts,
        flags,
        counted,
        of_lists.weights_begin,
        of_lists.weights,
        of_lists.discount_begin,
        of_lists.discount,
        values,
        counts,
        row_weights.numpy(),
        torch.get_num_threads(),
    )
    return Answer(values, counts, row_weights)


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
    scores, positive, valid : as for ``infer_native``
    tau : the kernel's width in units of the scores, or if ``relative`` in standard deviations of each list's
    """
    s, starts = scores.contiguous(), _starts(scores.shape)
    values, counts, slopes = np.empty(len(starts) - 1), np.empty(len(starts) - 1, dtype=np.bool_), torch.empty_like(s)
    _kernels.soft_rank_losses(
        s.numpy(),
        starts,
        _flags(positive),
        _flags(valid),
        tau,
        relative,
        places,
        tau_rank,
        values,
        counts,
        slopes.numpy(),
        torch.get_num_threads(),
    )
    return Answer(values, counts, slopes)
