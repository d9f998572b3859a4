"""Scalings of the features, as a linear map in front of w: X itself is neither changed nor copied, sparse stays sparse.

    maxabs     x_j / max_i |x_ij|               standard   (x_j − mean_j) / deviation_j           l2   x / ‖x‖

maxabs and standard are affine, so a ranker of scaled rows is one of the rows as they are: coef_j = w_j / s_j, and
−Σ_j coef_j mean_j in the constant. Centring therefore costs a sparse X nothing. It changes no ranking, since it moves
every score alike, and no ranking loss, whose row weights add up to 0; only losses that look at a score's sign notice,
for which it is the better part of an intercept. l2 depends on the row: a model of it divides the rows it scores. What
is learned is learned from the training rows alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm._support.types import Matrix
from apsvm.data.moments import Moments, column_moments, largest_magnitudes

SCALINGS = ("none", "maxabs", "standard", "l2")


@dataclass(frozen=True, slots=True)
class Scaling:
    """divisors : (d,) float64, s_j, of a constant column its size, at least 1; centre : (d,) float64, subtracted first;
    None for none. unit_rows : rows are divided by their Euclidean length (a row of zeros stays)."""

    name: str
    divisors: NDArray[np.float64] | None = None
    centre: NDArray[np.float64] | None = None
    unit_rows: bool = False

    def raw_weights(self, w: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """coef (d,) and the constant for rows as they are, from the weights (d,) of scaled ones."""
        coef = w.copy() if self.divisors is None else w / self.divisors
        return coef, 0.0 if self.centre is None else -float(self.centre @ coef)

    def scaled_weights(self, coef: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """The inverse of ``raw_weights``: weights (d,) and a constant for scaled rows."""
        w = coef.copy() if self.divisors is None else coef * self.divisors
        return w, 0.0 if self.centre is None else float(self.centre @ coef)


NO_SCALING = Scaling("none")
UNIT_ROWS = Scaling("l2", unit_rows=True)


def learn_scaling(name: str, X: Matrix, selection: NDArray[np.int64] | None = None) -> Scaling:
    """The scaling ``name`` of the rows ``selection`` (m,) int64 of X, CSR or dense (n, d); all rows by default.

    Raises
    ------
    ValueError : no such scaling
    """
    return scaling_of(name, lambda: largest_magnitudes(X, selection), lambda: column_moments(X, selection))


def scaling_of(name: str, largest: Callable[[], NDArray[np.float64]], moments: Callable[[], Moments]) -> Scaling:
    """See ``learn_scaling``; ``largest`` gives the largest magnitude of each column (d,), ``moments`` theirs."""
    if name == "none":
        return NO_SCALING
    if name == "l2":
        return UNIT_ROWS
    if name == "maxabs":
        magnitudes = largest()
        return Scaling(name, np.where(magnitudes > 0.0, magnitudes, 1.0))
    if name == "standard":
        mean, variance = moments()
        usable = np.isfinite(variance) & (variance > 0.0)
        deviation = np.sqrt(np.where(usable, variance, 1.0))
        # A constant of 1e16 would leave nothing of the other columns' digits in a score.
        return Scaling(name, np.where(variance == 0.0, np.maximum(np.abs(mean), 1.0), deviation), mean)
    raise ValueError(f"unknown scaling {name!r}: choose from {', '.join(SCALINGS)}")
