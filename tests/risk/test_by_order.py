"""Δ of the order by score: against the worst of all orders that the scores allow, from the metrics' definitions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, permutations, product

import numpy as np
import pytest
from instances import LABELLING_LOSSES, LOSS_NAMES, RANKING_LOSSES, form_of
from judge import definition, loss_of_order
from over import over

from apsvm.data.labels import Target, graded, of_relevance
from apsvm.losses import make_loss
from apsvm.losses.base import LossError
from apsvm.metrics import parse_metric
from apsvm.risk import NothingToRankError, loss_by_order

GRADED = [name for name in RANKING_LOSSES if make_loss(name).takes_grades and make_loss(name).metric]
#: Of the losses over labellings, those that admit any.
OF_ANY_LABELLING = [name for name in LABELLING_LOSSES if form_of(name) in ("f1", "f(beta)")]


def orders(scores) -> Iterator[np.ndarray]:
    """Every order of the rows, as indices, in which none stands above one of a higher score."""
    ties = (np.flatnonzero(scores == score) for score in -np.unique(-scores))
    for parts in product(*map(permutations, ties)):
        yield np.array(list(chain.from_iterable(parts)))


def worst(name, scores, relevant):
    metric = definition(name)
    return max(loss_of_order(metric, relevant[order]) for order in orders(scores))


def some_rows(rng, n=None):
    """Scores (n,) with ties, and as many relevance flags of both kinds."""
    n = int(rng.integers(2, 6)) if n is None else n
    relevant = rng.permutation(np.arange(n) < rng.integers(1, n))
    return rng.integers(-1, 2, size=n) / 2.0, relevant


@over("name", RANKING_LOSSES)
def test_tiny_lists_with_ties(name, rng):
    loss, values, ties_matter = make_loss(name), set(), 0
    for _ in range(40):
        scores, relevant = some_rows(rng)
        delta = loss_by_order(loss, scores, of_relevance(relevant))
        assert delta == pytest.approx(worst(name, scores, relevant), abs=1e-12)
        values.add(round(delta, 9))
        metric = definition(name)
        ties_matter += delta > min(loss_of_order(metric, relevant[order]) for order in orders(scores)) + 1e-9
    if name != "p@100":  # of all rows there are
        assert len(values) > 1
        assert ties_matter > 0


@pytest.mark.parametrize("name", GRADED)
def test_tiny_graded_lists_are_one_minus_the_metric(name, rng):
    """The metric sees the worst order as scores without ties."""
    loss, values = make_loss(name), set()
    metric = parse_metric(loss.metric)
    for _ in range(40):
        n = int(rng.integers(2, 6))
        scores, grades = rng.integers(-1, 2, size=n) / 2.0, rng.integers(0, 4, size=n).astype(float)
        grades[:2] = 0.0, rng.integers(1, 4)
        falling = -np.arange(n, dtype=float)
        expected = max(1.0 - metric(falling, grades[order], relevant_from=1) for order in orders(scores))
        delta = loss_by_order(loss, scores, graded(grades))
        assert delta == pytest.approx(expected, abs=1e-12)
        values.add(round(delta, 9))
    assert len(values) > 3


@over("name", [name for name in RANKING_LOSSES if make_loss(name).metric])
def test_long_lists_are_what_the_metric_lacks_to_its_best(name, rng):
    loss = make_loss(name)
    metric = parse_metric(loss.metric)
    for n_pos, n_neg in ((1, 400), (150, 151), (300, 20)):
        relevant = rng.permutation(np.arange(n_pos + n_neg) < n_pos)
        scores = rng.permutation(n_pos + n_neg) + (n_neg // 3 + 0.5) * relevant  # no ties
        delta = loss_by_order(loss, scores, of_relevance(relevant))
        assert delta == pytest.approx(metric(relevant - 0.5, relevant) - metric(scores, relevant), abs=1e-12)


@pytest.mark.parametrize("name", OF_ANY_LABELLING)
def test_rows_above_zero_are_labelled(name, rng):
    loss, values = make_loss(name), set()
    metric = parse_metric(loss.metric)
    for _ in range(40):
        scores, relevant = some_rows(rng, 9)
        scores[0] = 0.5
        delta = loss_by_order(loss, scores, of_relevance(relevant))
        assert delta == pytest.approx(1.0 - metric(scores, relevant), abs=1e-12)
        values.add(round(delta, 9))
    assert len(values) > 3


@pytest.mark.parametrize("name", ["ap", "p@3", "ndcg@5"])
def test_queries_and_their_weights(name, rng):
    """The weighted mean over the queries with something to rank; their rows stand in no order."""
    loss, plain = make_loss(name), 0.0
    for _ in range(20):
        groups = rng.permutation(np.repeat([-4, 0, 7, 8, 30], [5, 4, 5, 3, 1]))
        scores = rng.integers(-1, 2, size=groups.size) / 2.0
        relevant = rng.random(groups.size) < 0.4
        relevant[groups == 8] = True
        weights = {0: 3.0, 7: 0.0, 8: 5.0}
        parts = {
            query: worst(name, scores[groups == query], relevant[groups == query])
            for query in (-4, 0, 7)
            if 0 < relevant[groups == query].sum() < (groups == query).sum()
        }
        if 0 not in parts or -4 not in parts:
            continue
        found = loss_by_order(loss, scores, of_relevance(relevant), groups)
        assert found == pytest.approx(np.mean(list(parts.values())), abs=1e-12)
        weighted = loss_by_order(loss, scores, of_relevance(relevant), groups, weights)
        assert weighted == pytest.approx((3.0 * parts[0] + parts[-4]) / 4.0, abs=1e-12)
        plain = max(plain, abs(found - weighted))
    assert plain > 0.01


def test_grades_that_a_loss_does_not_take_are_two_classes(rng):
    grades = np.array([0.0, 3.0, 1.0, 0.0])
    scores = rng.normal(size=4)
    by_grades = loss_by_order(make_loss("ap"), scores, graded(grades))
    assert by_grades == loss_by_order(make_loss("ap"), scores, of_relevance(grades > 0))


@pytest.mark.parametrize(
    ("target", "groups", "weights"),
    [
        (of_relevance(np.ones(4, dtype=bool)), None, None),
        (of_relevance(np.zeros(4, dtype=bool)), None, None),
        (of_relevance(np.array([True, True, False, False])), np.array([0, 0, 1, 1]), None),
        (of_relevance(np.array([True, False, True, True])), np.array([0, 0, 1, 1]), {0: 0.0}),
        (graded(np.full(4, 2.0)), None, None),
    ],
    ids=["all relevant", "none relevant", "queries of one class", "no weight", "one grade"],
)
def test_nothing_to_rank(target: Target, groups, weights):
    with pytest.raises(NothingToRankError, match="no query that counts has rows of different relevance"):
        loss_by_order(make_loss("ndcg"), np.arange(4.0), target, groups, weights)


@pytest.mark.parametrize("name", [name for name in LOSS_NAMES if name not in {*RANKING_LOSSES, *LABELLING_LOSSES}])
def test_a_loss_of_neither_is_refused(name):
    with pytest.raises(LossError, match="neither over rankings nor over labellings"):
        loss_by_order(make_loss(name), np.arange(4.0), of_relevance(np.arange(4) < 2))
