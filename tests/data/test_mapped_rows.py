"""Rows with a map in front of w: a pass block by block, a copy, and numpy's own product of the mapped rows agree."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from over import over

from apsvm.data.features import learn_map, mapped
from apsvm.data.features.mapped import MappedMatrix
from apsvm.data.features.scaling import learn_scaling
from apsvm.data.rows import Rows

MAPS = ("piecewise", "products", "nystroem:20")


@pytest.fixture
def X(rng):
    X = rng.normal(size=(400, 8)) + 0.3
    X[rng.random(X.shape) < 0.7] = 0.0
    return X


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(mapped, "BLOCK_BYTES", 4000)


def as_numpy_has_them(X, learned, scaling, which):
    rows = learned.apply(X)[which]
    if scaling.centre is not None:
        rows = rows - scaling.centre
    if scaling.divisors is not None:
        rows = rows / scaling.divisors
    if scaling.unit_rows:
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.column_stack([rows, np.full(which.size, 2.0)])


@pytest.mark.slow
@over("scale", ["none", "maxabs", "standard", "l2"])
@over("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@over("name", MAPS)
def test_blocks_and_copies_agree(name, layout, scale, X, rng):
    X[:, 0] += 1e-3  # no row is all zero
    chosen = rng.permutation(400)[:250].astype(np.int64)
    stored, learned = layout(X), learn_map(name, X, chosen)
    scaling = learn_scaling(scale, MappedMatrix(stored, learned), chosen)
    rows = Rows(stored, bias=2.0, selection=chosen, feature_map=learned, scaling=scaling)
    expected = as_numpy_has_them(X, learned, scaling, chosen)
    d = learned.n_out
    assert (rows.features, rows.dimension, len(rows)) == (d, d + 1, 250)
    assert 0.5 < rows.n_values / rows.for_many_passes().n_values < 2.0
    w, c = rng.normal(size=d + 1), rng.normal(size=250) * (rng.random(250) < 0.5)
    groups = rng.integers(0, 12, size=250)
    by_query = rows.moments(groups)
    copy = rows.for_many_passes()
    assert rows.for_many_passes() is copy
    assert not isinstance(copy._X, MappedMatrix)
    for same in (rows, copy, rows.select(np.arange(250)), copy.select(np.arange(250)), rows.with_memory(0)):
        np.testing.assert_allclose(same.scores(w), expected @ w, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(same.combine(c), expected.T @ c, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(same.moments().mean, expected[:, :d].mean(axis=0), rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(same.moments().variance, expected[:, :d].var(axis=0), rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(same.moments(groups).variance, by_query.variance, rtol=1e-7, atol=1e-7)
    some = np.array([7, 3, 200])
    for same in (rows, copy):
        np.testing.assert_allclose(same.select(some).scores(w), (expected @ w)[some], rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(same.select(some).combine(c[:3]), expected[some].T @ c[:3], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", MAPS)
def test_no_bit_depends_on_the_threads(name, X, rng):
    learned = learn_map(name, X)
    w, c = rng.normal(size=learned.n_out), rng.normal(size=400)
    for form in (X, sp.csr_array(X)):
        alone = Rows(form, feature_map=learned)
        for threads in (2, 5):
            several = Rows(form, feature_map=learned, threads=threads)
            for one, other in ((alone, several), (alone.for_many_passes(), several.for_many_passes())):
                np.testing.assert_array_equal(one.scores(w), other.scores(w))
                np.testing.assert_array_equal(one.combine(c), other.combine(c))


def test_a_copy_that_takes_too_much_is_not_made(X):
    rows = Rows(X, feature_map=learn_map("piecewise", X)).with_memory(1000)
    stored = rows.for_many_passes()
    assert isinstance(stored._X, MappedMatrix)
    # Nor a copy of a part that would have room.
    assert isinstance(stored.select(np.arange(2)).for_many_passes()._X, MappedMatrix)
    assert not isinstance(rows.select(np.arange(2)).for_many_passes()._X, MappedMatrix)


def test_a_copy_is_made_once_for_all_numbers_of_threads(X):
    rows = Rows(X, feature_map=learn_map("piecewise", X))
    copy = rows.for_many_passes()
    again = rows.with_threads(3)
    assert again.for_many_passes()._X is copy._X
    assert again.for_many_passes().threads == again.threads == 3
    assert copy.with_threads(4).for_many_passes()._X is copy._X


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_rows_in_memory_are_mapped(layout, X):
    learned = learn_map("piecewise", X)
    matrix, selection = Rows(layout(X), feature_map=learned).select(np.array([4, 1])).in_memory()
    found = matrix.toarray() if sp.issparse(matrix) else matrix
    np.testing.assert_allclose(found[selection], learned.apply(X)[[4, 1]])


def test_the_linear_map_is_none(X):
    assert Rows(X, feature_map=learn_map("linear", X)).in_memory().matrix is X


def test_no_rows(X):
    learned = learn_map("piecewise", X)
    for form in (X, sp.csr_array(X)):
        rows = Rows(form, feature_map=learned).select(np.empty(0, dtype=np.int64))
        for same in (rows, rows.for_many_passes()):
            assert same.scores(np.ones(learned.n_out)).size == 0
            np.testing.assert_array_equal(same.combine(np.empty(0)), np.zeros(learned.n_out))


def test_scores_of_several_rankers(X, rng):
    learned = learn_map("piecewise", X)
    W = rng.normal(size=(3, learned.n_out))
    for rows in (Rows(X, feature_map=learned), Rows(sp.csr_array(X), feature_map=learned, bias=None), Rows(X)):
        V = W[:, : rows.dimension]
        np.testing.assert_array_equal(rows.scores_of_all(V), np.stack([rows.scores(w) for w in V], axis=1))
        assert rows.select(np.empty(0, dtype=np.int64)).scores_of_all(V).shape == (0, 3)
