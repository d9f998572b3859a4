"""The average precision of the PASCAL VOC devkits since 2010: the area under the monotone precision envelope.

    AP(voc2010) = Σ_i (R_i − R_{i−1}) · max_{j ≥ i} P_j

Source: the VOC2010 to VOC2012 devkits, VOCap.m (``mrec=[0;rec;1]``, ``mpre=[0;prec;0]``, a running maximum from the
right, the sum over the changes of recall). The devkit sorts stably, so the tie rule ``file`` is its order. Rules
``block`` and ``pessimistic`` agree: inside a block with its negatives first no precision exceeds the one at its end.
Cost: O(m).
"""

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable, Values


class AveragePrecisionVOC2010(Metric):
    """``AP(voc2010)``."""

    form = "AP(voc2010)"

    def _compute(self, table: RankingTable) -> Values:
        return table.sum_runs(table.gains * table.precision_envelope) / table.n_positives
