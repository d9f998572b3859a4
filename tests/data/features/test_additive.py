"""Curves and contributions: sums of them are the scores."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from apsvm import LinearRanker
from apsvm.data.features import additive, learn_map
from apsvm.data.features.additive import part_at
from apsvm.models.header import Features, Header


@pytest.fixture
def X(rng):
    X = rng.normal(size=(90, 5)) + 1.0
    X[rng.random(X.shape) < 0.4] = 0.0
    X[:, 4] = X[:, 4] > 0
    return X


def ranker_of(name, X, rng, scale="none"):
    learned = learn_map(name, X, targets=(X[:, :1].T * X[:, 1] > 0.5).astype(float))
    header = Header(loss="ap", features=Features(map=learned.name, scale=scale))
    return LinearRanker(rng.normal(size=learned.n_out), 0.7, header, None if name == "linear" else learned)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", ["linear", "piecewise"])
def test_contributions_add_up(name, layout, X, rng, monkeypatch):
    monkeypatch.setattr(additive, "BLOCK", 50)
    ranker = ranker_of(name, X, rng)
    blocks = list(ranker.contributions(layout(X))[0].blocks())
    assert len(blocks) == 9
    whole = np.concatenate(blocks)
    reference = np.zeros(5) if name == "linear" else X.mean(axis=0)
    expected = ranker.score(X) - ranker.score(reference[None, :])
    np.testing.assert_allclose(whole.sum(axis=1), expected, atol=1e-9)
    # Each depends on its own feature alone.
    for j in range(5):
        alone = np.tile(reference, (90, 1))
        alone[:, j] = X[:, j]
        np.testing.assert_allclose(whole[:, j], ranker.score(alone) - ranker.score(reference[None, :]), atol=1e-9)
    deviations = ranker.contributions(layout(X))[0].deviations()
    np.testing.assert_allclose(deviations, whole.std(axis=0), atol=1e-9)
    groups = rng.integers(0, 4, size=90)
    centred = whole - np.stack([whole[groups == g].mean(axis=0) for g in groups])
    within = ranker.contributions(layout(X))[0].deviations(groups)
    np.testing.assert_allclose(within, np.sqrt((centred**2).mean(axis=0)), atol=1e-9)


@pytest.mark.parametrize("name", ["linear", "piecewise"])
def test_of_rows_divided_by_their_length(name, X, rng):
    ranker = ranker_of(name, X, rng, "l2")
    whole = ranker.contributions(sp.csr_array(X))[0][:]
    np.testing.assert_allclose(whole.sum(axis=1), ranker.score(X) - 0.7, atol=1e-9)


def test_a_curve_is_0_at_the_mean(X, rng):
    ranker = ranker_of("piecewise", X, rng)
    learned = ranker.feature_map
    np.testing.assert_allclose(learned.typical(), X.mean(axis=0))
    for j in range(5):
        assert learned.limits(j) == (X[:, j].min(), X[:, j].max())
        x = np.array([X[:, j].mean(), *X[:7, j]])
        values = part_at(learned, learned.parts(), ranker.coef, j, x[:, None])
        assert values[0] == pytest.approx(0.0, abs=1e-9)
        np.testing.assert_allclose(values[1:], ranker.contributions(X)[0][:7][:, j], atol=1e-9)


@pytest.mark.parametrize("name", ["products", "rules:depth=2", "rules:depth=3"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_what_features_give_together_adds_up_too(name, layout, X, rng):
    ranker = ranker_of(name, X, rng)
    rows = np.concatenate([X, rng.normal(size=(1000, 5))])
    contributions = ranker.contributions(layout(rows))[0]
    parts = contributions.parts.features
    assert {len(part) for part in parts} == {1, 2, 3} - ({3} if name != "rules:depth=3" else set())
    np.testing.assert_allclose(contributions[:].sum(axis=1) + contributions.base, ranker.score(rows), atol=1e-10)
    dealt = contributions.dealt_to(np.array([2, 3]))
    np.testing.assert_allclose(dealt[:].sum(axis=1) + dealt.base, ranker.score(rows), atol=1e-10)
    of_first = [bool({0, 1} & {*part}) / (bool({0, 1} & {*part}) + bool({2, 3, 4} & {*part})) for part in parts]
    np.testing.assert_allclose(dealt[:][:, 0], contributions[:] @ of_first, atol=1e-10)
    for part in rng.permutation(len(parts))[:10].tolist():
        of_part = part_at(ranker.feature_map, contributions.parts, ranker.coef, part, rows[:, parts[part]])
        np.testing.assert_allclose(of_part, contributions[:][:, part], atol=1e-10)


def test_other_maps_have_none(X, rng):
    with pytest.raises(ValueError, match="all features at once"):
        ranker_of("nystroem:9", X, rng).contributions(X)
    with pytest.raises(ValueError, match="shape"):
        ranker_of("piecewise", X, rng).contributions(X[:, :2])
