"""Normalised discounted cumulative gain, with binary gains.

    nDCG = DCG / ideal,    DCG = Σ_p gain_p · D(p),    D(p) = 1/log2(1 + p),    ideal = Σ_{p ≤ P} D(p)

nDCG@k puts D(p) = 0 for p > k in both: the ideal is cut at k too, ideal = Σ_{p ≤ min(P, k)} D(p).

Source: Järvelin, Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 20, 2002, with the discount
usual since (theirs leaves the first positions whole). Under the tie rule ``block`` each row of a block gains the
block's mean gain, the expectation over its shuffles also where k cuts the block (McSherry, Najork, ECIR 2008): the
figure of scikit-learn's ``ndcg_score``. Cost: O(n + m).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from apsvm.metrics.base import Metric, MetricAtK
from apsvm.metrics.ranking_table import RankingTable


@dataclass(frozen=True)
class NDCG(Metric):
    """``nDCG``, over the whole ranking."""

    form: ClassVar[str] = "nDCG"

    def _compute(self, table: RankingTable) -> float:
        return _ndcg(table, table.n_rows)


@dataclass(frozen=True)
class NDCGAtK(MetricAtK):
    """``nDCG@k``, over the first k positions."""

    form: ClassVar[str] = "nDCG@k"

    def _compute(self, table: RankingTable) -> float:
        return _ndcg(table, min(self.k, table.n_rows))


def _ndcg(table: RankingTable, depth: int) -> float:
    """nDCG over the first `depth` positions, 1 ≤ depth ≤ n."""
    n_runs = int(np.searchsorted(table.ends, depth, side="left")) + 1
    sizes, gains = table.sizes[:n_runs], table.gains[:n_runs]
    discount = 1 / np.log2(np.arange(2, depth + 2))
    run_discounts = np.add.reduceat(discount, table.ends[:n_runs] - sizes)
    ideal = discount[: table.n_positives].sum()
    # the two sums are rounded in different orders: a perfect ranking could exceed 1 by an ulp
    return min(1.0, float((gains / sizes * run_discounts).sum() / ideal))
