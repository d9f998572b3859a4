"""Lists of liked items, and hiding a part of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from apsvm.data.item_lists import hide, liked_items, rated_items


def test_what_is_liked():
    """Positive values; explicit zeros, negative values, order and duplicates do not matter."""
    data, columns, starts = [2.0, 0.0, -1.0, 0.5, 3.0, 1.0], [4, 1, 0, 2, 0, 0], [0, 4, 4, 6]
    given = sp.csr_array((data, columns, starts), shape=(3, 5))
    lists = liked_items(given)
    assert lists.toarray().tolist() == [[0, 0, 1, 0, 1], [0] * 5, [1, 0, 0, 0, 0]]
    assert lists.has_canonical_format
    assert given.indices.tolist() == columns
    for form in (given.toarray(), sp.csc_array(given), given.toarray() > 0):
        np.testing.assert_array_equal(liked_items(form).toarray(), lists.toarray())


def test_dislikes_stay_known(rng):
    rated = rated_items(np.where(np.arange(30) < 2, 1, rng.integers(-1, 2, (200, 30))))
    known, hidden, left_out = hide(rated, 0.3, rng)
    assert left_out == 0
    assert (rated.data < 0).sum() == (known.data < 0).sum() > 0
    assert (hidden.data > 0).all()
    np.testing.assert_array_equal((known + hidden).toarray(), rated.toarray())


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 1.0])
def test_hiding(share, rng):
    lists = liked_items(rng.random((200, 30)) < rng.random((200, 1)) * 0.4)
    sizes = np.diff(lists.indptr)
    assert {0, 1, 2} <= set(sizes.tolist())
    known, hidden, left_out = hide(lists, share, rng)
    usable = sizes >= 2
    assert left_out == (~usable).sum()
    assert known.shape == hidden.shape == (usable.sum(), 30)
    np.testing.assert_array_equal(known.toarray() + hidden.toarray(), lists.toarray()[usable])
    expected = np.clip(np.rint(share * sizes[usable]), 1, sizes[usable] - 1)
    np.testing.assert_array_equal(np.diff(hidden.indptr), expected)


def test_every_item_is_hidden_as_often(rng):
    lists = liked_items(np.ones((4000, 5)))
    hidden = hide(lists, 0.4, rng).hidden.sum(axis=0)
    np.testing.assert_allclose(hidden, 1600, atol=5 * np.sqrt(4000 * 0.4 * 0.6))


def test_nobody_to_hide_from(rng):
    known, hidden, left_out = hide(liked_items(np.eye(3)), 0.5, rng)
    assert (known.shape, hidden.shape, left_out) == ((0, 3), (0, 3), 3)
