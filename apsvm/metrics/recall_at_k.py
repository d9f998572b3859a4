"""Recall at k: the share of the positives that the first k positions hold.

    R@k = (1/P) · #positives among the first k

Source: trec_eval, measure ``recall``. Under the tie rule ``block`` the expectation over the shuffles of the block that
straddles k. Cost: O(m).
"""

import numpy as np

from apsvm.metrics.base import MetricAtK
from apsvm.metrics.ranking_table import RankingTable, Values


class RecallAtK(MetricAtK):
    """``R@k``."""

    form = "R@k"

    def _compute(self, table: RankingTable) -> Values:
        return table.hits_within(np.minimum(self.k, table.n_ranked)) / table.n_positives
