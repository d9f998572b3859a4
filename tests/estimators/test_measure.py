"""``score`` is the parameter ``metric``, whatever loss was trained on: against scikit-learn, by query, and weighted."""

from __future__ import annotations

import numpy as np
import pytest
from over import over
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    make_scorer,
    ndcg_score,
    precision_score,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV, cross_val_score

from apsvm import APSVMClassifier, APSVMRanker, RankNCG, WARPRanker
from apsvm.losses import LOSSES
from apsvm.metrics import parse_metric
from apsvm.metrics.evaluate import evaluate


@over("form", LOSSES)
def test_every_loss_names_a_known_metric_or_none(form):
    name = LOSSES[form]().metric
    assert name is None or parse_metric(name).name == name


@over(
    ("metric", "judge"),
    [
        ("AP", average_precision_score),
        ("AUC", roc_auc_score),
        ("F1", lambda y, s: f1_score(y, s > 0)),
        ("accuracy", lambda y, s: accuracy_score(y, s > 0)),
        ("precision", lambda y, s: precision_score(y, s > 0)),
        ("nDCG", lambda y, s: ndcg_score([y], [s])),
        ("P@40", lambda y, s: y[np.argsort(-s)][:40].mean()),
    ],
)
def test_a_classifier_is_scored_by_its_metric(metric, judge, data):
    for loss in ("auc", "zero-one", "ndcg-chakrabarti"):
        model = APSVMClassifier(loss, C=1000, bound="auto" if loss == "zero-one" else "hinge", metric=metric)
        model.fit(data.X, data.relevant)
        found = model.score(data.X, data.relevant)
        assert found == pytest.approx(judge(data.relevant, model.decision_function(data.X)))
        assert 0.3 < found < 1


def test_a_search_compares_losses_by_one_metric(data):
    grid = {"loss": ["ap", "auc", "zero-one"]}
    own, judge = (
        GridSearchCV(APSVMClassifier(C=10, bound="hinge"), grid, cv=3, scoring=scoring).fit(data.X, data.relevant)
        for scoring in (None, "average_precision")
    )
    np.testing.assert_allclose(own.cv_results_["mean_test_score"], judge.cv_results_["mean_test_score"])


def test_a_ranker_is_scored_by_grades_whatever_its_loss(data):
    for model in (
        APSVMRanker("ap", bound="hinge"),
        APSVMRanker(bound="hinge"),
        RankNCG(metric="nDCG(exp)"),
        WARPRanker(),
    ):
        model.fit(data.X, data.y, data.qid)
        scores = model.predict(data.X)
        for metric, relevant_from in (("nDCG(exp)", np.inf), ("nDCG@3", np.inf), ("RR", 1)):
            judge = evaluate([metric], scores, data.y.astype(float), data.qid, relevant_from=relevant_from)
            found = model.set_params(metric=metric).score(data.X, data.y, data.qid)
            assert found == pytest.approx(judge.values[metric])


def test_words_as_labels(data):
    """scikit-learn's scorers are told which word is positive."""
    words = np.where(data.relevant, "spam", "ham")
    model = APSVMClassifier(C=10, bound="hinge")
    told = make_scorer(average_precision_score, response_method="decision_function", pos_label="spam")
    judge = cross_val_score(model, data.X, data.relevant, cv=3, scoring="average_precision")
    np.testing.assert_allclose(cross_val_score(model, data.X, words, cv=3, scoring=told), judge)
    np.testing.assert_allclose(cross_val_score(model, data.X, words, cv=3), judge)


def test_weights_of_queries_and_copies_of_rows(data, rng):
    weights = rng.random(7)
    model = APSVMClassifier(C=10, bound="hinge").fit(data.X, data.relevant, qid=data.qid)
    each = evaluate(["AP"], model.decision_function(data.X), data.relevant, data.qid).in_group["AP"]
    found = model.score(data.X, data.relevant, data.qid, weights[data.qid])
    assert found == pytest.approx(np.average(each, weights=weights))
    copies = rng.integers(0, 3, size=data.y.size)
    one_list = np.zeros(data.y.size)
    found = model.set_params(metric="P@10").score(data.X, data.relevant, one_list[: data.y.size])
    assert 0 < found <= 1
    alone = APSVMClassifier(C=10, bound="hinge").fit(data.X, data.relevant)
    judge = average_precision_score(data.relevant, alone.decision_function(data.X), sample_weight=copies)
    assert alone.score(data.X, data.relevant, sample_weight=copies) == pytest.approx(judge)
    with pytest.raises(ValueError, match="score counts whole rows"):
        alone.score(data.X, data.relevant, sample_weight=copies / 2)


def test_undefined_scores_are_value_errors(data):
    model = APSVMClassifier(bound="hinge").fit(data.X, data.relevant, qid=data.qid)
    with pytest.raises(ValueError, match="undefined"):
        APSVMClassifier(bound="hinge").fit(data.X, data.relevant).score(data.X, np.zeros(data.y.size, dtype=bool))
    with pytest.raises(ValueError, match="nothing to evaluate"):
        model.score(data.X, data.relevant, qid=np.arange(data.y.size))
    with pytest.raises(ValueError, match="found 7"):
        APSVMClassifier(bound="hinge").fit(data.X, data.relevant.astype(int)).score(data.X, np.full(data.y.size, 7))
    only = (data.qid == 0).astype(float)
    with pytest.raises(ValueError, match="weights of zero"):
        model.score(data.X, data.relevant & (data.qid != 0), qid=data.qid, sample_weight=only)
    with pytest.raises(ValueError, match="unknown metric 'hope'"):
        model.set_params(metric="hope").score(data.X, data.relevant, data.qid)


def test_values_of_two_types_are_named(data):
    mixed = np.where(data.relevant, "1", data.y.astype(object))
    for fit in (
        lambda: APSVMClassifier().fit(data.X, mixed),
        lambda: APSVMClassifier().fit(data.X, data.relevant, qid=mixed),
    ):
        with pytest.raises(ValueError, match=r"has values of the types int and str"):
            fit()
