"""F1: the harmonic mean of precision and recall of the rule "positive if score > 0".

    F1 = 2·tp / (#predicted positive + P),        0 when there is no true positive

Source: van Rijsbergen, "Information Retrieval", 2nd ed., 1979, ch. 7 (F = 1 − E at β = 1). The only metric here that
looks at the scores' values, and the only one that no tie rule changes: rows of equal score fall on the same side of
0. Cost: O(m).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable


@dataclass(frozen=True)
class F1(Metric):
    """``F1`` at threshold 0."""

    form: ClassVar[str] = "F1"

    def _compute(self, table: RankingTable) -> float:
        n_runs = int(np.count_nonzero(table.lowest_scores > 0))
        if n_runs == 0:
            return 0.0
        true_positives, predicted = int(table.hits[n_runs - 1]), int(table.ends[n_runs - 1])
        return 2 * true_positives / (predicted + table.n_positives)
