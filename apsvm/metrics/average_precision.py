"""Average precision: the mean, over the positives, of the precision at their position.

    AP = (1/P) Σ_{k=1..P} k / (k + n_k)  =  Σ_i (R_i − R_{i−1}) · P_i,      n_k = #negatives above the k-th positive

Source: Yue, Finley, Radlinski, Joachims, "A support vector method for optimizing average precision", SIGIR 2007. With
the tie rule ``block`` the sum runs over distinct thresholds, every positive of a block taking the precision at the
block's end: the figure of scikit-learn's ``average_precision_score``. It is not the expectation over shuffles of the
block, and can exceed even the block's best order: 100 tied positives below 100 negatives have AP 1/2, and less in any
strict order. It is never below ``pessimistic``, whose precisions rise inside a block up to the one at its end. Cost:
O(m).
"""

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable, Values


class AveragePrecision(Metric):
    """``AP``."""

    form = "AP"

    def _compute(self, table: RankingTable) -> Values:
        return table.sum_runs(table.gains * table.precision) / table.n_positives
