"""The ranking by score: g = max_R w·Ψ(R) − w·Ψ(R*), the hinge of Δ = 0, by which the hinge exceeds the tighter bound.

    c⁰ = (2/(PN)) · (positives below it) of a negative,     −(2/(PN)) · (negatives above it) of a positive

A negative is above a positive only if it scores more. No separation oracle, and none of ``--oracle``'s.
"""

from __future__ import annotations

from apsvm._native._kernels import RankingByScore
from apsvm.oracles.layout import Queries


def ranking_by_score(queries: Queries, *, threads: int = 1) -> RankingByScore:
    """The ranking by score of many queries (a ``QueriesOracle``). The result does not depend on ``threads``. Its
    ``subtract`` does the same, but c⁰ is subtracted from the weights (n,) that there are, and takes no vector of its
    own."""
    kernel = RankingByScore(threads)
    kernel.add_tasks(*queries.tasks)
    return kernel
