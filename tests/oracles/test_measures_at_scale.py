"""The measures' oracles where they do not sort all negatives: from some thousand rows on, against slow references."""

from __future__ import annotations

import numpy as np
import pytest
from judge import hinge_by_lattice
from over import over

from apsvm import most_violated_ranking
from apsvm.losses import make_loss
from apsvm.oracles import make_oracle

SCORES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "few values": lambda rng, n: rng.integers(0, 5, size=n) / 4.0,
    "equal": lambda rng, n: np.full(n, 0.25),
    "signed zeros": lambda rng, n: rng.choice([0.0, -0.0], size=n),
    "heavy tails": lambda rng, n: rng.standard_cauchy(size=n),
    "denormal": lambda rng, n: rng.integers(-2, 3, size=n) * 5e-324,
    "ascending": lambda rng, n: np.sort(rng.normal(size=n)),
    "far from zero": lambda rng, n: -1e6 + rng.normal(size=n),
}


def bound(loss, scores_pos, scores_neg, threads=1):
    oracle = make_oracle("auto", loss).bind(loss, scores_pos.size, scores_neg.size, threads=threads)
    weights = np.empty(scores_pos.size), np.empty(scores_neg.size)
    return oracle(scores_pos, scores_neg, *weights), *weights


def assert_consistent(violation, weights_pos, weights_neg, scores_pos, scores_neg, size):
    """h = Δ + c·s, with the c that was written."""
    value = violation.loss + weights_pos @ scores_pos + weights_neg @ scores_neg
    assert value == pytest.approx(violation.value, rel=1e-9, abs=1e-9 * size)


@over("kind", SCORES)
@over("form", ["ndcg", "p"])
def test_rankings_cut_off_early(form, kind, rng):
    n_pos, n_neg = int(rng.integers(2, 5)), int(rng.integers(4200, 5200))
    scores_neg = SCORES[kind](rng, n_neg)
    scores_pos = rng.choice(scores_neg, n_pos) + rng.choice([0.0, 0.5], n_pos)
    k = int(rng.choice([1, 3, 10, 40]))
    loss = make_loss(f"{form}@{k}")
    gains = np.where(np.arange(n_pos + n_neg) < k, 1.0, 0.0)
    if form == "ndcg":
        gains /= np.log2(np.arange(2, gains.size + 2))
    ideal = gains[:n_pos].sum()
    gains, best = (gains / ideal, 1.0) if form == "ndcg" else (gains / k, ideal / k)
    scores = np.append(scores_pos, scores_neg)
    judge = hinge_by_lattice(scores, np.arange(scores.size) < n_pos, lambda a, b: gains[a + b - 1], best)
    size = 1.0 + np.abs(scores).max()
    violation, *weights = bound(loss, scores_pos, scores_neg)
    assert violation.value == pytest.approx(judge, rel=1e-9, abs=1e-11 * size)
    assert_consistent(violation, *weights, scores_pos, scores_neg, size)
    assert violation.violating == np.count_nonzero(weights[1])


def f_hinge(scores_pos, scores_neg, beta):
    """Every (a, b), for each a at once."""
    n_pos, n_neg = scores_pos.size, scores_neg.size
    above = np.append(0.0, np.cumsum(-np.sort(-scores_neg)))
    b = np.arange(n_neg + 1)
    best = 0.0
    for a in range(n_pos + 1):
        lost = (b + beta**2 * (n_pos - a)) / np.maximum(a + b + beta**2 * n_pos, 1e-300)
        missed = np.sort(scores_pos)[: n_pos - a].sum()
        best = max(best, float((lost + (above - missed) / (n_pos + n_neg)).max()))
    return best


@over("kind", SCORES)
@over("beta", [0.5, 1.0])
def test_f_in_bins(kind, beta, rng):
    n_pos, n_neg = int(rng.integers(3, 40)), int(rng.integers(20_000, 26_000))
    for shift in (0.0, 2.0):
        scores_neg = SCORES[kind](rng, n_neg) - shift
        scores_pos = rng.choice(scores_neg, n_pos) + rng.choice([0.0, 1.0, 4.0], n_pos)
        size = 1.0 + np.abs(scores_neg).max()
        violation, *weights = bound(make_loss(f"f({beta})"), scores_pos, scores_neg)
        assert violation.value == pytest.approx(f_hinge(scores_pos, scores_neg, beta), rel=1e-9, abs=1e-11 * size)
        assert_consistent(violation, *weights, scores_pos, scores_neg, size)


@over("name", ["set-p@20", "set-r@20", "prbep"])
@over("kind", SCORES)
def test_labels_of_the_top(kind, name, rng):
    n_pos, n_neg = 30, 9000
    scores_neg = SCORES[kind](rng, n_neg)
    scores_pos = rng.choice(scores_neg, n_pos) + rng.choice([0.0, 1.0], n_pos)
    k = n_pos if name == "prbep" else 20
    unit = 20 if name == "set-p@20" else n_pos
    s_pos, s_neg = -np.sort(-scores_pos), -np.sort(-scores_neg)
    value = max(
        (min(k, n_pos) - a) / unit + (s_neg[: k - a].sum() - s_pos[a:].sum()) / (n_pos + n_neg)
        for a in range(min(k, n_pos) + 1)
    )
    size = 1.0 + np.abs(scores_neg).max()
    violation, *weights = bound(make_loss(name), scores_pos, scores_neg)
    assert violation.value == pytest.approx(max(value, 0.0), rel=1e-9, abs=1e-11 * size)
    assert_consistent(violation, *weights, scores_pos, scores_neg, size)


@pytest.mark.parametrize("name", ["ndcg@10", "p@10", "f1"])
def test_threads_change_nothing(name, rng):
    scores_pos, scores_neg = rng.normal(size=500) + 1.0, rng.normal(size=300_000)
    one, two = (bound(make_loss(name), scores_pos, scores_neg, threads) for threads in (1, 2))
    assert one[0] == two[0]
    np.testing.assert_array_equal(one[1], two[1])
    np.testing.assert_array_equal(one[2], two[2])


class TestMostViolatedRanking:
    def test_a_second_call_is_the_first(self, rng):
        """Calls of one size share an oracle; so do calls in between that raise."""
        scores, relevant = rng.normal(size=400), rng.random(400) < 0.1
        first = most_violated_ranking(scores, relevant)
        with pytest.raises(ValueError, match="finite"):
            most_violated_ranking(np.full(400, np.nan), relevant)
        other = most_violated_ranking(-scores, relevant)
        again = most_violated_ranking(scores, relevant.astype(float))
        assert first.value == again.value != other.value
        np.testing.assert_array_equal(first.ranks, again.ranks)
        np.testing.assert_array_equal(first.row_weights, again.row_weights)

    def test_a_loss_of_ones_own_may_change(self):
        class Mine:
            scale = 1.0

            def weights(self, n_pos):
                return np.full(n_pos, self.scale / n_pos)

            def discount(self, n):
                return 1.0 / np.arange(1, n + 1)

        mine = Mine()
        before = most_violated_ranking([0.0, 0.0, 0.0], [1, 0, 0], mine).value
        mine.scale = 2.0
        assert most_violated_ranking([0.0, 0.0, 0.0], [1, 0, 0], mine).value == pytest.approx(2 * before)

    def test_what_is_kept_is_bounded(self, rng):
        from apsvm.oracles import inference

        for n in range(3, 30):
            most_violated_ranking(rng.normal(size=n), np.arange(n) == 1)
        assert len(inference._ready._queries) == inference.MOST_QUERIES_KEPT
