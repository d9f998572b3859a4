"""Rows as users: a row of a file is the list of a user's items: those of positive value are liked, those of negative
value disliked. Both are seen, and never suggested. How much a user likes an item is not looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix


def rated_items(X: Matrix) -> sp.csr_array:
    """The lists of (n, items) X, CSR or dense: CSR of 1 for a like and −1 for a dislike, ascending. No copy of the
    indices if no value is 0."""
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
    """The lists of what is liked alone, as ``rated_items``."""
    rated = rated_items(X)
    return rated if (rated.data > 0).all() else _only(rated, rated.data > 0)


class CutLists(NamedTuple):
    """Lists cut in two, (n, items) CSR each; the users of whom nothing could be hidden are left out of both."""

    shown: sp.csr_array
    hidden: sp.csr_array
    users_left_out: int


def hide(lists: sp.csr_array, share: float, rng: np.random.Generator) -> CutLists:
    """Hides ``share`` of what each user likes, drawn at random: at least one, and never all, so users of one liked item
    are left out."""
    liked = lists.data > 0
    users = np.repeat(np.arange(lists.shape[0]), np.diff(lists.indptr))
    likes = np.bincount(users[liked], minlength=lists.shape[0])
    # Within each user the likes in front, in a random order; the first ones are hidden.
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
