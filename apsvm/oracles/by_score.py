"""The ranking by score: g = max_R w·Ψ(R) − w·Ψ(R*), the hinge of Δ = 0, by which the hinge exceeds the tighter bound.

    c⁰ = (2/(PN)) · (positives below it) of a negative,     −(2/(PN)) · (negatives above it) of a positive

A negative is above a positive only if it scores more. This is not a separation oracle, and not a value of ``--oracle``.
"""

from __future__ import annotations

from apsvm._native._kernels import RankingByScore
from apsvm.oracles.layout import Queries


def ranking_by_score(queries: Queries, *, threads: int = 1) -> RankingByScore:
    """Ranking by score of many queries (a ``QueriesOracle``). The result does not depend on ``threads``. Its
    ``subtract`` subtracts c⁰ from existing weights (n,) in place, without another vector."""
    kernel = RankingByScore(threads)
    kernel.add_tasks(*queries.tasks)
    return kernel
