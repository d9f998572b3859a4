"""Intervals and tests of significance against enumeration, scipy, and what they promise on data of a known kind."""

import itertools

import numpy as np
import pytest
import scipy.stats

from apsvm.metrics import MetricError
from apsvm.metrics.classes import evaluate_classes
from apsvm.metrics.evaluate import evaluate, parse_metrics, summarise
from apsvm.metrics.ranking_table import Judgements
from apsvm.metrics.significance import (
    Difference,
    System,
    bootstrap_means,
    bootstrap_rows,
    differences,
    interval,
    randomisation_test,
)

AP = parse_metrics(["AP"])
METRICS = parse_metrics(["AP", "AUC", "nDCG", "P@5", "F1"])


def system(scores, relevant, groups=None, ties="block", metrics=METRICS, relevant_from=None):
    rows = Judgements.of(groups, relevant, relevant_from)
    return System(scores, rows, summarise(metrics, rows.table(scores, ties)))


def p_by_enumeration(d):
    means = [abs(np.dot(signs, d)) for signs in itertools.product([1, -1], repeat=len(d))]
    return np.mean(np.array(means) >= abs(d.sum()) - 1e-12)


def test_randomisation_is_exact_for_few_queries(rng):
    p_values = set()
    for _ in range(40):
        d = rng.integers(-3, 4, int(rng.integers(1, 9))) / 8
        p = randomisation_test(d, 1 << 8, rng)
        assert p == pytest.approx(p_by_enumeration(d), abs=1e-15)
        p_values.add(p)
    assert len(p_values) > 10


def test_randomisation_by_chance_is_near_the_exact_p(rng):
    for shift in (0.0, 0.2, 0.5):
        d = rng.normal(size=12) + shift
        exact, found = p_by_enumeration(d), randomisation_test(d, 4000, rng)
        assert found == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 4000) + 1 / 4000)
        assert found == pytest.approx(randomisation_test(-d, 4000, rng), abs=0.05)


def test_randomisation_agrees_with_scipy(rng):
    a, b = rng.normal(size=(2, 9))
    expected = scipy.stats.permutation_test((a, b), lambda x, y: np.mean(y - x), permutation_type="samples").pvalue
    assert randomisation_test(b - a, 1 << 9, rng) == pytest.approx(expected, abs=1e-12)


def test_no_difference_is_p_1(rng):
    assert randomisation_test(np.zeros(30), 100, rng) == 1.0
    assert randomisation_test(np.zeros(0), 100, rng) == 1.0


def test_p_is_uniform_when_there_is_no_difference(rng):
    p_values = [randomisation_test(rng.normal(size=30), 199, rng) for _ in range(400)]
    assert scipy.stats.kstest(p_values, "uniform").pvalue > 1e-3


def test_bootstrap_of_means_agrees_with_scipy(rng):
    values = rng.exponential(size=40)
    low, high = interval(bootstrap_means(values, 20_000, rng), 0.9)
    judge = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, confidence_level=0.9, method="percentile", random_state=1
    ).confidence_interval
    assert (low, high) == pytest.approx((judge.low, judge.high), abs=0.02 * (high - low) + 0.01)
    assert low < values.mean() < high


def test_intervals_cover_the_truth(rng):
    """The mean AP of many queries, and the ROC area of one ranking of normal scores, of which the truth is known."""
    covered = 0
    for _ in range(60):
        values = rng.beta(2, 3, 40)
        low, high = interval(bootstrap_means(values, 300, rng), 0.8)
        covered += low <= 2 / 5 <= high
    assert 38 <= covered <= 57  # 48 expected, standard deviation 3.1
    covered, truth = 0, scipy.stats.norm.cdf(1 / np.sqrt(2))
    auc = parse_metrics(["AUC"])
    for _ in range(60):
        relevant = np.arange(150) < 50
        draws = bootstrap_rows(auc, [system(rng.normal(size=150) + relevant, relevant)], 200, rng)["AUC"]
        low, high = interval(draws[:, 0], 0.8)
        covered += low <= truth <= high
    assert 38 <= covered <= 57


@pytest.mark.parametrize("ties", ["block", "pessimistic", "file"])
def test_drawn_rows_are_rankings_of_the_drawn_rows(ties, monkeypatch):
    """The batched draws against drawing, repeating and evaluating one by one, with the same random numbers."""
    data = np.random.default_rng(3)
    scores = [np.round(data.normal(size=30), 1), np.round(data.normal(size=30), 1)]
    grades = data.integers(0, 3, 30).astype(float)
    systems = [system(one, grades, ties=ties, relevant_from=1) for one in scores]
    found = bootstrap_rows(METRICS, systems, 20, np.random.default_rng(7))
    rng = np.random.default_rng(7)
    relevant, other = np.flatnonzero(grades >= 1), np.flatnonzero(grades < 1)
    drawn = [rng.integers(0, part.size, (20, part.size)) for part in (relevant, other)]
    for i in range(20):
        taken = np.sort(np.concatenate([relevant[drawn[0][i]], other[drawn[1][i]]]))
        for s in range(2):
            expected = evaluate(list(METRICS), scores[s][taken], grades[taken], ties=ties, relevant_from=1).values
            assert {name: found[name][i, s] for name in METRICS} == pytest.approx(expected, rel=1e-12)
    assert np.unique(found["AP"]).size > 20
    monkeypatch.setattr("apsvm.metrics.significance._AT_ONCE", 30)  # a draw at a time
    alone = bootstrap_rows(METRICS, systems, 5, np.random.default_rng(7))
    assert alone["AP"].shape == (5, 2)


