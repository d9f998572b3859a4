"""The partial area under the ROC curve, exactly: the order by score after raising the highest negatives.

The j-th highest negative above a positive adds w_j/P to Δ, w_j = min(1, max(0, b − (j − 1)))/b with b = βN. So the
pair (k, j) adds (2/(PN)) (s⁻_j + N w_j/2 − s⁺_k) to the objective, and is swapped where that is above 0: the most
violated ranking is the order of the scores with N w_j/2 added to the ⌈b⌉ highest negatives. Among negatives of equal
score, the first rows are raised. One selection and one ranking by score: O(n log P), n = P + N.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.partial_roc_area import PartialROCAreaLoss
from apsvm.oracles.base import BoundOracle, Oracle, QueriesOracle, Violation
from apsvm.oracles.by_score import ranking_by_score
from apsvm.oracles.layout import Queries


class Raised(Oracle[PartialROCAreaLoss]):
    """Raises the top negatives, then ranks by score."""

    name: ClassVar[str] = "raised"
    serves = (PartialROCAreaLoss,)
    why_not = "it is made for the partial area under the ROC curve"

    def bind(self, loss: PartialROCAreaLoss, n_pos: int, n_neg: int, *, threads: int = 1) -> BoundOracle:
        query = Queries(np.array([n_pos]), np.array([n_neg]), np.ones(1))
        solve = self.bind_queries(loss, query, threads=threads)

        def most_violated(
            scores_pos: NDArray[np.float64],
            scores_neg: NDArray[np.float64],
            weights_pos: NDArray[np.float64],
            weights_neg: NDArray[np.float64],
            /,
        ) -> Violation:
            weights = np.empty(n_pos + n_neg)
            violation = Violation(*solve(np.concatenate([scores_pos, scores_neg]), weights))
            weights_pos[:], weights_neg[:] = weights[:n_pos], weights[n_pos:]
            return violation

        return most_violated

    def bind_queries(self, loss: PartialROCAreaLoss, queries: Queries, *, threads: int = 1) -> QueriesOracle:
        by_score = ranking_by_score(queries, threads=threads)
        ends = np.cumsum(queries.n_pos + queries.n_neg)
        negatives = [slice(end - n, end) for end, n in zip(ends.tolist(), queries.n_neg.tolist(), strict=True)]
        raised = np.empty(int(ends[-1]))

        def most_violated(
            scores: NDArray[np.float64], weights: NDArray[np.float64], /
        ) -> tuple[float, float, int, int]:
            np.copyto(raised, scores)
            evaluated = 0
            for rows in negatives:
                evaluated += _raise_highest(raised[rows], loss.beta)
            value, _, _, violating = by_score(raised, weights)
            # Rows were ranked by these differences, as rounded in `raised`.
            lost = sum(float(weights[rows] @ (raised[rows] - scores[rows])) for rows in negatives)
            return value, lost, evaluated, violating

        return most_violated


def _raise_highest(scores: NDArray[np.float64], beta: float) -> int:
    """Adds N w_j/2 to the ⌈βN⌉ highest of the scores (N,), and returns ⌈βN⌉."""
    n = scores.size
    whole, part = divmod(beta * n, 1.0)
    full = min(int(whole), n)
    unit = 0.5 / beta if full else 0.5 * n  # N w_1/2
    if full == n:
        scores += unit
        return n
    last = np.partition(scores, n - 1 - full)[n - 1 - full]
    above = np.flatnonzero(scores > last)
    tied = np.flatnonzero(scores == last)[: full + 1 - above.size]
    scores[above] += unit
    scores[tied[:-1]] += unit
    scores[tied[-1]] += unit * (part if full else 1.0)
    return full + 1
