"""Precision of the rule "relevant if score > threshold": the relevant share of the rows called relevant.

    Precision = tp / #predicted relevant,        0 when nothing is predicted

Source: trec_eval's ``set_P``, where every retrieved document is predicted; scikit-learn's ``precision_score`` with
``zero_division=0``. The threshold is the model's, or 0. Cost: O(m).
"""

import numpy as np

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable, Values


class Precision(Metric):
    """``Precision``: tp / (tp + fp)."""

    form = "Precision"
    thresholded = True

    def _compute(self, table: RankingTable) -> Values:
        hits, predicted = table.hits_above, table.rows_above
        return hits / np.maximum(predicted, 1)
