"""Interleaving ranks, and counts and row weights derived from them, in O(n).

A ranking that keeps the positives and the negatives each in descending order of score is given by the interleaving
rank of every negative, r_j = 1 + the number of positives above it, in 1..P+1 (P+1: below every positive). From it:

    n_k = #{j : r_j ≤ k}                         negatives above the k-th positive
    c_j = +(2/(PN)) (P+1−r_j),  c_k = −(2/(PN)) n_k     signed row weights, Σc = 0, Ψ(R) − Ψ(R*) = Xᵀc

(Yue et al. 2007; McFee and Lanckriet 2010 for the row weights). c is zero on every row that violates nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels

#: Difference of scores above which a sum of two may overflow, and a magnitude of scores that excludes it.
_FARTHEST = 8e307
_NEAR = 1e300


def descending_order(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """The positions of ``scores`` (n,) float64 from the highest to the lowest, equal ones by position: (n,) int64."""
    return _kernels.descending_order(scores)


def check_scores(scores: NDArray[np.float64]) -> None:
    """Raises FloatingPointError if ``scores`` (n,) float64 are not finite, or if sums of their differences overflow.
    The sorting kernels rely on this: NaN cannot be ordered."""
    if _kernels.all_within(scores, _NEAR):
        return
    if not np.isfinite(scores).all():
        raise FloatingPointError("scores are not finite: the feature values (or bias) are too large, scale them down")
    trouble = too_far_apart(scores)
    if trouble is not None:
        raise FloatingPointError(f"{trouble}: the feature values (or bias) are too large, scale them down")


def certainly_add_up(scores: NDArray[np.float64]) -> bool:
    """True if all ``scores`` (n,) float64 are so small that sums of their differences are finite; a sufficient test."""
    return _kernels.all_within(scores, _NEAR)


def too_far_apart(scores: NDArray[np.float64]) -> str | None:
    """Error message if finite ``scores`` (n,) are too far apart for differences in float64; else None."""
    low, high = float(scores.min()), float(scores.max())
    if high * 0.5 - low * 0.5 <= _FARTHEST * 0.5:
        return None
    return f"scores from {low:g} to {high:g} are too far apart for float64"


def ranks(weights_neg: NDArray[np.float64], n_pos: int) -> NDArray[np.int32]:
    """Interleaving ranks r_j = P+1 − (PN/2)·c_j of the negatives with row weights c_j (n_neg,): (n_neg,) int32,
    1..n_pos+1."""
    steps = weights_neg * (0.5 * n_pos * weights_neg.size)
    np.rint(steps, out=steps)
    return np.subtract(n_pos + 1, steps, dtype=np.int32, casting="unsafe")


def rank_counts(ranks: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Number of negatives at each rank: pairs (rank, count), ranks ascending, counts ≥ 1. Ranks rise as scores fall, so
    the counts determine the ranking up to the identity of the negatives."""
    result, counts = np.unique(ranks, return_counts=True)
    return list(zip(result.tolist(), counts.tolist(), strict=True))


def negatives_above(ranks: NDArray[np.int32], n_pos: int) -> NDArray[np.int64]:
    """n_k for k = 1..n_pos: (n_pos,) int64."""
    return np.cumsum(np.bincount(ranks, minlength=n_pos + 2)[1 : n_pos + 1])
