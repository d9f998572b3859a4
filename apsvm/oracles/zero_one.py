"""The separable oracle of the binary SVM: a row violates where y s < 1. O(P + N).

    h(s) = (1/n) Σ_i cost_i max(0, 1 − y_i s_i),   c_i = −cost_i y_i / n on the rows that violate

the 1-slack form of the 0-1 loss's hinge (Joachims 2006). Costs are SVM-light's ``cost:``, one where absent.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import Loss
from apsvm.losses.zero_one import ZeroOne
from apsvm.oracles.base import BoundOracle, Oracle, Violation


class ZeroOneOracle(Oracle):
    """Each row on its own."""

    name: ClassVar[str] = "zero-one"

    def refusal(self, loss: Loss) -> str | None:
        return None if isinstance(loss, ZeroOne) else "it looks at each row on its own, and this loss does not"

    def bind(
        self,
        loss: Loss,
        n_pos: int,
        n_neg: int,
        *,
        costs: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
        threads: int = 1,
    ) -> BoundOracle:
        n = n_pos + n_neg
        share_pos, share_neg = (np.ones(n_pos), np.ones(n_neg)) if costs is None else costs
        share_pos, share_neg = share_pos / n, share_neg / n

        def most_violated(
            scores_pos: NDArray[np.float64],
            scores_neg: NDArray[np.float64],
            weights_pos: NDArray[np.float64],
            weights_neg: NDArray[np.float64],
            /,
        ) -> Violation:
            missed_pos, missed_neg = scores_pos < 1.0, scores_neg > -1.0
            np.multiply(-share_pos, missed_pos, out=weights_pos)
            np.multiply(share_neg, missed_neg, out=weights_neg)
            lost = float(weights_neg.sum() - weights_pos.sum())
            value = lost + float(weights_pos @ scores_pos) + float(weights_neg @ scores_neg)
            return Violation(value, lost, 0, int(missed_pos.sum() + missed_neg.sum()))

        return most_violated
