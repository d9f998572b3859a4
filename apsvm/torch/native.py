"""Loss-augmented inference on a CPU: one native call for all lists of a batch, threads over lists, the GIL released.

Scores of single and double precision are read where they are, and the row weights written as the scores' type; what is
computed in between is double. Lists are answered each on its own: neither padding nor the other lists of a batch, nor
the number of threads, changes a bit.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from apsvm._native import _kernels
from apsvm.torch.inference import Answer, Form
from apsvm.torch.tables import Tables

_ALL = np.empty(0, dtype=np.uint8)


def infer_native(
    scores: Tensor, positive: Tensor, valid: Tensor | None, tables: Tables, form: Form, algorithm: str = "bucket"
) -> Answer:
    """The most violated rankings of b lists of n rows.

    Parameters
    ----------
    scores : (b, n) float32 or float64, on the CPU
    positive, valid : (b, n) bool; ``valid`` None: all rows count
    algorithm : ``"bucket"``; or ``"against-loss"``, for the rankings that maximise F − Δ: the values are then
        max_R {F − Δ}, and of the form "ramp" F of the ranking by score minus that
    """
    n_lists, n = scores.shape
    s = scores.detach().contiguous()
    starts = np.arange(n_lists + 1, dtype=np.int64) * n
    flags = positive.contiguous().numpy().view(np.uint8).reshape(-1)
    counted = _ALL if valid is None else valid.contiguous().numpy().view(np.uint8).reshape(-1)
    n_pos, n_neg = _kernels.count_classes(starts, flags, counted)
    written = tables.of_lists(n_pos, n_neg)
    values, losses = np.empty(n_lists), np.empty(n_lists)
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
