"""Scaled rows against scikit-learn's scalers, and moments against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler

from apsvm.data import moments
from apsvm.data.features.scaling import SCALINGS, learn_scaling
from apsvm.data.rows import Rows

JUDGES = {"maxabs": MaxAbsScaler, "standard": StandardScaler, "l2": Normalizer}


@pytest.fixture
def X(rng):
    """Very different scales, many zeros, two constant columns, a row of zeros."""
    X = rng.normal(size=(120, 7)) * np.array([1.0, 50.0, 1e-3, 1.0, 1e6, 1.0, 1.0]) + 2.0 * (rng.random(7) > 0.5)
    X[rng.random(X.shape) < 0.5] = 0.0
    X[:, 3], X[:, 5] = 2.0, 0.0
    X[7] = 0.0
    return X


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", JUDGES)
def test_rows_as_scikit_learn_scales_them(name, layout, X, rng):
    chosen = rng.permutation(120)[:80].astype(np.int64)
    judge = JUDGES[name]().fit(X[chosen])
    scaled = np.column_stack([judge.transform(X[chosen]), np.full(80, 2.0)])
    scaling = learn_scaling(name, layout(X), chosen)
    rows = Rows(layout(X), bias=2.0, selection=chosen, scaling=scaling)
    w, c = rng.normal(size=8), rng.normal(size=80)
    for same in (rows, rows.for_many_passes(), rows.select(np.arange(80))):
        assert same.scores(w) == pytest.approx(scaled @ w, rel=1e-9, abs=1e-9)
        assert same.combine(c) == pytest.approx(scaled.T @ c, rel=1e-9, abs=1e-9)
    assert rows.moments().variance == pytest.approx(scaled[:, :7].var(axis=0), rel=1e-9, abs=1e-12)
    assert rows.moments().mean == pytest.approx(scaled[:, :7].mean(axis=0), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", SCALINGS)
def test_a_ranker_of_scaled_rows_is_one_of_raw_rows(name, X, rng):
    scaling = learn_scaling(name, X)
    w = rng.normal(size=7)
    coef, constant = scaling.raw_weights(w)
    raw = Rows(X, scaling=learn_scaling("l2", X)) if name == "l2" else Rows(X)
    assert raw.scores(coef) + constant == pytest.approx(Rows(X, scaling=scaling).scores(w), rel=1e-9, abs=1e-9)
    back, moved = scaling.scaled_weights(coef)
    assert back == pytest.approx(w)
    assert moved + constant == pytest.approx(0.0, abs=1e-9)


def test_a_constant_column_is_divided_by_its_size(X):
    for name in ("maxabs", "standard"):
        assert learn_scaling(name, X).divisors[5] == 1.0
    assert learn_scaling("standard", np.delete(X, 7, axis=0)).divisors[3] == 2.0
    assert learn_scaling("standard", np.full((9, 2), [-1e17, 0.1])).divisors.tolist() == [1e17, 1.0]
    # Constant but for rounding.
    noisy = np.full((50, 1), 1e6) + 1e-9 * np.arange(50)[:, None]
    assert learn_scaling("standard", noisy).divisors == pytest.approx([1e6])


@pytest.mark.parametrize("offset", [1e3, 1e6, -1e9, 1e12])
def test_far_from_zero_a_column_varies_as_it_does_there(offset, rng):
    X = np.round(rng.normal(size=(3000, 3)), 3) + offset
    groups = np.sort(rng.integers(0, 40, size=3000))
    near = X - offset
    sparse = sp.csr_array(np.column_stack([X, rng.random(3000) < 0.1]))
    np.testing.assert_allclose(moments.column_moments(sparse).variance[:3], near.var(axis=0), rtol=1e-8)
    assert moments.column_moments(sparse).variance[3] == pytest.approx(sparse.toarray()[:, 3].var())
    found = moments.column_moments(X)
    np.testing.assert_allclose(found.variance, near.var(axis=0), rtol=1e-8)
    np.testing.assert_allclose(found.mean - offset, near.mean(axis=0), atol=1e-15 * abs(offset))
    within = moments.column_moments(near, groups=groups).variance
    np.testing.assert_allclose(moments.column_moments(X, groups=groups).variance, within, rtol=1e-8)
    assert moments.column_moments(np.full((9, 1), offset)).variance == [0.0]


def test_an_unknown_scaling():
    with pytest.raises(ValueError, match="choose from none, maxabs"):
        learn_scaling("robust", np.ones((2, 2)))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("rows_a_block", [1, 7, 1000])
def test_variances_within_queries(layout, rows_a_block, rng, monkeypatch):
    monkeypatch.setattr(moments, "BLOCK", 4 * rows_a_block)
    X = rng.normal(size=(90, 4)) * (rng.random((90, 4)) < 0.6)
    groups = rng.integers(0, 12, size=90)
    X[:, 2] = 3.0 * groups  # constant in each query
    found = moments.column_moments(layout(X), np.arange(90), groups=groups)
    within = sum(((X[groups == g] - X[groups == g].mean(axis=0)) ** 2).sum(axis=0) for g in np.unique(groups)) / 90
    assert found.variance[2] == 0.0 < X[:, 2].var()
    assert found.variance == pytest.approx(within, rel=1e-9, abs=1e-12)
    assert found.mean == pytest.approx(X.mean(axis=0))
    assert moments.column_moments(layout(X), np.arange(90)).variance == pytest.approx(X.var(axis=0))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_lengths_of_rows_of_any_magnitude(layout, size):
    X = size * np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]])
    assert moments.row_norms(layout(X)) == pytest.approx(size * np.array([5.0, 0.0, 2.0]), rel=1e-12)
