"""The parameter ``features``: a map learned in fit, before anything is weighed."""

from __future__ import annotations

import numpy as np
import pytest
from over import over
from sklearn.base import clone

from apsvm import APSVMClassifier, APSVMRanker, RankNCG, WARPRanker
from apsvm.data.features import learn_map

#: Without a map no ranker tells these rows apart.
pytestmark = pytest.mark.filterwarnings("ignore::apsvm.WeakRankerWarning")

ESTIMATORS = [
    APSVMClassifier(C=100, bound="tight", n_jobs=1),
    APSVMClassifier("zero-one", C=100),
    APSVMRanker("ap", C=100, bound="hinge"),
    RankNCG(),
    WARPRanker(random_state=0),
]


@pytest.fixture
def middle(rng):
    """X (300, 3), y (300,) of which those in the middle are positive."""
    X = rng.normal(size=(300, 3))
    return X, (np.abs(X[:, 0]) < 0.7).astype(int)


@pytest.mark.slow
@over("features", ["piecewise", "products", "nystroem:40"])
@over("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_what_is_learned_is_what_the_mapped_rows_teach(estimator, features, middle):
    X, y = middle
    model = clone(estimator).set_params(features=features).fit(X, y)
    learned = learn_map(features, X)
    on_mapped = clone(estimator).fit(learned.apply(X), y)
    np.testing.assert_allclose(model.coef_, on_mapped.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(X), on_mapped.decision_function(learned.apply(X)), atol=1e-3)
    assert model.n_features_in_ == 3
    assert model.feature_map_.name == learned.name
    assert model.coef_.shape[-1] == learned.n_out
    assert model.score(X, y) > clone(estimator).fit(X, y).score(X, y) + 0.05


@pytest.mark.parametrize(("features", "error"), [("cubes", ValueError), ("piecewise:0", ValueError), (4, TypeError)])
def test_features_that_are_none(features, error, middle):
    with pytest.raises(error, match=r"features|feature map"):
        APSVMClassifier(features=features).fit(*middle)


@pytest.mark.parametrize("components", [1, 2])
def test_what_features_give_adds_up_to_the_score(components, rng):
    X = rng.normal(size=(300, 3))
    y = X[:, 0] * X[:, 1] > 0.3
    model = APSVMClassifier(features="rules:40:depth=2", components=components).fit(X, y)
    base, names, gave = model.explain(X)
    np.testing.assert_allclose(base + gave.sum(axis=1), model.decision_function(X), atol=1e-10)
    assert names == ["1", "2", "3"]
    matters = np.abs(gave).mean(axis=0)
    assert components > 1 or matters.argmin() == 2
    assert gave.shape == (300, len(names))
    with pytest.raises(ValueError, match="all features at once"):
        APSVMClassifier(features="nystroem:9").fit(X, y).explain(X)
