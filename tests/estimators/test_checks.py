"""scikit-learn's own checks of an estimator: all of them, none expected to fail."""

from __future__ import annotations

import pytest
from sklearn.base import is_classifier
from sklearn.utils.estimator_checks import check_estimator

from apsvm import APSVMClassifier, APSVMRanker, RankNCG, WARPRanker

ESTIMATORS = [
    APSVMClassifier(),
    APSVMRanker(),
    APSVMClassifier("zero-one"),
    # At C = 1 hardly any labelling of these checks' blobs beats w = 0.
    APSVMClassifier("f1", C=100),
    APSVMRanker("ndcg@5", bound="tight"),
    RankNCG(),
    WARPRanker(),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.filterwarnings("ignore")  # the checks try what warns
def test_check_estimator(estimator, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # or a check is skipped
    done = check_estimator(estimator)
    assert all(check["status"] == "passed" for check in done)
    assert len(done) >= (64 if is_classifier(estimator) else 42)
