"""Tries every interleaving of the sorted positives and negatives, to check other oracles. O(C(P+N, P)·PN); tiny queries
only.

The objective is computed from its definition, pair by pair, without any formula of the fast oracles.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import RankingLoss
from apsvm.oracles import ranking
from apsvm.oracles.base import BoundOracle, RankingOracle, Violation

LIMIT = 100_000


class BruteForce(RankingOracle):
    """Tries every interleaving; raises ValueError for more than 100,000 of them."""

    name: ClassVar[str] = "brute-force"

    def bind(self, loss: RankingLoss, n_pos: int, n_neg: int, *, threads: int = 1) -> BoundOracle:
        if comb(n_pos + n_neg, n_pos) > LIMIT:
            raise ValueError(
                f"oracle 'brute-force' tries every interleaving: {n_pos} positives and {n_neg} negatives have "
                f"more than {LIMIT:,}; use it on tiny queries"
            )
        tables = loss.tables(n_pos, n_neg)
        k = np.arange(1, n_pos + 1)[:, None]

        def most_violated(
            scores_pos: NDArray[np.float64],
            scores_neg: NDArray[np.float64],
            weights_pos: NDArray[np.float64],
            weights_neg: NDArray[np.float64],
            /,
        ) -> Violation:
            order_pos, order_neg = ranking.descending_order(scores_pos), ranking.descending_order(scores_neg)
            margins = scores_pos[order_pos][:, None] - scores_neg[order_neg][None, :]
            best = Violation(-np.inf, 0.0, n_neg, 0)
            # Later candidates have larger ranks: ">=" keeps the largest of equal ones.
            for candidate in combinations_with_replacement(range(1, n_pos + 2), n_neg):
                swapped = np.array(candidate)[None, :] <= k  # R_kj = −1 where R*_kj = +1
                lost = tables.loss(swapped.sum(axis=1))
                value = lost - 2.0 * float(margins[swapped].sum()) / (n_pos * n_neg)
                if value >= best.value:
                    best = Violation(value, lost, n_neg, int(swapped.any(axis=0).sum()))
                    weights_pos[order_pos] = -2.0 / (n_pos * n_neg) * swapped.sum(axis=1)
                    weights_neg[order_neg] = 2.0 / (n_pos * n_neg) * swapped.sum(axis=0)
            return best

        return most_violated
