"""The ROC-area loss (AUC, WMW): Δ = Σ_k n_k / (PN), the share of swapped pairs; u_k = 1/P, D(p) = −p/N.

Unimodal: the gain is 1/(PN) for every positive, so it never falls. A pair is swapped where s⁺ − s⁻ < 1/2
(Joachims 2005).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import RankingLoss


class ROCAreaLoss(RankingLoss):
    """One minus the area under the ROC curve."""

    name = "auc"
    metric = "AUC"
    starts_from = None
    unimodal = True

    def weights(self, n_pos: int) -> NDArray[np.float64]:
        return np.full(n_pos, 1.0 / n_pos)

    def discount(self, n: int) -> NDArray[np.float64]:
        """−p. ``weights_of`` divides by N, which keeps the differences exact."""
        return -np.arange(1.0, n + 1)

    def weights_of(self, n_pos: int, n_neg: int) -> NDArray[np.float64]:
        return super().weights_of(n_pos, n_neg) / n_neg
