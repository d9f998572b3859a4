"""The structured SVM's estimators among scikit-learn's own: tags, cross-validation, several classes, calibration."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier

from apsvm import APSVMClassifier, APSVMRanker

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


def test_an_array_of_dates_is_refused(data):
    with pytest.raises(ValueError, match="X is an array of dates"):
        APSVMClassifier(C=1).fit(data.X.astype("datetime64[s]"), data.relevant)
