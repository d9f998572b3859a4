"""Which of two classes is positive, what follows from it, and why positives have no weights of their own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from apsvm import APSVMClassifier, WeakRankerWarning, load_model

CLASSIFIERS = [
    APSVMClassifier(C=10),
    APSVMClassifier("zero-one", C=10, intercept_scaling=3.0),
    APSVMClassifier("f1", C=100),
]


def named(relevant):
    """Labels whose positive one is the first in sorted order."""
    return np.where(relevant, "fraud", "ok")


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_the_positive_class_is_the_one_that_is_named(model, data):
    judge = clone(model).fit(data.X, data.relevant)
    y = named(data.relevant)
    own = clone(model).set_params(pos_label="fraud").fit(data.X, y)
    assert own.classes_.tolist() == ["fraud", "ok"]
    assert own.pos_label_ == "fraud"
    assert judge.pos_label_ is True
    np.testing.assert_array_equal(own.to_model().coef, judge.to_model().coef)
    assert own.to_model().intercept == judge.to_model().intercept
    np.testing.assert_array_equal(own.decision_function(data.X), -judge.decision_function(data.X))
    np.testing.assert_allclose(own.decision_function(data.X), data.X @ own.coef_[0] + own.intercept_[0], rtol=1e-12)
    np.testing.assert_array_equal(own.predict(data.X) == "fraud", judge.predict(data.X))
    assert own.score(data.X, y) == judge.score(data.X, data.relevant)
    # Of the other one it is another training, but for a loss that treats both alike.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        other = clone(model).fit(data.X, y)
    assert other.pos_label_ == "ok"
    is_same = np.abs(other.coef_ - own.coef_).max() <= 1e-3 * np.abs(own.coef_).max()
    assert is_same == (getattr(model, "loss", None) == "zero-one")


@pytest.mark.parametrize("model", CLASSIFIERS[:2], ids=str)
def test_the_file_keeps_it(model, data, tmp_path):
    y = named(data.relevant)
    model = clone(model).set_params(pos_label="fraud").fit(data.X, y)
    model.to_model().save(tmp_path / "model")
    back = type(model).from_model(load_model(tmp_path / "model"))
    assert (back.classes_.tolist(), back.pos_label_, back.pos_label) == (["fraud", "ok"], "fraud", "fraud")
    np.testing.assert_array_equal(back.decision_function(data.X), model.decision_function(data.X))
    assert back.score(data.X, y) == model.score(data.X, y)
    np.testing.assert_array_equal(clone(back).fit(data.X, y).coef_, model.coef_)


@pytest.mark.parametrize(
    "train",
    [
        APSVMClassifier.fit,
        lambda model, X, y: make_pipeline(StandardScaler(), model).fit(X, y),
        lambda model, X, y: cross_val_score(model, X, y, cv=2),
    ],
)
def test_warnings_name_the_line_that_called(data, train):
    """The warning names this file, not scikit-learn's."""
    with pytest.warns() as caught:
        train(APSVMClassifier(bound="hinge", max_iter=1), data.X, named(data.relevant))
    assert {warning.category for warning in caught} == {UserWarning, ConvergenceWarning, WeakRankerWarning}
    assert {warning.filename for warning in caught} == {__file__}


def test_the_guess_that_is_likely_wrong_is_warned_of(data):
    y = named(data.relevant)
    assert data.relevant.mean() < 0.5
    with pytest.warns(UserWarning, match="'ok' is taken as positive"):
        APSVMClassifier(bound="hinge", max_iter=500).fit(data.X, y)
    # Not where it was named, is the rarer one, or where they are numbers.
    APSVMClassifier(bound="hinge", pos_label="ok").fit(data.X, y)
    APSVMClassifier(bound="hinge").fit(data.X, np.where(data.relevant, "ok", "fraud"))
    APSVMClassifier(bound="hinge").fit(data.X, ~data.relevant)
    APSVMClassifier(bound="hinge").fit(data.X, np.where(data.relevant, 1, 2))


def test_a_positive_class_that_there_is_not(data):
    with pytest.raises(ValueError, match=r"pos_label='scam' is not one of the classes"):
        APSVMClassifier(pos_label="scam").fit(data.X, named(data.relevant))
    with pytest.raises(ValueError, match=r"pos_label='1' is not one of the classes"):
        APSVMClassifier(pos_label="1").fit(data.X, data.relevant.astype(int))
