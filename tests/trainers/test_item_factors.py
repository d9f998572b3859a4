"""Item factors: the twin in plain Python, what is learned of lists with structure, evaluation by its definition."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from over import over
from sklearn.metrics import roc_auc_score
from trainings import train_lists
from warp_twin import Descent, Random, Search, run_items

from apsvm._native import _kernels
from apsvm.data.item_lists import hide, liked_items
from apsvm.data.labels import of_relevance
from apsvm.data.rows import Rows
from apsvm.metrics import MetricError
from apsvm.models.header import Header
from apsvm.models.items import ItemFactors, ItemRanker
from apsvm.risk import NothingToRankError
from apsvm.solvers.sgd import Ending
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.warp import descent as warp
from apsvm.trainers.warp.item_factors import evaluate_lists
from apsvm.trainers.warp.settings import ESTIMATORS, LEARNING_RATES, WarpSettings
from apsvm.trainers.warp.trainer import WarpTrainer


def tastes(rng, users=300, items=60, kinds=3):
    """Users of one taste each, who like the items of that kind; the first items of a kind are liked most."""
    taste = rng.integers(0, kinds, size=users)
    kind = np.arange(items) % kinds
    chance = np.where(taste[:, None] == kind, 0.9 / (1 + np.arange(items) / items * 3), 0.02)
    return liked_items(rng.random((users, items)) < chance), kind


@over("rule", list(LEARNING_RATES))
@over("estimator", ESTIMATORS)
def test_the_twin(estimator, rule, rng):
    """Step by step the same as plain Python but for rounding (float32), in one call or many; users of none, one and all
    items among the others."""
    users, items, K = 25, 11, 19  # two runs of eight factors, and three
    liked = rng.random((users, items)) < 0.4
    liked[0], liked[1], liked[2] = False, np.arange(items) == 4, True
    lists = liked_items(liked)
    useful = [user for user in range(users) if 2 <= liked[user].sum() < items]
    assert not {0, 1, 2} & set(useful)
    order = np.concatenate([rng.permutation(useful) for _ in range(4)])
    table = warp.loss_of_rank("harmonic", items)
    start = 1.5 * rng.normal(size=2 * items * K + items)
    seed, instalment, cap, rate, l2 = 5, 40, 6, LEARNING_RATES[rule], 0.01
    search = Search(table, estimator, 1 / table[-1], cap, Random(seed))
    descent = Descent(start.astype(np.float32).astype(float), rule, rate, l2, instalment)
    rows = [np.flatnonzero(row).tolist() for row in liked]
    run_items(rows, items, K, order, search, descent)
    assert 0 < search.updates < sum(liked[user].sum() for user in order) < search.trials
    assert np.abs(descent.value - start).max() > 0.01
    for index, pieces in product((np.int32, np.int64), (1, 3)):
        parameters = start.astype(np.float32)
        memory = warp.rule_memory(rule, parameters)
        native = _kernels.WarpItems(
            parameters, *memory, items, K, table, estimator, 1 / table[-1], cap, rule, rate, l2, instalment, seed, 1
        )
        indptr, indices = lists.indptr.astype(index), lists.indices.astype(index)
        found = np.sum([native.run(indptr, indices, part) for part in np.array_split(order, pieces)], axis=0)
        native.settle()
        np.testing.assert_allclose(found, (search.trials, search.updates, search.loss), rtol=1e-4)
        np.testing.assert_allclose(parameters, descent.value, atol=2e-5)


@over("rule", list(LEARNING_RATES))
def test_what_a_thread_reads_of_shared_factors_is_what_they_are(rule, rng):
    """With two threads, the second takes the only user of a call, and descends as a single thread does."""
    items, K = 11, 3
    lists = liked_items(rng.random((25, items)) < 0.4)
    indptr, indices = lists.indptr.astype(np.int32), lists.indices.astype(np.int32)
    start = rng.normal(size=2 * items * K + items).astype(np.float32)
    results = []
    for threads, seed in ((1, 5), (2, 4)):
        parameters = start.copy()
        native = _kernels.WarpItems(
            parameters, *warp.rule_memory(rule, parameters), items, K, np.arange(items + 1.0), "plugin", 0.1, 6, rule,
            LEARNING_RATES[rule], 0.0, 40, seed, threads,
        )  # fmt: skip
        found = [native.run(indptr, indices, np.array([user])) for user in range(25)]
        results.append((np.array(found), parameters))
    (one, of_one), (two, of_two) = results
    np.testing.assert_allclose(one, two, rtol=1e-6)
    np.testing.assert_allclose(of_one, of_two, atol=1e-6)
    assert np.abs(of_one - start).max() > 0.01


@pytest.mark.parametrize("tau", ["auc", "harmonic", "p@5", "p@1"])
def test_it_learns_tastes_and_popularity(tau, rng):
    """Better than popularity for users it has seen and for users it has not."""
    lists, kind = tastes(rng)
    seen, new = lists[:200], lists[200:]
    known, hidden, _ = hide(seen, 0.3, rng)
    trained = train_lists(known, 8, tau=tau, epochs=30)
    ranker = ItemRanker(trained.best, Header(loss="warp"))
    popularity = known.sum(axis=0)
    for some, rest in ((known, hidden), hide(new, 0.3, rng)[:2]):
        values = evaluate_lists(ranker.score, some, rest).values
        judge = evaluate_lists(lambda rows: np.where(rows.toarray() > 0, -np.inf, popularity), some, rest).values
        assert values["P@10"] > judge["P@10"] + 0.1
        assert values["AUC"] > max(0.85, judge["AUC"] + 0.1)
    best = [top for top, _ in ranker.top(sp.csr_array(np.eye(60)[:6]), 5)]
    assert np.mean([kind[items] == item % 3 for item, items in enumerate(best)]) > 0.9


@over(("l2", "is_worse"), [(0.0, False), (0.05, True), (1.0, True)])
def test_a_model_no_better_than_popularity_has_a_caution(l2, is_worse):
    """At .05 it is better by a little, which is chance."""
    lists, _ = tastes(np.random.default_rng(1))
    data = TrainingSet(Rows(lists), of_relevance(np.ones(lists.shape[0])))
    settings = WarpSettings(rows_as_users=True, factors=4, epochs=5, l2=l2, seed=1)
    (outcome,) = WarpTrainer("warp", settings).train(data, Watch())
    assert bool(outcome.cautions) == is_worse
    assert all(
        "not clearly better than popularity: on likes hidden from the rows of the training, P@10" in caution
        for caution in outcome.cautions
    )


def test_validation_keeps_the_best(rng):
    lists, _ = tastes(rng)
    seen, values = [], iter([0.5, 0.7, 0.6, 0.6])

    def validate(factors):
        assert isinstance(factors, ItemFactors)
        seen.append(factors.output)
        return next(values)

    trained = train_lists(lists, 4, epochs=9, patience=2, validate=validate)
    assert (trained.ending, trained.best_epoch) == (Ending.STOPPED_IMPROVING, 2)
    np.testing.assert_array_equal(trained.best.output, seen[1])


def test_evaluation_against_its_definition(rng):
    """A user's P@k and AUC, written out; users without a hidden item, or with nothing else to rank, are left out."""
    known = rng.random((30, 12)) < 0.3
    hidden = (rng.random((30, 12)) < 0.2) & ~known
    known[0], hidden[0] = False, True  # nothing else to rank
    hidden[1] = False
    table = rng.normal(size=(30, 12)).astype(np.float32)
    scores = np.where(known, -np.inf, table)
    rows = iter([scores])
    found = evaluate_lists(lambda some: next(rows), liked_items(known), liked_items(hidden), ["P@3", "AUC"])
    precision, area = [], []
    for user in range(30):
        ranked = ~known[user]
        wanted = hidden[user][ranked]
        if wanted.any() and not wanted.all():
            precision.append(wanted[np.argsort(-table[user][ranked])][:3].mean() if ranked.sum() >= 3 else np.nan)
            area.append(roc_auc_score(wanted, table[user][ranked]))
    assert found.values == {"P@3": pytest.approx(np.mean(precision)), "AUC": pytest.approx(np.mean(area))}
    assert (found.users, found.users_skipped) == (len(area), 30 - len(area))
    assert found.users_skipped >= 2
    with pytest.raises(NothingToRankError):
        evaluate_lists(lambda some: scores, liked_items(known), liked_items(np.zeros((30, 12))))
    with pytest.raises(MetricError, match="unknown metric"):
        evaluate_lists(lambda some: scores, liked_items(known), liked_items(hidden), ["best"])


def test_factors_that_are_not_finite_are_an_error(rng):
    lists, _ = tastes(rng)
    with pytest.raises(FloatingPointError, match="learning rate"):
        train_lists(lists, 4, rule="sgd", learning_rate=1e38, epochs=3)
