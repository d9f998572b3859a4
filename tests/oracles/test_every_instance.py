"""Every loss at several parameters, with every exact oracle that serves it: by value against everything there is.

What a loss loses is what it says itself (``of_ranking``, ``of_labelling``), which the tests of the losses and of their
metrics hold against definitions.
"""

from __future__ import annotations

import numpy as np
import pytest
from instances import LABELLING_LOSSES, LOSSES_AND_ORACLES, RANKING_LOSSES
from judge import definition, hinge_by_interleavings, hinge_by_labellings
from over import over

from apsvm.losses import make_loss
from apsvm.oracles import make_oracle

OVER_RANKINGS = [pair for pair in LOSSES_AND_ORACLES if pair[0] in RANKING_LOSSES]
OVER_LABELLINGS = [pair for pair in LOSSES_AND_ORACLES if pair[0] in LABELLING_LOSSES]


def tiny_query(rng, most=4):
    """1..most positives and negatives; most scores from a few values, so that ties abound."""
    n_pos, n_neg = rng.integers(1, most + 1, size=2)
    relevant = rng.permutation(np.repeat([True, False], [n_pos, n_neg]))
    scores = rng.integers(-3, 4, size=n_pos + n_neg) * rng.choice([0.05, 0.25, 1.0])
    return scores + rng.normal(size=scores.size) * (rng.random() < 0.2), relevant


def find(loss, oracle, scores, relevant):
    """(violation, row weights in the order of the rows)."""
    n_pos = int(relevant.sum())
    weights_pos, weights_neg = np.empty(n_pos), np.empty(scores.size - n_pos)
    bound = make_oracle(oracle, loss).bind(loss, n_pos, weights_neg.size)
    violation = bound(scores[relevant], scores[~relevant], weights_pos, weights_neg)
    weights = np.empty(scores.size)
    weights[relevant], weights[~relevant] = weights_pos, weights_neg
    return violation, weights


def admitted_labels(loss, relevant):
    """How many positive labels a labelling has: as many as there are positives, k, or any number."""
    if loss.name == "prbep":
        return int(relevant.sum())
    return min(loss.k, relevant.size) if hasattr(loss, "k") else None


@over(("name", "oracle"), OVER_RANKINGS)
def test_rankings_equal_exhaustive_search(name, oracle, rng):
    loss, tied = make_loss(name), 0
    for _ in range(120):
        scores, relevant = tiny_query(rng)
        violation, weights = find(loss, oracle, scores, relevant)
        judge = hinge_by_interleavings(scores, relevant, definition(name))
        assert violation.value == pytest.approx(judge, abs=1e-12)
        assert violation.value == pytest.approx(violation.loss + weights @ scores, abs=1e-12)
        assert weights.sum() == pytest.approx(0.0, abs=1e-12)
        assert violation.value >= 0.0
        tied += np.unique(scores).size < scores.size
    assert tied > 60


@over(("name", "oracle"), OVER_LABELLINGS)
def test_labellings_equal_exhaustive_search(name, oracle, rng):
    loss, tied = make_loss(name), 0
    for _ in range(120):
        scores, relevant = tiny_query(rng, most=3)
        violation, weights = find(loss, oracle, scores, relevant)
        judge = hinge_by_labellings(scores, relevant, loss.of_labelling, admitted_labels(loss, relevant))
        assert violation.value == pytest.approx(judge, abs=1e-12)
        assert violation.value == pytest.approx(violation.loss + weights @ scores, abs=1e-12)
        tied += np.unique(scores).size < scores.size
    assert tied > 40


@over(("name", "oracle"), LOSSES_AND_ORACLES)
def test_subgradient_inequality(name, oracle, rng):
    """h(s') ≥ h(s) + c·(s' − s): the row weights are a subgradient of the value."""
    loss, slanted = make_loss(name), 0
    for _ in range(40):
        scores, relevant = tiny_query(rng, most=8)
        here, weights = find(loss, oracle, scores, relevant)
        slanted += bool(weights.any())
        for scale in (1e-3, 0.3, 10.0):
            there = scores + scale * rng.normal(size=scores.size)
            value = find(loss, oracle, there, relevant)[0].value
            assert value >= here.value + weights @ (there - scores) - 1e-12
    assert slanted > 10


@over(("name", "oracle"), OVER_RANKINGS)
def test_the_hinge_bounds_the_loss_of_the_order(name, oracle, rng):
    loss, lost = make_loss(name), 0
    for _ in range(60):
        scores, relevant = tiny_query(rng, most=8)
        scores = scores + 1e-6 * rng.normal(size=scores.size)
        in_order = relevant[np.argsort(-scores)]
        delta = loss.of_ranking(np.cumsum(~in_order)[in_order], int((~relevant).sum()))
        assert find(loss, oracle, scores, relevant)[0].value >= delta - 1e-9
        lost += delta > 0
    assert lost > 0 or getattr(loss, "k", 0) > scores.size
