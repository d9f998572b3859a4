"""The area under the ROC curve: the share of (positive, negative) pairs in the right order, a tied pair counting half.

    AUC = 1/(P·N) Σ_i negatives_i · (hits_{i−1} + ½ gains_i)

Source: Hanley, McNeil, "The meaning and use of the area under a receiver operating characteristic (ROC) curve",
Radiology 143, 1982; the Wilcoxon-Mann-Whitney statistic. Summed in integers and divided once. With a strict order a
run holds one class only, hence under ``pessimistic`` a tied pair counts 0. Cost: O(m); exact while P·N < 2⁶².
"""

from dataclasses import dataclass
from typing import ClassVar

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable


@dataclass(frozen=True)
class ROCArea(Metric):
    """``AUC``. Undefined without a negative, too."""

    form: ClassVar[str] = "AUC"
    needs_negatives: ClassVar[bool] = True

    def _compute(self, table: RankingTable) -> float:
        negatives = table.sizes - table.gains
        twice_above = 2 * table.hits - table.gains
        return int((negatives * twice_above).sum()) / (2 * table.n_positives * table.n_negatives)
