"""The bucket oracle's kernels one by one: negatives that stand in several parts are ranked as those in one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.losses import LOSSES
from apsvm.oracles import make_oracle


class Ranked(NamedTuple):
    weights: NDArray[np.float64]
    rank_counts: NDArray[np.int64]
    n_open: int


def ranked_in_parts(loss, scores_pos, scores_neg, cuts, *, threads=1) -> Ranked:
    """What several workers would do: each sees its own scores alone, and the one who bounds sees none."""
    n_pos, n_neg = scores_pos.size, scores_neg.size
    bins = _kernels.ScoreBins(scores_neg[:: max(1, n_neg // 4096)].copy(), n_neg, n_pos)
    parts = np.split(scores_neg, cuts)
    counted = [bins.count(np.ascontiguousarray(part)) for part in parts]
    total = np.sum([counts for _, counts in counted], axis=0)
    assert total.sum() == n_neg
    tables, descending = loss.tables(n_pos, n_neg), np.sort(scores_pos)[::-1].copy()
    bounds = _kernels.BinnedRanks(bins, total, descending, *tables, unimodal=loss.unimodal, threads=threads)
    weight_of_bin = bounds.weight_of_bin
    weights = [np.full(part.size, np.nan) for part in parts]
    opened = [
        _kernels.assign_part(weight_of_bin, names, part, own)
        for (names, _), part, own in zip(counted, parts, weights, strict=True)
    ]
    names = np.concatenate([names[open_] for (names, _), open_ in zip(counted, opened, strict=True)])
    scores = np.concatenate([part[open_] for part, open_ in zip(parts, opened, strict=True)])
    solved = np.split(bounds.rank_open(names, scores), np.cumsum([open_.size for open_ in opened])[:-1])
    for own, open_, found in zip(weights, opened, solved, strict=True):
        own[open_] = found
    return Ranked(np.concatenate(weights), bounds.rank_counts, scores.size)


SCORES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(size=n),
    "few values": lambda rng, n: rng.integers(0, 9, size=n) / 4.0,
    "constant": lambda rng, n: np.full(n, 0.5),
}


@pytest.mark.parametrize("loss_name", ["ap", "ndcg", "auc", "rbp(rho)"])
@pytest.mark.parametrize("kind", SCORES)
def test_parts_change_nothing(kind, loss_name, rng):
    loss = LOSSES[loss_name]()
    n_pos, n_neg = 30, 40_000
    scores_neg = SCORES[kind](rng, n_neg)
    scores_pos = rng.choice(scores_neg, n_pos) + rng.normal(size=n_pos)
    whole = ranked_in_parts(loss, scores_pos, scores_neg, [])
    for cuts in ([n_neg // 2], [1, 7, 15_000], [0, n_neg]):
        for threads in (1, 2):
            found = ranked_in_parts(loss, scores_pos, scores_neg, cuts, threads=threads)
            np.testing.assert_array_equal(found.weights, whole.weights)
            np.testing.assert_array_equal(found.rank_counts, whole.rank_counts)
            assert found.n_open == whole.n_open
    weights_pos, weights_neg = np.empty(n_pos), np.empty(n_neg)
    judge = make_oracle("qs", loss).bind(loss, n_pos, n_neg)(scores_pos, scores_neg, weights_pos, weights_neg)
    scale = 2.0 / (n_pos * n_neg)
    above = np.empty(n_pos)
    above[np.argsort(-scores_pos, kind="stable")] = np.cumsum(whole.rank_counts)
    value = loss.tables(n_pos, n_neg).loss(np.cumsum(whole.rank_counts)) + float(
        whole.weights @ scores_neg - scale * above @ scores_pos
    )
    assert value == pytest.approx(judge.value, rel=1e-9)
    assert np.count_nonzero(whole.weights) == judge.violating == whole.rank_counts.sum()


def test_the_in_process_oracle_is_these_kernels(rng):
    """The same bits, where the oracle bins at all: a first call of more than 100,000 negatives."""
    loss = LOSSES["ap"]()
    n_pos, n_neg = 60, 120_000
    scores_pos, scores_neg = rng.normal(size=n_pos) + 0.5, rng.normal(size=n_neg)
    weights_pos, weights_neg = np.empty(n_pos), np.empty(n_neg)
    make_oracle("bucket", loss).bind(loss, n_pos, n_neg)(scores_pos, scores_neg, weights_pos, weights_neg)
    found = ranked_in_parts(loss, scores_pos, scores_neg, [n_neg // 3])
    np.testing.assert_array_equal(found.weights, weights_neg)
    assert 0 < found.n_open < n_neg // 4  # the parts keep most of their scores to themselves


class TestChecks:
    LOSS = LOSSES["ap"]()

    def bounds(self, *, counts=None, positives=None, n_neg=100):
        scores = np.linspace(-1.0, 1.0, 100)
        bins = _kernels.ScoreBins(scores, 100, 2)
        names, counted = bins.count(scores)
        made = _kernels.BinnedRanks(
            bins,
            counted if counts is None else counts(counted),
            np.array([0.5, 0.1]) if positives is None else positives,
            *self.LOSS.tables(2, n_neg),
            unimodal=True,
        )
        return made, names, scores

    def test_a_sample_of_finite_scores(self):
        for sample in (np.empty(0), np.array([0.0, np.nan]), np.array([np.inf])):
            with pytest.raises(ValueError, match="finite"):
                _kernels.ScoreBins(sample, 100, 2)

    def test_counts_and_positives(self):
        for arguments in (
            {"counts": lambda counts: counts[1:].copy()},
            {"counts": lambda counts: counts - 5},
            {"counts": lambda counts: counts + 1},
            {"n_neg": 99},
            {"positives": np.array([0.1, 0.5])},
            {"positives": np.array([0.5])},
        ):
            with pytest.raises(ValueError, match="expected"):
                self.bounds(**arguments)

    def test_all_open_scores_and_no_others(self):
        bounds, names, scores = self.bounds()
        open_ = _kernels.assign_part(bounds.weight_of_bin, names, scores, np.empty(100))
        assert 0 < open_.size < 100
        solved = np.setdiff1d(np.arange(100), open_)
        for which in (open_[1:], np.append(open_, solved[0]), np.append(open_[1:], solved[0])):
            with pytest.raises(ValueError, match="open bins"):
                bounds.rank_open(names[which], scores[which])
        with pytest.raises(ValueError, match="names of bins"):
            bounds.rank_open(np.full(open_.size, 65535, dtype=np.uint16), scores[open_])
        assert bounds.rank_open(names[open_], scores[open_]).size == open_.size

    def test_a_part(self):
        bounds, names, scores = self.bounds()
        for sizes in ((99, 100, 100), (100, 99, 100), (100, 100, 99)):
            arguments = names[: sizes[0]], scores[: sizes[1]], np.empty(sizes[2])
            with pytest.raises(ValueError, match="expected"):
                _kernels.assign_part(bounds.weight_of_bin, *arguments)
        with pytest.raises(ValueError, match="names of bins"):
            _kernels.assign_part(bounds.weight_of_bin[:1].copy(), names, scores, np.empty(100))
