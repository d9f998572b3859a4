"""Losses and their slopes: one native call for all lists of a batch, threads over lists, the GIL released.

Scores of single and double precision on the CPU are read in place, and slopes are written in the scores' type;
computation is in double precision. A list's result does not depend, to the bit, on padding, on other lists of the
batch, or on the number of threads. Lists of other devices are copied: in tensors, one list of 256 rows takes some 900
operations, which a device does not start in the time of the call, .03 ms.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from apsvm._native import _kernels
from apsvm.torch.tables import Tables

Form: TypeAlias = Literal["hinge", "ramp"]

#: Types of scores that native code reads.
READ = torch.float32, torch.float64
#: No numbers of places: Smooth-AP instead of recall.
NO_PLACES = np.empty(0)


class Answer(NamedTuple):
    """Results for b lists of n rows, on the CPU and without a graph.

    values : (b,) float64; NaN for a list that is not finite, and 0 for one without both classes
    counts : (b,) bool, the lists with both classes
    slopes : (b, n), or (n,) for scores (n,): gradients with respect to the scores
    """

    values: Tensor | NDArray[np.float64]
    counts: Tensor | NDArray[np.bool_]
    slopes: Tensor


def infer(scores: Tensor, positive: Tensor, valid: Tensor | None, tables: Tables, form: Form) -> Answer:
    """The most violated rankings of b lists of n rows.

    The values are max_R {F + Δ}, minus F of the ranking by score for the ramp; slopes are equal for rows of one class
    and equal score.

    Parameters
    ----------
    scores : (n,) or (b, n) float32 or float64, on the CPU, without a graph
    positive, valid : of the same shape, bool; ``valid`` None: all rows count
    """
    s, flags, counted = scores.contiguous(), positive.contiguous().numpy(), _marks(valid)
    sizes = _kernels.count_classes(flags, counted)
    of_lists = tables.of_lists(sizes)
    answer = _empty(s, len(sizes))
    _kernels.solve_lists(
        "bucket", tables.loss.unimodal, form, s.numpy(), flags, counted,
        *of_lists, answer.values, answer.counts, answer.slopes.numpy(), torch.get_num_threads(),
    )  # fmt: skip
    return answer


def soft_rank_losses(
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
    scores, positive, valid : as for ``infer``
    tau : width of the kernel, in units of the scores, or in standard deviations of each list's scores if ``relative``
    """
    s = scores.contiguous()
    answer = _empty(s, 1 if scores.ndim == 1 else len(scores))
    _kernels.soft_rank_losses(
        s.numpy(), positive.contiguous().numpy(), _marks(valid), tau, relative, places, tau_rank,
        answer.values, answer.counts, answer.slopes.numpy(), torch.get_num_threads(),
    )  # fmt: skip
    return answer


def _marks(marks: Tensor | None) -> NDArray[np.bool_] | None:
    return None if marks is None else marks.contiguous().numpy()


def _empty(scores: Tensor, n_lists: int) -> Answer:
    return Answer(np.empty(n_lists), np.empty(n_lists, dtype=np.bool_), torch.empty_like(scores))
