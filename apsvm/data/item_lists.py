"""Rows as users: a row is the list of a user's items. Items of positive value are liked, items of negative value
disliked, and neither is suggested. The size of a value is ignored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix


def rated_items(X: Matrix) -> sp.csr_array:
    """The lists of (n, items) X, CSR or dense, as CSR with sorted indices: 1 for a like and −1 for a dislike. The
    indices are copied only if a value is 0."""
    rows = sp.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if not rows.data.all():
        rows = rows.copy()
        rows.eliminate_zeros()
    signs = np.where(rows.data > 0, np.float32(1), np.float32(-1))
    return sp.csr_array((signs, rows.indices, rows.indptr), shape=rows.shape)


def liked_items(X: Matrix) -> sp.csr_array:
    """The lists of liked items, in the form of ``rated_items``."""
    rated = rated_items(X)
    return rated if (rated.data > 0).all() else _only(rated, rated.data > 0)


class CutLists(NamedTuple):
    """Lists cut in two, (n, items) CSR each, without the users of whom no item could be hidden."""

    shown: sp.csr_array
    hidden: sp.csr_array
    users_left_out: int


def hide(lists: sp.csr_array, share: float, rng: np.random.Generator) -> CutLists:
    """Hides ``share`` of each user's liked items, drawn at random: at least one and not all. Users with one liked item
    are left out."""
    liked = lists.data > 0
    users = np.repeat(np.arange(lists.shape[0]), np.diff(lists.indptr))
    likes = np.bincount(users[liked], minlength=lists.shape[0])
    # Within each user, likes come first in a random order; the first ones are hidden.
    order = np.lexsort((rng.random(lists.nnz), ~liked, users))
    place = np.arange(lists.nnz) - lists.indptr[users]
    count = np.clip(np.rint(share * likes), 1, np.maximum(likes - 1, 0)).astype(np.int64)
    is_hidden = np.zeros(lists.nnz, dtype=bool)
    is_hidden[order] = place < count[users]
    usable = count > 0
    return CutLists(_only(lists, ~is_hidden)[usable], _only(lists, is_hidden)[usable], int((~usable).sum()))


def _only(lists: sp.csr_array, entries: NDArray[np.bool_]) -> sp.csr_array:
    kept = np.concatenate([[0], np.cumsum(entries)])
    return sp.csr_array(
        (lists.data[entries], lists.indices[entries], kept[lists.indptr].astype(lists.indptr.dtype)), shape=lists.shape
    )
