"""Grades: nDCG against scikit-learn, WMW against every pair, relevance from a grade on."""

import itertools

import numpy as np
import pytest
from instances import each_metric, evaluated
from over import over
from sklearn.metrics import ndcg_score

from apsvm.metrics import MetricError, parse_metric
from apsvm.metrics.evaluate import evaluate


def draw(rng, n=None, n_grades=5, tied=True):
    n = int(rng.integers(2, 40)) if n is None else n
    grades = rng.integers(0, n_grades, n).astype(float)
    grades[:2] = 0, 1
    scores = rng.integers(0, max(2, n // 2), n).astype(float) if tied else rng.permutation(n).astype(float)
    return scores, grades


@pytest.mark.slow
@over("k", [None, 1, 3, 10])
@over("exponential", [False, True])
@over("tied", [False, True])
def test_ndcg_agrees_with_scikit_learn(tied, exponential, k, rng):
    metric = parse_metric("nDCG" + "(exp)" * exponential + (f"@{k}" if k else ""))
    for _ in range(100):
        scores, grades = draw(rng, tied=tied)
        gains = 2**grades - 1 if exponential else grades
        expected = ndcg_score([gains], [scores], k=k)
        assert metric(scores, grades, relevant_from=1) == pytest.approx(expected, rel=1e-12)


def test_negative_grades_gain_nothing(rng):
    scores, grades = draw(rng, 30)
    lowered = np.where(grades == 0, rng.integers(-3, 1, 30), grades)
    assert (lowered < 0).any()
    for name in ("nDCG", "nDCG@3", "nDCG(exp)"):
        metric = parse_metric(name)
        assert metric(scores, lowered, relevant_from=1) == metric(scores, grades, relevant_from=1)
    with pytest.raises(MetricError, match="no grade above 0 among the 3 rows"):
        parse_metric("nDCG")([1.0, 2.0, 3.0], [-2.0, -1.0, 0.0], relevant_from=-1)


@each_metric
def test_relevant_from_is_a_threshold(metric, rng):
    if metric.graded:
        return
    for _ in range(5):
        scores, grades = draw(rng, 20)
        grades[:3] = 0, 2, 4
        for threshold in (1, 1.5, 4):
            expected = metric(scores, grades >= threshold)
            assert metric(scores, grades, relevant_from=threshold) == expected


def pairs_by_hand(scores, grades, edges, ties="block"):
    won = total = 0
    for x, y in itertools.permutations(range(len(scores)), 2):
        if (grades[x], grades[y]) in edges:
            total += 1
            won += 1.0 if scores[y] > scores[x] else 0.5 if scores[y] == scores[x] and ties == "block" else 0.0
            won += ties == "file" and scores[y] == scores[x] and y < x
    return won / total if total else None


def full(levels):
    return {(low, high) for low, high in itertools.permutations(levels, 2) if low < high}


GRAPHS = {
    "WMW": full,
    "WMW(adjacent)": lambda levels: set(itertools.pairwise(levels)),
    "WMW(0<2,1<4,3<0)": lambda levels: {(0, 2), (1, 4), (3, 0)},
    "WMW(0<1)": lambda levels: {(0, 1)},
    "WMW(0<1,1<0)": lambda levels: {(0, 1), (1, 0)},
    "WMW(-7<1,0<9)": lambda levels: {(-7, 1), (0, 9)},
}


@over("ties", ["block", "file", "pessimistic"])
@over("name", GRAPHS)
def test_wmw_counts_every_pair(name, ties, rng):
    metric, values = parse_metric(name), []
    if ties == "pessimistic" and name not in ("WMW", "WMW(adjacent)", "WMW(0<1)"):
        return  # the lowest grade comes first in a block, which is not the worst under these
    for n_grades in (2, 3, 5, 8, 17) * 8:
        scores, grades = draw(rng, n_grades=n_grades)
        expected = pairs_by_hand(scores, grades, GRAPHS[name](sorted(set(grades))), ties)
        if expected is None:
            with pytest.raises(MetricError, match="no pair of rows"):
                metric(scores, grades, ties, relevant_from=1)
            continue
        values.append(metric(scores, grades, ties, relevant_from=1))
        assert values[-1] == pytest.approx(expected, rel=1e-14)
    assert len(set(values)) > 5 or name in ("WMW(0<1,1<0)", "WMW(-7<1,0<9)")


@pytest.mark.parametrize("name", ["WMW", "WMW(adjacent)", "WMW(0<2,1<4)"])
def test_wmw_of_queries(name, rng):
    for _ in range(20):
        n = 60
        scores, grades = draw(rng, n)
        queries = rng.integers(0, 8, n)
        levels = sorted(set(grades))  # of all queries: adjacent means next in the data
        found = evaluate([name], scores, grades, queries, relevant_from=1)
        for query, value in zip(found.groups, found.in_group[name], strict=True):
            m = queries == query
            expected = pairs_by_hand(scores[m], grades[m], GRAPHS.get(name, lambda _: {(0, 2), (1, 4)})(levels))
            np.testing.assert_allclose(value, np.nan if expected is None else expected, rtol=1e-14)


def test_wmw_takes_an_array_of_edges(rng):
    scores, grades = draw(rng, 40)
    WMW = type(parse_metric("WMW"))
    metric = WMW(np.array([[1, 4], [0, 2], [0, 2]]))
    assert metric.name == "WMW(0<2,1<4)"
    assert metric == parse_metric(metric.name)
    expected = pairs_by_hand(scores, grades, {(0, 2), (1, 4)})
    assert metric(scores, grades, relevant_from=1) == pytest.approx(expected, rel=1e-14)
    for bad in ([], [[1, 2, 3]], [[1, 1]], [[0, np.nan]]):
        with pytest.raises(MetricError, match=r"needs edges|preferred to itself"):
            WMW(np.array(bad))


def test_queries_left_out_depend_on_what_the_metric_reads():
    """Query 1: all relevant, of two grades. Query 2: both classes. Query 3: one grade above 0. Query 4: nothing."""
    queries = [1, 1, 2, 2, 3, 3, 4, 4]
    grades = [1.0, 2.0, 0.0, 2.0, 1.0, 1.0, 0.0, 0.0]
    scores = [2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0]
    found = evaluate(["AP", "nDCG", "WMW"], scores, grades, queries, relevant_from=1)
    assert np.isnan(found.in_group["AP"]).tolist() == [True, False, True, True]
    assert np.isnan(found.in_group["nDCG"]).tolist() == [False, False, True, True]
    assert np.isnan(found.in_group["WMW"]).tolist() == [False, False, True, True]
    assert found.values["AP"] == 0.5
    assert found.values["WMW"] == 0.0
    assert found.groups_skipped == 3
    everything = evaluated(["AP", "nDCG", "WMW"], scores, grades, queries, relevant_from=1)
    assert everything.values["AP"] == (1 + 0.5 + 1 + 0) / 4
    assert everything.in_group["nDCG"][2:].tolist() == [1.0, 0.0]
    assert everything.groups_skipped == 0


def test_ties_of_different_grades_are_reported(rng):
    found = evaluate(["nDCG"], [1.0, 1.0, 1.0, 2.0, 2.0], [1.0, 2.0, 2.0, 3.0, 3.0], relevant_from=1)
    assert (found.tied_blocks, found.tied_rows) == (1, 3)


@pytest.mark.parametrize("name", ["nDCG(exp)", "nDCG(exp)@5"])
def test_a_grade_whose_gain_is_infinite(name):
    """It would count as no grade at all."""
    scores = np.array([2.0, 1.0, 0.0])
    assert evaluate([parse_metric(name)], scores, np.array([1023.0, 2.0, 0.0]), relevant_from=1.0).values[name] == 1.0
    with pytest.raises(MetricError, match=r"grade 1024 has no finite gain"):
        evaluate([parse_metric(name)], scores, np.array([1024.0, 2.0, 0.0]), relevant_from=1.0)
