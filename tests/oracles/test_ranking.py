"""Ranks, counts and row weights of every interleaving of a few rows, by their definitions; scores at float64's end."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement

import numpy as np
import pytest

from apsvm.oracles.inference import most_violated_ranking
from apsvm.oracles.ranking import check_scores, negatives_above, rank_counts, ranks, too_far_apart


@pytest.mark.parametrize(("n_pos", "n_neg"), [(1, 1), (1, 4), (3, 2), (4, 3)])
def test_every_interleaving(n_pos, n_neg):
    for interleaving in combinations_with_replacement(range(1, n_pos + 2), n_neg):
        expected = np.array(interleaving, dtype=np.int32)
        weights = 2.0 / (n_pos * n_neg) * (n_pos + 1.0 - expected)
        kept = weights.copy()
        found = ranks(weights, n_pos)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(weights, kept)
        np.testing.assert_array_equal(ranks(weights * (1.0 + 1e-12), n_pos), expected)  # rounded, not cut off
        np.testing.assert_array_equal(ranks(weights * (1.0 - 1e-12), n_pos), expected)
        assert rank_counts(expected) == sorted(Counter(interleaving).items())
        above = [sum(rank <= k for rank in interleaving) for k in range(1, n_pos + 1)]
        np.testing.assert_array_equal(negatives_above(expected, n_pos), above)


@pytest.mark.parametrize("scores", [[8e307, 0.0], [0.0, -8e307], [4e307, 1.0, -4e307], [1.7e308, 1.0e308]])
def test_scores_that_are_far_apart(scores):
    assert too_far_apart(np.array(scores)) is None
    check_scores(np.array(scores))
    farther = np.array([*scores, max(scores) - 8.1e307])
    assert too_far_apart(farther) == f"scores from {farther.min():g} to {farther.max():g} are too far apart for float64"
    with pytest.raises(FloatingPointError, match=r"too far apart for float64: the feature values \(or bias\)"):
        check_scores(farther)


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite(score):
    with pytest.raises(FloatingPointError, match=r"^scores are not finite: the feature values .* scale them down$"):
        check_scores(np.array([0.0, score, 1.0]))


def test_one_query_by_an_oracle_of_python_and_a_compiled_one(rng):
    scores, relevance = rng.normal(size=7), rng.permutation([2, 1, 1, 0, 0, 0, 0])
    compiled, own = (most_violated_ranking(scores, relevance, oracle=oracle) for oracle in ("greedy", "brute-force"))
    assert own.ranks.tolist() == compiled.ranks.tolist()
    np.testing.assert_allclose(own.row_weights, compiled.row_weights, atol=1e-15)
    assert own.value == pytest.approx(own.loss + own.row_weights @ scores)
