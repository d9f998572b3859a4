"""Reciprocal rank: one over the position of the first positive.

    RR = 1 / position,        0 when no positive is ranked

Source: trec_eval, measure ``recip_rank``; its mean over queries is known as MRR. Under the tie rule ``block``, with the
first positive in a block of b rows, g of them positive, below a rows: the expectation over the block's shuffles

    Σ_{x=1..b−g+1}  Pr(X = x) / (a + x),      Pr(X = x) = g/(b − x + 1) · Π_{i<x−1} (b − g − i)/(b − i)

(McSherry, Najork, ECIR 2008). Cost: O(log m) a ranking, and O(b) where that block is mixed.
"""

import numpy as np

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable, Values


class ReciprocalRank(Metric):
    """``RR``."""

    form = "RR"

    def _compute(self, table: RankingTable) -> Values:
        values = np.zeros(table.n_rankings)
        runs, has_positive = table.first_reaching(np.ones(table.n_rankings, dtype=np.int64))
        has_positive &= table.n_positives > 0
        runs = runs[has_positive]
        above, sizes, gains = table.begins[runs], table.sizes[runs], table.gains[runs]
        result = 1 / (above + 1)
        for i in np.flatnonzero(gains < sizes):
            result[i] = _expected(int(above[i]), int(sizes[i]), int(gains[i]))
        values[has_positive] = result
        return values


def _expected(above: int, size: int, gain: int) -> float:
    """E[1/(above + X)] for the position X of the first of `gain` positives among `size` shuffled rows."""
    before = np.arange(size - gain + 1)  # rows of the block above the first positive
    still = np.concatenate([[1.0], np.cumprod((size - gain - before[:-1]) / (size - before[:-1]))])
    return float((still * (gain / (size - before)) / (above + 1 + before)).sum())
