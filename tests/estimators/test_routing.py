"""Queries and weights of rows as scikit-learn hands them on: what they mean, and that none is forgotten."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from apsvm import APSVMClassifier, APSVMRanker

#: For what is about the hinge: by default the bound is chosen.
Classifier = partial(APSVMClassifier, bound="hinge")
Ranker = partial(APSVMRanker, bound="hinge")


def test_weights_of_queries(data, rng):
    """A query of weight 2 is as good as the query twice; weight 0, as none. Scalings know no weights."""
    weights = np.array([1, 0, 2, 1, 3, 1, 2])
    model = Ranker("ap", C=10, epsilon=1e-7, relevant_from=2, scale="none")
    model.fit(data.X, data.y, qid=data.qid, sample_weight=weights[data.qid] / 4)
    assert model.n_queries_ == 6
    copies = [(query, copy) for query in range(7) for copy in range(weights[query])]
    rows = [np.flatnonzero(data.qid == query) for query, _ in copies]
    ids = np.repeat([f"{query} again {copy}" for query, copy in copies], [own.size for own in rows])
    rows = np.concatenate(rows)
    judge = clone(model).fit(data.X[rows], data.y[rows], qid=ids)
    assert judge.n_queries_ == weights.sum()
    assert model.certificate_.primal == pytest.approx(judge.certificate_.primal, rel=1e-6)


def test_weights_that_do_not_fit(data):
    n = data.y.size
    fit = Classifier().fit
    with pytest.raises(ValueError, match=r"expected whole numbers, found 0.5 in row 3"):
        fit(data.X, data.relevant, sample_weight=np.where(np.arange(n) == 3, 0.5, 1))
    with pytest.raises(ValueError, match="rows of a query share sample_weight"):
        fit(data.X, data.relevant, qid=data.qid, sample_weight=1.0 + (np.arange(n) == 5))
    with pytest.raises(ValueError, match="zero"):
        fit(data.X, data.relevant, sample_weight=np.zeros(n))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        fit(data.X, data.relevant, sample_weight=np.full(n, -1.0))
    with pytest.raises(ValueError, match="copies of rows"):
        fit(data.X, data.relevant, sample_weight=np.full(n, 1e9))
    with pytest.raises(ValueError, match="one class only"):
        fit(data.X, data.relevant, sample_weight=data.relevant)


# Labels and queries.


@pytest.mark.slow
def test_queries_are_routed(data):
    """A grid over C with folds of whole queries, by hand and by scikit-learn, in a pipeline."""
    grid = [0.1, 10.0]
    by_hand = np.array(
        [
            [
                Ranker(C=C)
                .fit(StandardScaler().fit_transform(data.X[fit]), data.y[fit], qid=data.qid[fit])
                .score(StandardScaler().fit(data.X[fit]).transform(data.X[rest]), data.y[rest], qid=data.qid[rest])
                for fit, rest in GroupKFold(3).split(data.X, data.y, data.qid)
            ]
            for C in grid
        ]
    )
    pooled = Ranker(C=10).fit(data.X, data.y).score(data.X, data.y)
    with sklearn.config_context(enable_metadata_routing=True):
        for ranker in (Ranker(), Ranker().set_fit_request(qid=True).set_score_request(qid=True)):
            search = GridSearchCV(
                make_pipeline(StandardScaler(), ranker), {"apsvmranker__C": grid}, cv=GroupKFold(3)
            ).fit(data.X, data.y, qid=data.qid, groups=data.qid)
            found = np.array([search.cv_results_[f"split{k}_test_score"] for k in range(3)]).T
            np.testing.assert_allclose(found, by_hand, rtol=1e-12)
            assert search.best_estimator_[-1].n_queries_ == 7
            assert search.score(data.X, data.y, qid=data.qid) != pooled
        # Unless one says otherwise.
        deaf = Ranker().set_fit_request(qid=False).set_score_request(qid=False)
        result = cross_validate(
            deaf, data.X, data.y, cv=GroupKFold(3), params={"groups": data.qid}, return_estimator=True
        )
        assert [model.n_queries_ for model in result["estimator"]] == [1, 1, 1]
    # Without routing, a pipeline takes it by the step's name.
    plain = make_pipeline(StandardScaler(), Ranker()).fit(data.X, data.y, apsvmranker__qid=data.qid)
    assert plain[-1].n_queries_ == 7


def test_weights_are_routed(data):
    """To fits and scores, unless one says otherwise."""
    weights = np.where(data.X[:, 2] > 0, 3, 1)
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler(with_mean=False, with_std=False).set_fit_request(sample_weight=False)
        routed = make_pipeline(scaler, Classifier(C=10)).fit(data.X, data.relevant, sample_weight=weights)[-1]
        deaf = Classifier().set_fit_request(sample_weight=False)
        with pytest.raises(TypeError, match="not routed to any object"):
            make_pipeline(scaler, deaf).fit(data.X, data.relevant, sample_weight=weights)
        folds = GroupKFold(3)
        search = GridSearchCV(Ranker(C=10), {"epsilon": [1e-3]}, cv=folds, error_score="raise")
        search.fit(data.X, data.y, qid=data.qid, groups=data.qid, sample_weight=data.qid + 1.0)
    judge = Classifier(C=10).fit(data.X, data.relevant, sample_weight=weights)
    np.testing.assert_array_equal(routed.coef_, judge.coef_)
    by_hand = [
        Ranker(C=10)
        .fit(data.X[fit], data.y[fit], data.qid[fit], data.qid[fit] + 1.0)
        .score(data.X[rest], data.y[rest], data.qid[rest], data.qid[rest] + 1.0)
        for fit, rest in folds.split(data.X, data.y, data.qid)
    ]
    assert search.best_score_ == pytest.approx(np.mean(by_hand), rel=1e-12)


def test_queries_that_are_not_routed(data):
    """By default scikit-learn hands qid to fit alone: nothing is scored as if all rows were one ranking."""
    search = GridSearchCV(Ranker("ndcg@10"), {"C": [1, 10]}, cv=GroupKFold(3))
    failed, not_finite = "Scoring failed", "test scores are non-finite"
    with pytest.warns(UserWarning, match=failed) as caught, pytest.warns(UserWarning, match=not_finite):
        search.fit(data.X, data.y, qid=data.qid, groups=data.qid)
    assert np.isnan(search.cv_results_["mean_test_score"]).all()
    said = [str(one.message) for one in caught]
    assert sum("enable_metadata_routing=True" in one and "pass qid here too" in one for one in said) == 6
    search.set_params(error_score="raise")
    with pytest.raises(ValueError, match=r"fitted with \d queries and is scored without qid"):
        search.fit(data.X, data.y, qid=data.qid, groups=data.qid)
