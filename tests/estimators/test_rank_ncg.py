"""RankNCG's estimator: the same training as the command's, its score, its parameters."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from over import over
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold

import apsvm
from apsvm import RankNCG, load_model
from apsvm.cli import run


def statistic(scores, y, qid=None, edges=None):
    """By all pairs."""
    values = []
    qid = np.zeros(y.size) if qid is None else qid
    for query in np.unique(qid):
        s, own = scores[qid == query], y[qid == query]
        ordered = own[:, None] > own
        if edges is not None:
            ordered = np.any([(own[:, None] == high) & (own == low) for low, high in edges], axis=0)
        if ordered.any():
            ahead = (s[:, None] - s)[ordered]
            values.append(np.mean((ahead > 0) + 0.5 * (ahead == 0)))
    return np.mean(values)


def test_neither_classifier_nor_regressor():
    assert not is_classifier(RankNCG())
    assert not is_regressor(RankNCG())


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ([], {}),
        (["--graph", "adjacent", "-l", "0.1", "--optimizer", "prcg"],
         {"graph": "adjacent", "alpha": 0.1, "optimizer": "prcg"}),
        (["--objective", "erfc", "--summation", "fourier", "--normalize", "none"],
         {"objective": "erfc", "summation": "fourier", "normalize": "none"}),
        (["--classes", "3", "--graph", "adjacent"], {"n_classes": 3, "graph": "adjacent"}),
    ],
)  # fmt: skip
def test_as_the_command(options, parameters, tmp_path, data):
    file, path = str(tmp_path / "rows.svm"), str(tmp_path / "model")
    dump_svmlight_file(data.X, data.y, file, zero_based=False, query_id=data.qid)
    assert run(["train", "-q", "--threads", "1", "--loss", "wmw", *options, file, path]) == 0
    theirs = load_model(path)
    X = apsvm.read_svmlight(file).X
    model = RankNCG(**parameters).fit(X, data.y, qid=data.qid)
    np.testing.assert_array_equal(model.coef_, theirs.coef)
    assert model.n_iter_ == theirs.header.iterations > 1
    assert (model.n_pairs_, model.n_queries_) == (theirs.header.data.counts["pairs"], 7)
    mine = model.to_model()
    for field in ("family", "loss", "metric", "labels", "settings", "gradient", "details", "state"):
        assert getattr(mine.header, field) == getattr(theirs.header, field), field
    for source in (mine, theirs):
        back = RankNCG.from_model(source)
        np.testing.assert_array_equal(back.predict(X), model.predict(X))
        assert back.score(X, data.y, qid=data.qid) == model.score(X, data.y, qid=data.qid)
        assert back.objective_ == model.objective_
        again = back.fit(X, data.y, qid=data.qid)
        np.testing.assert_array_equal(again.coef_, model.coef_)


@pytest.mark.parametrize("edges", [None, [(0, 3), (1, 2)], [(9, 3), (0, 1)]], ids=str)
def test_score_is_the_share_of_ordered_pairs(edges, data):
    graph = "full" if edges is None else edges
    model = RankNCG(graph=graph, alpha=1.0).fit(data.X, data.y, qid=data.qid)
    judge = statistic(model.predict(data.X), data.y, data.qid, edges)
    assert model.score(data.X, data.y, qid=data.qid) == pytest.approx(judge)
    one_list = np.zeros(data.y.size)
    pooled = model.score(data.X, data.y, qid=one_list)
    assert pooled == pytest.approx(statistic(model.predict(data.X), data.y, None, edges))
    assert 0.6 < judge < 1
    back = RankNCG.from_model(model.to_model())
    assert back.score(data.X, data.y, qid=one_list) == pooled
    assert back.get_params()["graph"] == graph


def test_cut_targets_are_scored_where_they_were_cut(data, rng):
    y = data.X @ rng.normal(size=6) + rng.normal(size=data.y.size)
    model = RankNCG(n_classes=4).fit(data.X, y)
    assert model.classes_.tolist() == [1, 2, 3, 4]
    others = y[:100] + 1.0
    judge = statistic(model.predict(data.X[:100]), np.searchsorted(model.cuts_, others, side="right"))
    assert model.score(data.X[:100], others) == pytest.approx(judge)


def test_bipartite_is_all_others_against_the_lowest(data):
    model = RankNCG(graph="bipartite").fit(data.X, data.y - 2)
    judge = RankNCG().fit(data.X, data.y > 0)
    np.testing.assert_allclose(model.coef_, judge.coef_, rtol=1e-6)
    assert model.score(data.X, data.y - 2) == pytest.approx(statistic(model.predict(data.X), data.y > 0))


def test_in_a_grid_search(data):
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(RankNCG(), {"alpha": [1e-3, 1e3], "graph": ["full", [(0, 3)]]}, cv=GroupKFold(3))
        search.fit(data.X, data.y, qid=data.qid, groups=data.qid)
    assert search.best_estimator_.n_queries_ > 5  # one has no row of the classes 0 or 3
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0
    back = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(back.predict(data.X), search.predict(data.X))


def test_stopped_early_and_warm_start(data):
    with pytest.warns(ConvergenceWarning, match=r"iteration limit.*gradient .* asked for"):
        RankNCG(max_iter=1, alpha=1e-6).fit(data.X, data.y)
    model = RankNCG(warm_start=True).fit(data.X, data.y)
    first = model.n_iter_
    assert model.fit(data.X, data.y).n_iter_ < first
    with pytest.raises(ValueError, match="of 6 features, X has 5"):
        model.fit(data.X[:, :5], data.y)
    assert not hasattr(clone(model), "coef_")


@over(
    ("parameters", "message"),
    [
        ({"alpha": -1}, "alpha"),
        ({"tol": np.nan}, "tol"),
        ({"accuracy": 0.0}, "accuracy"),
        ({"max_iter": 0}, "max_iter"),
        ({"n_classes": 1}, "n_classes"),
        ({"objective": "hope"}, "objective is one of logistic, erfc, found 'hope'"),
        ({"summation": "hope"}, "summation is one of .*, found 'hope'"),
        ({"summation": "fourier"}, "summation='fourier' is a series of erfc: it needs objective='erfc'"),
        ({"normalize": "hope"}, "normalize is one of .*, found 'hope'"),
        ({"optimizer": "hope"}, "optimizer is one of .*, found 'hope'"),
        ({"cut": "hope"}, "cut is one of .*, found 'hope'"),
        ({"graph": "hope"}, "unknown graph 'hope': choose from full"),
        ({"graph": [(1, 1)]}, "preferred to itself"),
        ({"graph": [(7, 8)]}, "no query"),
    ],
)
def test_parameters_that_do_not_fit(parameters, message, data):
    with pytest.raises(ValueError, match=message):
        RankNCG(**parameters).fit(data.X, data.y)


def test_a_cycle_is_remarked_on(data, caplog):
    """A remark of the trainer's on rows that it can train on is a warning of the logger."""
    RankNCG().fit(data.X, data.y)
    assert not caplog.records
    RankNCG(graph=[(0, 1), (1, 2), (2, 0)]).fit(data.X, data.y)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("apsvm", "WARNING")
    assert record.message == "RankNCG: edges: the preferences 0 < 1 < 2 < 0 are a cycle: no ranking has them all"


