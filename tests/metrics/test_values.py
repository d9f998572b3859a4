"""Hand values, corner cases, and what is refused."""

import math

import numpy as np
import pytest
from instances import each_metric
from over import over

from apsvm.metrics import MetricError, parse_metric

SPLIT = [True, True, False, True, False, True, False, False]  # positives at positions 1, 2, 4, 6


def value(name, scores, relevant, ties="block"):
    return parse_metric(name)(np.asarray(scores, dtype=float), np.asarray(relevant, dtype=bool), ties)


@over(
    ("name", "expected"),
    [
        ("AP", (1 + 1 + 3 / 4 + 4 / 6) / 4),
        ("AP", 1 - 0.1458333),
        ("nDCG", 1 - 0.0561),
        ("AUC", 1 - 3 / 16),
        ("AP(voc2007)", (6 * 1 + 2 * 3 / 4 + 3 * 4 / 6) / 11),
        ("AP(voc2010)", (1 + 1 + 3 / 4 + 4 / 6) / 4),
        ("P@1", 1),
        ("P@3", 2 / 3),
        ("P@8", 1 / 2),
        ("P@10", 4 / 10),
        ("nDCG@3", (1 + 1 / math.log2(3)) / (1 + 1 / math.log2(3) + 1 / 2)),
        ("F1", 2 * 3 / (4 + 4)),
        ("F0.5", 1.25 * 3 / (4 + 0.25 * 4)),
        ("F2", 5 * 3 / (4 + 4 * 4)),
        ("Precision", 3 / 4),
        ("Recall", 3 / 4),
        ("Accuracy", (3 + 3) / 8),
        ("R@3", 2 / 4),
        ("R@100", 1),
        ("Rprec", 3 / 4),
        ("RR", 1),
        ("RBP(0.5)", (1 + 1 / 2 + 1 / 8 + 1 / 32) / 2),
        ("bpref", (1 + 1 + 3 / 4 + 2 / 4) / 4),
        ("WMW", 1 - 3 / 16),
        ("WMW(bipartite)", 1 - 3 / 16),
        ("WMW(0<1)", 1 - 3 / 16),
        ("WMW(1<0)", 3 / 16),
        ("nDCG(exp)", 1 - 0.0561),
    ],
)
@over("ties", ["block", "pessimistic", "file"])
def test_hand_values(name, expected, ties):
    assert value(name, [4, 3, 2, 1, -1, -2, -3, -4], SPLIT, ties) == pytest.approx(expected, abs=5e-5)


PERFECT = ([2, 1, -1, -2], [True, True, False, False])
WORST = ([2, 1, -1, -2], [False, False, True, True])
ALL_TIED = ([0, 0, 0, 0], [True, False, False, True])
IDEAL = 1 + 1 / math.log2(3)


@over(
    ("name", "perfect", "worst", "tied", "tied_pessimistic", "tied_in_file_order"),
    [
        ("AP", 1, (1 / 3 + 1 / 2) / 2, 1 / 2, (1 / 3 + 1 / 2) / 2, (1 + 1 / 2) / 2),
        ("AP(voc2007)", 1, 1 / 2, 1 / 2, 1 / 2, (6 + 5 / 2) / 11),
        ("AP(voc2010)", 1, 1 / 2, 1 / 2, 1 / 2, (1 + 1 / 2) / 2),
        ("AUC", 1, 0, 1 / 2, 0, 1 / 2),
        ("P@1", 1, 0, 1 / 2, 0, 1),
        ("P@3", 2 / 3, 1 / 3, 1 / 2, 1 / 3, 1 / 3),
        ("nDCG@1", 1, 0, 1 / 2, 0, 1),
        ("nDCG@2", 1, 0, 1 / 2, 0, 1 / IDEAL),
        ("F1", 1, 0, 0, 0, 0),
        ("Precision", 1, 0, 0, 0, 0),
        ("Recall", 1, 0, 0, 0, 0),
        ("Accuracy", 1, 0, 1 / 2, 1 / 2, 1 / 2),
        ("R@1", 1 / 2, 0, 1 / 4, 0, 1 / 2),
        ("Rprec", 1, 0, 1 / 2, 0, 1 / 2),
        ("RR", 1, 1 / 3, (3 * 1 + 2 / 2 + 1 * 1 / 3) / 6, 1 / 3, 1),
        ("RBP(0.5)", 3 / 4, 3 / 16, 15 / 32, 3 / 16, 9 / 16),
        ("bpref", 1, 0, 1 / 2, 0, 1 / 2),
        ("WMW", 1, 0, 1 / 2, 0, 1 / 2),
    ],
)
def test_perfect_worst_and_all_tied(name, perfect, worst, tied, tied_pessimistic, tied_in_file_order):
    assert value(name, *PERFECT) == pytest.approx(perfect)
    assert value(name, *WORST) == pytest.approx(worst)
    assert value(name, *ALL_TIED) == pytest.approx(tied)
    assert value(name, *ALL_TIED, "pessimistic") == pytest.approx(tied_pessimistic)
    assert value(name, *ALL_TIED, "file") == pytest.approx(tied_in_file_order)


