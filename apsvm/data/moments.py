"""Means and variances of the columns of X over selected rows, in blocks: O(nnz), without a copy of X.

With queries, variances are about the mean of each query, since rows are compared within a query only:

    s²_j = 1/n Σ_i (x_ij − mean of column j in i's query)² = 1/n ( Σ_i x_ij² − Σ_q (Σ_{i∈q} x_ij)² / n_q ).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.features.mapped import MappedMatrix

if TYPE_CHECKING:
    from apsvm._support.types import RowNumbers

#: Most values in a block of dense rows, which fits in the cache.
BLOCK = 1 << 17
#: A column whose standard deviation is at most this share of its root mean square counts as constant: the rest may be
#: rounding.
CONSTANT = 1e-6
#: Up to this share, squares are taken about the mean, since squares about 0 lose twice the digits of the share. The
#: column then counts as constant only if its deviation is the rounding of its type.
FAR_FROM_ZERO = 0.1
ROUNDED = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-13}


class Moments(NamedTuple):
    """(d,) float64 each. The variance of a constant column is exactly 0."""

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]


def column_moments(
    X: Matrix,
    selection: RowNumbers | None = None,
    *,
    groups: NDArray[np.int64] | None = None,
    factors: NDArray[np.float64] | None = None,
) -> Moments:
    """Mean and variance of the columns over the rows ``selection`` (m,) of X, CSR, dense or mapped; by default all
    rows. ``groups`` (m,) are the queries of the rows, ``factors`` (n,) multiply the rows of X. Values beyond 1e154 give
    infinities without a warning."""
    starts = None
    if groups is not None:
        order = np.argsort(groups, kind="stable")
        selection = order if selection is None else selection[order]
        starts = np.flatnonzero(np.r_[True, np.diff(groups[order]) != 0])
    moments, size, rounded = _moments(X, selection, starts, factors)
    far = moments.variance <= FAR_FROM_ZERO**2 * size
    if rounded is not None and (far & (size > 0.0) & np.isfinite(size)).any():
        about, size, _ = _moments(X, selection, starts, factors, moments.mean)
        least = np.maximum(CONSTANT**2 * size, (rounded * moments.mean) ** 2)
        moments = Moments(np.where(far, about.mean, moments.mean), np.where(far, about.variance, moments.variance))
    else:
        least = CONSTANT**2 * size
    moments.variance[(moments.variance <= least) & np.isfinite(moments.variance)] = 0.0
    return moments


def _moments(
    X: Matrix,
    selection: RowNumbers | None,
    starts: NDArray[np.int64] | None,
    factors: NDArray[np.float64] | None,
    origin: NDArray[np.float64] | None = None,
) -> tuple[Moments, NDArray[np.float64], float | None]:
    """The moments, the mean squares about ``origin`` (d,), and the share of a value that is rounding; None for sparse
    rows with queries, whose squares are about 0. ``selection`` is sorted by query, and ``starts`` are the begins of the
    queries."""
    d = X.shape[1]
    total, squares, explained = np.zeros(d), np.zeros(d), np.zeros(d)
    rounded = None
    with np.errstate(over="ignore", invalid="ignore"):
        n = X.shape[0] if selection is None else selection.size
        for begin, end in _blocks(X, n, starts):
            which = slice(begin, end) if selection is None else selection[begin:end]
            rows = _rows(X, which)
            block = rows.astype(np.float64, copy=False)
            if factors is not None:
                block = _times(block, factors[which])
            if starts is not None:
                at = starts[np.searchsorted(starts, begin) : np.searchsorted(starts, end)] - begin
                sizes = np.diff(np.append(at, end - begin))
            if not isinstance(block, np.ndarray) and starts is None:
                rounded = ROUNDED.get(rows.dtype, CONSTANT)
                values = block.data if origin is None else block.data - origin[block.indices]
                squares += _column_sums(block, values**2)
                total += _column_sums(block, values)
                if origin is not None:
                    empty = end - begin - np.bincount(block.indices, minlength=d)
                    squares += empty * origin**2
                    total -= empty * origin
            elif not isinstance(block, np.ndarray):
                squares += np.bincount(block.indices, block.data**2, minlength=d)
                member = sp.csr_array((np.ones(end - begin), np.arange(end - begin), np.r_[at, end - begin]))
                sums = (member @ block).tocoo()
                total += np.bincount(sums.col, sums.data, minlength=d)
                explained += np.bincount(sums.col, sums.data**2 / sizes[sums.row], minlength=d)
            else:
                rounded = ROUNDED.get(rows.dtype, CONSTANT)
                if origin is not None:
                    block = block - origin
                squares += np.einsum("ij,ij->j", block, block)
                if starts is None:
                    total += np.einsum("ij->j", block)  # sum(axis=0) of few columns takes up to four times as long
                else:
                    sums = np.add.reduceat(block, at, axis=0)
                    total += sums.sum(axis=0)
                    explained += (sums**2 / sizes[:, None]).sum(axis=0)
        if starts is None:
            explained = total**2 / n
        variance = np.maximum((squares - explained) / n, 0.0)
        mean = total / n if origin is None else origin + total / n
        return Moments(mean, variance), squares / n, rounded


def _rows(X: Matrix, which: slice | RowNumbers) -> Matrix:
    """The rows ``which`` of X. A slice of CSR is not copied, as scipy would."""
    if not isinstance(which, slice) or isinstance(X, np.ndarray | MappedMatrix):
        return X[which]
    ends = X.indptr[which.start : which.stop + 1]
    values = slice(int(ends[0]), int(ends[-1]))
    parts = X.data[values], X.indices[values], ends - ends[0]
    return sp.csr_array(parts, shape=(which.stop - which.start, X.shape[1]))


def _column_sums(block: Matrix, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(d,): the sums of the columns of a CSR matrix with these ``values``."""
    sums = np.empty((1, block.shape[1]))
    of_values = _kernels.CsrMatrix(block.indptr, block.indices, values, *block.shape)
    _kernels.combine_csr(of_values, None, np.ones((block.shape[0], 1)), sums, 1)
    of_columns: NDArray[np.float64] = sums[0]
    return of_columns


