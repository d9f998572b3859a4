"""Precision of the rule "relevant if score > threshold": the relevant share of the rows called relevant.

    Precision = tp / #predicted relevant,        0 when nothing is predicted

Source: trec_eval's ``set_P``, where every retrieved document is predicted; scikit-learn's ``precision_score`` with
``zero_division=0``. The threshold is the model's, or 0. Cost: O(m).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable


@dataclass(frozen=True)
class Precision(Metric):
    """``Precision``: tp / (tp + fp)."""

    form: ClassVar[str] = "Precision"
    thresholded: ClassVar[bool] = True

    def _compute(self, table: RankingTable) -> NDArray[np.float64]:
        hits, predicted = table.hits_above, table.rows_above
        return hits / np.maximum(predicted, 1)
