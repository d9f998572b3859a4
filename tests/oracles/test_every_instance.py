"""Every loss at several parameters, with every exact oracle that serves it: by value against everything there is.

What a loss loses is what it says itself (``of_ranking``, ``of_labelling``), which the tests of the losses and of their
metrics hold against definitions.
"""

from __future__ import annotations

import numpy as np
import pytest
from instances import LABELLING_LOSSES, LOSSES_AND_ORACLES, RANKING_LOSSES
from judge import definition, hinge_by_interleavings, hinge_by_labellings, hinge_by_permutations, hinge_of_ranks
from over import over

from apsvm import most_violated_ranking
from apsvm.losses import make_loss
from apsvm.oracles import ORACLES, make_oracle, serving

OVER_LABELLINGS = [pair for pair in LOSSES_AND_ORACLES if pair[0] in LABELLING_LOSSES]
#: Losses that bound the loss of a prediction: the k highest rows are no labelling by scores.
OF_PREDICTIONS = [
    pair
    for pair in LOSSES_AND_ORACLES
    if pair[0] in [*RANKING_LOSSES, *LABELLING_LOSSES] and not pair[0].startswith("set-")
]


def tiny_query(rng, most):
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
    """Number of rows labelled positive: P, k, or None for any number."""
    if loss.name == "prbep":
        return int(relevant.sum())
    return min(loss.k, relevant.size) if hasattr(loss, "k") else None


@over("name", RANKING_LOSSES)
def test_rankings_equal_exhaustive_search(name, rng):
    """And the value, the loss and the row weights are those of the ranks."""
    loss, tied, sizes = make_loss(name), 0, set()
    oracles = [oracle for oracle in serving(loss) if ORACLES[oracle].exact]
    for _ in range(200):
        scores, relevant = tiny_query(rng, most=5)
        n_pos, n_neg = int(relevant.sum()), int((~relevant).sum())
        judge = hinge_by_interleavings(scores, relevant, definition(name))
        if scores.size <= 5:
            assert judge == pytest.approx(hinge_by_permutations(scores, relevant, definition(name)), abs=1e-12)
        for oracle in oracles:
            found = most_violated_ranking(scores, relevant, loss=loss, oracle=oracle)
            assert found.value == pytest.approx(judge, abs=1e-12), oracle
            of_ranks = hinge_of_ranks(scores, relevant, found.ranks, definition(name))
            assert (found.value, found.loss) == pytest.approx(of_ranks, abs=1e-12), oracle
            weights = found.row_weights
            assert found.value == pytest.approx(found.loss + weights @ scores, abs=1e-12)
            assert found.value >= 0.0
            assert weights.sum() == pytest.approx(0.0, abs=1e-14)
            assert (weights[relevant] <= 0).all()
            of_negatives = 2.0 / (n_pos * n_neg) * (n_pos + 1 - found.ranks)
            np.testing.assert_allclose(weights[~relevant], of_negatives, rtol=1e-15)
            in_order = found.ranks[np.argsort(-scores[~relevant], kind="stable")]
            assert (np.diff(in_order) >= 0).all()
        tied += np.unique(scores).size < scores.size
        sizes.add((n_pos, n_neg))
    assert tied > 100
    assert len(sizes) > 20


@over(("name", "oracle"), OVER_LABELLINGS)
def test_labellings_equal_exhaustive_search(name, oracle, rng):
    loss, tied = make_loss(name), 0
    for _ in range(120):
        scores, relevant = tiny_query(rng, most=3)
        violation, weights = find(loss, oracle, scores, relevant)
        judge = hinge_by_labellings(scores, relevant, loss.of_labelling, admitted_labels(loss, relevant))
        assert violation.value == pytest.approx(judge, abs=1e-12)
        assert violation.value == pytest.approx(violation.loss + weights @ scores, abs=1e-12)
        assert set(np.unique(np.rint(scores.size * weights))) <= {-1.0, 0.0, 1.0}
        assert violation.violating == np.count_nonzero(weights)
        if violation.value > 0:
            a, b = int((weights[relevant] == 0).sum()), int((weights[~relevant] > 0).sum())
            assert violation.loss == pytest.approx(loss.of_labelling(a, b, relevant.sum(), (~relevant).sum()))
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


@over(("name", "oracle"), OF_PREDICTIONS)
def test_the_hinge_bounds_the_loss_of_the_prediction(name, oracle, rng):
    """The order of the scores; for labellings their signs, or for PRBEP the P highest."""
    loss, lost = make_loss(name), 0
    for _ in range(60):
        scores, relevant = tiny_query(rng, most=8)
        scores = scores + 1e-6 * rng.normal(size=scores.size)
        in_order, n_neg = relevant[np.argsort(-scores)], int((~relevant).sum())
        if name in LABELLING_LOSSES:
            called = int((relevant if name == "prbep" else scores > 0).sum())
            hits = int(in_order[:called].sum())
            delta = loss.of_labelling(hits, called - hits, relevant.size - n_neg, n_neg)
        else:
            delta = loss.of_ranking(np.cumsum(~in_order)[in_order], n_neg)
        assert find(loss, oracle, scores, relevant)[0].value >= delta - 1e-9
        lost += delta > 0
    assert lost > 0 or getattr(loss, "k", 0) > scores.size
