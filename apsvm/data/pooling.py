"""Bags as rows: the minimum, mean or maximum of each feature in a bag, so that any trainer takes bags.

    φ(bag) = (min_i x_i, mean_i x_i, max_i x_i), or some of these, i over the rows of the bag

A value that is not stored is 0. One pass over the rows, a block of bags at a time: O(values), or O(values·log) where
few are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.bags import HOW_SAID, Bags, bags_of
from apsvm.data.dataset import DataError, Dataset
from apsvm.data.moments import blocks_of_runs

#: Values in a block.
_BLOCK = 1 << 22
#: Sparse rows with this share of stored values are reduced as dense rows.
_DENSE_FROM = 0.2


def pooled(dataset: Dataset, pool: Sequence[str]) -> Dataset:
    """The data set with a row for each bag, in the order of the bags' first rows. A data set with this pool is
    returned.

    Parameters
    ----------
    pool : k of min, mean, max; X becomes (n_bags, k·d), with d columns for each

    Raises
    ------
    DataError : the rows have no bags
    """
    if dataset.pool == tuple(pool):
        return dataset
    bags = bags_of(dataset)
    if bags is None:
        raise DataError(f"{dataset.source}: --pool (pool=) is for rows in bags, and these are in none: {HOW_SAID}")
    first = bags.first
    return replace(
        dataset,
        X=pooled_rows(dataset.X, bags, pool),
        relevance=bags.labels,
        groups=bags.qid,
        costs=None if dataset.costs is None else dataset.costs[first],
        label_sets=None if dataset.label_sets is None else dataset.label_sets.of(first),
        bags=None,
        table=None if dataset.table is None else dataset.table.of(first),
        pool=tuple(pool),
        instances=len(dataset),
        stands_for=bags.ids,
    )


def pooled_rows(X: Matrix, bags: Bags, pool: Sequence[str]) -> Matrix:
    """(n_bags, k·d) of the layout and type of X (n, d); dense for k = 0."""
    if not pool:
        return np.zeros((bags.n_bags, 0), dtype=X.dtype)
    n, d = X.shape
    sparse = sp.issparse(X)
    values = X.nnz if sparse else n * d
    parts, offsets = [], bags.offsets
    for first, last in blocks_of_runs(offsets, max(1, _BLOCK * n // max(values, 1))):
        place = slice(int(offsets[first]), int(offsets[last]))
        rows, starts = X[place if bags.order is None else bags.order[place]], offsets[first:last] - offsets[first]
        reduced = _of_sparse(rows, starts, pool) if sparse else np.hstack(_of_dense(rows, starts, pool))
        parts.append(reduced)
    if not sparse:
        return np.concatenate(parts)
    result = sp.csr_array(sp.vstack(parts, format="csr"))
    result.has_canonical_format = True
    return result


def _of_dense(rows: NDArray[np.floating], starts: NDArray[np.int64], pool: Sequence[str]) -> list[NDArray[np.floating]]:
    """An (n_bags, d) array of the rows' type for each of ``pool``."""
    sizes = np.diff(starts, append=rows.shape[0])[:, None]
    result: list[NDArray[np.floating]] = []
    for name in pool:
        if name == "mean":
            result.append(_means(rows, starts, sizes).astype(rows.dtype, copy=False))
        else:
            result.append((np.minimum if name == "min" else np.maximum).reduceat(rows, starts, axis=0))
    return result


def _means(values: NDArray[np.floating], starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums of runs of ``values`` along the first axis, divided by ``sizes``, in float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.add.reduceat(values, starts, axis=0, dtype=np.float64) / sizes
    if not np.isfinite(means).all():  # a sum overflows, its mean does not
        runs = np.diff(starts, append=values.shape[0])
        shares = values / np.repeat(np.broadcast_to(sizes, (starts.size, *sizes.shape[1:])), runs, axis=0)
        means = np.add.reduceat(shares, starts, axis=0, dtype=np.float64)
    result: NDArray[np.float64] = means
    return result


def _of_sparse(rows: sp.csr_array, starts: NDArray[np.int64], pool: Sequence[str]) -> sp.csr_array:
    """(n_bags, k·d) CSR of the rows' type, without zeros."""
    n, d = rows.shape
    if rows.nnz >= _DENSE_FROM * n * d:
        blocks = [sp.csr_array(block) for block in _of_dense(rows.toarray(), starts, pool)]
    else:
        blocks = _of_few_values(rows, starts, pool)
    return sp.csr_array(sp.hstack(blocks, format="csr"))


def _of_few_values(rows: sp.csr_array, starts: NDArray[np.int64], pool: Sequence[str]) -> list[sp.csr_array]:
    """``_of_dense`` for sparse rows: sorts the stored values by bag and feature, and reduces each run."""
    n, d = rows.shape
    sizes = np.diff(starts, append=n)
    bag = np.repeat(np.repeat(np.arange(starts.size), sizes), np.diff(rows.indptr))
    order = np.lexsort((rows.indices, bag))
    bag, column, values = bag[order], rows.indices[order], rows.data[order]
    begins = np.flatnonzero(np.r_[True, (bag[1:] != bag[:-1]) | (column[1:] != column[:-1])]) if bag.size else bag
    at = bag[begins], column[begins]
    has_zeros = np.diff(begins, append=bag.size) < sizes[at[0]]
    blocks = []
    for name in pool:
        if not begins.size:
            reduced = values
        elif name == "mean":
            reduced = _means(values, begins, sizes[at[0]]).astype(values.dtype, copy=False)
        else:
            extreme = np.minimum if name == "min" else np.maximum
            reduced = extreme.reduceat(values, begins)
            reduced[has_zeros] = extreme(reduced[has_zeros], 0)
        block = sp.csr_array((reduced, at), shape=(starts.size, d))
        block.eliminate_zeros()
        blocks.append(block)
    return blocks
