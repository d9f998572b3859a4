"""The tie rules against explicit sorting and against every order inside the ties."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from instances import each_metric
from over import over

from apsvm.metrics import parse_metric


def precision_at(k, order):
    return Fraction(sum(order[:k]), k)


def dcg(order, k):
    return sum(1 / math.log2(1 + p) for p, hit in enumerate(order[:k], start=1) if hit)


def ndcg_at(k, order):
    return dcg(order, k) / dcg(sorted(order, reverse=True), k)


def average_precision(order):
    return sum(precision_at(p, order) for p, hit in enumerate(order, start=1) if hit) / sum(order)


def roc_area(order):
    pairs = [(a, b) for a, b in itertools.combinations(order, 2) if a != b]
    return Fraction(sum(a for a, _ in pairs), len(pairs))


def partial_roc_area(rate, order):
    """Each positive by the negatives above it, of which b = rate · N and the next one's fraction count."""
    most = rate * order.count(0)
    above = [order[:i].count(0) for i, hit in enumerate(order) if hit]
    return 1 - sum(min(n / most, 1) for n in above) / len(above)


def r_precision(order):
    return precision_at(sum(order), order)


def recall_at(k, order):
    return Fraction(sum(order[:k]), sum(order))


def reciprocal_rank(order):
    return Fraction(1, 1 + order.index(1))


def rank_biased(p, order):
    return (1 - p) * sum(p**i for i, hit in enumerate(order) if hit)


def bpref(order):
    """As in the paper, for N judged negatives, R positives; written with explicit loops."""
    R = sum(order)
    N = len(order) - R
    total = Fraction(0)
    for i, hit in enumerate(order):
        if hit:
            above = i - sum(order[:i])
            total += 1 - Fraction(min(above, R), min(N, R)) if above else 1
    return total / R


STRICT = {
    "AP": average_precision,
    "AUC": roc_area,
    "pAUC(0.3)": lambda order: partial_roc_area(0.3, order),
    "pAUC(0.05)": lambda order: partial_roc_area(0.05, order),
    "R@1": lambda order: recall_at(1, order),
    "R@4": lambda order: recall_at(4, order),
    "Rprec": r_precision,
    "RR": reciprocal_rank,
    "RBP(0.8)": lambda order: rank_biased(0.8, order),
    "RBP(0.3)": lambda order: rank_biased(0.3, order),
    "bpref": bpref,
    "WMW": roc_area,
    "P@1": lambda order: precision_at(1, order),
    "P@3": lambda order: precision_at(3, order),
    "P@7": lambda order: precision_at(7, order),
    "nDCG": lambda order: ndcg_at(len(order), order),
    "nDCG@1": lambda order: ndcg_at(1, order),
    "nDCG@3": lambda order: ndcg_at(3, order),
    "nDCG@7": lambda order: ndcg_at(7, order),
}
SORT_KEYS = {
    "file": lambda scores, relevant: lambda i: (-scores[i], i),
    "pessimistic": lambda scores, relevant: lambda i: (-scores[i], relevant[i]),
}


def sorted_rows(scores, relevant, ties):
    return sorted(range(len(scores)), key=SORT_KEYS[ties](scores, relevant))


def orders_inside_ties(scores, relevant):
    rows = list(zip(scores, relevant, strict=True))
    blocks = [[int(r) for s, r in rows if s == level] for level in sorted(set(scores), reverse=True)]
    for arrangement in itertools.product(*(itertools.permutations(block) for block in blocks)):
        yield list(itertools.chain.from_iterable(arrangement))


@over("ties", SORT_KEYS)
@over("name", STRICT)
def test_strict_rules_agree_with_the_formula_on_sorted_rows(name, ties, random_cases):
    metric, differs = parse_metric(name), 0
    for scores, relevant in random_cases(100, 15, tied=True, seed=3):
        order = [int(relevant[i]) for i in sorted_rows(scores, relevant, ties)]
        value = metric(scores, relevant, ties)
        assert value == pytest.approx(float(STRICT[name](order)), rel=1e-12)
        differs += value != metric(scores, relevant)
    assert differs > 5


@each_metric
@over("ties", SORT_KEYS)
def test_strict_rules_are_an_explicit_order(metric, ties, random_cases):
    """Spreading each block of integer scores downwards, in the rule's order, leaves the value as it is."""
    for scores, relevant in random_cases(30, 15, tied=True, seed=4):
        rows = sorted_rows(scores, relevant, ties)
        spread = scores.copy()
        # a drop of at most 1/2: blocks stay apart, and on their side of F1's threshold
        spread[rows] -= np.arange(len(rows)) / (2 * len(rows))
        expected = metric(scores, relevant, ties)
        for rule in ("block", "pessimistic", "file"):
            assert metric(spread, relevant, rule) == pytest.approx(expected, rel=1e-12)


@over("name", [name for name in STRICT if name != "AP"])
def test_block_is_the_expectation_over_shuffles(name, random_cases):
    metric, straddled = parse_metric(name), 0
    for scores, relevant in random_cases(60, 6, tied=True, seed=5):
        values = [STRICT[name](order) for order in orders_inside_ties(scores, relevant)]
        assert metric(scores, relevant) == pytest.approx(float(sum(values) / len(values)), rel=1e-12, abs=1e-15)
        straddled += min(values) != max(values)
    assert name == "P@7" or straddled > 5


def test_block_average_precision_can_exceed_every_order():
    """Why nothing is asserted of ``block`` ≤ the best order."""
    scores, relevant = [2.0] * 3 + [1.0] * 3, [False] * 3 + [True] * 3
    best = max(average_precision(order) for order in orders_inside_ties(scores, relevant))
    assert parse_metric("AP")(scores, relevant) == 0.5 > best


@each_metric
def test_negative_zero_ties_with_zero(metric):
    relevant = np.array([True, False, True, False])
    assert metric([0.0, -0.0, 0.0, -1.0], relevant) == metric([0.0, 0.0, 0.0, -1.0], relevant)
