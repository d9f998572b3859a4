"""The portfolio as estimators, of few entries, so that a fit takes a moment."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.metrics import average_precision_score, ndcg_score
from sklearn.utils.estimator_checks import check_estimator

from apsvm import APSVMClassifierCV, APSVMRankerCV, LinearRanker, load_model
from apsvm.models.header import Header
from apsvm.selection import portfolio as module
from apsvm.selection.candidates import Entry
from apsvm.trainers.fitting import FeatureOptions

MAXABS = FeatureOptions(scale="maxabs")
LINEAR, PIECEWISE = (FeatureOptions(scale="standard", features=name) for name in ("linear", "piecewise"))


@pytest.fixture
def tried(monkeypatch):
    """tried(entry, …) makes them the portfolio; they get what is said of the labels of grades from the true one."""
    whole = module.portfolio

    def make(*entries):
        def few(*arguments):
            labels = {one.loss: one.labels for one in whole(*arguments)}
            return [Entry(one.loss, one.settings, one.features, labels.get(one.loss)) for one in entries]

        monkeypatch.setattr(module, "portfolio", few)

    return make


@pytest.fixture(autouse=True)
def few(tried):
    tried(Entry("ap", {"bound": "hinge"}, LINEAR), Entry("ap", {"bound": "hinge"}, PIECEWISE))


@pytest.fixture
def rows(rng):
    """X (200, 3), and which are relevant: those far from 0 in the first feature."""
    X = rng.normal(size=(200, 3))
    return X, np.abs(X[:, 0]) + 0.3 * rng.normal(size=200) > 1.3


def test_a_classifier_there_and_back(rows, tmp_path):
    X, y = rows
    names = np.where(y, "fraud", "ok")
    model = APSVMClassifierCV("AP", cv=3, pos_label="fraud").fit(X, names)
    assert model.classes_.tolist() == ["fraud", "ok"]
    assert model.pos_label_ == "fraud"
    assert model.feature_map_ is not None
    # The second of classes_ is what scikit-learn's decision_function is about; "fraud" is the first.
    assert model.score(X, names) == pytest.approx(average_precision_score(y, -model.decision_function(X)))
    assert model.score(X, names) > 0.8
    predicted = model.predict(X)
    assert np.mean(predicted == names) > 0.85
    model.to_model().save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.header.threshold.held_out == "3 folds of rows"
    assert np.array_equal(loaded.score(X) - loaded.header.threshold.value, -model.decision_function(X))
    again = APSVMClassifierCV.from_model(loaded)
    assert (again.metric, again.cv, again.pos_label) == ("AP", 3, "fraud")
    assert np.array_equal(again.predict(X), predicted)
    assert again.score(X, names) == model.score(X, names)
    assert again.best_score_ == model.best_score_
    assert again.certificates_ == model.certificates_
    assert [(name, one.reached) for name, one in model.certificates_.items()] == [("piecewise:4", True)]


def test_what_became_of_the_search(rows):
    X, y = rows
    model = APSVMClassifierCV(cv=3).fit(X, y)
    given_up = [one for one in model.cv_results_ if one["stage"] == "screening"]
    compared = [one for one in model.cv_results_ if one["stage"] == "final"]
    assert [one["entry"] for one in given_up] == ["ap, hinge, linear, standard"]
    assert {one["entry"] for one in compared} == {"ap, piecewise"}
    assert 0.0 <= max(one["mean"] for one in compared) - model.best_score_ < 0.1
    assert compared[0]["bound"] == "hinge"


def test_a_rare_class_has_fewer_folds(rows):
    X, y = rows
    few = np.concatenate((np.flatnonzero(y)[:4], np.flatnonzero(~y)))
    model = APSVMClassifierCV().fit(X[few], y[few])
    assert model.to_model().header.selection["folds"] == 4
    with pytest.raises(ValueError, match="positive rows, found 1"):
        APSVMClassifierCV().fit(X[few[3:]], y[few[3:]])


def test_a_ranker(data, tried):
    """Grades in queries: ndcg on all of them, ap on those above 0, judged by the metric's own reading."""
    tried(Entry("ap", {"bound": "hinge"}, LINEAR), Entry("ndcg", {"bound": "hinge"}, LINEAR))
    model = APSVMRankerCV("nDCG", cv=2).fit(data.X, data.y, qid=data.qid)
    scores = model.predict(data.X)
    by_query = [ndcg_score([data.y[data.qid == q]], [scores[data.qid == q]]) for q in np.unique(data.qid)]
    assert model.score(data.X, data.y, qid=data.qid) == pytest.approx(np.mean(by_query))
    assert {one["entry"].split(",")[0] for one in model.cv_results_} == {"ap", "ndcg"}
    with pytest.raises(ValueError, match="pass qid here too"):
        model.score(data.X, data.y)
    again = APSVMRankerCV.from_model(model.to_model())
    assert (again.metric, again.cv) == ("nDCG", 2)
    assert again.score(data.X, data.y, qid=data.qid) == model.score(data.X, data.y, qid=data.qid)
    with pytest.raises(ValueError, match=r"APSVMRanker takes this one$"):
        APSVMRankerCV.from_model(LinearRanker(np.ones(2), 0.0, Header(loss="ndcg")))


