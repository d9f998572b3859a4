"""Rows on the wrong side: how many pairs of rows that differ in grade stand the wrong way round, row by row.

    above_i = #{ j in i's query : s_j > s_i, g_j < g_i }      lower grades that stand above row i
    below_i = #{ j in i's query : s_j < s_i, g_j > g_i }      higher grades that stand below it

In O(n log n + n log G) for G grades, whatever the queries: rows stand query by query, by falling score, equal scores by
falling grade, so that ties count for nothing; then grades are sorted bit by bit, and at each bit a row sees how many of
those before it, alike in the higher bits, differ from it in this one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


class Misplaced(NamedTuple):
    """(n,) int64 each, in the order of the rows. above, below : see the module; lower, higher : rows of a lower and of
    a higher grade in the query, what above and below are out of; place : of the row in its query, from 1; size : rows
    in the query."""

    above: Counts
    below: Counts
    lower: Counts
    higher: Counts
    place: Counts
    size: Counts


def misplaced(
    scores: NDArray[np.float64], grades: NDArray[np.float64] | NDArray[np.bool_], groups: NDArray[np.int64] | None
) -> Misplaced:
    """For scores (n,), grades (n,), and groups (n,) or None, one query; n ≥ 1, finite all."""
    n = scores.size
    query = (
        np.zeros(n, dtype=np.int64) if groups is None else np.unique(groups, return_inverse=True)[1].astype(np.int64)
    )
    levels, grade = np.unique(grades, return_inverse=True)
    order = np.lexsort((-grade, -scores, query))
    begins = np.searchsorted(query[order], np.arange(query.max() + 1))
    size = np.bincount(query)[query]
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n) - begins[query[order]] + 1
    above, below = _inversions(query[order], grade[order], levels.size)
    result = np.empty((2, n), dtype=np.int64)
    result[0, order], result[1, order] = above, below
    by_grade = np.lexsort((grade, query))
    key = query[by_grade] * levels.size + grade[by_grade]
    mine = query * levels.size + grade
    lower = np.searchsorted(key, mine) - begins[query]
    higher = begins[query] + size - np.searchsorted(key, mine, side="right")
    return Misplaced(result[0], result[1], lower, higher, place, size)


def _inversions(query: Counts, grade: Counts, n_levels: int) -> tuple[Counts, Counts]:
    """For each position, in the order given: those before it of its query with a lower grade, and those behind it with
    a higher one. Queries stand one behind the other."""
    n = query.size
    above, below = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    at = np.arange(n)  # positions, blocks alike in query and in the bits done, stable within them
    block = query
    for bit in reversed(range(int(n_levels - 1).bit_length())):
        high = (grade[at] >> bit) & 1
        begins = np.flatnonzero(np.r_[True, block[1:] != block[:-1]])
        sizes = np.diff(np.r_[begins, n])
        lows = np.cumsum(1 - high) - (1 - high)  # lows before each position
        lows_before = lows - np.repeat(lows[begins], sizes)
        highs = np.r_[0, np.cumsum(high)]
        highs_behind = np.repeat(highs[begins + sizes], sizes) - highs[1:]
        above[at] += np.where(high == 1, lows_before, 0)
        below[at] += np.where(high == 0, highs_behind, 0)
        block = block * 2 + high
        # Blocks are in order; within one the lows come first, as they stand.
        sort = np.argsort(block, kind="stable")
        at, block = at[sort], block[sort]
        block = np.cumsum(np.r_[0, block[1:] != block[:-1]])  # numbered anew: no overflow
    return above, below
