"""The eleven-point average precision of the PASCAL VOC devkits up to 2009.

    AP(voc2007) = (1/11) Σ_{t ∈ {0, .1, …, 1}}  max { P_i : R_i ≥ t }

Source: Everingham, Van Gool, Williams, Winn, Zisserman, "The PASCAL Visual Object Classes (VOC) challenge", IJCV 88,
2010; the VOC2007 devkit, VOCevalcls.m (a loop over ``t=0:0.1:1`` of ``max(prec(rec>=t))``). The devkit sorts stably,
so the tie rule ``file`` is its order. Rules ``block`` and ``pessimistic`` agree: inside a block with its negatives
first no precision exceeds the one at its end.

Departure: R_i ≥ j/10 is tested in integers, hits_i ≥ ⌈j·P/10⌉. In floats, recall 3/10 falls short of the threshold
3·0.1, which is 0.30000000000000004, and the point is lost. Cost: O(m).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable


@dataclass(frozen=True)
class AveragePrecisionVOC2007(Metric):
    """``AP(voc2007)``."""

    form: ClassVar[str] = "AP(voc2007)"

    def _compute(self, table: RankingTable) -> NDArray[np.float64]:
        tenths = np.arange(11)[:, np.newaxis]
        run, exists = table.first_reaching(-(-tenths * table.n_positives // 10))
        if table.ends.size == 0:
            return np.zeros(table.n_rankings)
        best: NDArray[np.float64] = np.where(exists, table.precision_envelope[run], 0.0).sum(axis=0) / 11
        return best
