"""R-precision: precision, which equals recall, after as many rows as there are positives.

    Rprec = (1/P) · #positives among the first P

Source: trec_eval, measure ``Rprec``. At that depth precision and recall are equal: it is the precision-recall
break-even point, and the name ``PRBEP`` (Joachims, "A support vector method for multivariate performance measures",
ICML 2005) is read as this metric. Under the tie rule ``block`` the expectation over the shuffles of the block that
straddles P. Cost: O(m).
"""

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable, Values


class RPrecision(Metric):
    """``Rprec``."""

    form = "Rprec"

    def _compute(self, table: RankingTable) -> Values:
        return table.hits_within(table.n_positives) / table.n_positives