@pytest.mark.parametrize(("relevant_from", "lowest"), [(None, 1), (2, 2)])
def test_what_is_relevant_is_so_in_any_rows(relevant_from, lowest, data):
    """Also where the lowest grade there is is above 0."""
    model = APSVMRankerCV("AP", relevant_from=relevant_from, cv=2).fit(data.X, data.y, qid=data.qid)
    for which in (np.arange(data.y.size), np.flatnonzero(data.y != 0)):
        X, y, qid = data.X[which], data.y[which], data.qid[which]
        if (y >= lowest).all():
            with pytest.raises(ValueError, match="AP"):
                model.score(X, y, qid=qid)
            continue
        scores = model.predict(X)
        by_query = [average_precision_score(y[qid == q] >= lowest, scores[qid == q]) for q in np.unique(qid)]
        assert model.score(X, y, qid=qid) == pytest.approx(np.mean(by_query))


@pytest.mark.parametrize(
    ("metric", "message"), [("AP", "relevant rows, of grades above 0"), ("nDCG", "one grade only")]
)
def test_grades_all_alike(metric, message, data):
    with pytest.raises(ValueError, match=message):
        APSVMRankerCV(metric).fit(data.X, np.ones(data.y.size))


def test_a_winner_of_another_family(data, tried):
    tried(Entry("wmw", {}, LINEAR))
    model = APSVMRankerCV("AUC", cv=2).fit(data.X, data.y, qid=data.qid)
    assert model.to_model().header.loss == "wmw"
    again = APSVMRankerCV.from_model(model.to_model())
    assert np.array_equal(again.predict(data.X), model.predict(data.X))


@pytest.mark.parametrize("name", ["products", "nystroem"])
def test_a_map_whose_numbers_overflow_loses(name, rows, tried):
    X, y = rows
    tried(Entry("ap", {"bound": "hinge"}, FeatureOptions(scale="standard", features=name)), Entry("wmw", {}, MAXABS))
    model = APSVMClassifierCV(cv=2).fit(X * 1e200, y)
    assert {one["entry"] for one in model.cv_results_} == {"wmw, linear"}


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [APSVMClassifierCV(cv=2), APSVMRankerCV(cv=2)], ids=str)
@pytest.mark.filterwarnings("ignore")  # the checks try what warns
def test_check_estimator(estimator, tried, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # or a check is skipped
    tried(Entry("ap", {"bound": "hinge"}, LINEAR))
    done = check_estimator(estimator)
    assert {check["status"] for check in done} == {"passed"}
    assert len(done) >= (54 if is_classifier(estimator) else 40)
