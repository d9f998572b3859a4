"""Standardises features, for maps of several features with different units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.moments import column_moments


def standardisation(X: Matrix, selection: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The means and deviations, (d,) float64 each, of the columns over the rows ``selection``; 1 for a constant
    column."""
    mean, variance = column_moments(X, selection)
    usable = np.isfinite(variance) & (variance > 0.0)
    return np.where(np.isfinite(mean), mean, 0.0), np.sqrt(np.where(usable, variance, 1.0))


def standardised(X: Matrix, centre: NDArray[np.float64], deviation: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k, d) dense float64, for a block of rows."""
    dense = X.toarray() if sp.issparse(X) else X
    z: NDArray[np.float64] = (dense - centre) / deviation
    return z
