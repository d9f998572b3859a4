"""What is trained is what is reported: Δ = best − metric for every loss that has a metric, the best being 1 where the
metric of the perfect ranking is."""

import numpy as np
import pytest

from apsvm.losses import LOSSES, make_loss
from apsvm.losses.base import LossOverRankings, RankingLoss
from apsvm.losses.graded import GradedLoss
from apsvm.metrics import parse_metric

#: Loss → the metric that it is the shortfall of. A newcomer in the registry is held to the one it names.
METRIC_OF = {
    "ap": "AP",
    "ndcg": "nDCG(exp)",
    "ndcg(linear)": "nDCG",
    "ndcg(exponential)": "nDCG(exp)",
    "mrr": "RR",
    "auc": "AUC",
    "rbp(0.8)": "RBP(0.8)",
    "rbp(0.3)": "RBP(0.3)",
    "ndcg@1": "nDCG(exp)@1",
    "ndcg@4": "nDCG(exp)@4",
    "p@4": "P@4",
    "f1": "F1",
    "f(0.5)": "F0.5",
    "f(2)": "F2",
    "set-p@4": "P@4",
    "set-r@4": "R@4",
    "prbep": "Rprec",
}
KNOWN = {LOSSES.spelled(name).form for name in METRIC_OF}
NEWCOMERS = {made.name: made.metric for made in (LOSSES[form]() for form in LOSSES if form not in KNOWN) if made.metric}
#: Losses that no metric here is the complement of, and why.
WITHOUT = {
    "ndcg-chakrabarti": "no metric has its discount; tests/losses has its definition",
    "zero-one": "the share of wrong labels says nothing of a ranking",
}
#: Metrics of which the perfect ranking's value is below 1, by nature or where there are fewer positives than k.
BELOW_1 = ("RBP(0.8)", "RBP(0.3)", "P@4", "R@4")
#: Graded losses by what they are called → the metric that reads the grades as they do.
GRADED = {
    "ndcg": "nDCG(exp)",
    "ndcg(exponential)": "nDCG(exp)",
    "ndcg(linear)": "nDCG",
    "ndcg@3": "nDCG(exp)@3",
    "ndcg@10": "nDCG(exp)@10",
}


def above_each_positive(in_order):
    """(n_pos,): negatives above each positive of a ranking given as relevance from the top."""
    return np.cumsum(~in_order)[in_order]


@pytest.mark.parametrize("form", LOSSES)
def test_every_loss_is_spoken_for(form):
    """A loss without a metric is a two-array one, whose Δ the tests of the oracles take from its arrays, or is here."""
    kind = LOSSES[form]
    assert (kind().metric is None) <= (form in WITHOUT or issubclass(kind, RankingLoss))
    assert not (kind().metric and form in WITHOUT)
    if issubclass(kind, GradedLoss) and form not in WITHOUT:
        assert form in {LOSSES.spelled(name).form for name in GRADED}


@pytest.mark.parametrize("name", METRIC_OF | GRADED)
def test_losses_name_their_metrics(name):
    assert make_loss(name).metric == (METRIC_OF | GRADED)[name]


@pytest.mark.parametrize("name", METRIC_OF | NEWCOMERS)
def test_loss_is_the_best_metric_less_the_metric(name, rng):
    loss = make_loss(name)
    metric = parse_metric(loss.metric)
    losses = set()
    for _ in range(200):
        n_pos, n_neg = (int(size) for size in rng.integers(1, 12, size=2))
        if n_pos + n_neg < 4:  # labellings with 4 positive labels need 4 rows
            continue
        scores = rng.permutation(n_pos + n_neg) - rng.integers(0, n_pos + n_neg) + 0.5
        relevant = np.arange(n_pos + n_neg) < n_pos
        in_order = relevant[np.argsort(-scores)]
        perfect = metric(relevant - 0.5, relevant)
        if name in METRIC_OF and metric.name not in BELOW_1:
            assert perfect == pytest.approx(1.0, abs=1e-15)
        if isinstance(loss, LossOverRankings):
            delta = loss.of_ranking(above_each_positive(in_order), n_neg)
        else:
            labelled = {"set-p@4": 4, "set-r@4": 4, "prbep": n_pos}.get(name, int((scores > 0).sum()))
            hits = int(in_order[:labelled].sum())
            delta = loss.of_labelling(hits, labelled - hits, n_pos, n_neg)
        assert delta == pytest.approx(perfect - metric(scores, relevant), abs=1e-12)
        losses.add(round(delta, 12))
    assert len(losses) > (1 if name == "ndcg@1" else 4)


@pytest.mark.parametrize("name", GRADED)
def test_graded_loss_is_one_minus_the_graded_metric(name, rng):
    metric, loss = parse_metric(GRADED[name]), make_loss(name)
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
    assert len(losses) > 20
