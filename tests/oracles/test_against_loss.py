"""The ranking that maximises F − Δ, against exhaustive search, other dynamic programmes, and what theory says."""

from __future__ import annotations

import numpy as np
import pytest
from judge import definition, hinge_by_interleavings, hinge_by_lattice, hinge_by_permutations, hinge_of_ranks

from apsvm import most_violated_ranking
from apsvm.losses import LOSSES
from apsvm.losses.base import RankingLoss
from apsvm.oracles import ranking
from apsvm.oracles.base import NativeOracle
from apsvm.oracles.bucket import Bucket
from apsvm.oracles.layout import Queries
from apsvm.risk import NoLoss

RANKING_LOSSES = list({LOSSES[n]: n for n in reversed(list(LOSSES)) if issubclass(LOSSES[n], RankingLoss)}.values())


class AgainstLoss(NativeOracle):
    """max_R [F(R) − F(R*) − Δ(R*, R)]: the inference of the negative update of ``apsvm.torch.DirectLoss``."""

    name = "against-loss"


def negated(loss):
    """The metric whose loss is −Δ."""
    metric = definition(loss)
    return lambda in_order: -metric(in_order)


def against(scores, relevant, loss, oracle=None):
    """(value, Δ, ranks, row weights in the order of the rows)."""
    n_pos = int(relevant.sum())
    weights = np.empty(scores.size)
    weights_pos, weights_neg = np.empty(n_pos), np.empty(scores.size - n_pos)
    bound = (oracle or AgainstLoss()).bind(loss, n_pos, weights_neg.size)
    found = bound(scores[relevant], scores[~relevant], weights_pos, weights_neg)
    weights[relevant], weights[~relevant] = weights_pos, weights_neg
    return found.value, found.loss, ranking.ranks(weights_neg, n_pos), weights


def tiny_query(rng):
    n_pos, n_neg = rng.integers(1, 5, size=2)
    relevant = rng.permutation(np.repeat([True, False], [n_pos, n_neg]))
    scores = rng.integers(-3, 4, size=n_pos + n_neg) * rng.choice([0.05, 0.25, 1.0])
    return scores + rng.normal(size=scores.size) * (rng.random() < 0.2), relevant


@pytest.mark.slow
@pytest.mark.parametrize("loss", RANKING_LOSSES)
def test_equals_exhaustive_search_on_tiny_queries(loss, rng):
    made, tied, between = LOSSES[loss](), 0, 0
    while tied < 400:
        scores, relevant = tiny_query(rng)
        value, lost, ranks, weights = against(scores, relevant, made)
        assert value == pytest.approx(hinge_by_interleavings(scores, relevant, negated(loss)), abs=1e-12)
        of_ranks, minus_lost = hinge_of_ranks(scores, relevant, ranks, negated(loss))
        assert value == pytest.approx(of_ranks, abs=1e-12)
        assert lost == pytest.approx(-minus_lost, abs=1e-12)
        assert value == pytest.approx(weights @ scores - lost, abs=1e-12)
        assert weights.sum() == pytest.approx(0.0, abs=1e-12)
        by_score = against(scores, relevant, NoLoss())
        assert value <= by_score[0] + 1e-12
        tied += np.unique(scores).size < scores.size
        between += by_score[1] == 0.0 and by_score[0] - value > 1e-6 and lost > 1e-6
    assert between > 8  # rankings that are neither the best one nor that by score


@pytest.mark.parametrize("loss", RANKING_LOSSES)
def test_equals_the_best_of_all_permutations(loss, rng):
    made, checked = LOSSES[loss](), 0
    while checked < 40:
        scores, relevant = tiny_query(rng)
        if scores.size <= 6:
            checked += 1
            judge = hinge_by_permutations(scores, relevant, negated(loss))
            assert against(scores, relevant, made)[0] == pytest.approx(judge, abs=1e-12)


def test_the_best_of_each_positive_alone_need_not_ascend():
    """Two positives of one score: alone, the first would have more negatives above it than the second."""
    negatives = [3.34, 2.04, 1.41, 0.74, 0.68, 0.18, 0.11, 0.05, -0.63, -0.96, -1.04, -1.61]
    scores, relevant = np.array([0.0, 0.0, *negatives]), np.arange(14) < 2
    judge = hinge_by_interleavings(scores, relevant, negated("ap"))
    assert against(scores, relevant, LOSSES["ap"]())[0] == pytest.approx(judge, abs=1e-12)


