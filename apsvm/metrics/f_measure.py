"""F_β of the rule "relevant if score > threshold": the harmonic mean of precision and recall, with weight β² for
recall.

    Fβ = (1 + β²)·tp / (#predicted relevant + β²·P),        0 when there is no true positive

Source: van Rijsbergen, "Information Retrieval", 2nd ed., 1979, ch. 7 (F = 1 − E). The threshold is the model's, or 0.
In a TREC run every retrieved document counts as predicted, so F1 is trec_eval's ``set_F``. Tie rules do not change it,
since rows of equal score fall on the same side of the threshold. Cost: O(m).
"""

import math
from dataclasses import dataclass

from apsvm.metrics.base import Metric, number_from_name, number_in_name
from apsvm.metrics.errors import MetricError
from apsvm.metrics.ranking_table import RankingTable, Values


@dataclass(frozen=True)
class FMeasure(Metric):
    """``F1``, ``F0.5``, ``F2``: Fβ, 0 < β < ∞."""

    form = "Fβ"
    thresholded = True

    beta: float

    def __post_init__(self) -> None:
        if not 0 < self.beta < math.inf:
            raise MetricError(f"{self.form} needs 0 < β < ∞, as in F1, found {self.beta!r}")

    @property
    def name(self) -> str:
        return f"F{number_in_name(self.beta)}"

    @classmethod
    def from_text(cls, parameter: str) -> Metric:
        return cls(number_from_name(cls.form, parameter, "F1 or F0.5"))

    def _compute(self, table: RankingTable) -> Values:
        weight = self.beta * self.beta
        return (1 + weight) * table.hits_above / (table.rows_above + weight * table.n_positives)
