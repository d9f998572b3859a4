"""The separable oracle of the binary SVM: a row violates where y s < 1. O(P + N).

    h(s) = (1/n) Σ_i cost_i max(0, 1 − y_i s_i),   c_i = −cost_i y_i / n on the rows that violate

the 1-slack form of the 0-1 loss's hinge (Joachims 2006). Costs are SVM-light's ``cost:``, one where absent.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.zero_one import ZeroOneLoss
from apsvm.oracles.base import BoundOracle, Oracle, QueriesOracle, Violation, one_after_another
from apsvm.oracles.layout import Queries


class ZeroOneOracle(Oracle[ZeroOneLoss]):
    """Decides each row separately."""

    name: ClassVar[str] = "zero-one"

    serves = (ZeroOneLoss,)
    why_not = "it looks at each row on its own, and this loss does not"

    def bind(self, loss: ZeroOneLoss, n_pos: int, n_neg: int, *, threads: int = 1) -> BoundOracle:
        share = 1.0 / (n_pos + n_neg)
        return _bound(share, share)

    def bind_queries(self, loss: ZeroOneLoss, queries: Queries, *, threads: int = 1) -> QueriesOracle:
        tasks, costs = queries.tasks, queries.costs
        if costs is None:
            return super().bind_queries(loss, queries, threads=threads)
        oracles = []
        for first, n_pos, n_neg in zip(*(array.tolist() for array in tasks[:3]), strict=True):
            shares = costs[first : first + n_pos + n_neg] / (n_pos + n_neg)
            oracles.append(_bound(shares[:n_pos], shares[n_pos:]))
        return one_after_another(tasks, oracles)


def _bound(share_pos: float | NDArray[np.float64], share_neg: float | NDArray[np.float64]) -> BoundOracle:
    """Binds the oracle to the weights of positives and negatives in the loss: one for each row, or one for all."""

    def most_violated(
        scores_pos: NDArray[np.float64],
        scores_neg: NDArray[np.float64],
        weights_pos: NDArray[np.float64],
        weights_neg: NDArray[np.float64],
        /,
    ) -> Violation:
        missed_pos, missed_neg = scores_pos < 1.0, scores_neg > -1.0
        np.multiply(share_pos, missed_pos, out=weights_pos)
        np.negative(weights_pos, out=weights_pos)
        np.multiply(share_neg, missed_neg, out=weights_neg)
        lost = float(weights_neg.sum() - weights_pos.sum())
        value = lost + float(weights_pos @ scores_pos) + float(weights_neg @ scores_neg)
        return Violation(value, lost, 0, int(missed_pos.sum() + missed_neg.sum()))

    return most_violated
