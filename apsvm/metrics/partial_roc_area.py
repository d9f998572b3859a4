"""The partial area under the ROC curve, left of a false positive rate of β, as a share of its maximum, β:

    pAUC(β) = (1/b) Σ_j min(1, max(0, b − (j − 1))) · (positives above the j-th negative)/P,   b = βN

Source: McClish, "Analyzing a portion of the ROC curve", Medical Decision Making 9, 1989; Dodd and Pepe, "Partial AUC
estimation and regression", Biometrics 59, 2003, divided by β. The ⌈b⌉-th negative counts by its fraction, as the
area does. 1 for a perfect ranking, β/2 for a random one of many rows; pAUC(1) is AUC. Under the tie rule ``block`` the
expectation over the blocks' shuffles: above the t-th negative of a run of m are t/(m + 1) of the run's positives. Rows
without a position are tied below all others. Cost: O(m).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.metrics.base import Metric, number_from_name, number_in_name
from apsvm.metrics.errors import MetricError
from apsvm.metrics.ranking_table import RankingTable, Values


@dataclass(frozen=True)
class PartialROCArea(Metric):
    """``pAUC(beta)``, 0 < β ≤ 1, the false positive rate. Undefined without a negative."""

    form = "pAUC(beta)"
    needs_negatives = True
    examples = ("0.05", "0.3", "1")

    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise MetricError(f"{self.form} needs 0 < β ≤ 1, as in pAUC(0.05), found {self.rate!r}")

    @property
    def name(self) -> str:
        return f"pAUC({number_in_name(self.rate)})"

    @classmethod
    def from_text(cls, parameter: str) -> Metric:
        return cls(number_from_name(cls.form, parameter, "pAUC(0.05)"))

    def _compute(self, table: RankingTable) -> Values:
        most = np.multiply(self.rate, table.n_negatives, dtype=np.float64)
        in_run = table.sizes - table.gains
        before = table.ends - table.hits - in_run
        counted = _counted(before, in_run, table.of_runs(most), table.hits - table.gains, table.gains)
        last = table.sum_runs(in_run)  # ranked negatives
        hits = table.sum_runs(table.gains)
        counted_below = _counted(last, table.n_negatives - last, most, hits, table.n_positives - hits)
        return (table.sum_runs(counted) + counted_below) / (most * table.n_positives)


def _counted(
    before: NDArray[np.int64],
    negatives: NDArray[np.int64],
    most: NDArray[np.float64],
    hits: NDArray[np.int64],
    gains: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Sum over the ``negatives`` of a run: the positives above each, weighted by its share within the first ``most``
    negatives. ``before``: negatives above the run; ``hits``, ``gains``: positives above and in it."""
    room = np.clip(most - before, 0.0, negatives)
    whole = np.floor(room)
    # Σ_t t · share_t: 1 + 2 + … + whole, plus the next one by its fraction.
    steps = whole * (whole + 1.0) / 2.0 + (room - whole) * (whole + 1.0)
    return hits * room + gains * steps / (negatives + 1.0)
