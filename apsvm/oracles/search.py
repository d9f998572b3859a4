"""AP-SVM-SEARCH: a binary search for each negative's rank. O(P² + N log P + N log N).

Algorithm 2 of Mohapatra et al. 2014: f_j is unimodal on 1..min(P, j); the ranks above j, possible only for the first P
negatives, are tried one by one. For losses that declare ``unimodal``.
"""

from __future__ import annotations

from typing import ClassVar

from apsvm.losses.base import Loss, is_of_two_arrays
from apsvm.oracles.base import NativeOracle


class SearchingOracle(NativeOracle):
    """An oracle that searches the ranks by bisection and needs a unimodal loss."""

    @classmethod
    def refusal(cls, loss: Loss) -> str | None:
        if is_of_two_arrays(loss) and not loss.unimodal:
            return "it searches the ranks by bisection, and this loss does not declare itself unimodal"
        return super().refusal(loss)


class Search(SearchingOracle):
    """Sorts all negatives and finds each rank by bisection."""

    name: ClassVar[str] = "search"
