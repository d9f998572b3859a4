"""WARP's estimator: the same training as the command's, its score, its parameters."""

from __future__ import annotations

import numpy as np
import pytest
from over import over
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score, roc_auc_score

from apsvm import RankNCG, WARPRanker


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
