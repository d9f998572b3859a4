"""The judge: every interleaving of the sorted positives and negatives is tried. O(C(P+N, P)·PN); tiny queries only.

It takes the objective from its definition, pair by pair, and shares no formula with the fast oracles.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import LossTables
from apsvm.oracles.base import RankingOracle

LIMIT = 100_000


class BruteForce(RankingOracle):
    """Every interleaving; refuses queries with more than 100,000 of them (ValueError)."""

    name: ClassVar[str] = "brute-force"

    def interleaving_ranks(
        self, tables: LossTables, positives: NDArray[np.float64], negatives: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], int]:
        n_pos, n_neg = positives.size, negatives.size
        if comb(n_pos + n_neg, n_pos) > LIMIT:
            raise ValueError(
                f"oracle 'brute-force' tries every interleaving: {n_pos} positives and {n_neg} negatives have "
                f"more than {LIMIT:,}; use it on tiny queries"
            )
        order = np.argsort(-negatives, kind="stable")
        margins = positives[:, None] - negatives[order][None, :]
        k = np.arange(1, n_pos + 1)[:, None]
        best, best_value = np.full(n_neg, n_pos + 1), -np.inf
        # Later candidates have larger ranks: ">=" keeps the largest of equal ones.
        for candidate in combinations_with_replacement(range(1, n_pos + 2), n_neg):
            ranks = np.array(candidate)
            swapped = ranks[None, :] <= k  # R_kj = −1 where R*_kj = +1
            value = tables.loss(swapped.sum(axis=1)) - 2.0 * float(margins[swapped].sum()) / (n_pos * n_neg)
            if value >= best_value:
                best, best_value = ranks, value
        result = np.empty(n_neg, dtype=np.int32)
        result[order] = best
        return result, n_neg
