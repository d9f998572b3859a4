"""The contract of a loss: sizes, signs, convexity, hand values, and Δ = 1 − metric."""

from __future__ import annotations

import numpy as np
import pytest

from apsvm import ranking
from apsvm.losses import LOSSES
from apsvm.losses.base import LossError, RankingLoss
from apsvm.metrics import parse_metric

RANKING_LOSSES = [name for name in LOSSES if issubclass(LOSSES[name], RankingLoss)]
METRIC_OF = {"ap": "AP"}


@pytest.mark.parametrize("name", RANKING_LOSSES)
@pytest.mark.parametrize(("n_pos", "n_neg"), [(1, 1), (3, 5), (50, 2000), (5000, 3)])
def test_tables_fulfil_the_contract(name, n_pos, n_neg):
    tables = LOSSES[name]().tables(n_pos, n_neg)
    assert tables.weights.shape == (n_pos,)
    assert tables.discount.shape == (n_pos + n_neg,)
    assert tables.drops.shape == (n_pos + n_neg - 1,)
    assert tables.loss(np.zeros(n_pos, dtype=np.int64)) == 0.0
    worst = tables.loss(np.full(n_pos, n_neg))
    assert 0.0 < worst <= 1.0


@pytest.mark.parametrize("name", RANKING_LOSSES)
def test_loss_is_one_minus_its_metric(name, rng):
    metric = parse_metric(METRIC_OF[name])
    for _ in range(100):
        n_pos, n_neg = rng.integers(1, 9, size=2)
        scores_pos, scores_neg = rng.normal(size=n_pos), rng.normal(size=n_neg)
        ranks = 1 + (scores_pos[None, :] > scores_neg[:, None]).sum(axis=1).astype(np.int32)
        above = ranking.negatives_above(ranks, n_pos)
        loss = LOSSES[name]().tables(n_pos, n_neg).loss(above)
        scores = np.concatenate([scores_pos, scores_neg])
        assert loss == pytest.approx(1.0 - metric(scores, np.arange(scores.size) < n_pos), abs=1e-12)
        merged = ranking.merged_order(ranks, scores_pos, scores_neg)
        np.testing.assert_array_equal(merged, np.argsort(-scores))


@pytest.mark.parametrize("name", [name for name in RANKING_LOSSES if LOSSES[name]().unimodal])
def test_a_declared_unimodal_loss_has_non_decreasing_gains(name):
    """The first term of g_j(k) must not fall in k on 1..min(P, j); the second never does."""
    n_pos, n_neg = 40, 90
    tables = LOSSES[name]().tables(n_pos, n_neg)
    for j in range(1, n_neg + 1):
        k = np.arange(1, min(n_pos, j) + 1)
        assert (np.diff(tables.weights[k - 1] * tables.drops[k + j - 2]) >= -1e-16).all()


def made(weights, discount):
    class Made(RankingLoss):
        name = "made"

        def weights(self, n_pos):
            return weights(n_pos)

        def discount(self, n):
            return discount(n)

    return Made()


def positions(n):
    return np.arange(1.0, n + 1)


@pytest.mark.parametrize(
    ("weights", "discount", "message"),
    [
        (np.ones, lambda n: positions(n), "increasing at position 1"),
        (np.ones, lambda n: -(positions(n) ** 2), "not convex at position 1"),
        (np.ones, lambda n: np.where(positions(n) <= 2, 1.0, 1 / np.log2(np.maximum(positions(n), 2))), "position 1"),
        (lambda n: -np.ones(n), lambda n: 1 / positions(n), "weight of the 1-th positive is negative"),
        (np.ones, lambda n: positions(n + 1), "found shapes"),
        (np.ones, lambda n: np.full(n, np.nan), "finite"),
    ],
)
def test_a_loss_that_breaks_the_contract_is_refused(weights, discount, message):
    with pytest.raises(LossError, match=message):
        made(weights, discount).tables(3, 5)
