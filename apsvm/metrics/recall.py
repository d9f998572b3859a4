"""Recall of the rule "relevant if score > threshold": the share of relevant rows that are called relevant.

    Recall = tp / P

Source: trec_eval's ``set_recall``; scikit-learn's ``recall_score``. The threshold is the model's, or 0. Cost: O(m).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable


@dataclass(frozen=True)
class Recall(Metric):
    """``Recall``: tp / (tp + fn)."""

    form: ClassVar[str] = "Recall"
    thresholded: ClassVar[bool] = True

    def _compute(self, table: RankingTable) -> NDArray[np.float64]:
        result: NDArray[np.float64] = table.hits_above / table.n_positives
        return result
