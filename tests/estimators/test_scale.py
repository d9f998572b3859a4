"""The estimators' ``scale``: what the default is, and what goes with it."""

from __future__ import annotations

import numpy as np
import pytest
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
    assert APSVMClassifier.from_model(auto.to_model()).scale == "standard"


@pytest.mark.parametrize("estimator", [APSVMRanker("ndcg", C=10, epsilon=1e-6, bound="hinge"), RankNCG()], ids=repr)
def test_as_behind_a_scaler(estimator, X, data):
    Z = StandardScaler().fit_transform(X)
    found = estimator.fit(X, data.y, qid=data.qid).predict(X)
    expected = estimator.set_params(scale="none").fit(Z, data.y, qid=data.qid).predict(Z)
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def test_what_does_not_go(data):
    with pytest.raises(ValueError, match="scale is one of auto, none, maxabs, standard, l2, found 'minmax'"):
        APSVMClassifier(scale="minmax").fit(data.X, data.relevant)
    assert WARPRanker(epochs=1, random_state=0).fit(data.X, data.relevant).to_model().header.features.scale == "none"
