"""The quicksort-flavoured oracle: O(N log P + P log P + P log N) expected, without sorting the negatives.

Algorithm 1 of Mohapatra, Rolínek et al. 2018 (AP_QS, NDCG_QS): divide at the median negative, found by quickselect;
its rank bounds the ranks on both sides. A part whose bounds agree is solved without looking inside.
"""

from __future__ import annotations

from typing import ClassVar

from apsvm.oracles.base import NativeOracle


class QuickSort(NativeOracle):
    """Divides at the median negative and conquers."""

    name: ClassVar[str] = "qs"
