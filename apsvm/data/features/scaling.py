"""Scalings of the features, as a linear map in front of w: X is neither changed nor copied, and stays sparse.

    maxabs     x_j / max_i |x_ij|               standard   (x_j − mean_j) / deviation_j           l2   x / ‖x‖

maxabs and standard are affine, so that a ranker of scaled rows is a ranker of the rows: coef_j = w_j / s_j, and
−Σ_j coef_j mean_j in the constant. Centring costs a sparse X nothing. It moves every score alike: it changes no
ranking, and no ranking loss, whose row weights add up to 0. Losses that use the sign of a score gain most of an
intercept by it. l2 depends on the row: the model divides the rows that it scores. All is learned from the training rows
alone.
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
    """A scaling.

    Attributes
    ----------
    divisors : (d,) float64, s_j; for a constant column its magnitude, at least 1
    centre : (d,) float64, subtracted first
    unit_rows : True if rows are divided by their Euclidean length, unless it is 0
    """

    name: str
    divisors: NDArray[np.float64] | None = None
    centre: NDArray[np.float64] | None = None
    unit_rows: bool = False

    def raw_weights(self, w: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """coef (d,) and the constant for unscaled rows, from the weights (d,) of scaled rows."""
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
    """``learn_scaling`` from functions for the largest magnitudes (d,) and the moments of the columns."""
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
        # A constant of 1e16 would cost the other columns all their digits in a score.
        return Scaling(name, np.where(variance == 0.0, np.maximum(np.abs(mean), 1.0), deviation), mean)
    raise ValueError(f"unknown scaling {name!r}: choose from {', '.join(SCALINGS)}")
