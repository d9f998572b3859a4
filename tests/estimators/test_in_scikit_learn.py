"""The structured SVM's estimators among scikit-learn's own: tags, cross-validation, several classes, calibration."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from over import over
from sklearn.base import is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier

from apsvm import APSVMClassifier, APSVMRanker, RankNCG

#: The hinge, whose minimum is one.
Classifier = partial(APSVMClassifier, bound="hinge")
Ranker = partial(APSVMRanker, bound="hinge")


def test_tags():
    assert is_classifier(Classifier())
    assert not is_classifier(Ranker())
    assert not is_regressor(Ranker())


def test_what_scikit_learn_has_for_classifiers(data):
    X, y = data.X, np.where(data.relevant, "yes", "no")
    own = cross_val_score(Classifier(C=10), X, y, cv=3)
    judge = cross_val_score(Classifier(C=10), X, data.relevant, cv=3, scoring="average_precision")
    np.testing.assert_allclose(own, judge)
    several = OneVsRestClassifier(Classifier(C=10)).fit(X, data.y)
    np.testing.assert_array_equal(several.estimators_[2].coef_, Classifier(C=10).fit(X, data.y == 2).coef_)
    calibrated = CalibratedClassifierCV(Classifier(C=10), cv=3).fit(X, y)
    assert average_precision_score(data.relevant, calibrated.predict_proba(X)[:, 1]) > data.relevant.mean() + 0.2


def test_class_weight_is_refused_in_words():
    for kind in (APSVMClassifier, APSVMRanker, RankNCG):
        with pytest.raises(TypeError, match=f"{kind.__name__} has no class_weight: .* sample_weight in fit"):
            kind(class_weight="balanced")


@over("library", ["pandas", "polars"])
@over("dates", ["datetime64[ns]", "timedelta64[ns]", "object"])
def test_dates_are_refused_by_name(library, dates, data):
    """They were nanoseconds, or an error of numpy's."""
    when = np.datetime64("2024-01-05") + np.arange(len(data.X))
    when = when - when[0] if dates.startswith("timedelta") else when
    when = list(when.tolist()) if dates == "object" else when.astype(dates)
    X = pytest.importorskip(library).DataFrame({"a": data.X[:, 0], "when": when})
    fitted = APSVMClassifier(C=1).fit(data.X[:, :2], data.relevant)
    for act in (lambda: APSVMClassifier(C=1).fit(X, data.relevant), lambda: fitted.predict(X)):
        with pytest.raises(ValueError, match="column 'when' has dates: make numbers of them"):
            act()


def test_an_array_of_dates_is_refused(data):
    with pytest.raises(ValueError, match="column 'X' has dates"):
        APSVMClassifier(C=1).fit(data.X.astype("datetime64[s]"), data.relevant)
