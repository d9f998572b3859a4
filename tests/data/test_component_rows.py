"""Rows of several components: the same scores and gradients as of copies that are written out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from apsvm.data.component_rows import ComponentRows, scores_of_weights
from apsvm.data.features import learn_map
from apsvm.data.features.scaling import NO_SCALING, learn_scaling
from apsvm.data.rows import Rows

H = 3


def written_out(rows: Rows) -> np.ndarray:
    """(n·H, dimension): each row H times, in block h."""
    features = np.stack([rows.scores(unit) for unit in np.eye(rows.dimension)], axis=1)
    return np.concatenate([np.kron(np.eye(H), row[None]) for row in features])


@pytest.fixture(params=["dense", "float32", "sparse", "standard", "l2", "piecewise"])
def rows(request, rng) -> Rows:
    X = rng.normal(size=(40, 5)) * (rng.random((40, 5)) < 0.6)
    if request.param == "float32":
        X = X.astype(np.float32)
    if request.param == "sparse":
        X = sp.csr_array(X)
    scaling = learn_scaling(request.param, X) if request.param in ("standard", "l2") else NO_SCALING
    feature_map = learn_map("piecewise", X) if request.param == "piecewise" else None
    return Rows(X, scaling=scaling, feature_map=feature_map, selection=rng.permutation(40)[:30]).with_bias(1.5)


def test_scores_gradients_and_moments_are_those_of_copies(rows, rng):
    instances, X = ComponentRows(rows, H), written_out(rows)
    assert (len(instances), instances.dimension) == X.shape
    assert instances.offsets.tolist() == list(range(0, 91, 3))
    w, c = rng.normal(size=X.shape[1]), rng.normal(size=X.shape[0]) * (rng.random(X.shape[0]) < 0.3)
    np.testing.assert_allclose(instances.scores(w), X @ w, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(instances.combine(c), X.T @ c, rtol=1e-9, atol=1e-9)
    blocks = X.reshape(-1, H, H, rows.dimension)[:, 0, 0]
    np.testing.assert_allclose(instances.moments().variance, np.tile(blocks.var(axis=0), H), rtol=1e-5, atol=1e-9)
    which = np.array([6, 7, 8, 0, 1, 2])
    np.testing.assert_allclose(instances.select(which).scores(w), X[which] @ w, rtol=1e-9, atol=1e-9)
    out = np.empty(len(instances))
    assert instances.scores(w, out) is out


@pytest.mark.parametrize("which", [[0, 1], [1, 2, 3], [0, 2, 1], [0, 1, 2, 3]])
def test_a_row_is_selected_as_a_whole(which, rng):
    instances = ComponentRows(Rows(rng.normal(size=(4, 2))).with_bias(1.0), H)
    with pytest.raises(ValueError, match="all 3 instances"):
        instances.select(np.array(which))


def test_one_pass_has_the_bits_of_several(rows, rng):
    W, C = rng.normal(size=(H, rows.dimension)), rng.normal(size=(len(rows), H))
    np.testing.assert_array_equal(rows.scores_of_all(W), np.stack([rows.scores(w) for w in W], axis=1))
    np.testing.assert_array_equal(rows.combine_all(C), np.stack([rows.combine(c) for c in C.T.copy()]))


def test_the_best_component_counts(rng):
    X, weights = rng.normal(size=(30, 4)), rng.normal(size=(H, 5))
    best = (X @ weights[:, :4].T + weights[:, 4]).max(axis=1)
    for bias in (None, 2.0):
        np.testing.assert_allclose(scores_of_weights(Rows(X, bias=bias), weights), best)
    np.testing.assert_array_equal(scores_of_weights(Rows(X), weights[0, :4]), Rows(X).scores(weights[0, :4].copy()))
