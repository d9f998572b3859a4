"""Losses and their slopes on a CPU: one native call for all lists of a batch, threads over lists, the GIL released.

Scores of single and double precision are read in place, and row weights are written in the scores' type; computation is
in double precision. A list's result does not depend, to the bit, on padding, on other lists of the batch, or on the
number of threads.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from apsvm._native import _kernels
from apsvm.torch.inference import Answer, Form
from apsvm.torch.tables import Tables

#: Types of scores that native code reads.
READ = torch.float32, torch.float64
#: No numbers of places: Smooth-AP instead of recall.
NO_PLACES = np.empty(0)


def _marks(marks: Tensor | None) -> NDArray[np.bool_] | None:
    return None if marks is None else marks.contiguous().numpy()


def infer_native(
    scores: Tensor, positive: Tensor, valid: Tensor | None, tables: Tables, form: Form, algorithm: str
) -> Answer:
    """The most violated rankings of b lists of n rows.

    Parameters
    ----------
    scores : (n,) or (b, n) float32 or float64, on the CPU, without a graph
    positive, valid : of the same shape, bool; ``valid`` None: all rows count
    algorithm : ``"bucket"``; or ``"against-loss"`` for the rankings that maximise F − Δ. The values are then max_R {F −
        Δ}; with the form "ramp", F of the ranking by score minus that
    """
    s, flags, counted = scores.contiguous(), positive.contiguous().numpy(), _marks(valid)
    sizes = _kernels.count_classes(flags, counted)
    of_lists = tables.of_lists(sizes)
    values, counts, row_weights = np.empty(len(sizes)), np.empty(len(sizes), dtype=np.bool_), torch.empty_like(s)
    _kernels.solve_lists(
        algorithm,
        tables.loss.unimodal,
        form,
        s.numpy(),
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
    """Smooth-AP of b lists of n rows by the Laplace kernel; with ``places``, the mean recall among the first K over
    these K.

    Parameters
    ----------
    scores, positive, valid : as for ``infer_native``
    tau : width of the kernel, in units of the scores, or in standard deviations of each list's scores if ``relative``
    """
    s, n_lists = scores.contiguous(), 1 if scores.ndim == 1 else len(scores)
    values, counts, slopes = np.empty(n_lists), np.empty(n_lists, dtype=np.bool_), torch.empty_like(s)
    _kernels.soft_rank_losses(
        s.numpy(),
        positive.contiguous().numpy(),
        _marks(valid),
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
