"""``score`` is the metric trained for: against scikit-learn, by query, weighted, and for losses without a metric."""

from __future__ import annotations

import numpy as np
import pytest
from over import over
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, ndcg_score, roc_auc_score

from apsvm import APSVMClassifier
from apsvm.losses import LOSSES, make_loss
from apsvm.losses.average_precision import AveragePrecisionLoss
from apsvm.metrics import parse_metric


class HalfTop:
    """D = 1, 1/2, 0, 0, …; u = 1 for the first positive."""

    def weights(self, n_pos):
        return np.arange(n_pos) == 0

    def discount(self, n):
        return np.maximum(0.0, 1.0 - 0.5 * np.arange(n))


@over("form", LOSSES)
def test_every_loss_names_a_known_metric_or_none(form):
    name = LOSSES[form]().metric
    assert name is None or parse_metric(name).name == name


def test_a_loss_of_ones_own_may_name_its_metric(data):
    class Own(AveragePrecisionLoss):
        metric = "P@5"

    model = APSVMClassifier(Own, C=10).fit(data.X, data.relevant)
    top = data.relevant[np.argsort(-model.decision_function(data.X))][:5]
    assert 0.0 < model.score(data.X, data.relevant) == pytest.approx(top.mean())


@pytest.mark.parametrize(
    ("loss", "judge"),
    [
        ("ap", lambda y, s: average_precision_score(y, s)),
        ("auc", lambda y, s: roc_auc_score(y, s)),
        ("f1", lambda y, s: f1_score(y, s > 0)),
        ("zero-one", lambda y, s: accuracy_score(y, s > 0)),
        ("ndcg", lambda y, s: ndcg_score([y], [s])),
        ("p@40", lambda y, s: y[np.argsort(-s)][:40].mean()),
    ],
)
def test_classifier(loss, judge, data):
    model = APSVMClassifier(loss, C=100).fit(data.X, data.relevant)
    assert model.score(data.X, data.relevant) == pytest.approx(judge(data.relevant, model.decision_function(data.X)))
    assert 0.3 < model.score(data.X, data.relevant) < 1


@pytest.mark.filterwarnings("ignore::apsvm.WeakRankerWarning")
@pytest.mark.parametrize("loss", ["ndcg-chakrabarti", HalfTop()])
def test_losses_without_a_metric_give_one_minus_the_loss(loss, rng):
    """By counting, ties in the worst order; queries without both are left out."""
    X = rng.integers(-1, 2, size=(60, 2)).astype(float)
    qid = rng.permutation(np.repeat(np.arange(6), 10))
    relevant = (rng.random(60) < 0.3) & (qid != 2)
    weights = rng.random(6)
    model = APSVMClassifier(loss, C=10).fit(X, relevant, qid=qid)
    scores, values, counted = model.decision_function(X), [], []
    made = make_loss(loss)
    ties = 0
    for query in range(6):
        mine, good = scores[qid == query], relevant[qid == query]
        if not good.any():
            continue
        above = np.sort([(mine[~good] >= score).sum() for score in mine[good]])
        ties += sum((mine[~good] == score).sum() for score in mine[good])
        values.append(1 - made.of_ranking(above, int((~good).sum())))
        counted.append(weights[query])
    assert ties > 0
    assert len(values) < 6
    assert model.score(X, relevant, qid=qid) == pytest.approx(np.mean(values))
    assert model.score(X, relevant, qid=qid, sample_weight=weights[qid]) == pytest.approx(
        np.average(values, weights=counted)
    )


def test_undefined_scores_are_value_errors(data):
    model = APSVMClassifier(bound="hinge").fit(data.X, data.relevant, qid=data.qid)
    with pytest.raises(ValueError, match="undefined"):
        APSVMClassifier(bound="hinge").fit(data.X, data.relevant).score(data.X, np.zeros(data.y.size, dtype=bool))
    with pytest.raises(ValueError, match="nothing to evaluate"):
        model.score(data.X, data.relevant, qid=np.arange(data.y.size))
    with pytest.raises(ValueError, match="found 7"):
        APSVMClassifier(bound="hinge").fit(data.X, data.relevant.astype(int)).score(data.X, np.full(data.y.size, 7))
    own = APSVMClassifier(HalfTop(), C=1e4).fit(data.X, data.relevant, qid=data.qid)
    with pytest.raises(ValueError, match="nothing to score"):
        own.score(data.X, data.relevant, qid=np.arange(data.y.size))
    only = (data.qid == 0).astype(float)
    relevant = data.relevant & (data.qid != 0)
    with pytest.raises(ValueError, match="no query that counts"):
        own.score(data.X, relevant, qid=data.qid, sample_weight=only)
