"""Precision at k: the share of the first k positions that positives hold.

    P@k = (1/k) · [ hits_{i−1} + (k − ends_{i−1}) · gains_i / sizes_i ],        i = the run in which position k falls

Source: trec_eval, measure ``P``. When k > n the divisor is still k, as in trec_eval: the missing rows count as not
relevant. Under the tie rule ``block`` this is the expectation over the shuffles of the block that straddles k
(McSherry, Najork, "Computing information retrieval performance measures efficiently in the presence of tied scores",
ECIR 2008). Cost: O(m).
"""

import numpy as np

from apsvm.metrics.base import MetricAtK
from apsvm.metrics.ranking_table import RankingTable, Values


class PrecisionAtK(MetricAtK):
    """``P@k``."""

    form = "P@k"

    def _compute(self, table: RankingTable) -> Values:
        return table.hits_within(np.minimum(self.k, table.n_ranked)) / self.k
