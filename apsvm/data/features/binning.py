"""Rows for boosting: a sample, with the bin number of each value.

The bins of a feature are its values if they are few, else runs of values with about as many rows each. A frequent value
is one bin. O(n log n) a feature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.moments import column_moments

#: Most bins of a feature.
BINS = 256
#: Most rows, values and features in the sample: more do not make better rules.
MOST_ROWS, MOST_VALUES, MOST_FEATURES = 50_000, 10_000_000, 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Binned:
    """Binned rows.

    Attributes
    ----------
    codes : (n, k) uint8, C-ordered, the bins of the values
    targets : (K, n) float64
    columns : (k,) int64, the features
    edges : for each feature (bins − 1,) float64, ascending; a value above b of them is in bin b
    """

    codes: NDArray[np.uint8]
    targets: NDArray[np.float64]
    columns: NDArray[np.int64]
    edges: list[NDArray[np.float64]]

    def thresholds(self, features: NDArray[np.int32], bins: NDArray[np.uint8]) -> NDArray[np.float64]:
        """The upper edges of the ``bins`` of ``features``, indices in ``columns``; 0 for a negative index."""
        width = max(edges.size for edges in self.edges) + 1
        table = np.zeros((len(self.edges), width))
        for row, edges in zip(table, self.edges, strict=True):
            row[: edges.size] = edges
        return np.where(features < 0, 0.0, table[features, bins])


def rows_to_learn_from(
    targets: NDArray[np.float64], d: int, rng: np.random.Generator, most: int | None = None
) -> NDArray[np.int64]:
    """The indices, ascending, of a sample of the rows of ``targets`` (K, n), at most ``most`` or ``MOST_ROWS``. Of two
    classes the rarer one is kept whole, up to half of the sample."""
    n = int(targets.shape[1])
    most = min(MOST_ROWS if most is None else most, max(1000, MOST_VALUES // min(d, MOST_FEATURES)))
    if n <= most:
        return np.arange(n)
    if len(targets) > 1 or np.unique(targets[0]).size > 2:
        return np.sort(rng.choice(n, size=most, replace=False))
    rare = targets[0] == targets[0].max()
    rare = rare if 2 * rare.sum() <= n else ~rare
    few, many = (rng.permutation(np.flatnonzero(which)) for which in (rare, ~rare))
    count = min(few.size, most // 2)
    return np.sort(np.concatenate([few[:count], many[: most - count]]))


def binned(X: Matrix, rows: NDArray[np.int64], targets: NDArray[np.float64]) -> Binned:
    """The ``rows`` of X, CSR or dense (N, d), with targets (K, rows). Of more than ``MOST_FEATURES`` features, the ones
    with the highest correlation with a target are kept."""
    X = X[rows]
    columns = np.arange(X.shape[1])
    if columns.size > MOST_FEATURES:
        columns = np.sort(np.argsort(-_correlation(X, targets), kind="stable")[:MOST_FEATURES])
        X = X[:, columns]
    values = X.toarray() if sp.issparse(X) else X
    codes = np.empty((rows.size, columns.size), dtype=np.uint8)
    every = []
    for j, column in enumerate(np.ascontiguousarray(values.T, dtype=np.float64)):
        edges = _edges(column)
        codes[:, j] = np.searchsorted(edges, column)
        every.append(edges)
    return Binned(codes, targets, columns, every)


def _edges(column: NDArray[np.float64]) -> NDArray[np.float64]:
    values, counts = np.unique(column, return_counts=True)
    last = np.arange(values.size - 1)  # the last value of each bin except the highest
    if values.size > BINS:
        upto = np.cumsum(np.minimum(counts, column.size / BINS))
        last = np.unique(np.searchsorted(upto, upto[-1] * np.arange(1, BINS) / BINS))
        last = last[last < values.size - 1]
    low, high = values[last], values[last + 1]
    middle = np.maximum(0.5 * low + 0.5 * high, low)
    return np.where(middle < high, middle, low)  # neighbours in floating point have no middle


def _correlation(X: Matrix, targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """(d,) the largest magnitude of each feature's correlation with a target, up to a factor for each target."""
    centred = targets - targets.mean(axis=1, keepdims=True)
    lengths = np.sqrt((centred**2).sum(axis=1, keepdims=True))
    deviation = np.sqrt(column_moments(X).variance)
    usable = np.isfinite(deviation) & (deviation > 0.0)
    products = np.abs((X.T @ (centred / np.where(lengths > 0.0, lengths, 1.0)).T).T).max(axis=0)
    return np.where(usable, products / np.where(usable, deviation, 1.0), 0.0)
