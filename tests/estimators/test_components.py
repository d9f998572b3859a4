"""Estimators of several components: attributes, models, pickles, what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import average_precision_score

from apsvm import APSVMClassifier
from apsvm.models.components import ComponentRanker


@pytest.fixture
def two_kinds(rng) -> tuple[np.ndarray, np.ndarray]:
    X, y = rng.normal(size=(400, 4)), np.arange(400) < 40
    X[:20, 0] += 4.0
    X[20:40, 1] += 4.0
    return X, y


def test_scores_are_the_best_components(two_kinds):
    X, y = two_kinds
    model = APSVMClassifier(components=2, C=1000.0).fit(X, y)
    assert (model.coef_.shape, model.intercept_.shape) == ((2, 4), (2,))
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, (X @ model.coef_.T + model.intercept_).max(axis=1))
    assert average_precision_score(y, scores) > average_precision_score(
        y, APSVMClassifier(C=1000.0).fit(X, y).decision_function(X)
    )
    assert model.certificate_.stationary
    assert model.score(X, y) == pytest.approx(average_precision_score(y, scores))
    np.testing.assert_array_equal(model.decision_function(X.astype(np.float64)), scores)


def test_models_pickles_and_clones(two_kinds, tmp_path):
    X, y = two_kinds
    model = APSVMClassifier(components=2, C=1000.0).fit(X, y)
    stored = model.to_model()
    assert isinstance(stored, ComponentRanker)
    stored.save(tmp_path / "m.model")
    back = APSVMClassifier.from_model(stored)
    assert back.get_params()["components"] == 2
    for one in (back, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(one.decision_function(X), model.decision_function(X))
    assert clone(model).components == 2


@pytest.mark.parametrize(
    ("components", "error"), [(0, ValueError), (65, ValueError), (2.0, TypeError), ("2", TypeError)]
)
def test_how_many_there_may_be(components, error, two_kinds):
    with pytest.raises(error, match="components"):
        APSVMClassifier(components=components).fit(*two_kinds)


def test_appx_is_refused(two_kinds):
    with pytest.raises(ValueError, match="components=2 does not go with oracle='appx'"):
        APSVMClassifier(components=2, oracle="appx").fit(*two_kinds)
