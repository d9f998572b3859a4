"""Losses agree with metrics: Δ = best − metric for every loss with a metric, the best being 1 where the
metric of the perfect ranking is."""

import numpy as np
import pytest
from instances import LOSS_NAMES, form_of
from over import over

from apsvm.losses import LOSSES, make_loss
from apsvm.losses.base import LossOverRankings, RankingLoss
from apsvm.losses.graded import GradedLoss
from apsvm.metrics import parse_metric

#: Form of a loss → the metric that it is the shortfall of, at the loss's parameter.
METRIC_OF = {
    "ap": "AP",
    "ndcg": "nDCG(exp)",
    "mrr": "RR",
    "auc": "AUC",
    "pauc(beta)": "pAUC({})",
    "rbp(rho)": "RBP({})",
    "ndcg@k": "nDCG(exp)@{}",
    "p@k": "P@{}",
    "f1": "F1",
    "f(beta)": "F{:g}",
    "set-p@k": "P@{}",
    "set-r@k": "R@{}",
    "prbep": "Rprec",
}
GAINS = {"linear": "nDCG", "exponential": "nDCG(exp)"}
#: Losses that no metric here is the complement of, and why.
WITHOUT = {
    "ndcg-chakrabarti": "no metric has its discount; tests/losses has its definition",
    "zero-one": "the share of wrong labels says nothing of a ranking",
}
#: Metrics of which the perfect ranking's value is below 1, by nature or where there are fewer positives than k.
BELOW_1 = ("RBP", "P@", "R@")


def expected_metric(name):
    """By the table above; of a newcomer what it says itself."""
    form, text = LOSSES.spelled(name)
    if form == "ndcg(gain)":
        return GAINS[text]
    if form not in METRIC_OF:
        return make_loss(name).metric
    return METRIC_OF[form].format(text if text is None else make_loss(name).parameter(text))


MEASURED = [name for name in LOSS_NAMES if make_loss(name).metric]
GRADED = [name for name in MEASURED if isinstance(make_loss(name), GradedLoss)]


def above_each_positive(in_order):
    """(n_pos,): negatives above each positive of a ranking given as relevance from the top."""
    return np.cumsum(~in_order)[in_order]


@over("name", LOSS_NAMES)
def test_every_loss_is_spoken_for(name):
    """A loss without a metric is a two-array one, whose Δ the tests of the oracles take from its arrays, or is here."""
    form, loss = form_of(name), make_loss(name)
    assert (loss.metric is None) <= (form in WITHOUT or isinstance(loss, RankingLoss))
    assert not (loss.metric and form in WITHOUT)
    assert loss.metric == (None if form in WITHOUT else expected_metric(name))


@over("name", MEASURED)
def test_loss_is_the_best_metric_less_the_metric(name, rng):
    loss = make_loss(name)
    metric = parse_metric(loss.metric)
    losses = set()
    for most in rng.permutation([12] * 190 + [150] * 10).tolist():
        n_pos, n_neg = (int(size) for size in rng.integers(1, most, size=2))
        scores = rng.permutation(n_pos + n_neg) - rng.integers(0, n_pos + n_neg) + 0.5
        relevant = np.arange(n_pos + n_neg) < n_pos
        in_order = relevant[np.argsort(-scores)]
        perfect = metric(relevant - 0.5, relevant)
        if form_of(name) in METRIC_OF and not metric.name.startswith(BELOW_1):
            assert perfect == pytest.approx(1.0, abs=1e-15)
        if isinstance(loss, LossOverRankings):
            delta = loss.of_ranking(above_each_positive(in_order), n_neg)
        else:
            labelled = n_pos if name == "prbep" else getattr(loss, "k", int((scores > 0).sum()))
            labelled = min(labelled, scores.size)
            hits = int(in_order[:labelled].sum())
            delta = loss.of_labelling(hits, labelled - hits, n_pos, n_neg)
        assert delta == pytest.approx(perfect - metric(scores, relevant), abs=1e-12)
        losses.add(round(delta, 12))
    assert len(losses) > 1


@pytest.mark.parametrize("name", GRADED)
def test_graded_loss_is_one_minus_the_graded_metric(name, rng):
    metric, loss = parse_metric(make_loss(name).metric), make_loss(name)
    losses = set()
    for _ in range(100):
        n = int(rng.integers(2, 20))
        grades = rng.integers(0, 5, n).astype(float)
        grades[:2] = 0, rng.integers(1, 5)
        scores = rng.permutation(n).astype(float)
        delta = 0.0
        for threshold, weight in loss.levels(grades):
            in_order = (grades >= threshold)[np.argsort(-scores)]
            delta += weight * loss.of_ranking(above_each_positive(in_order), int((~in_order).sum()))
        assert delta == pytest.approx(1.0 - metric(scores, grades, relevant_from=1), abs=1e-12)
        losses.add(round(delta, 12))
    assert len(losses) > (3 if name.endswith("@1") else 20)
