"""The ranking by score: g = max_R w·Ψ(R) − w·Ψ(R*), the hinge of Δ = 0, by which the hinge exceeds the tighter bound.

    c⁰ = (2/(PN)) · (positives below it) of a negative,     −(2/(PN)) · (negatives above it) of a positive

A negative is above a positive only if it scores more. No separation oracle, and none of ``--oracle``'s.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.oracles.layout import Queries


class RankingByScore:
    """The ranking by score of many queries (a ``QueriesOracle``). The result does not depend on ``threads``."""

    def __init__(self, queries: Queries, *, threads: int = 1) -> None:
        first, n_pos, n_neg, shares = queries.tasks
        self._kernel = _kernels.RankingByScore(threads)
        self._kernel.add_tasks(first, n_pos, n_neg, shares)

    def __call__(self, scores: NDArray[np.float64], weights: NDArray[np.float64], /) -> tuple[float, float, int, int]:
        return self._kernel(scores, weights)

    def subtract(self, scores: NDArray[np.float64], weights: NDArray[np.float64], /) -> tuple[float, float, int, int]:
        """The same, but c⁰ is subtracted from the ``weights`` (n,) that there are, and takes no vector of its own."""
        return self._kernel.subtract(scores, weights)