@pytest.mark.parametrize("n", [(1, 300), (40, 200), (200, 40), (60, 1)])
def test_equals_a_programme_over_places_on_larger_queries(n, rng):
    """NDCG adds up over places; AP as a sum over pairs (n_k, k) in a table of all of them, as in Song et al."""
    relevant = rng.permutation(np.repeat([True, False], n))
    n_pos, n_neg = n
    for scale in (1e-3, 0.1, 1.0, 30.0):
        for lift in (0.0, 1.0):
            scores = scale * (rng.normal(size=relevant.size) + lift * relevant)
            gains = 1 / np.log2(np.arange(2, relevant.size + 2)) / (1 / np.log2(np.arange(2, n_pos + 2))).sum()
            judge = hinge_by_lattice(scores, relevant, lambda a, b: -gains[a + b - 1], -1.0)  # noqa: B023
            assert against(scores, relevant, LOSSES["ndcg"]())[0] == pytest.approx(judge, abs=1e-11)
            k, above = np.arange(1, n_pos + 1)[:, None], np.arange(n_neg + 1)[None, :]
            s_pos, s_neg = -np.sort(-scores[relevant]), -np.sort(-scores[~relevant])
            pairs = np.cumsum(np.pad(s_pos[:, None] - s_neg[None, :], ((0, 0), (1, 0))), axis=1)
            terms = (k / (k + above) - 1) / n_pos - 2 / (n_pos * n_neg) * pairs
            best = np.zeros(n_neg + 1)
            for of_positive in terms:
                best = np.maximum.accumulate(best + of_positive)
            assert against(scores, relevant, LOSSES["ap"]())[0] == pytest.approx(best[-1], abs=1e-11)


@pytest.mark.parametrize("loss", RANKING_LOSSES)
def test_the_ranks_against_the_loss_by_score_and_for_it_are_nested(loss, rng):
    """r(−ε) ≥ r(0) ≥ r(+ε), and (F(R−) + …) bounds Δ of the ranking by score from below as the ramp does from above."""
    made, apart = LOSSES[loss](), 0
    for _ in range(300):
        n_pos, n_neg = rng.integers(1, 30, size=2)
        relevant = rng.permutation(np.repeat([True, False], [n_pos, n_neg]))
        scores = rng.normal(size=relevant.size) * rng.choice([0.01, 0.3, 3.0]) + 0.3 * relevant
        low, _, below, _ = against(scores, relevant, made)
        by_score, _, order, _ = against(scores, relevant, NoLoss())
        high = most_violated_ranking(scores, relevant, made)
        assert (below >= order).all()
        assert (order >= high.ranks).all()
        lost = made.of_ranking(ranking.negatives_above(order, n_pos), n_neg)
        assert by_score - low <= lost + 1e-12
        assert lost <= high.value - by_score + 1e-12
        apart += (below > order).any()
    assert apart > 50


def test_tied_scores_count_against_the_ranking_by_score(rng):
    """At w = 0 the ranking by score must differ from the one that −Δ wants, or nothing would ever move."""
    scores, relevant = np.zeros(7), np.arange(7) < 3
    assert against(scores, relevant, NoLoss())[2].tolist() == [1, 1, 1, 1]
    assert against(scores, relevant, NoLoss(), Bucket())[2].tolist() == [4, 4, 4, 4]
    value, lost, ranks, _ = against(scores, relevant, LOSSES["ap"]())
    assert (value, lost, ranks.tolist()) == (0.0, 0.0, [4, 4, 4, 4])


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e9, 1e150])
def test_scores_of_any_magnitude(scale, rng):
    relevant = np.arange(50) < 12
    scores = scale * rng.normal(size=50)
    value, lost, ranks, weights = against(scores, relevant, LOSSES["ap"]())
    assert np.isfinite(weights).all()
    assert 0.0 <= lost <= 1.0
    assert value == pytest.approx(weights @ scores - lost, rel=1e-9)
    if scale > 1.0:  # the scores decide
        assert ranks.tolist() == against(scores, relevant, NoLoss())[2].tolist()
    else:  # the loss does
        assert (ranks == 13).all()


def test_many_queries_at_once_in_threads(rng):
    sizes = rng.integers(1, 60, size=(2, 700))
    shares = rng.random(700)
    scores = rng.normal(size=sizes.sum())
    queries = Queries(sizes[0], sizes[1], shares)
    loss = LOSSES["ndcg"]()
    one, two = np.empty(scores.size), np.empty(scores.size)
    found = AgainstLoss().bind_queries(loss, queries, threads=1)(scores, one)
    assert found == AgainstLoss().bind_queries(loss, queries, threads=2)(scores, two)
    assert np.array_equal(one, two)
    value = 0.0
    for first, n_pos, n_neg, share in zip(*queries.tasks, strict=True):
        own = scores[first : first + n_pos + n_neg]
        judged, _, _, weights = against(own, np.arange(own.size) < n_pos, loss)
        value += share * judged
        np.testing.assert_allclose(one[first : first + own.size], share * weights, atol=1e-15)
    assert found[0] == pytest.approx(value, rel=1e-12)
