"""Precision at k: the share of the first k positions that positives hold.

    P@k = (1/k) · [ hits_{i−1} + (k − ends_{i−1}) · gains_i / sizes_i ],        i = the run in which position k falls

Source: trec_eval, measure ``P``. When k > n the divisor is still k, as in trec_eval: the missing rows count as not
relevant. Under the tie rule ``block`` this is the expectation over the shuffles of the block that straddles k
(McSherry, Najork, "Computing information retrieval performance measures efficiently in the presence of tied scores",
ECIR 2008). Cost: O(m).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from apsvm.metrics.base import MetricAtK
from apsvm.metrics.ranking_table import RankingTable


@dataclass(frozen=True)
class PrecisionAtK(MetricAtK):
    """``P@k``."""

    form: ClassVar[str] = "P@k"

    def _compute(self, table: RankingTable) -> float:
        depth = min(self.k, table.n_rows)
        straddling = int(np.searchsorted(table.ends, depth, side="left"))
        size, gain = int(table.sizes[straddling]), int(table.gains[straddling])
        hits_above = int(table.hits[straddling]) - gain
        rows_taken = depth - (int(table.ends[straddling]) - size)
        return (hits_above * size + rows_taken * gain) / (size * self.k)