def test_more_classes_than_a_header_lists(data, rng):
    y = rng.permutation(np.arange(data.y.size) // 2)
    model = RankNCG(max_iter=50, tol=0.1).fit(data.X, y)
    np.testing.assert_array_equal(model.classes_, np.arange(120))
    np.testing.assert_array_equal(RankNCG.from_model(model.to_model()).classes_, np.arange(100))


def test_a_model_of_another_trainer_is_refused(data):
    model = apsvm.APSVMRanker().fit(data.X, data.y).to_model()
    with pytest.raises(ValueError, match="loss 'ndcg' is none of RankNCG's, whose losses are: wmw"):
        RankNCG.from_model(model)


@over("grouped", [False, True])
def test_weights_of_rows(data, grouped):
    """A row of weight k is k rows, and only the proportions count."""
    rng, qid = np.random.default_rng(0), data.qid if grouped else None
    weights = rng.integers(0, 4, data.y.size)
    copies = np.repeat(np.arange(data.y.size), weights)
    often = RankNCG(scale="none").fit(data.X[copies], data.y[copies], qid=None if qid is None else qid[copies])
    whole = RankNCG(scale="none").fit(data.X, data.y, qid=qid, sample_weight=weights)
    halves = RankNCG(scale="none").fit(data.X, data.y, qid=qid, sample_weight=weights / 2)
    np.testing.assert_array_equal(whole.coef_, often.coef_)
    assert halves.objective_ == pytest.approx(often.objective_, rel=1e-8)
    np.testing.assert_allclose(halves.coef_, often.coef_, rtol=0, atol=1e-4 * abs(often.coef_).max())
    assert whole.score(data.X, data.y, qid, weights) == pytest.approx(
        often.score(data.X[copies], data.y[copies], None if qid is None else qid[copies])
    )
    with pytest.raises(ValueError, match="score counts whole rows"):
        halves.score(data.X, data.y, qid, weights / 2)
