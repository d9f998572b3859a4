"""Accuracy of the rule "relevant if score > threshold": the share of rows that it labels correctly.

    Accuracy = (tp + tn) / n,    tn = n − P − (#predicted relevant − tp)

Source: scikit-learn's ``accuracy_score``. With few positives, calling nothing relevant has an accuracy near 1. The
threshold is the model's, or 0. Cost: O(m).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable


@dataclass(frozen=True)
class Accuracy(Metric):
    """``Accuracy``: (tp + tn) / n."""

    form: ClassVar[str] = "Accuracy"
    thresholded: ClassVar[bool] = True

    def _compute(self, table: RankingTable) -> NDArray[np.float64]:
        hits = table.hits_above
        result: NDArray[np.float64] = (2 * hits + table.n_negatives - table.rows_above) / table.n_rows
        return result
