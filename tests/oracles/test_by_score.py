"""The ranking by score of many queries, from its definition, written and subtracted."""

from __future__ import annotations

import numpy as np
import pytest
from over import over

from apsvm._native import _kernels
from apsvm.oracles.by_score import ranking_by_score
from apsvm.oracles.layout import Levels, Queries

SCORES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "tied": lambda rng, n: np.round(rng.normal(size=n), 1),
    "of one value": lambda rng, n: np.full(n, 0.25),
    "zero": lambda rng, n: np.zeros(n),
    "tiny": lambda rng, n: 1e-310 * rng.integers(-9, 9, n),
    "far apart": lambda rng, n: rng.choice([-1e307, -1.0, 0.0, 1.0, 1e307], n),
}


def by_definition(scores, n_pos):
    """(g, c⁰) of one task, positives first."""
    positives, negatives = scores[:n_pos], scores[n_pos:]
    scale = 2.0 / (n_pos * negatives.size)
    below = np.searchsorted(np.sort(positives), negatives, side="left")
    ascending = np.sort(negatives)
    above = negatives.size - np.searchsorted(ascending, positives, side="right")
    c = scale * np.concatenate([-above, below])
    return float(c @ (scores - positives.max())), c


@over("kind", SCORES)
@over("sizes", [[(1, 1), (3, 1), (1, 4), (5, 9)], [(20, 80), (700, 4000), (1, 2)], [(300, 140_000)]])
def test_it_is_what_its_definition_says(kind, sizes, rng):
    n_pos, n_neg = (np.array(column) for column in zip(*sizes, strict=True))
    shares = rng.choice([1.0, 0.25, 3.0], len(sizes))
    queries = Queries(n_pos, n_neg, shares)
    scores = SCORES[kind](rng, int((n_pos + n_neg).sum()))
    parts = np.split(scores, queries.first[1:])
    expected = [by_definition(part, n) for part, n in zip(parts, n_pos, strict=True)]
    value = sum(share * g for share, (g, _) in zip(shares, expected, strict=True))
    c = np.concatenate([share * of_query for share, (_, of_query) in zip(shares, expected, strict=True)])
    there = rng.normal(size=scores.size)
    for threads in (1, 2):
        order = ranking_by_score(queries, threads=threads)
        weights, rest = np.empty(scores.size), there.copy()
        answer, again = order(scores, weights), order.subtract(scores, rest)
        assert answer == again
        assert answer[0] == pytest.approx(value, rel=1e-9, abs=1e-300)
        assert answer[3] == sum(np.count_nonzero(of[1][n:]) for of, n in zip(expected, n_pos, strict=True))
        np.testing.assert_allclose(weights, c, rtol=1e-14)
        np.testing.assert_array_equal(rest, there - weights)


def test_levels_share_their_rows(rng):
    """Two levels in the first query and one in the second."""
    scores = np.round(rng.normal(size=90), 1)
    levels = Levels(np.array([0, 0, 1]), np.array([5, 20, 10]), np.array([0.5, 2.0, 1.0]))
    order = ranking_by_score(Queries(np.array([20, 10]), np.array([30, 30]), np.array([1.0, 0.5]), None, levels))
    tasks = [(0, 50, 5, 0.5), (0, 50, 20, 2.0), (50, 40, 10, 0.5)]
    value, c = 0.0, np.zeros(90)
    for first, n, n_pos, weight in tasks:
        g, of_task = by_definition(scores[first : first + n], n_pos)
        value += weight * g
        c[first : first + n] += weight * of_task
    rest = np.ones(90)
    assert order.subtract(scores, rest)[0] == pytest.approx(value)
    np.testing.assert_allclose(rest, 1.0 - c, atol=1e-15)


def test_the_same_counts_in_strips_as_one_by_one(rng):
    """So many positives, so unevenly spread, that cells of equal width would be crowded."""
    scores = np.concatenate([rng.standard_cauchy(5000) ** 3, rng.standard_cauchy(5000) ** 3, np.zeros(50)])
    weights = np.empty(scores.size)
    value, *_ = ranking_by_score(Queries(np.array([5000]), np.array([5050]), np.ones(1)))(scores, weights)
    g, c = by_definition(scores, 5000)
    np.testing.assert_allclose(weights, c, rtol=1e-14)
    assert value == pytest.approx(g)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [0], [1], [1.0]), "at least one positive"),
        (([0], [1], [2**30], [1.0]), "fewer than 2"),
        (([-1], [1], [1], [1.0]), "not negative"),
        (([0, 1], [1, 1], [1, 1], [1.0, 1.0]), "share no row"),
        (([0, 2], [1], [1], [1.0]), "for each task"),
    ],
)
def test_tasks_that_do_not_fit_are_refused(arguments, message):
    *whole, coefficients = arguments
    kernel = _kernels.RankingByScore(1)
    with pytest.raises(ValueError, match=message):
        kernel.add_tasks(*(np.array(array, dtype=np.int64) for array in whole), np.array(coefficients))
