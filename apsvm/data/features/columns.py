"""The sorted values of single columns, from which knots are chosen. Zeros are counted, not stored, so that the choice
does not depend on the layout of X. O(nnz log nnz), in groups of columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix

#: Bytes of columns that are sorted at a time.
GROUP_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """The values of a column.

    Attributes
    ----------
    nonzero : float64, ascending, the values other than 0
    n : number of values, zeros included
    """

    nonzero: NDArray[np.float64]
    n: int

    def range(self) -> NDArray[np.float64]:
        """(3,) the smallest value, the mean, and the largest."""
        lowest, highest = self.in_order(np.array([0, self.n - 1]))
        with np.errstate(over="ignore", invalid="ignore"):
            mean = self.nonzero.sum() / self.n
        return np.array([lowest, min(max(mean, lowest), highest) if np.isfinite(mean) else lowest, highest])

    def in_order(self, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
        """The values at these ranks, from 0 for the smallest to n − 1."""
        zeros = self.n - self.nonzero.size
        negative = int(np.searchsorted(self.nonzero, 0.0))
        values = np.zeros(ranks.size)
        below, above = ranks < negative, ranks >= negative + zeros
        values[below] = self.nonzero[ranks[below]]
        values[above] = self.nonzero[ranks[above] - zeros]
        return values


def column_values(X: Matrix, selection: NDArray[np.int64]) -> Iterator[ColumnValues]:
    """Yields the values of each column of X, CSR or dense (n, d), over the rows ``selection`` (m,)."""
    m, d = selection.size, X.shape[1]
    if sp.issparse(X):
        columns = X[selection].tocsc()
        for j in range(d):
            values = columns.data[columns.indptr[j] : columns.indptr[j + 1]].astype(np.float64)
            yield ColumnValues(np.sort(values[values != 0.0]), m)
        return
    every = m == X.shape[0] and bool((selection == np.arange(m)).all())
    width = max(1, GROUP_BYTES // (8 * m))
    for begin in range(0, d, width):
        group = X[:, begin : begin + width] if every else X[selection, begin : begin + width]
        for column in np.array(group.T, dtype=np.float64, order="C"):
            yield ColumnValues(np.sort(column[column != 0.0]), m)
