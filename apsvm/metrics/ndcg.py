"""Normalised discounted cumulative gain.

    nDCG = DCG / ideal,    DCG = Σ_p gain_p · D(p),    D(p) = 1/log2(1 + p),    ideal = the DCG of the best order

nDCG@k puts D(p) = 0 for p > k in both. The gain of a row is its grade (1 or 0 without grades), as in trec_eval and in
the loss ``ndcg(linear)``; in ``nDCG(exp)`` it is 2^grade − 1, as in LETOR and in the loss ``ndcg``. A negative grade
has gain 0. Rows without a position count in the ideal only.

Source: Järvelin, Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 20, 2002, with the discount
usual since (theirs leaves the first positions whole). Under the tie rule ``block`` each row of a block gains the
block's mean gain, the expectation over its shuffles also where k cuts the block (McSherry, Najork, ECIR 2008): the
figure of scikit-learn's ``ndcg_score``. Cost: O(n + m), and a sort by grade if there are any.
"""

import numpy as np
from numpy.typing import NDArray

from apsvm.metrics.base import Metric, MetricAtK
from apsvm.metrics.errors import MetricError
from apsvm.metrics.ranking_table import RankingTable, Values


class _Gains(Metric):
    """Gains of the four forms of nDCG."""

    graded = True
    exponential = False

    def gains(self, grades: NDArray[np.float64]) -> NDArray[np.float64]:
        positive = np.maximum(grades, 0.0)
        if not self.exponential:
            return positive
        highest = positive.max(initial=0.0)
        if highest >= np.finfo(np.float64).maxexp:
            raise MetricError(
                f"{self.name}: grade {highest:g} has no finite gain 2^grade - 1; in nDCG a grade is its own"
            )
        return np.exp2(positive) - 1

    def defined(self, table: RankingTable) -> NDArray[np.bool_]:
        above: NDArray[np.bool_] = table.highest_grades > 0
        return above

    def telling(self, table: RankingTable) -> NDArray[np.bool_]:
        return self.defined(table) & (table.highest_grades > np.maximum(table.lowest_grades, 0.0))

    def _lack(self, table: RankingTable) -> str:
        return "no positive" if table.relevant.sum() == 0 else "no grade above 0"

    def over(self, table: RankingTable, depth: int) -> NDArray[np.float64]:
        """(Q,): nDCG over the first `depth` ≥ 1 positions."""
        discounts = 1 / np.log2(np.arange(2, table.n_rows.max() + 2))
        discounts[depth:] = 0.0
        by_row = discounts[table.positions - 1]
        ideal = table.sum_rows(self.gains(table.best_grades) * by_row)
        gains, ranked = self.gains(table.grades), table.ranked_rows
        result = table.sum_runs(table.add_rows(gains[ranked]) / table.sizes * table.add_rows(by_row[ranked]))
        # the two sums are rounded in different orders: a perfect ranking could exceed 1 by an ulp
        return np.minimum(1.0, result / ideal)


class NDCG(_Gains):
    """``nDCG``, over the whole ranking."""

    form = "nDCG"

    def _compute(self, table: RankingTable) -> Values:
        return self.over(table, int(table.n_rows.max()))


class NDCGAtK(_Gains, MetricAtK):
    """``nDCG@k``, over the first k positions."""

    form = "nDCG@k"

    def _compute(self, table: RankingTable) -> Values:
        return self.over(table, self.k)


class ExponentialNDCG(NDCG):
    """``nDCG(exp)``: gain 2^grade − 1."""

    form = "nDCG(exp)"
    exponential = True


class ExponentialNDCGAtK(NDCGAtK):
    """``nDCG(exp)@k``: gain 2^grade − 1, over the first k positions."""

    form = "nDCG(exp)@k"
    exponential = True