@each_metric
def test_a_perfect_ranking_is_best(metric, random_cases):
    for scores, relevant in random_cases(50, 12, tied=False, seed=8):
        perfect = np.where(relevant, 1.0, -1.0) * (1 + np.abs(scores))
        assert metric(scores, relevant) <= metric(perfect, relevant) + 1e-12


def test_one_positive(random_cases):
    for scores, _ in random_cases(20, 30, tied=False, seed=9):
        relevant = np.arange(scores.size) == scores.size // 2
        position = 1 + int((scores > scores[relevant]).sum())
        for name in ("AP", "AP(voc2007)", "AP(voc2010)"):
            assert value(name, scores, relevant) == pytest.approx(1 / position)
        assert value("nDCG", scores, relevant) == pytest.approx(1 / math.log2(1 + position))
        assert value("AUC", scores, relevant) == pytest.approx(1 - (position - 1) / (scores.size - 1))


def lack(metric, otherwise):
    return "no pair of rows that the preference graph orders" if metric.name.startswith("WMW") else otherwise


@each_metric
def test_undefined_without_a_positive(metric):
    message = f"is undefined: {lack(metric, 'no positive')} among the 3 rows"
    with pytest.raises(MetricError, match=message) as caught:
        metric([1.0, 2.0, 3.0], [False] * 3)
    assert str(caught.value).startswith(metric.name)


@each_metric
def test_undefined_without_a_negative(metric):
    if not metric.name.startswith(("AUC", "pAUC", "WMW")):
        assert 0 <= metric([1.0, 2.0], [True, True]) <= 1
        return
    with pytest.raises(MetricError, match=f"is undefined: {lack(metric, 'no negative')} among the 2 rows"):
        metric([1.0, 2.0], [True, True])


@over(
    ("scores", "relevant", "message"),
    [
        ([], [], "0 rows"),
        (np.zeros(0), np.zeros(0, dtype=bool), "0 rows"),
        ([1.0, 2.0], [True], r"shape \(n,\), found scores \(2,\), relevant \(1,\)"),
        ([[1.0, 2.0]], [[True, False]], r"shape \(n,\)"),
        (1.0, True, r"shape \(n,\)"),
        ([1.0, np.nan, np.inf], [True, False, True], "finite, found nan at row 1 "),
        ([1.0, -np.inf], [True, False], "finite, found -inf at row 1 "),
        ([1.0, 2.0], [1, -1], "dtype bool .*found dtype int64"),
        ([True, False], [True, False], "real numbers, found dtype bool"),
        (["a", "b"], [True, False], "real numbers"),
        ([1j, 2j], [True, False], "real numbers"),
    ],
)
def test_bad_rows_are_refused(scores, relevant, message):
    with pytest.raises(MetricError, match=message):
        parse_metric("AP")(scores, relevant)


@each_metric
def test_input_is_left_alone(metric):
    scores, relevant = np.array([1.0, 3.0, 2.0]), np.array([True, False, True])
    scores.flags.writeable = relevant.flags.writeable = False
    metric(scores, relevant)
    metric(scores[::-1], relevant[::-1])
