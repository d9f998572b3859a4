"""A matrix behind a feature map. Only the rows that are requested are mapped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.features.base import FeatureMap

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray, RowNumbers

#: Approximate bytes in a block of mapped rows.
BLOCK_BYTES = 1 << 23
#: Bytes of a column index in sparse mapped rows.
_BYTES_OF_INDEX = 4
#: A CSR matrix becomes dense if that takes at most this many times its bytes.
DENSE_IF = 1.25


class MappedMatrix:
    """φ(X). ``self[which]``, for a slice or (k,) integers, maps these rows: a CSR matrix or a dense array.

    Parameters
    ----------
    X : (n, n_in) CSR, or dense and C-ordered; float32 or float64
    feature_map : φ

    Raises
    ------
    ValueError : X has another number of columns
    """

    def __init__(self, X: Matrix, feature_map: FeatureMap) -> None:
        if X.shape[1] != feature_map.n_in:
            raise ValueError(f"{feature_map.name} maps {feature_map.n_in} features, found {X.shape[1]}")
        sparse = sp.issparse(X)
        if sparse and not X.has_canonical_format:
            # The map of a sum is no sum of maps.
            X = X.copy()
            X.sum_duplicates()
        self._X = X
        self._map = feature_map
        self._dense_first = sparse and dense_pays(X)
        self.shape = (int(X.shape[0]), feature_map.n_out)
        self.dtype: np.dtype[np.generic] = X.dtype
        self.sparse = feature_map.makes_sparse or (sparse and feature_map.keeps_sparse and not self._dense_first)

    def __getitem__(self, which: slice | RowNumbers) -> Matrix:
        rows = self._X[which]
        return self._map.apply(rows.toarray() if self._dense_first else rows)

    @property
    def values_of_row(self) -> float:
        """Number of values in a mapped row, an estimate if rows are sparse."""
        n, n_out = self.shape
        if not self.sparse:
            return float(n_out)
        stored = self._X.size if isinstance(self._X, np.ndarray) else self._X.data.size
        return self._map.values_of_row(float(stored / max(1, n)))

    @property
    def rows_per_block(self) -> int:
        """Number of rows in a block, from the data alone."""
        of_value = self.dtype.itemsize + (_BYTES_OF_INDEX if self.sparse else 0)
        return max(1, int(BLOCK_BYTES / max(self.values_of_row * of_value, 8.0)))

    def blocks(self, n: int) -> Iterator[slice]:
        """The blocks of 0..n."""
        step = self.rows_per_block
        for begin in range(0, n, step):
            yield slice(begin, min(n, begin + step))

    def materialised(self, selection: RowNumbers, within: float, *, single: bool = False) -> Matrix | None:
        """The mapped rows ``selection`` (m,) as one matrix, in float32 if ``single``; None if it would take more than
        ``within`` bytes."""
        m, n_out = selection.size, self.shape[1]
        dtype = np.dtype(np.float32) if single else self.dtype
        if not self.sparse:
            if m * n_out * dtype.itemsize > within:
                return None
            dense = np.empty((m, n_out), dtype=dtype)
            for place in self.blocks(m):
                dense[place] = self[selection[place]]
            return dense
        most = within / (dtype.itemsize + _BYTES_OF_INDEX)
        values, indices = np.empty(0, dtype=dtype), np.empty(0, dtype=np.int32)
        starts, stored = np.zeros(m + 1, dtype=np.int64), 0
        for place in self.blocks(m):
            block = self[selection[place]]
            begin, stored = stored, stored + int(block.data.size)
            if stored > most:
                return None
            if stored > values.size:  # the first block predicts their number
                room = int(min(most, 1.05 * stored * m / place.stop))
                values, indices = _with_room(values, begin, room), _with_room(indices, begin, room)
            values[begin:stored], indices[begin:stored] = block.data, block.indices
            starts[place.start + 1 : place.stop + 1] = begin + block.indptr[1:]
        kind = np.int32 if stored < np.iinfo(np.int32).max else np.int64
        parts = values[:stored], indices[:stored].astype(kind, copy=False), starts.astype(kind)
        return sp.csr_array(parts, shape=(m, n_out))


def _with_room(values: AnyArray, used: int, room: int) -> AnyArray:
    """The first ``used`` values in an array of length ``room``."""
    longer = np.empty(room, dtype=values.dtype)
    longer[:used] = values[:used]
    return longer


def dense_pays(X: Matrix) -> bool:
    """True if the CSR matrix takes at most ``DENSE_IF`` times its own bytes as a dense array."""
    return dense_pays_for(X.shape, X.data, X.indices)


def dense_pays_for(shape: tuple[int, int], values: AnyArray, indices: AnyArray) -> bool:
    """``dense_pays`` for the parts of a CSR matrix."""
    return bool(shape[0] * shape[1] * values.itemsize <= DENSE_IF * (values.nbytes + indices.nbytes))
