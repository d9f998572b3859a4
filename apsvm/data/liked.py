"""Rows as users: each row of a file is the list of the items that a user likes, its columns of positive value.

How much a user likes an item is not looked at: implicit feedback knows no dislike and no degree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix


def liked_items(X: Matrix) -> sp.csr_array:
    """The lists of (n, items) X, CSR or dense: CSR of ones, ascending. No copy of the indices if all values are > 0."""
    rows = sp.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if not (rows.data > 0).all():
        rows = rows.copy()
        rows.data = (rows.data > 0).astype(np.float32)
        rows.eliminate_zeros()
    ones = np.ones(rows.nnz, dtype=np.float32)
    return sp.csr_array((ones, rows.indices, rows.indptr), shape=rows.shape)


class CutLists(NamedTuple):
    """Lists cut in two, (n, items) CSR each; the users of whom nothing could be hidden are left out of both."""

    shown: sp.csr_array
    hidden: sp.csr_array
    users_left_out: int


def hide(lists: sp.csr_array, share: float, rng: np.random.Generator) -> CutLists:
    """Hides ``share`` of each user's items, drawn at random: at least one, and never all, so users of one item are
    left out."""
    sizes = np.diff(lists.indptr)
    users = np.repeat(np.arange(sizes.size), sizes)
    # Within each user in a random order; the first ones are hidden.
    order = np.lexsort((rng.random(lists.nnz), users))
    place = np.arange(lists.nnz) - np.repeat(lists.indptr[:-1].astype(np.int64), sizes)
    count = np.clip(np.rint(share * sizes), 1, np.maximum(sizes - 1, 0)).astype(np.int64)
    is_hidden = np.zeros(lists.nnz, dtype=bool)
    is_hidden[order] = place < np.repeat(count, sizes)
    usable = count > 0
    return CutLists(_only(lists, ~is_hidden)[usable], _only(lists, is_hidden)[usable], int((~usable).sum()))


def _only(lists: sp.csr_array, entries: NDArray[np.bool_]) -> sp.csr_array:
    kept = np.concatenate([[0], np.cumsum(entries)])
    return sp.csr_array(
        (lists.data[entries], lists.indices[entries], kept[lists.indptr].astype(lists.indptr.dtype)), shape=lists.shape
    )
