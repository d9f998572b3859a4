"""Recall of the rule "relevant if score > threshold": the share of relevant rows that are called relevant.

    Recall = tp / P

Source: trec_eval's ``set_recall``; scikit-learn's ``recall_score``. The threshold is the model's, or 0. Cost: O(m).
"""

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable, Values


class Recall(Metric):
    """``Recall``: tp / (tp + fn)."""

    form = "Recall"
    thresholded = True

    def _compute(self, table: RankingTable) -> Values:
        return table.hits_above / table.n_positives
