"""The estimators' ``scale``: what the default is, and what goes with it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from apsvm import APSVMClassifier, APSVMRanker, RankNCG, WARPRanker


@pytest.fixture
def X(data):
    return data.X * np.array([1.0, 1.0, 1.0, 1.0, 1e6, 1.0])


def test_dense_rows_are_standardised_by_default(X, data):
    auto = APSVMClassifier().fit(X, data.relevant)
    standard = APSVMClassifier(scale="standard").fit(X, data.relevant)
    np.testing.assert_array_equal(auto.coef_, standard.coef_)
    assert auto.intercept_ == standard.intercept_
    assert auto.certificate_.reached
    assert auto.predict(X).sum() == data.relevant.sum()
    assert APSVMClassifier.from_model(auto.to_model()).scale == "standard"


def test_sparse_rows_are_not_by_default(data, rng):
    sparse = sp.csr_array(np.where(rng.random(data.X.shape) < 0.3, data.X, 0.0))
    auto, none = (APSVMClassifier(C="1x", **scale).fit(sparse, data.relevant) for scale in ({}, {"scale": "none"}))
    np.testing.assert_array_equal(auto.coef_, none.coef_)
    assert APSVMClassifier.from_model(auto.to_model()).scale == "none"


@pytest.mark.parametrize("estimator", [APSVMRanker("ndcg", C=10, epsilon=1e-6, bound="hinge"), RankNCG()], ids=repr)
def test_as_behind_a_scaler(estimator, X, data):
    Z = StandardScaler().fit_transform(X)
    found = estimator.fit(X, data.y, qid=data.qid).predict(X)
    expected = estimator.set_params(scale="none").fit(Z, data.y, qid=data.qid).predict(Z)
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def test_a_warm_start_in_other_units(X, data):
    """The weights are turned into those of scaled rows."""
    model = APSVMClassifier(C=10, bound="hinge", scale="none", warm_start=True).fit(data.X, data.relevant)
    model.set_params(scale="maxabs", C=1e3).fit(data.X, data.relevant)
    assert model.fit(data.X, data.relevant).n_iter_ <= 2


def test_what_does_not_go(data):
    with pytest.raises(ValueError, match="scale is one of auto, none, maxabs, standard, l2, found 'minmax'"):
        APSVMClassifier(scale="minmax").fit(data.X, data.relevant)
    assert WARPRanker(epochs=1, random_state=0).fit(data.X, data.relevant).to_model().header.features.scale == "none"
