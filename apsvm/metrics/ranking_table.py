"""A ranking as cumulative counts: the one sort that every metric reads.

Rows sorted by falling score are cut into m runs; after the i-th, i = 1..m,

    ends_i = #rows ranked so far,   hits_i = #positives among them,
    recall_i = hits_i / P,          precision_i = hits_i / ends_i,      ends_m = n, hits_m = P.

Under the tie rule ``block`` a run is a block of equal scores; under ``pessimistic`` and ``file`` a run is one row,
the rule having set the order inside the blocks. Cost: O(n log n) for the sort, O(n) after it, whatever the rule.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apsvm.metrics.base import TIE_RULES, MetricError

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RankingTable:
    """Cumulative counts of one ranking, highest score first.

    ends : (m,) int64, strictly rising, ends[-1] = n
    hits : (m,) int64, non-decreasing, hits[-1] = number of positives
    lowest_scores : (m,) float64, non-increasing, the score at which each run ends
    n_tied_blocks : number of blocks of equal score that hold both classes, whatever the tie rule
    n_tied_rows : number of rows in those blocks
    """

    ends: Counts
    hits: Counts
    lowest_scores: NDArray[np.float64]
    n_tied_blocks: int
    n_tied_rows: int

    @classmethod
    def from_scores(cls, scores: ArrayLike, relevant: ArrayLike, ties: str = "block") -> "RankingTable":
        """Check and sort. scores : (n,) real, finite; relevant : (n,) bool; ties : one of `TIE_RULES`.

        Raises `MetricError` if an argument is anything else, or n = 0.
        """
        check_ties(ties)
        return cls.from_checked(*check_rows(scores, relevant), ties)

    @classmethod
    def from_checked(cls, scores: NDArray[np.float64], relevant: NDArray[np.bool_], ties: str) -> "RankingTable":
        """Sort rows that `check_rows` has passed, under a rule that `check_ties` has passed."""
        order = np.argsort(-scores, kind="stable")
        sorted_scores = scores[order]
        row_hits = np.cumsum(relevant[order], dtype=np.int64)
        last_rows = np.append(np.flatnonzero(sorted_scores[1:] != sorted_scores[:-1]), order.size - 1)
        ends, hits = last_rows + 1, row_hits[last_rows]
        sizes, gains = np.diff(ends, prepend=0), np.diff(hits, prepend=0)
        mixed = (gains > 0) & (gains < sizes)
        n_tied_blocks, n_tied_rows = int(np.count_nonzero(mixed)), int(sizes[mixed].sum())
        if ties == "block":
            return cls(ends, hits, sorted_scores[last_rows], n_tied_blocks, n_tied_rows)
        row_ends = np.arange(1, order.size + 1)
        if ties == "pessimistic":
            rows_below = np.repeat(ends, sizes) - row_ends
            row_hits = np.maximum(np.repeat(hits - gains, sizes), np.repeat(hits, sizes) - rows_below)
        return cls(row_ends, row_hits, sorted_scores, n_tied_blocks, n_tied_rows)

    @property
    def n_rows(self) -> int:
        return int(self.ends[-1])

    @property
    def n_positives(self) -> int:
        return int(self.hits[-1])

    @property
    def n_negatives(self) -> int:
        return self.n_rows - self.n_positives

    @cached_property
    def sizes(self) -> Counts:
        """(m,) int64: rows in each run."""
        return np.diff(self.ends, prepend=0)

    @cached_property
    def gains(self) -> Counts:
        """(m,) int64: positives in each run."""
        return np.diff(self.hits, prepend=0)

    @cached_property
    def precision(self) -> NDArray[np.float64]:
        """(m,) float64: precision at the end of each run."""
        return self.hits / self.ends

    @cached_property
    def precision_envelope(self) -> NDArray[np.float64]:
        """(m,) float64, non-increasing: the largest precision at this recall or a greater one."""
        envelope: NDArray[np.float64] = np.maximum.accumulate(self.precision[::-1])[::-1]
        return envelope


def check_ties(ties: str) -> None:
    """Raise `MetricError` unless `ties` is one of `TIE_RULES`."""
    if ties not in TIE_RULES:
        raise MetricError(f"unknown tie rule {ties!r}; known: {', '.join(TIE_RULES)}")


def check_rows(scores: ArrayLike, relevant: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """`scores` as (n,) float64 and `relevant` as (n,) bool, n ≥ 1. Raises `MetricError` if they are anything else.

    Integer labels are refused: among −1/+1, 0/1 and 1/2 only the caller knows which is the positive class.
    """
    given, labels = np.asarray(scores), np.asarray(relevant)
    if given.ndim != 1 or labels.shape != given.shape:
        raise MetricError(
            f"scores and relevant must both be of shape (n,), found scores {given.shape}, relevant {labels.shape}"
        )
    if given.size == 0:
        raise MetricError("there is nothing to rank: scores and relevant have 0 rows")
    if given.dtype.kind not in "fiu":
        raise MetricError(f"scores must be real numbers, found dtype {given.dtype}")
    if labels.dtype != np.bool_:
        raise MetricError(f"relevant must be of dtype bool (say, relevance > 0), found dtype {labels.dtype}")
    values = given.astype(np.float64, copy=False)
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise MetricError(f"scores must be finite, found {values[row]} at row {row} (rows are counted from 0)")
    return values, labels
