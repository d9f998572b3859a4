"""Graded NDCG is the weighted sum of its levels, and their hinges bound it."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from graded_twin import graded_hinge
from judge import METRICS, hinge_by_interleavings, ndcg_at_of_order
from sklearn.metrics import ndcg_score

from apsvm import most_violated_ranking
from apsvm.losses import make_loss
from apsvm.losses.base import LossError

NAMES = ["ndcg", "ndcg(linear)", "ndcg@1", "ndcg@3", "ndcg@50", "ndcg-chakrabarti"]


def graded_ndcg(name, grades_in_order):
    """From the definition."""
    k = int(name.partition("@")[2] or len(grades_in_order))
    gain = (lambda g: g) if "linear" in name else (lambda g: 2**g - 1)
    first = 0 if "chakrabarti" in name else 1
    discount = [1 / log2(max(p + first, 2)) if p <= k else 0.0 for p in range(1, len(grades_in_order) + 1)]

    def dcg(grades):
        return sum(gain(max(g, 0)) * d for g, d in zip(grades, discount, strict=True))

    return dcg(grades_in_order) / dcg(sorted(grades_in_order, reverse=True))


def query(rng, most=5):
    """2..2·most rows with grades of both sides of some level; scores with ties."""
    while True:
        n = rng.integers(2, 2 * most + 1)
        grades = rng.integers(-1 if rng.random() < 0.2 else 0, 4, size=n) / rng.choice([1.0, 1.0, 2.0])
        if np.unique(np.maximum(grades, 0)).size > 1:
            return rng.integers(-3, 4, size=n) * rng.choice([0.05, 0.25, 1.0]), grades


@pytest.mark.parametrize("name", NAMES)
def test_the_levels_add_up_to_the_graded_loss(name, rng):
    loss, most_levels = make_loss(name), 0
    for _ in range(500):
        _, grades = query(rng, most=10)
        in_order = rng.permutation(grades)
        total = 0.0
        levels = loss.levels(grades)
        for threshold, weight in levels:
            positive = in_order >= threshold
            above = np.flatnonzero(positive) - np.arange(positive.sum())
            total += weight * loss.of_ranking(above, int((~positive).sum()))
        assert total == pytest.approx(1 - graded_ndcg(name, in_order), abs=1e-12)
        assert all(weight > 0 for _, weight in levels)
        assert sum(weight for _, weight in levels) <= 1 + 1e-12
        most_levels = max(most_levels, len(levels))
    assert most_levels == 3


def test_the_judge_is_scikit_learn_s(rng):
    for _ in range(20):
        grades = rng.integers(0, 4, size=9)
        grades[0] = 3
        order = rng.permutation(9)
        for gains, name in ((grades, "linear"), (2**grades - 1, "ndcg")):
            judge = ndcg_score([gains[order]], [-np.arange(9.0)], k=5)
            assert graded_ndcg(f"{name}@5", list(grades[order])) == pytest.approx(judge)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_hinge_is_the_sum_of_the_levels_exact_hinges(name, rng):
    """And it bounds the graded loss of the order of the scores."""
    loss, bounds = make_loss(name), 0
    form = name if name in METRICS else "ndcg(gain)"
    metric = METRICS[form]
    if "@" in name:
        metric = lambda in_order: ndcg_at_of_order(in_order, loss.k)  # noqa: E731
    for _ in range(1000 if name == "ndcg" else 250):
        scores, grades = query(rng, most=4)
        found = graded_hinge(scores, grades, loss)
        judge = sum(w * hinge_by_interleavings(scores, grades >= t, metric) for t, w in loss.levels(grades))
        assert found.value == pytest.approx(judge, abs=1e-12)
        assert found.value == pytest.approx(found.loss + found.row_weights @ scores, abs=1e-12)
        assert found.row_weights.sum() == pytest.approx(0.0, abs=1e-14)
        # Ties may stand in any order: the worst of them is bounded too.
        order = np.lexsort((grades, -scores))
        lost = 1 - graded_ndcg(name, grades[order])
        assert found.value >= lost - 1e-12
        bounds += lost > 0.01
    assert bounds > 100


@pytest.mark.parametrize("name", NAMES)
def test_subgradient_inequality(name, rng):
    loss = make_loss(name)
    for _ in range(150):
        scores, grades = query(rng)
        here = graded_hinge(scores, grades, loss)
        for scale in (1e-3, 0.3, 10.0):
            there = scores + scale * rng.normal(size=scores.size)
            value = graded_hinge(there, grades, loss).value
            assert value >= here.value + here.row_weights @ (there - scores) - 1e-12


@pytest.mark.parametrize("oracle", ["greedy", "select", "qs", "bucket", "auto"])
def test_two_grades_are_the_binary_loss(oracle, rng):
    for positive in (1.0, 3.0):
        scores, relevant = rng.normal(size=40), rng.random(40) < 0.3
        found = graded_hinge(scores, positive * relevant, make_loss("ndcg"), oracle)
        judge = most_violated_ranking(scores, relevant, loss="ndcg")
        assert found.value == pytest.approx(judge.value)
        np.testing.assert_allclose(found.row_weights, judge.row_weights, atol=1e-15)


def test_levels_by_hand():
    # Gains 0, 1, 3: steps 1 for three rows, 2 for one; Z_1 = 1 + 1/log2 3 + 1/2, Z_2 = 1.
    z = 1 + 1 / log2(3) + 0.5
    assert make_loss("ndcg").levels([0, 1, 2, 1, -1]) == [
        (1.0, pytest.approx(z / (z + 2))),
        (2.0, pytest.approx(2 / (z + 2))),
    ]
    assert make_loss("ndcg(linear)").levels([0, 5]) == [(5.0, 1.0)]
    # Grade 1 is everyone's: it counts in Z only.
    assert make_loss("ndcg@1").levels([1, 2, 2]) == [(2.0, pytest.approx(2 / 3))]
    for equal in ([0, 0], [2, 2, 2], [-1, 0], []):
        assert make_loss("ndcg").levels(equal) == []
    assert graded_hinge(np.array([1.0, 2.0]), np.array([2.0, 2.0]), make_loss("ndcg")) == (0.0, 0.0, pytest.approx(0))


@pytest.mark.parametrize("grade", [np.nan, np.inf, 2000.0])
def test_grades_without_a_gain_are_refused(grade):
    with pytest.raises(LossError, match="no finite exponential gain"):
        make_loss("ndcg").levels([0.0, 1.0, grade])
    if np.isfinite(grade):
        assert make_loss("ndcg(linear)").levels([0.0, grade]) == [(grade, 1.0)]
