"""The area under the ROC curve: the share of (positive, negative) pairs in the right order, a tied pair counting half.

    AUC = 1/(P·N) Σ_i negatives_i · (hits_{i−1} + ½ gains_i)

Source: Hanley, McNeil, "The meaning and use of the area under a receiver operating characteristic (ROC) curve",
Radiology 143, 1982; the Wilcoxon-Mann-Whitney statistic. Summed in integers and divided once. With a strict order a
run holds one class only, hence under ``pessimistic`` a tied pair counts 0. Rows without a position are tied below all
others. Cost: O(m); exact while P·N < 2⁶².
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable


@dataclass(frozen=True)
class ROCArea(Metric):
    """``AUC``. Undefined without a negative."""

    form: ClassVar[str] = "AUC"
    needs_negatives: ClassVar[bool] = True

    def _compute(self, table: RankingTable) -> NDArray[np.float64]:
        negatives = table.sizes - table.gains
        twice = table.sum_runs(negatives * (2 * table.hits - table.gains))
        hits = table.sum_runs(table.gains)
        below = table.n_negatives - table.sum_runs(negatives)
        twice += below * (hits + table.n_positives)
        result: NDArray[np.float64] = twice / (2 * table.n_positives * table.n_negatives)
        return result
