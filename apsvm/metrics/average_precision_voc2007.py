"""The eleven-point average precision of the PASCAL VOC devkits up to 2009.

    AP(voc2007) = (1/11) Σ_{t ∈ {0, .1, …, 1}}  max { P_i : R_i ≥ t }

Source: Everingham, Van Gool, Williams, Winn, Zisserman, "The PASCAL Visual Object Classes (VOC) challenge", IJCV 88,
2010; the VOC2007 devkit, VOCevalcls.m (a loop over ``t=0:0.1:1`` of ``max(prec(rec>=t))``). The devkit sorts stably,
so the tie rule ``file`` is its order. Rules ``block`` and ``pessimistic`` agree: inside a block with its negatives
first no precision exceeds the one at its end.

Departure: R_i ≥ j/10 is tested in integers, 10·hits_i ≥ j·P. In floats, recall 3/10 falls short of the threshold
3·0.1, which is 0.30000000000000004, and the point is lost. Cost: O(m).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable


@dataclass(frozen=True)
class AveragePrecisionVOC2007(Metric):
    """``AP(voc2007)``."""

    form: ClassVar[str] = "AP(voc2007)"

    def _compute(self, table: RankingTable) -> float:
        first_reaching = np.searchsorted(10 * table.hits, np.arange(11) * table.n_positives, side="left")
        return float(table.precision_envelope[first_reaching].sum() / 11)
