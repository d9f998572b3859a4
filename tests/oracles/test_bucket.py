"""The bucket oracle where it really bins (5,000 negatives and more): hostile scores, warm starts, threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from apsvm.losses import LOSSES
from apsvm.losses.average_precision import AveragePrecisionLoss
from apsvm.oracles import make_oracle


class NotDeclaredUnimodal(AveragePrecisionLoss):
    """The same loss, without the leave to bisect over ranks."""

    name = "ap-linear"
    unimodal = False


#: Losses, and calls of each: the kernel asks nothing of a loss but its arrays and whether it is unimodal.
LOSS_KINDS = {
    LOSSES["ap"]: 1000,
    NotDeclaredUnimodal: 500,
    **{LOSSES[name]: 250 for name in ("ndcg", "mrr", "auc", "rbp(rho)")},
}


def kinds_of_scores(rng: np.random.Generator, n: int) -> list[Callable[[], np.ndarray]]:
    """Heavy ties, heavy tails, clusters, offsets, sorted and periodic orders, denormals; some of them together."""
    return [
        lambda: rng.normal(size=n),
        lambda: rng.integers(0, rng.integers(1, 12), size=n) / 4.0,
        lambda: np.full(n, rng.normal()),
        lambda: rng.standard_cauchy(size=n),
        lambda: rng.lognormal(sigma=3.0, size=n),
        lambda: -rng.lognormal(sigma=5.0, size=n),
        lambda: np.where(rng.random(n) < 0.5, 0.0, rng.normal(size=n)),
        lambda: rng.choice([-1.0, 1.0], size=n) + 1e-9 * rng.normal(size=n),
        lambda: 1e6 + 1e-6 * rng.normal(size=n),
        lambda: np.sort(rng.normal(size=n)),
        lambda: -np.sort(rng.normal(size=n)),
        lambda: np.tile(rng.normal(size=7), n // 7 + 1)[:n],
        lambda: np.where(np.arange(n) % (n // 4096 or 1) == 0, 5.0, rng.normal(size=n)),  # aims at the sample
        lambda: np.full(n, 5e-324) * rng.integers(0, 3, size=n),
        lambda: rng.normal(size=n) * np.where(rng.random(n) < 0.001, 1e12, 1.0),
        lambda: rng.normal(size=n) * 1e-300,
        lambda: rng.choice([0.0, -0.0, 1.0], size=n),
    ]


def hostile_scores(rng: np.random.Generator, n: int) -> np.ndarray:
    kinds = kinds_of_scores(rng, n)
    return kinds[rng.integers(len(kinds))]()


def call(oracle, scores_pos, scores_neg):
    weights = np.empty(scores_pos.size), np.empty(scores_neg.size)
    return oracle(scores_pos, scores_neg, *weights), weights


def assert_same(found, judge, scores_pos, scores_neg):
    """Compares values only: if rounding decides a tie, rankings of equal value differ."""
    violation, (c_pos, c_neg) = found
    size = max(1.0, np.abs(scores_pos).max(), np.abs(scores_neg).max())
    assert violation.value == pytest.approx(judge[0].value, rel=1e-10, abs=1e-11 * size)
    assert violation.violating == (c_neg > 0).sum()
    assert c_pos.sum() + c_neg.sum() == pytest.approx(0.0, abs=1e-11)


@pytest.mark.parametrize("n_pos", [1, 40, 400])
@pytest.mark.parametrize("loss", [LOSSES["ap"], NotDeclaredUnimodal], ids=["ap", "ap-linear"])
def test_each_kind_of_scores(loss, n_pos, rng):
    """The second call starts from what the first found, the third from what the second did."""
    made, n_neg, few, ranks = loss(), 5200, 0, 0
    for kind in kinds_of_scores(rng, n_neg):
        scores_neg = kind()
        bucket, qs = (make_oracle(name, made).bind(made, n_pos, n_neg) for name in ("bucket", "qs"))
        for share, shift in ((0.5, 0.0), (0.98, 0.0), (0.9, 0.02)):
            scores_pos = rng.choice(np.sort(scores_neg)[int(share * n_neg) :], size=n_pos) + shift
            found = call(bucket, scores_pos, scores_neg)
            assert_same(found, call(qs, scores_pos, scores_neg), scores_pos, scores_neg)
            few += found[0].violating <= 0.2 * n_neg
            ranks = max(ranks, np.unique(found[1][1]).size)
    assert 8 <= few <= 40
    assert ranks > 0.9 * n_pos
    assert ranks > min(n_pos, 5)


def test_a_guess_that_few_are_violated_is_proved(rng):
    """The second call looks only at the negatives above a threshold that it guesses, and at one position behind them.
    Scores are so close that the position decides: of each number of violations around the guess it finds all."""
    n_neg, loss = 5200, LOSSES["ap"]()
    j = np.arange(1.0, n_neg + 1.0)
    scores_neg = rng.permutation(-0.001 * j)
    # The j-th negative is violated by a positive with a score below this.
    limits = n_neg / 2.0 * (1.0 / j - 1.0 / (j + 1.0)) - 0.001 * j
    for violated in range(20, 120):
        oracle = make_oracle("bucket", loss).bind(loss, 1, n_neg)
        for at in (20, violated):
            found, (_, c_neg) = call(oracle, limits[at - 1 : at + 1].mean(keepdims=True), scores_neg)
            assert found.violating == (c_neg > 0).sum() == at


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "queries"), LOSS_KINDS.items(), ids=[loss.__name__ for loss in LOSS_KINDS])
def test_hostile_scores(loss, queries, rng):
    """Two calls a query: the second starts from what the first found. Sizes around those where the way of working
    changes: 5,000, and now and then beyond the 100,000 that are still sorted."""
    made = loss()
    warm = values = 0
    for at in range(queries):
        n_pos = int(rng.choice([1, 5, 40, 400]))
        n_neg = int(rng.integers(4900, 5600) if at % 50 else rng.integers(99_000, 130_000))
        scores_neg = hostile_scores(rng, n_neg)
        spread = np.std(scores_neg) if np.isfinite(np.std(scores_neg)) else 1.0
        shift = rng.choice([0.0, 0.5, 3.0, 6.0]) * (spread or 1.0)
        scores_pos = rng.choice(scores_neg, size=n_pos) + shift
        scale = rng.choice([1e-3, 1.0, 1.0 / (spread or 1.0)])
        scores_pos, scores_neg = scale * scores_pos, scale * scores_neg
        bucket = make_oracle("bucket", made).bind(made, n_pos, n_neg)
        qs = make_oracle("qs", made).bind(made, n_pos, n_neg)
        first = call(bucket, scores_pos, scores_neg)
        assert_same(first, call(qs, scores_pos, scores_neg), scores_pos, scores_neg)
        warm += 0 <= first[0].violating <= 0.2 * n_neg
        values += first[0].value > 0
        moved = scores_neg * rng.choice([1.0, 0.9, 2.0, -1.0]) + rng.choice([0.0, spread * scale])
        assert_same(call(bucket, scores_pos, moved), call(qs, scores_pos, moved), scores_pos, moved)
    assert 0.08 * queries < warm < 0.96 * queries  # both ways of starting are taken
    assert values > 0.4 * queries


@pytest.mark.parametrize("shift", [0.5, 4.0])
@pytest.mark.parametrize("kind", ["normal", "Cauchy", "few values"])
def test_threads_change_nothing(kind, shift, rng):
    n_pos, n_neg = 50, 300_000
    scores = {
        "normal": rng.normal(size=n_neg),
        "Cauchy": rng.standard_cauchy(size=n_neg),
        "few values": rng.integers(0, 5, size=n_neg) / 2.0,
    }[kind]
    scores_pos = rng.normal(size=n_pos) + shift
    loss = LOSSES["ap"]()
    found = []
    for threads in (1, 2, 3):
        oracle = make_oracle("bucket", loss).bind(loss, n_pos, n_neg, threads=threads)
        for _ in range(2):
            violation, (c_pos, c_neg) = call(oracle, scores_pos, scores)
        found.append((violation, c_pos, c_neg))
    for violation, c_pos, c_neg in found[1:]:
        assert violation == found[0][0]
        np.testing.assert_array_equal(c_pos, found[0][1])
        np.testing.assert_array_equal(c_neg, found[0][2])
    judge = call(make_oracle("greedy", loss).bind(loss, n_pos, n_neg), scores_pos, scores)
    assert_same((found[0][0], found[0][1:]), judge, scores_pos, scores)


@pytest.mark.parametrize("loss", [LOSSES["ap"], LOSSES["ndcg"], LOSSES["auc"]], ids=["ap", "ndcg", "auc"])
def test_many_positives(loss, rng):
    """Where nearly every bin holds a change of rank, all are sorted: more positives than fine bins are made for, or
    few negatives for each of them."""
    made = loss()
    for n_pos, n_neg in ((13_000, 20_000), (6_000, 110_000), (13_000, 110_000)) * 4:
        scores_neg = hostile_scores(rng, n_neg)
        spread = float(np.std(scores_neg)) if np.isfinite(np.std(scores_neg)) else 1.0
        scores_pos = rng.choice(scores_neg, size=n_pos) + rng.choice([0.0, 0.5, 3.0]) * spread
        bucket, qs = (make_oracle(name, made).bind(made, n_pos, n_neg) for name in ("bucket", "qs"))
        judge = call(qs, scores_pos, scores_neg)
        assert_same(call(bucket, scores_pos, scores_neg), judge, scores_pos, scores_neg)
