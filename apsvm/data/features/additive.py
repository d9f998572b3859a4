"""Contributions of features to a score, alone and in groups:

    coef·φ(x) = Σ_S f_S(x_S),     f_S(x_S) = Σ of coef_k φ_k(x) over the columns k that are made of the features S

f_S is the *curve* of a feature, or the *surface* of a pair. It is relative to its value at the means of the features
over the training rows, or at 0 if the map does not know them. O(n · n_out) time, and one number a part for each row.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.features.base import FeatureMap, Parts
from apsvm.data.moments import column_moments, row_norms

#: Approximate numbers in a block of contributions.
BLOCK = 1 << 20
#: Name of the part of all features, if there are more than ``FEW``, the most in a rule.
ALL, FEW = "all features together", 6


class Contributions:
    """f_S(x_S) − f_S(typical_S) for rows of X. ``self[which]``, for a slice or (k,) int64, is (k, parts) float64. The
    sum of a row and ``base`` is the score.

    Parameters
    ----------
    X : (n, n_in) CSR, or dense; float32 or float64
    feature_map, parts : φ, and the features behind its columns
    coef : (n_out,) float64
    intercept : the score is coef·φ(x) + intercept
    unit_rows : the score is coef·φ(x)/‖φ(x)‖ + intercept, and contributions are f_S(x_S)/‖φ(x)‖, relative to 0
    """

    def __init__(
        self,
        X: Matrix,
        feature_map: FeatureMap,
        parts: Parts,
        coef: NDArray[np.float64],
        intercept: float = 0.0,
        *,
        unit_rows: bool = False,
    ) -> None:
        self._X, self._map, self._unit_rows = X, feature_map, unit_rows
        self.parts = parts
        columns, n_parts = np.arange(coef.size), len(parts.features)
        weights = parts.weights(coef)
        self._weights = sp.csr_array((weights, (columns, parts.of_column)), shape=(coef.size, n_parts))
        self.shape = (int(X.shape[0]), n_parts)
        self._at_typical = np.zeros(n_parts)
        if not unit_rows:
            self._at_typical = self._curves(feature_map.typical()[None, :])[0]
        self.base = intercept + float(self._at_typical.sum())

    def dealt_to(self, widths: NDArray[np.int64]) -> Contributions:
        """The contributions of columns instead of parts: (n, k + 1). A part of several columns is split in equal
        shares; the part of all features comes last.

        Parameters
        ----------
        widths : (k,) int64, the number of features of each column
        """
        features, n_in = self.parts.features, int(widths.sum())
        of_feature = np.repeat(np.arange(widths.size), widths)
        sizes = np.array([len(part) for part in features])
        part = np.repeat(np.arange(len(features)), sizes)
        column = of_feature[np.fromiter(chain.from_iterable(features), dtype=np.int64)]
        if n_in > FEW:
            column[sizes[part] == n_in] = widths.size
        pairs, n_columns = np.unique(part * (widths.size + 1) + column), widths.size + 1
        part, column = np.divmod(pairs, n_columns)
        equal = 1.0 / np.bincount(part, minlength=len(features))[part]
        shares = sp.csr_array((equal, (part, column)), shape=(len(features), n_columns))
        dealt = copy(self)
        dealt._weights, dealt._at_typical = self._weights @ shares, self._at_typical @ shares
        dealt.shape = (self.shape[0], n_columns)
        return dealt

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
        """The contributions of all rows, in order."""
        step = max(1, BLOCK // max(1, self.shape[1]))
        for begin in range(0, self.shape[0], step):
            yield self[begin : begin + step]

    def deviations(self, groups: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """(parts,) the standard deviation of each part's contribution, within ``groups`` (n,) if given."""
        return np.sqrt(column_moments(self, np.arange(self.shape[0]), groups=groups).variance)


def part_at(
    feature_map: FeatureMap, parts: Parts, coef: NDArray[np.float64], part: int, x: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(k,) float64: f_S of a part at the values x (k, |S|) of its features, relative to their means."""
    rows = np.tile(feature_map.typical(), (len(x), 1))
    rows[:, parts.features[part]] = x
    alone = np.where(parts.of_column == part, parts.weights(coef), 0.0)
    return Contributions(rows, feature_map, parts, alone)[:][:, part]
