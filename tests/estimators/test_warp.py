"""WARP's estimator: the same training as the command's, its score, its parameters."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from over import over
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold

import apsvm
from apsvm import RankNCG, WARPRanker, load_model
from apsvm.cli import run


def test_neither_classifier_nor_regressor():
    assert not is_classifier(WARPRanker())
    assert not is_regressor(WARPRanker())


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (["--preference"], {}),
        (["--relevant-from", "2", "--tau", "p@3", "--learning-rate", "0.1", "--l2", "0.01"],
         {"relevant_from": 2, "tau": "p@3", "learning_rate": 0.1, "l2": 0.01}),
        (["--preference", "--tau", "auc", "--rank-estimator", "exact"],
         {"tau": "auc", "rank_estimator": "exact"}),
    ],
)  # fmt: skip
def test_as_the_command(options, parameters, tmp_path, data):
    file, path = str(tmp_path / "rows.svm"), str(tmp_path / "model")
    dump_svmlight_file(data.X, data.y, file, zero_based=False, query_id=data.qid)
    command = ["train", "-q", "--threads", "1", "--loss", "warp", "--seed", "5", "--epochs", "3"]
    assert run([*command, *options, file, path]) == 0
    theirs = load_model(path)
    X = apsvm.read_svmlight(file, dense=True).X
    model = WARPRanker(random_state=5, epochs=3, **parameters).fit(X, data.y, qid=data.qid)
    np.testing.assert_array_equal(model.coef_, theirs.coef)
    assert np.abs(model.coef_).max() > 0.1
    assert (model.n_iter_, model.n_queries_) == (3, 7)
    mine = model.to_model()
    for field in ("family", "loss", "metric", "labels", "settings", "epochs", "seed", "state"):
        assert getattr(mine.header, field) == getattr(theirs.header, field), field
    for source in (mine, theirs):
        back = WARPRanker.from_model(source)
        np.testing.assert_array_equal(back.predict(X), model.predict(X))
        assert back.score(X, data.y, qid=data.qid) == model.score(X, data.y, qid=data.qid)
        again = back.set_params(epochs=3).fit(X, data.y, qid=data.qid)
        np.testing.assert_array_equal(again.coef_, model.coef_)


def test_seeds(data):
    def weights(seed):
        return WARPRanker(epochs=1, random_state=seed).fit(data.X, data.y).coef_

    np.testing.assert_array_equal(weights(1), weights(1))
    np.testing.assert_array_equal(weights(np.random.RandomState(1)), weights(np.random.RandomState(1)))
    assert np.abs(weights(1) - weights(2)).max() > 0


def test_score_is_what_tau_stresses(data):
    made = [("harmonic", average_precision_score), ("auc", roc_auc_score)]
    made.append(("p@5", lambda relevant, scores: relevant[np.argsort(-scores)][:5].mean()))
    for tau, judge in made:
        for grades, relevant_from in ((data.y, 2), (data.relevant - 1.0, None)):
            model = WARPRanker(tau=tau, relevant_from=relevant_from, random_state=0, epochs=2).fit(data.X, grades)
            rows = slice(0, 60)
            found = model.score(data.X[rows], grades[rows])
            assert found == pytest.approx(judge(data.relevant[rows], model.predict(data.X[rows])))
    graded = WARPRanker(tau="auc", random_state=0, epochs=2).fit(data.X, data.y)
    judge = RankNCG().fit(data.X, data.y)
    judge.coef_ = graded.coef_
    assert graded.score(data.X, data.y, qid=data.qid) == pytest.approx(judge.score(data.X, data.y, qid=data.qid))
    assert 0.6 < graded.score(data.X, data.y) < 1


def test_in_a_grid_search(data):
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(WARPRanker(random_state=0), {"l2": [0.0, 10.0]}, cv=GroupKFold(3))
        search.fit(data.X, data.y, qid=data.qid, groups=data.qid)
    assert search.best_estimator_.n_queries_ == 7
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0
    back = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(back.predict(data.X), search.predict(data.X))


def test_out_of_time_and_warm_start(data):
    with pytest.warns(ConvergenceWarning, match="time limit"):
        WARPRanker(time_limit=0).fit(data.X, data.y)
    model = WARPRanker(random_state=0, epochs=1, warm_start=True).fit(data.X, data.y)
    first = model.coef_.copy()
    model.set_params(learning_rate=1e-9).fit(data.X, data.y)
    np.testing.assert_allclose(model.coef_, first, atol=1e-5)
    with pytest.raises(ValueError, match="of 6 features, X has 5"):
        model.fit(data.X[:, :5], data.y)


@over(
    ("parameters", "message"),
    [
        ({"tau": "hope"}, "unknown tau 'hope'"),
        ({"rank_estimator": "hope"}, "rank_estimator is one of plugin, .*, found 'hope'"),
        ({"rule": "hope"}, "rule is one of .*, found 'hope'"),
        ({"tau": "auc", "rank_estimator": "log-unbiased"}, "log-unbiased"),
        ({"max_trials": 0}, "max_trials"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"l2": -1}, "l2"),
        ({"epochs": 0}, "epochs"),
        ({"relevant_from": np.inf}, "relevant_from"),
        ({"relevant_from": 9}, "of grades of 9 and above, and others; found 0 of 240 relevant"),
    ],
)
def test_parameters_that_do_not_fit(parameters, message, data):
    with pytest.raises(ValueError, match=message):
        WARPRanker(**parameters).fit(data.X, data.y)


def test_a_model_of_another_trainer_is_refused(data):
    with pytest.raises(ValueError, match="loss 'wmw' is none of WARPRanker's"):
        WARPRanker.from_model(RankNCG().fit(data.X, data.y).to_model())
