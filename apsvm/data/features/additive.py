"""What each feature gives to a score, of rankers on additive maps:

    coef·φ(x) = Σ_j f_j(x_j),     f_j(x_j) = Σ of coef_k φ_k(x) over the columns k that are made of feature j

f_j is the *curve* of feature j, drawn relative to its value at the feature's mean over the training rows (at 0 where
the map does not know it). O(n · n_out) time, a dense row of n_in numbers a row.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.features.base import AdditiveMap
from apsvm.data.moments import column_moments, row_norms

#: Numbers in a block of contributions, about.
BLOCK = 1 << 20


class Contributions:
    """f_j(x_j) − f_j(typical_j) of rows of X, of which blocks can be taken: ``self[which]`` for a slice or (k,) int64
    is (k, n_in) float64.

    Parameters
    ----------
    X : (n, n_in) CSR, or dense; float32 or float64
    feature_map : φ
    coef : (n_out,) float64
    unit_rows : a score is coef·φ(x)/‖φ(x)‖: then they are f_j(x_j)/‖φ(x)‖, relative to nothing
    """

    def __init__(
        self, X: Matrix, feature_map: AdditiveMap, coef: NDArray[np.float64], *, unit_rows: bool = False
    ) -> None:
        self._X, self._map, self._unit_rows = X, feature_map, unit_rows
        columns = np.arange(coef.size)
        self._weights = sp.csr_array((coef, (columns, feature_map.sources())), shape=(coef.size, feature_map.n_in))
        self.shape = (int(X.shape[0]), feature_map.n_in)
        self._at_typical = np.zeros(feature_map.n_in)
        if not unit_rows:
            self._at_typical = self._curves(feature_map.typical()[None, :])[0]

    def _curves(self, X: Matrix) -> NDArray[np.float64]:
        mapped = self._map.apply(X)
        result = mapped @ self._weights
        values = np.asarray(result.toarray() if sp.issparse(result) else result, dtype=np.float64)
        if self._unit_rows:
            lengths = row_norms(mapped)
            values /= np.where(lengths > 0.0, lengths, 1.0)[:, None]
        return values

    def __getitem__(self, which: slice | NDArray[np.int64]) -> NDArray[np.float64]:
        return self._curves(self._X[which]) - self._at_typical

    def blocks(self) -> Iterator[NDArray[np.float64]]:
        """All rows, in order."""
        step = max(1, BLOCK // max(1, self.shape[1]))
        for begin in range(0, self.shape[0], step):
            yield self[begin : begin + step]

    def deviations(self, groups: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """(n_in,) the deviation of each feature's contribution, within ``groups`` (n,) if given."""
        return np.sqrt(column_moments(self, np.arange(self.shape[0]), groups=groups).variance)


def curve(feature_map: AdditiveMap, coef: NDArray[np.float64], j: int, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """f_j at the values x (k,), relative to its value at the feature's mean: (k,) float64."""
    rows = np.tile(feature_map.typical(), (x.size, 1))
    rows[:, j] = x
    return Contributions(rows, feature_map, coef)[:][:, j]
