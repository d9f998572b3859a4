"""AP-SVM-SELECT: solves only the negatives that stand above some positive.

Algorithm 3 of Mohapatra et al. 2014: since the ranks are monotone, a binary search by quickselect finds the score ŝ
below which every negative has rank P+1; only those from ŝ up (its line 3 prints "<", the text of §3.2 is right) are
sorted and solved, one by one here, by bisection in ``search-select`` ("ALL" in the paper's tables).
O(N + P log N) before the M survivors, which cost O(M log M + PM), or O(M log M + M log P + P²).
"""

from __future__ import annotations

from typing import ClassVar

from apsvm.oracles.base import NativeOracle
from apsvm.oracles.search import SearchingOracle


class Select(NativeOracle):
    """Selective ranking; tries every rank for the survivors."""

    name: ClassVar[str] = "select"


class SearchSelect(SearchingOracle):
    """Selective ranking; searches ranks by bisection for the survivors."""

    name: ClassVar[str] = "search-select"