@pytest.mark.slow
def test_swapped_ranks_against_enumeration(rng):
    """All 2^n swaps of a tiny ranking, by hand: midranks for orders, the side of the threshold for F1."""
    n = 9
    relevant = np.array([True, False, True, True, False, False, True, False, False])
    a = np.round(rng.normal(size=n) + relevant, 1)
    b = np.round(rng.normal(size=n) * 50, -1)
    metrics = parse_metrics(["AP", "AUC", "F1"])
    one, two = (system(scores, relevant, metrics=metrics) for scores in (a, b))
    found = {name: difference.p for name, difference in differences(metrics, one, two, n_swaps=6000, seed=1).items()}
    ranks = scipy.stats.rankdata(a), scipy.stats.rankdata(b)
    sides = (a > 0) - 0.5, (b > 0) - 0.5
    for name, metric in metrics.items():
        one, two = sides if name == "F1" else ranks
        observed = abs(metric(one, relevant) - metric(two, relevant))
        count = 0
        for coins in itertools.product([False, True], repeat=n):
            x, y = np.where(coins, two, one), np.where(coins, one, two)
            count += abs(metric(x, relevant) - metric(y, relevant)) >= observed - 1e-12
        exact = count / 2**n
        assert found[name] == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 6000) + 1e-3)
    assert len(set(found.values())) > 1


def null_p(rng, positives, groups=None, n=None):
    """p of two systems that differ by chance alone, on one ranking, queries of five rows or classes."""
    if groups is not None:
        relevant, codes = np.tile(np.arange(5) < 2, groups), np.repeat(np.arange(groups), 5)
        a, b = (system(relevant + rng.normal(size=relevant.size), relevant, codes, metrics=AP) for _ in range(2))
    elif np.ndim(positives):
        labels = np.repeat(np.arange(len(positives)), positives)[:, None] == np.arange(len(positives))
        shared = rng.normal(size=(2, len(labels), 1))
        a, b = (
            System(scores, Judgements(labels), evaluate_classes(list(AP), scores, labels, range(len(positives))))
            for scores in (labels + rng.normal(size=labels.shape) + 2 * shared[at] for at in range(2))
        )
    else:
        relevant = np.arange(positives + n) < positives
        a, b = (system(relevant + rng.normal(size=relevant.size), relevant, metrics=AP) for _ in range(2))
    return differences(AP, a, b, n_swaps=199, seed=int(rng.integers(1 << 30)))["AP"].p


@pytest.mark.slow
@pytest.mark.parametrize(
    "units",
    [
        {"positives": 0, "groups": 10}, {"positives": 0, "groups": 50}, {"positives": 5, "n": 60},
        {"positives": 50, "n": 60}, {"positives": (5, 5, 50)}, {"positives": (8,) * 10},
    ],
)  # fmt: skip
def test_p_holds_under_the_null(units, rng):
    """Below .05 in 5 of 100 draws, of 250 within three standard errors; and p varies."""
    values = [p for p in (null_p(rng, **units) for _ in range(250)) if p is not None]
    assert len(values) > 200  # few queries differ in some
    assert 0.008 <= np.mean(np.array(values) < 0.05) <= 0.092
    assert len(set(values)) > 20


@pytest.mark.parametrize(
    "units", [{"positives": 0, "groups": 3}, {"positives": 0, "groups": 5}, {"positives": 2, "n": 60}]
)
def test_no_p_of_too_few(units, rng):
    assert null_p(rng, **units) is None


def test_a_difference_that_is_there_is_found(rng):
    groups = np.repeat(np.arange(60), 12)
    relevant = np.tile(np.arange(12) < 3, 60)
    noise = rng.normal(size=(2, 720))
    a, b = noise[0] + relevant, noise[1] + 3 * relevant
    found = differences(
        METRICS, system(a, relevant, groups), system(b, relevant, groups), n_swaps=2000, seed=1, confidence=0.95
    )
    for d in (found["AP"], found["AUC"], found["nDCG"]):
        assert d.p < 0.01
        assert 0 < d.low < d.effect < d.high
        assert d.better > d.worse
    one = differences(
        METRICS, system(a, relevant), system(b, relevant), n_swaps=300, seed=1, confidence=0.95, n_draws=200
    )
    assert one["AP"].p == 1 / 301
    assert 0 < one["AP"].low < one["AP"].effect < one["AP"].high
    assert (one["AP"].better, one["AP"].worse) == (None, None)


@pytest.mark.parametrize("grouped", [True, False])
def test_a_system_does_not_differ_from_itself(grouped, rng):
    relevant = np.tile([True, False, False, True], 15)
    a = system(rng.normal(size=60), relevant, np.arange(60) // 4 if grouped else None)
    for name, d in differences(METRICS, a, a, n_swaps=100, seed=0, confidence=0.9, n_draws=50).items():
        value = a.evaluation.values[name]
        of_queries = (0, 0, 15, pytest.approx(value), pytest.approx(value)) if grouped else (None,) * 5
        assert d == Difference(0.0, 0.0, 0.0, None if grouped else 1.0, *of_queries)


def test_queries_are_paired_by_their_ids(rng):
    relevant = np.tile([True, False, False], 20)
    scores = rng.normal(size=60)
    a = system(scores, relevant, np.repeat(np.arange(20), 3))
    b = system(scores[30:], relevant[30:], np.repeat(np.arange(10, 20), 3))
    there = pytest.approx(b.evaluation.values["AP"])  # of the ten that both have
    expected = Difference(0.0, None, None, None, 0, 0, 10, there, there)
    assert differences(METRICS, a, b, n_swaps=100, seed=0)["AP"] == expected
    c = system(scores, relevant, np.repeat(np.arange(100, 120), 3))
    with pytest.raises(MetricError, match="no query in common"):
        differences(METRICS, a, c, n_swaps=100, seed=0)
