"""The loss of rank-biased precision, RBP(ρ) of Moffat and Zobel (2008): u_k = 1 − ρ, D(p) = ρ^(p−1), 0 < ρ < 1.

    Δ = (1 − ρ) Σ_k [ρ^(k−1) − ρ^(k+n_k−1)] = RBP(R*) − RBP(R)

against the best ranking, whose RBP is 1 − ρ^P. The reader continues from each position with probability ρ. Positions
far down do not count, since D underflows to 0. Not unimodal: the gain falls in k.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import LossError, RankingLoss


class RankBiasedPrecisionLoss(RankingLoss):
    """``rho`` is the persistence ρ. Raises LossError unless 0 < ρ < 1."""

    parameter = float
    starts_from = "ap"

    def __init__(self, rho: float = 0.8) -> None:
        if not 0.0 < rho < 1.0:
            raise LossError(f"loss rbp(rho) needs a persistence 0 < rho < 1, found {rho!r}")
        self.rho = float(rho)
        self.name = f"rbp({self.rho!r})"
        self.metric = f"RBP({self.rho!r})"

    def weights(self, n_pos: int) -> NDArray[np.float64]:
        return np.full(n_pos, 1.0 - self.rho)

    def discount(self, n: int) -> NDArray[np.float64]:
        return np.power(self.rho, np.arange(n), dtype=np.float64)
