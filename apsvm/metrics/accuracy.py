"""Accuracy of the rule "relevant if score > threshold": the share of rows that it labels correctly.

    Accuracy = (tp + tn) / n,    tn = n − P − (#predicted relevant − tp)

Source: scikit-learn's ``accuracy_score``. With few positives, calling nothing relevant has an accuracy near 1. The
threshold is the model's, or 0. Cost: O(m).
"""

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable, Values


class Accuracy(Metric):
    """``Accuracy``: (tp + tn) / n."""

    form = "Accuracy"
    thresholded = True

    def _compute(self, table: RankingTable) -> Values:
        hits = table.hits_above
        return (2 * hits + table.n_negatives - table.rows_above) / table.n_rows