def largest_magnitudes(X: Matrix, selection: RowNumbers | None = None) -> NDArray[np.float64]:
    """(d,): max |x_ij| of each column over the rows ``selection``, by default all."""
    largest = np.zeros(X.shape[1])
    for begin, end in _blocks(X, X.shape[0] if selection is None else selection.size, None):
        block = X[slice(begin, end) if selection is None else selection[begin:end]]
        if not isinstance(block, np.ndarray):
            np.maximum.at(largest, block.indices, np.abs(block.data))
        else:
            np.maximum(largest, np.abs(block).max(axis=0), out=largest)
    return largest


def row_norms(X: Matrix) -> NDArray[np.float64]:
    """(n,): ‖x_i‖ of every row, without overflow."""
    n = X.shape[0]
    norms = np.zeros(n)
    for begin, end in _blocks(X, n, None):
        block = X[begin:end].astype(np.float64)
        largest = np.asarray(abs(block).max(axis=1).todense() if sp.issparse(block) else np.abs(block).max(axis=1))
        largest = largest.reshape(-1)
        unit = _times(block, 1.0 / np.where(largest > 0.0, largest, 1.0))
        square = unit.power(2).sum(axis=1) if sp.issparse(unit) else np.einsum("ij,ij->i", unit, unit)
        norms[begin:end] = largest * np.sqrt(np.asarray(square).reshape(-1))
    return norms


def _times(block: Matrix, factors: NDArray[np.float64]) -> Matrix:
    """The rows times ``factors``."""
    if isinstance(block, np.ndarray):
        return block * factors[:, None]
    repeated = np.repeat(factors, np.diff(block.indptr))
    return sp.csr_array((block.data * repeated, block.indices, block.indptr), shape=block.shape)


def _blocks(X: Matrix, n: int, starts: NDArray[np.int64] | None) -> Iterator[tuple[int, int]]:
    """Begins and ends of blocks of 0..n. A query, which begins at one of ``starts``, is in one block."""
    if isinstance(X, MappedMatrix):
        rows = X.rows_per_block
    else:
        rows = max(1, BLOCK // max(1, X.shape[1])) if isinstance(X, np.ndarray) else 1 << 16
    if starts is None:
        yield from ((begin, min(n, begin + rows)) for begin in range(0, n, rows))
        return
    offsets = np.append(starts, n)
    yield from ((int(offsets[first]), int(offsets[last])) for first, last in blocks_of_runs(offsets, rows))


def blocks_of_runs(offsets: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Blocks of whole runs with at most ``most`` rows, or of one run: the first run of each block and the first behind
    it. Runs begin at ``offsets`` (runs + 1,)."""
    first = 0
    while first < offsets.size - 1:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1)
        yield first, last
        first = last
