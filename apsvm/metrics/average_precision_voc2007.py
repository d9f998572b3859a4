"""The eleven-point average precision of the PASCAL VOC devkits up to 2009.

    AP(voc2007) = (1/11) Σ_{t ∈ {0, .1, …, 1}}  max { P_i : R_i ≥ t }

Source: Everingham, Van Gool, Williams, Winn, Zisserman, "The PASCAL Visual Object Classes (VOC) challenge", IJCV 88,
2010; the VOC2007 devkit, VOCevalcls.m (a loop over ``t=0:0.1:1`` of ``max(prec(rec>=t))``). The devkit sorts stably,
so the tie rule ``file`` is its order. Rules ``block`` and ``pessimistic`` agree: inside a block with its negatives
first no precision exceeds the one at its end.

Departure: R_i ≥ j/10 is tested in integers, hits_i ≥ ⌈j·P/10⌉. In floats, recall 3/10 falls short of the threshold
3·0.1, which is 0.30000000000000004, and the point is lost. Cost: O(m).
"""

import numpy as np

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable, Values


class AveragePrecisionVOC2007(Metric):
    """``AP(voc2007)``."""

    form = "AP(voc2007)"

    def _compute(self, table: RankingTable) -> Values:
        tenths = np.arange(11)[:, np.newaxis]
        return table.interpolated_precision(-(-tenths * table.n_positives // 10))
