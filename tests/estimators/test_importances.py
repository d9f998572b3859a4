"""``class_weight`` and ``feature_importances_``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from over import over
from sklearn.utils.class_weight import compute_sample_weight

from apsvm import APSVMClassifier


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 3))
    return X, X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=400) > 1.8


def balanced_error(y, predicted):
    return (y & ~predicted).sum() / y.sum() + (~y & predicted).sum() / (~y).sum()


@over("pos_label", [True, False])
def test_class_weight_moves_the_line_of_a_ranking(rows, pos_label):
    X, y = rows
    plain, balanced = (
        APSVMClassifier(C=1.0, bound="hinge", pos_label=pos_label, class_weight=weight).fit(X, y)
        for weight in (None, "balanced")
    )
    np.testing.assert_array_equal(plain.coef_, balanced.coef_)
    scores = np.sort(plain.decision_function(X))
    least = min(balanced_error(y, plain.decision_function(X) > line) for line in [-np.inf, *scores])
    assert balanced_error(y, balanced.predict(X)) == pytest.approx(least)
    assert balanced_error(y, plain.predict(X)) > least
    assert balanced.to_model().header.threshold.rule == "class weights"
    by_name = {True: 0.5 / y.mean(), False: 0.5 / (~y).mean()}
    named = APSVMClassifier(C=1.0, bound="hinge", pos_label=pos_label, class_weight=by_name).fit(X, y)
    assert named.intercept_ == balanced.intercept_
    never = APSVMClassifier(C=1.0, bound="hinge", class_weight={True: 1e-9}).fit(X, y)
    assert not (never.predict(X) & ~y).any()  # for which a positive would have to weigh something


def test_class_weight_weighs_the_rows_of_zero_one(rows):
    X, y = rows
    weights = np.where(X[:, 2] > 0, 2.0, 1.0)
    balanced = APSVMClassifier("zero-one", C=1.0, class_weight="balanced").fit(X, y, sample_weight=weights)
    by_hand = APSVMClassifier("zero-one", C=1.0).fit(X, y, sample_weight=weights * compute_sample_weight("balanced", y))
    np.testing.assert_array_equal(balanced.coef_, by_hand.coef_)
    assert balanced.predict(X).mean() > 1.5 * y.mean()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"class_weight": "even"}, "class_weight"),
        ({"class_weight": {2: 1.0}}, "not in class_weight"),
        ({"class_weight": {True: -1.0}}, "expected weights ≥ 0"),
        ({"class_weight": "balanced", "threshold": "f1"}, "excludes threshold= and calibrate="),
        ({"class_weight": "balanced", "fit_intercept": False}, "needs fit_intercept=True"),
    ],
    ids=str,
)
def test_class_weights_that_are_none(parameters, words, rows):
    with pytest.raises(ValueError, match=words):
        APSVMClassifier(C=1.0, **parameters).fit(*rows)


@over("features", ["linear", "piecewise:3", "rules:200", "products"])
def test_importances_are_of_what_counts(features, rows):
    X, y = rows
    model = APSVMClassifier(C=1.0, bound="hinge", features=features).fit(X, y)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_.argmax() == 0
    assert model.feature_importances_[0] > 1.5 * model.feature_importances_[2]
    if features == "linear":
        expected = np.abs(model.coef_.ravel()) * X.std(axis=0)
        np.testing.assert_allclose(model.feature_importances_, expected / expected.sum())
    if features == "products":
        deviations = model.explain(X).gave.std(axis=0)
        np.testing.assert_allclose(model.feature_importances_, deviations / deviations.sum())


def test_importances_of_the_columns_of_a_frame(rows):
    X, y = rows
    frame = pd.DataFrame({"a": X[:, 1], "word": np.where(y, "x", "y"), "b": X[:, 2]})
    model = APSVMClassifier(C=1.0, bound="hinge").fit(frame, y)
    assert model.feature_importances_.shape == (3,)
    assert model.feature_importances_.argmax() == 1
    model.set_params(features="nystroem:5").fit(frame, y)
    assert not hasattr(model, "feature_importances_")
