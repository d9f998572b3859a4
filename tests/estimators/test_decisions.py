"""``threshold`` and ``calibrate`` of the classifiers: ``predict`` is the sign of the scores, whoever draws the line."""

from __future__ import annotations

import numpy as np
import pytest
from over import over
from sklearn.base import clone
from sklearn.metrics import brier_score_loss, f1_score

from apsvm import APSVMClassifier

X = np.random.default_rng(0).normal(size=(700, 5))
Y = X[:, 0] + X[:, 1] + np.random.default_rng(1).normal(size=700) > 1.5
NEW, OF_NEW = X[300:], Y[300:]
X, Y = X[:300], Y[:300]


def classifier(**more):
    return APSVMClassifier(C=10, bound="hinge", **more)


@pytest.mark.slow
@over("pos_label", [True, False])
@over(
    "parameters",
    [
        {"threshold": "fpr=.05"},
        {"threshold": "recall=.9", "calibrate": "isotonic"},
        {"calibrate": "platt"},
        {"loss": "zero-one", "threshold": "top=60"},
        {"bound": "tight", "components": 2, "threshold": "f1", "calibrate": "platt"},
    ],
    ids=str,
)
def test_predict_is_the_sign_and_models_agree(parameters, pos_label):
    model = APSVMClassifier(**{"C": 10, "bound": "hinge", **parameters}, pos_label=pos_label).fit(X, Y)
    scores, predicted = model.decision_function(NEW), model.predict(NEW)
    np.testing.assert_array_equal(predicted, scores > 0.0)
    assert 0.0 < predicted.mean() < 1.0
    header = model.to_model().header
    assert header.threshold.held_out == "5 folds of rows"
    np.testing.assert_array_equal((model.to_model().score(NEW) > header.threshold.value) == pos_label, predicted)
    again = APSVMClassifier.from_model(model.to_model())
    np.testing.assert_array_equal(again.predict(NEW), predicted)
    named = parameters.get("threshold") not in (None, "f1")
    assert again.threshold == (header.threshold.rule if named else None)
    assert hasattr(model, "predict_proba") == hasattr(again, "predict_proba") == ("calibrate" in parameters)
    if "calibrate" in parameters:
        probability = model.predict_proba(NEW)
        np.testing.assert_allclose(probability.sum(axis=1), 1.0)
        np.testing.assert_array_equal(again.predict_proba(NEW), probability)
        assert brier_score_loss(OF_NEW, probability[:, 1]) < 0.12 < OF_NEW.mean() * (1 - OF_NEW.mean())
    if parameters.get("calibrate") and "threshold" not in parameters:
        np.testing.assert_array_equal(predicted, model.classes_[probability.argmax(axis=1)])
    assert model.coef_.tobytes() == clone(model).set_params(threshold=None, calibrate=None).fit(X, Y).coef_.tobytes()


def test_copies_of_a_row_stay_together():
    """A row of weight 2 is the row twice: in one fold, or it would be judged by itself."""
    weights = np.ones(300)
    weights[:50] = 2.0
    model = classifier(threshold="top=30").fit(X, Y, sample_weight=weights)
    threshold = model.to_model().header.threshold
    assert threshold.called == pytest.approx(30 / 350, abs=1.01 / 350)


def test_the_default_is_the_highest_f1():
    model = classifier().fit(X, Y)
    lines = [f1_score(Y, model.decision_function(X) > line) for line in model.decision_function(X)]
    assert f1_score(Y, model.predict(X)) == pytest.approx(max(lines))
    assert model.to_model().header.threshold.rule == "f1"
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="fit it with calibrate='auto'"):
        model.predict_proba(NEW)
    assert hasattr(classifier(calibrate="auto"), "predict_proba")
    assert classifier(fit_intercept=False).fit(X, Y).to_model().header.threshold is None


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"threshold": "f2"}, ValueError, "expected f1, fpr=A"),
        ({"threshold": 0.5}, TypeError, "threshold must be str or None"),
        ({"calibrate": "magic"}, ValueError, "calibrate is one of auto, isotonic, platt"),
        ({"threshold": "f1", "fit_intercept": False}, ValueError, "fit_intercept=False leaves none"),
    ],
)
def test_refused(parameters, error, message):
    with pytest.raises(error, match=message):
        classifier(**parameters).fit(X, Y)


def test_too_few_rows():
    few = np.arange(300) < 1
    with pytest.raises(ValueError, match="calibrate: 2 folds need at least 2 positive rows, found 1"):
        classifier(calibrate="auto").fit(X, few)


@pytest.mark.filterwarnings("ignore::apsvm.WeakRankerWarning")
@over("calibrate", ["isotonic", "platt"])
@over("likelier", [False, True])
def test_where_one_class_is_always_likelier_all_rows_are_of_it(likelier, calibrate):
    """Also rows that score far beyond all training rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] > rng.logistic(size=400, scale=2.0) + 5.0) ^ likelier
    model = classifier(calibrate=calibrate).fit(X, y)
    far = np.concatenate([X, 50.0 * X])
    probability = model.predict_proba(far)[:, 1]
    if calibrate == "platt":
        assert ((probability > 0.5) == likelier).all()
    np.testing.assert_array_equal(model.predict(far), probability > 0.5)
    np.testing.assert_array_equal(model.predict(far), model.decision_function(far) > 0.0)
