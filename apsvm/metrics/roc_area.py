"""The area under the ROC curve: the share of (positive, negative) pairs in the right order, a tied pair counting half.

    AUC = 1/(P·N) Σ_i negatives_i · (hits_{i−1} + ½ gains_i)

Source: Hanley, McNeil, "The meaning and use of the area under a receiver operating characteristic (ROC) curve",
Radiology 143, 1982; the Wilcoxon-Mann-Whitney statistic. Summed in integers and divided once. With a strict order a
run holds one class only, hence under ``pessimistic`` a tied pair counts 0. Rows without a position are tied below all
others. Cost: O(m); exact while P·N < 2⁶².
"""

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable, Values


class ROCArea(Metric):
    """``AUC``. Undefined without a negative."""

    form = "AUC"
    needs_negatives = True

    def _compute(self, table: RankingTable) -> Values:
        negatives = table.sizes - table.gains
        hits = table.sum_runs(table.gains)
        below = table.n_negatives - table.sum_runs(negatives)
        twice = table.sum_runs(negatives * (2 * table.hits - table.gains)) + below * (hits + table.n_positives)
        result: Values = twice / (2 * table.n_positives * table.n_negatives)
        return result
