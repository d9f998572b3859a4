"""Recall at k: the share of the positives that the first k positions hold.

    R@k = (1/P) · #positives among the first k

Source: trec_eval, measure ``recall``. Under the tie rule ``block`` the expectation over the shuffles of the block that
straddles k. Cost: O(m).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.metrics.base import MetricAtK
from apsvm.metrics.ranking_table import RankingTable


@dataclass(frozen=True)
class RecallAtK(MetricAtK):
    """``R@k``."""

    form: ClassVar[str] = "R@k"

    def _compute(self, table: RankingTable) -> NDArray[np.float64]:
        return table.hits_within(np.minimum(self.k, table.n_ranked)) / table.n_positives
