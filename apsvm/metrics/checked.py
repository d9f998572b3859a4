"""Checks and sorts the rows that callers pass, before any metric sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apsvm.metrics.errors import TIE_RULES, MetricError

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray


def check_ties(ties: str) -> None:
    """Raise `MetricError` unless `ties` is one of `TIE_RULES`."""
    if ties not in TIE_RULES:
        raise MetricError(f"unknown tie rule {ties!r}; known: {', '.join(TIE_RULES)}")


def check_rows(
    scores: ArrayLike, relevant: ArrayLike, relevant_from: float | None = None
) -> tuple[NDArray[np.float64], NDArray[np.bool_] | NDArray[np.float64]]:
    """`scores` as (n,) float64 and `relevant` as (n,) bool, or float64 with `relevant_from`, n ≥ 1. Raises
    `MetricError` for anything else.

    Without `relevant_from` integer labels are refused: among −1/+1, 0/1 and 1/2 only the caller knows which is the
    positive class.
    """
    array, labels = np.asarray(scores), np.asarray(relevant)
    if array.ndim != 1 or labels.shape != array.shape:
        raise MetricError(
            f"scores and relevant must both be of shape (n,), found scores {array.shape}, relevant {labels.shape}"
        )
    if array.size == 0:
        raise MetricError("there is nothing to rank: scores and relevant have 0 rows")
    if array.dtype.kind not in "fiu":
        raise MetricError(f"scores must be real numbers, found dtype {array.dtype}")
    values = array.astype(np.float64, copy=False)
    _check_finite(values, "scores")
    if relevant_from is None:
        if labels.dtype != np.bool_:
            raise MetricError(
                "relevant must be of dtype bool (say, relevance > 0), or relevant_from must be given with grades, "
                f"found dtype {labels.dtype}"
            )
        return values, labels
    if labels.dtype.kind not in "fiu" or not np.isreal(relevant_from) or np.isnan(relevant_from):
        raise MetricError(
            f"with relevant_from={relevant_from!r}, a number, relevant must hold grades, real numbers; "
            f"found dtype {labels.dtype}"
        )
    grades = labels.astype(np.float64, copy=False)
    _check_finite(grades, "grades")
    return values, grades


def _check_finite(values: NDArray[np.float64], name: str) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise MetricError(f"{name} must be finite, found {values[row]} at row {row} (rows are counted from 0)")


def sorted_rows(
    scores: NDArray[np.float64],
    worst_first: AnyArray | None = None,
    codes: NDArray[np.integer] | None = None,
    ranked: NDArray[np.bool_] | None = None,
) -> NDArray[np.intp]:
    """Sorts rows by ranking, ranked before unranked, falling score, rising `worst_first`, and input order."""
    falling = -scores if ranked is None else np.where(ranked, -scores, np.inf)
    order = np.argsort(falling, kind="stable") if worst_first is None else np.lexsort((worst_first, falling))
    if codes is None:
        return order
    # 16-bit keys are radix-sorted in linear time
    narrow = codes.astype(np.uint16 if codes.max() < 1 << 16 else np.int64)[order]
    return order[np.argsort(narrow, kind="stable")]


def number_groups(groups: ArrayLike, n_rows: int) -> tuple[AnyArray, NDArray[np.integer]]:
    """Distinct ids (G,), rising, and the index of each row's id (n,). Raises `MetricError`."""
    ids = np.asarray(groups)
    if ids.shape != (n_rows,):
        raise MetricError(f"groups must be of shape ({n_rows},), one for each row, found {ids.shape}")
    if ids.dtype.kind not in "iu":
        raise MetricError(f"groups must be integers, found dtype {ids.dtype}")
    changes = ids[1:] != ids[:-1]
    if (ids[1:] >= ids[:-1]).all():
        codes = np.concatenate([[0], np.cumsum(changes)])
        return ids[np.flatnonzero(np.concatenate([[True], changes]))], codes
    result, codes = np.unique(ids, return_inverse=True)
    return result, codes
