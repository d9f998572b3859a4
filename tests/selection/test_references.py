"""Models for comparison against scikit-learn by hand, on the folds of a search."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from apsvm.metrics.evaluate import evaluate, parse_metrics
from apsvm.selection.references import LOGISTIC_C, references
from apsvm.selection.search import SettingsSearch

METRICS = parse_metrics(["AP", "AUC"])


@pytest.fixture
def search(rng, dataset, grid):
    """search(sparse, groups=None) over 200 rows whose features differ in scale."""
    X = rng.normal(size=(200, 4)) * [1.0, 10.0, 0.1, 3.0] + [0.0, 5.0, 0.0, 0.0]
    y = np.where(X[:, 0] + rng.normal(size=200) > 0.8, 1.0, -1.0)
    sparser = np.column_stack(
        (X * (rng.random((200, 4)) < 0.5), rng.random((200, 40)) * (rng.random((200, 40)) < 0.02))
    )

    def make(*, sparse=False, groups=None, scale=1.0):
        rows = sp.csr_array(sparser) if sparse else X * scale
        return SettingsSearch(dataset(rows, y, groups), [grid("ap", {"C": (1.0,)})], METRICS, folds=3, seed=4)

    return make


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
def test_against_scikit_learn(sparse, search):
    """Standardised by the training rows; the C of the highest mean of the first metric; every metric in every fold."""
    run = search(sparse=sparse)
    logistic, trees = references(run, jobs=1)
    X, relevant = run.dataset.X, run.target.relevant
    assert sp.issparse(X) == sparse

    def judged(model, transform):
        values = {"AP": [], "AUC": []}
        for training, test in run.folds:
            learned = transform(X[training])
            with threadpool_limits(1):
                scores = model.fit(learned(X[training]), relevant[training]).decision_function(learned(X[test]))
            values["AP"].append(average_precision_score(relevant[test], scores))
            values["AUC"].append(roc_auc_score(relevant[test], scores))
        return values

    by_C = {
        C: judged(
            LogisticRegression(C=C, max_iter=500), lambda rows: StandardScaler(with_mean=not sparse).fit(rows).transform
        )
        for C in LOGISTIC_C
    }
    best = max(by_C, key=lambda C: np.mean(by_C[C]["AP"]))
    assert len({np.mean(values["AP"]) for values in by_C.values()}) == 3
    assert (logistic.loss, logistic.choice) == ("logistic regression", {"C": best})
    by_hand = judged(
        HistGradientBoostingClassifier(random_state=4), lambda _: lambda rows: rows.toarray() if sparse else rows
    )
    assert (trees.loss, trees.choice) == ("boosted trees", {})
    for metric in METRICS:
        assert logistic.values(metric) == pytest.approx(by_C[best][metric], abs=1e-9)
        assert trees.values(metric) == pytest.approx(by_hand[metric], abs=1e-9)


def test_they_are_judged_by_query(search):
    groups = np.arange(200) % 7
    run = search(groups=groups)
    logistic = next(references(run, jobs=1))
    C = logistic.choice["C"]
    for number, (training, test) in enumerate(run.folds):
        scaler = StandardScaler().fit(run.dataset.X[training])
        model = LogisticRegression(C=C, max_iter=500).fit(
            scaler.transform(run.dataset.X[training]), run.target.relevant[training]
        )
        scores = model.decision_function(scaler.transform(run.dataset.X[test]))
        values = evaluate(list(METRICS.values()), scores, run.target.relevant[test], groups[test]).values
        assert logistic.folds[number].values == pytest.approx(values, abs=1e-9)


def test_what_scikit_learn_cannot_train_on_is_left_out(search):
    """The squares of these values are infinite."""
    assert [one.loss for one in references(search(scale=1e200), jobs=1)] == ["boosted trees"]


def test_they_stop(search):
    run = search()
    calls = []
    assert list(references(run, lambda: True)) == []
    outer = references(run, lambda: len(calls) > 0, 1)
    assert next(outer).loss == "logistic regression"
    calls.append(1)
    assert list(outer) == []
