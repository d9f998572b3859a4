"""Rank-biased precision: the gain of a reader who continues to the next row with probability ρ.

    RBP(ρ) = (1 − ρ) Σ_{positives} ρ^(position − 1)

Source: Moffat, Zobel, "Rank-biased precision for measurement of retrieval effectiveness", TOIS 27, 2008, with binary
gains. A perfect ranking has 1 − ρ^P, not 1: the positives below are missed by the reader who stops. Under the tie
rule ``block`` the expectation over the blocks' shuffles; a run from position a + 1 to a + b weighs
Σ ρ^(position − 1) = ρ^a (1 − ρ^b)/(1 − ρ). Cost: O(m).
"""

import math
from dataclasses import dataclass

import numpy as np

from apsvm.metrics.base import Metric, number_from_name, number_in_name
from apsvm.metrics.errors import MetricError
from apsvm.metrics.ranking_table import RankingTable, Values


@dataclass(frozen=True)
class RankBiasedPrecision(Metric):
    """``RBP(rho)``, 0 < ρ < 1, the persistence."""

    form = "RBP(rho)"

    persistence: float

    def __post_init__(self) -> None:
        if not 0 < self.persistence < 1:
            raise MetricError(f"{self.form} needs 0 < ρ < 1, as in RBP(0.8), found {self.persistence!r}")

    @property
    def name(self) -> str:
        return f"RBP({number_in_name(self.persistence)})"

    @classmethod
    def from_text(cls, parameter: str) -> Metric:
        return cls(number_from_name(cls.form, parameter, "RBP(0.8)"))

    def _compute(self, table: RankingTable) -> Values:
        log = math.log(self.persistence)
        weights = np.exp(table.begins * log) * -np.expm1(table.sizes * log)
        return table.sum_runs(table.gains / table.sizes * weights)
