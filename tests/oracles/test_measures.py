"""The oracles outside the two-array family, against O(PN) references."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from judge import (
    METRICS,
    chakrabarti_ndcg_of_order,
    hinge_by_counts,
    hinge_by_lattice,
    ndcg_at_of_order,
    partial_roc_area_of_order,
    precision_at_of_order,
)
from over import over

from apsvm import most_violated_ranking
from apsvm.losses import LOSSES, make_loss
from apsvm.losses.base import LossError, LossOverLabellings, LossOverRankings, RankingLoss
from apsvm.oracles import ORACLES, make_oracle, serving
from apsvm.oracles.layout import Queries

RANKINGS = ["ndcg@k", "ndcg-chakrabarti", "p@k", "pauc(beta)"]
LABELLINGS = ["f1", "f(beta)", "set-p@k", "set-r@k", "prbep"]


def test_the_lists_are_complete():
    kinds = {name: LOSSES[name] for name in LOSSES}
    assert {n for n, kind in kinds.items() if issubclass(kind, LossOverLabellings)} == set(LABELLINGS)
    beyond = {n for n, k in kinds.items() if issubclass(k, LossOverRankings) and not issubclass(k, RankingLoss)}
    assert beyond == set(RANKINGS)


def with_parameter(form, rng, n):
    """The loss at a parameter of interest for n rows, and its metric or its Δ from the definition."""
    k = int(rng.choice([1, 2, 3, 5, n - 1, n, n + 3, 10]))
    beta = float(rng.choice([0.25, 0.5, 2.0, 5.0]))
    rate = float(rng.choice([0.05, 0.2, 1 / 3, 0.5, 0.7, 1.0])) if rng.random() < 0.7 else 1.0 - rng.random()
    k = max(k, 1)
    f = lambda a, b, p, _, beta=1.0: 1 - (1 + beta**2) * a / ((1 + beta**2) * a + b + beta**2 * (p - a))  # noqa: E731
    return {
        "ndcg@k": lambda: (make_loss(f"ndcg@{k}"), partial(ndcg_at_of_order, k=k)),
        "ndcg-chakrabarti": lambda: (make_loss("ndcg-chakrabarti"), chakrabarti_ndcg_of_order),
        "p@k": lambda: (make_loss(f"p@{k}"), partial(precision_at_of_order, k=k)),
        "pauc(beta)": lambda: (make_loss(f"pauc({rate})"), partial(partial_roc_area_of_order, beta=rate)),
        "f1": lambda: (make_loss("f1"), f),
        "f(beta)": lambda: (make_loss(f"f({beta})"), partial(f, beta=beta)),
        "set-p@k": lambda: (make_loss(f"set-p@{k}"), lambda a, b, p, _: (min(p, k) - a) / k),
        "set-r@k": lambda: (make_loss(f"set-r@{k}"), lambda a, b, p, _: (min(p, k) - a) / p),
        "prbep": lambda: (make_loss("prbep"), lambda a, b, p, _: (p - a) / p),
    }[form]()


def number_of_labels(loss, relevant):
    if loss.name.startswith("f"):
        return None
    return min(getattr(loss, "k", int(relevant.sum())), relevant.size)


def find(loss, scores, relevant):
    """(violation, c) by the oracle that ``auto`` finds."""
    n_pos = int(relevant.sum())
    weights_pos, weights_neg = np.empty(n_pos), np.empty(scores.size - n_pos)
    oracle = make_oracle("auto", loss).bind(loss, n_pos, scores.size - n_pos)
    violation = oracle(scores[relevant], scores[~relevant], weights_pos, weights_neg)
    c = np.empty(scores.size)
    c[relevant], c[~relevant] = weights_pos, weights_neg
    return violation, c


def larger_query(rng):
    """Up to 40 + 60 rows; ties, offsets, heavy tails."""
    n_pos, n_neg = rng.integers(1, 40), rng.integers(1, 60)
    n = n_pos + n_neg
    relevant = rng.permutation(np.repeat([True, False], [n_pos, n_neg]))
    kinds = [
        lambda: rng.normal(size=n),
        lambda: rng.integers(0, 4, size=n) / 4.0,
        lambda: np.zeros(n),
        lambda: rng.standard_cauchy(size=n),
        lambda: 1e6 + rng.normal(size=n),
        lambda: 1e-9 * rng.normal(size=n),
        lambda: 1e9 * rng.normal(size=n),
        lambda: np.linspace(-1.0, 1.0, n),
    ]
    scores = kinds[rng.integers(len(kinds))]() * rng.choice([0.1, 1.0, 5.0])
    return scores + rng.choice([0.0, 0.5, 2.0]) * relevant, relevant


@pytest.mark.parametrize("form", RANKINGS)
def test_rankings_equal_the_slow_reference_on_larger_queries(form, rng):
    k_met = set()
    for _ in range(150):
        scores, relevant = larger_query(rng)
        loss, metric = with_parameter(form, rng, scores.size)
        unit = np.eye(scores.size, dtype=bool)
        if form == "ndcg-chakrabarti":
            gains = 1 / np.log2(np.maximum(np.arange(1, scores.size + 1), 2))
        elif form == "ndcg@k":
            gains = np.where(np.arange(scores.size) < loss.k, 1 / np.log2(np.arange(2, scores.size + 2)), 0.0)
        else:
            gains = np.array([metric(row) for row in unit])
        ideal = gains[: relevant.sum()].sum()
        if form != "p@k":
            gains, ideal = gains / ideal, 1.0
        gain = lambda a, b, gains=gains: gains[a + b - 1]  # noqa: E731
        if form == "pauc(beta)":
            beta, (n_neg, n_pos), ideal = loss.beta, np.bincount(relevant), 1.0
            gain = lambda a, b, most=beta * n_neg, n_pos=n_pos: (1.0 - min(b / most, 1.0)) / n_pos  # noqa: E731
        judge = hinge_by_lattice(scores, relevant, gain, ideal)
        size = 2 * np.abs(scores).max()
        found = most_violated_ranking(scores, relevant, loss=loss)
        assert found.value == pytest.approx(judge, rel=1e-10, abs=1e-12 + 1e-12 * size), loss.name
        k_met.add(getattr(loss, "k", getattr(loss, "beta", 0)))
    assert form == "ndcg-chakrabarti" or len(k_met) > 20


@pytest.mark.slow
@pytest.mark.parametrize("form", LABELLINGS)
def test_labellings_equal_the_slow_reference_on_larger_queries(form, rng):
    for _ in range(100):
        scores, relevant = larger_query(rng)
        loss, delta = with_parameter(form, rng, scores.size)
        judge = hinge_by_counts(scores, relevant, delta, number_of_labels(loss, relevant))
        size = np.abs(scores).max()
        assert find(loss, scores, relevant)[0].value == pytest.approx(judge, rel=1e-10, abs=1e-12 + 1e-12 * size)


@over("form", [*RANKINGS, *LABELLINGS])
@over("threads", [1, 2, 3])
def test_many_queries_are_their_weighted_sum(form, threads, rng):
    """Queries of every size in turn, twice; the same from any number of threads, to the last bit."""
    loss = LOSSES[form]()
    sizes = [(3, 4), (700, 3000), (1, 1), (2, 300), (900, 5), (1, 4000), (20, 20)] * 4
    n_pos, n_neg = (np.array(of, dtype=np.int64) for of in zip(*sizes, strict=True))
    shares = rng.random(n_pos.size)
    queries = Queries(n_pos, n_neg, shares)
    scores = rng.normal(size=int((n_pos + n_neg).sum()))
    many = make_oracle("auto", loss).bind_queries(loss, queries, threads=threads)
    alone = make_oracle("auto", loss).bind_queries(loss, queries, threads=1)
    weights, judge = np.full(scores.size, np.nan), np.full(scores.size, np.nan)
    for _ in range(2):
        scores = scores[::-1].copy()
        assert many(scores, weights) == alone(scores, judge)
        np.testing.assert_array_equal(weights, judge)
        value = lost = violating = 0.0
        for start, p, n, share in zip(queries.first, n_pos, n_neg, shares, strict=False):
            own = slice(start, start + p + n)
            violation, c = find(loss, scores[own], np.arange(p + n) < p)
            np.testing.assert_allclose(weights[own], share * c, rtol=1e-15)
            value, lost = value + share * violation.value, lost + share * violation.loss
            violating += violation.violating
        assert many(scores, weights)[:2] == pytest.approx((value, lost))
        assert many(scores, weights)[3] == violating


def test_perfect_scores_violate_nothing():
    scores, relevant = np.array([90.0, 80.0, -90.0, -80.0]), np.array([True, True, False, False])
    for form in [*RANKINGS, *LABELLINGS]:
        violation, c = find(LOSSES[form](), scores, relevant)
        assert violation.value == violation.loss == 0.0, form
        np.testing.assert_array_equal(c, 0.0)


def test_hand_values():
    """Two positives, two negatives, all scores 0: the worst ranking or labelling is as good as any other."""
    zeros, relevant = np.zeros(4), np.array([True, True, False, False])
    for name, worst in [
        ("ndcg@2", 1.0),
        ("ndcg@3", 1 - 0.5 / (1 + 1 / np.log2(3))),
        ("ndcg-chakrabarti", 1 - (1 / np.log2(3) + 1 / 2) / 2),
        ("p@1", 1.0),
        ("p@3", (2 - 1) / 3),
        ("p@4", 0.0),
        ("pauc(0.05)", 1.0),
        ("pauc(1)", 1.0),
        ("f1", 1.0),
        ("prbep", 1.0),
        ("set-p@1", 1.0),
        ("set-r@1", 0.5),
        ("set-r@3", 0.5),
    ]:
        found = find(make_loss(name), zeros, relevant)[0]
        assert found.value == pytest.approx(worst), name
        assert found.ranks_evaluated > 0, name
    # F1, one positive at −1 and one negative at −1: Δ(0, 1) = Δ(0, 0) = 1, + 1/2 for the positive called negative.
    assert find(make_loss("f1"), np.array([-1.0, -1.0]), np.array([True, False]))[0].value == pytest.approx(1.5)


@over("form", [*RANKINGS, *LABELLINGS])
def test_other_oracles_refuse_by_name(form):
    loss = LOSSES[form]()
    (fitting,) = serving(loss)
    for oracle in ORACLES:
        if oracle != fitting:
            with pytest.raises(LossError, match=rf"'{oracle}' cannot serve loss .*; choose auto or {fitting}"):
                make_oracle(oracle, loss)
    with pytest.raises(LossError, match=rf"{fitting!r} cannot serve loss 'ap': it is made for"):
        make_oracle(fitting, make_loss("ap"))


@over(
    "name",
    [
        "ndcg@0",
        "p@-3",
        "set-p@0",
        "set-r@0",
        f"ndcg@{2**60}",
        "pauc(0)",
        "pauc(1.5)",
        "pauc(nan)",
        "f(0)",
        "f(-1)",
        "f(inf)",
    ],
)
def test_bad_parameters_are_refused(name):
    with pytest.raises(LossError, match=r"needs .*, found"):
        make_loss(name)


@pytest.mark.parametrize("name", ["ndcg@", "ndcg@k", "ndcg@2.5", "p@x"])
def test_cutoffs_are_whole_numbers(name):
    with pytest.raises(LossError, match=r"@k takes a whole number, as in .*@10, found"):
        make_loss(name)


@pytest.mark.parametrize("name", ["f1", "prbep", "set-p@3"])
def test_labellings_have_no_ranking(name):
    with pytest.raises(LossError, match="expected a loss over rankings"):
        most_violated_ranking([0.0, 1.0], [1, 0], loss=name)


def test_the_metrics_of_the_registry_are_all_judged():
    """Losses of two arrays define themselves."""
    rankings = {name for name in LOSSES if issubclass(LOSSES[name], LossOverRankings)}
    assert set(METRICS) <= rankings
    assert rankings - set(METRICS) <= {name for name in rankings if issubclass(LOSSES[name], RankingLoss)}
