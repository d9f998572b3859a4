"""Thresholds against all that there are: no other serves the rule better, and none higher serves it as well."""

from __future__ import annotations

import numpy as np
import pytest
from over import over

from apsvm.metrics.thresholds import ThresholdRule, choose_threshold

RULES = ["f1", "fpr=0", "fpr=0.3", "precision=0.6", "precision=1", "recall=0.5", "recall=1", "top=1", "top=4", "top=99"]


def figures(scores, relevant, threshold):
    """called, hits, precision, recall, false-positive rate and F1, by their definitions."""
    above = scores > threshold
    called, hits, positives = int(above.sum()), int((above & relevant).sum()), int(relevant.sum())
    precision = hits / called if called else 0.0
    return {
        "called": called,
        "hits": hits,
        "precision": precision,
        "recall": hits / positives,
        "fpr": (called - hits) / (relevant.size - positives),
        "f1": 2 * hits / (called + positives),
    }


def serves(rule, found):
    """Value of a threshold under the rule, higher is better; None if it breaks the rule."""
    amount, slack = rule.amount, 1e-12
    return {
        "f1": found["f1"],
        "fpr": found["recall"] if found["fpr"] <= amount + slack else None,
        "precision": found["recall"] if found["called"] and found["precision"] >= amount - slack else None,
        "recall": -found["called"] if found["recall"] >= amount - slack else None,
        "top": found["called"] if found["called"] <= amount else None,
    }[rule.name]


@over("text", RULES)
def test_no_threshold_serves_better(text, rng):
    rule, values = ThresholdRule.parse(text), set()
    assert str(rule) == text
    for _ in range(200):
        n = int(rng.integers(2, 12))
        relevant = rng.permutation(np.arange(n) < rng.integers(1, n))
        scores = rng.integers(-3, 4, size=n) / 4.0
        chosen = choose_threshold(scores, relevant, rule)
        found = figures(scores, relevant, chosen.value)
        assert (chosen.called, chosen.hits) == (found["called"], found["hits"])
        assert (chosen.recall, chosen.false_positive_rate) == (found["recall"], found["fpr"])
        assert chosen.precision == (found["precision"] if found["called"] else None)
        levels = np.unique(scores)
        every = [figures(scores, relevant, one) for one in [levels[0] - 1.0, *levels]]
        best = max((serves(rule, one) for one in every if serves(rule, one) is not None), default=None)
        if best is None:
            assert rule.name == "precision"
            assert not chosen.meets_rule
            assert found["precision"] == max(one["precision"] for one in every)
        else:
            assert chosen.meets_rule == (rule.name != "top" or rule.amount <= scores.size)
            assert serves(rule, found) == pytest.approx(best, abs=1e-12)
            alike = [one["called"] for one in every if serves(rule, one) == serves(rule, found)]
            assert found["called"] == min(alike)
        values.add(chosen.value)
    assert len(values) > 3


def test_it_lies_halfway_and_neighbouring_numbers_are_told_apart():
    relevant = np.array([True, False])
    assert choose_threshold(np.array([2.0, 1.0]), relevant, ThresholdRule("f1")).value == 1.5
    next_to_it = np.nextafter(1.0, 2.0)
    for upper, lower in ((next_to_it, 1.0), (1e308, -1e308), (5e-324, 0.0)):
        chosen = choose_threshold(np.array([upper, lower]), relevant, ThresholdRule("top", 1.0))
        assert lower <= chosen.value < upper


@pytest.mark.parametrize(("highest", "expected"), [(0.0, -1e-12), (5e-324, -1e-12), (2.5, -2.5e-12)])
def test_below_all_scores_from_0(highest, expected):
    """And not at the number next to 0, −5e-324, which is one nowhere else."""
    scores, relevant = np.array([highest, 0.0, 0.0]), np.array([False, True, False])
    chosen = choose_threshold(scores, relevant, ThresholdRule("recall", 1.0))
    assert (chosen.called, chosen.value) == (3, expected)


@pytest.mark.parametrize("relevant", [[True, True], [False, False]])
def test_of_one_class_there_is_none(relevant):
    with pytest.raises(ValueError, match="all rows are of one"):
        choose_threshold(np.zeros(2), np.array(relevant), ThresholdRule("f1"))


@over(
    "text",
    ["", "f1=2", "f2", "fpr", "fpr=", "fpr=2", "fpr=-1", "fpr=nan", "precision=0", "recall=0", "recall=x", "top=0",
     "top=1.5", "top=inf", "top=1e30", "fpr=1_0", "top=٣", "none"],
)  # fmt: skip
def test_what_is_no_rule(text):
    with pytest.raises(ValueError, match="expected f1, fpr=A, precision=A, recall=A or top=K"):
        ThresholdRule.parse(text)
