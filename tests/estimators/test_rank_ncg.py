"""RankNCG's estimator: the same training as the command's, its score, its parameters."""

from __future__ import annotations

import numpy as np
import pytest
from over import over
from sklearn.exceptions import ConvergenceWarning

from apsvm import RankNCG


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


@pytest.mark.parametrize("edges", [None, [(0, 3), (1, 2)], [(9, 3), (0, 1)]], ids=str)
def test_score_is_the_share_of_ordered_pairs(edges, data):
    graph = "full" if edges is None else edges
    metric = "WMW" if edges is None else f"WMW({','.join(f'{low}<{high}' for low, high in edges)})"
    model = RankNCG(graph=graph, alpha=1.0, metric=metric).fit(data.X, data.y, qid=data.qid)
    judge = statistic(model.predict(data.X), data.y, data.qid, edges)
    assert model.score(data.X, data.y, qid=data.qid) == pytest.approx(judge)
    one_list = np.zeros(data.y.size)
    pooled = model.score(data.X, data.y, qid=one_list)
    assert pooled == pytest.approx(statistic(model.predict(data.X), data.y, None, edges))
    assert 0.6 < judge < 1
    back = RankNCG.from_model(model.to_model()).set_params(metric=metric)
    assert back.score(data.X, data.y, qid=one_list) == pooled
    assert back.get_params()["graph"] == graph


def test_stopped_early(data):
    with pytest.warns(ConvergenceWarning, match=r"iteration limit.*gradient"):
        RankNCG(max_iter=1, alpha=1e-6).fit(data.X, data.y)


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
