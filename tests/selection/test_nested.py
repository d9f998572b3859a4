"""Nested folds against a loop by hand, and that the search never gets to see what it is judged on."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from apsvm.data.labels import judge
from apsvm.data.rows import Rows
from apsvm.metrics.evaluate import evaluate, parse_metrics
from apsvm.selection.folds import FoldError, make_folds
from apsvm.selection.nested import nested
from apsvm.selection.search import Followers, SettingsSearch
from apsvm.trainers.base import TrainingSet, Watch

METRICS = parse_metrics(["AP", "AUC"])


@pytest.fixture
def rows(rng, dataset):
    """150 rows of three features; the last is the row's number, in thousands."""
    X = np.column_stack((rng.normal(size=(150, 2)), np.arange(150.0) / 1000))
    return dataset(X, np.where(X[:, 0] + rng.normal(size=150) > 0.7, 1.0, -1.0))


@pytest.fixture
def search(grid):
    """search(rows) by C, and the rows that it was given, as a list."""
    given = []

    def make(part, followers=None):
        given.append(part)
        whole = SettingsSearch(
            part, [grid("ap", {"C": (0.01, 1.0), "epsilon": (1e-10,), "bound": ("hinge",)})], METRICS, folds=3
        )
        whole.run(1)
        return whole

    make.given = given
    return make


def test_against_a_loop_by_hand(rows, search, grid):
    """The search, the choice of C and the training on the outer training rows, by nothing but a plan's ``train``."""
    target = judge(rows)

    def trained(which, C):
        plan = grid("ap", C=(C,), epsilon=1e-10, bound="hinge").trainer
        (outcome,) = plan.train(TrainingSet(Rows(rows.X[which]), target.of(which)), Watch())
        return outcome.w

    def precision(w, which):
        return average_precision_score(target.relevant[which], rows.X[which] @ w)

    results = list(nested(rows, target, METRICS, search, folds=4, seed=5, jobs=1))
    chosen = []
    for result, (training, test) in zip(results, make_folds(target, None, 4, 5), strict=True):
        means = {}
        for C in (0.01, 1.0):
            inner = [(training[a], training[b]) for a, b in make_folds(target.of(training), None, 3, 0)]
            means[C] = np.mean([precision(trained(some, C), others) for some, others in inner])
        best = max(means, key=means.get)
        assert result.values["AP"] == pytest.approx(precision(trained(training, best), test), abs=1e-6)
        assert result.chosen == f"ap, linear, bound hinge, epsilon 1e-10, C {best}"
        chosen.append(best)
    assert len(chosen) == 4


def test_the_search_sees_the_training_rows_and_no_others(rows, search):
    target = judge(rows)
    for _ in nested(rows, target, METRICS, search, folds=4, seed=5, jobs=1):
        pass
    folds = make_folds(target, None, 4, 5)
    assert len(search.given) == 4
    for part, (training, _) in zip(search.given, folds, strict=True):
        assert np.array_equal(np.round(1000 * part.X[:, 2]), training)
        assert np.array_equal(part.relevance, rows.relevance[training])


def test_a_feature_that_leaks_on_the_test_rows_alone_is_of_no_use(rng, dataset, grid):
    """Pure noise, and a second feature that is the label on the first outer fold's test rows and 0 elsewhere: whoever
    trained on those would get them all right."""
    y = np.where(rng.random(200) < 0.3, 1.0, -1.0)
    noise = rng.normal(size=200)
    target = judge(dataset(np.zeros((200, 2)), y))
    test = make_folds(target, None, 4, 0)[0].test
    leak = np.zeros(200)
    leak[test] = y[test]
    rows = dataset(np.column_stack((noise, leak)), y)

    def search(part, followers=None):
        whole = SettingsSearch(part, [grid("ap", {"C": (1.0, 100.0), "bound": ("hinge",)})], METRICS, folds=3)
        whole.run(1)
        return whole

    first = next(nested(rows, target, METRICS, search, folds=4, seed=0, jobs=1))
    of_noise = [average_precision_score(y[test] > 0, sign * noise[test]) for sign in (1, -1)]
    assert min(abs(first.values["AP"] - value) for value in of_noise) < 1e-9


def test_queries_stay_whole(rng, dataset, grid):
    groups = np.repeat(np.arange(30), 6)
    X = np.column_stack((rng.normal(size=180), groups))
    rows = dataset(X, np.tile([1.0, -1.0, -1.0], 60), groups)
    target = judge(rows)

    def search(part, followers=None):
        whole = SettingsSearch(part, [grid("ap", {"C": (1.0, 10.0), "bound": ("hinge",)})], METRICS, folds=2)
        whole.run(1)
        return whole

    results = list(nested(rows, target, METRICS, search, folds=3, seed=0, jobs=1))
    for result, (training, test) in zip(results, make_folds(target, groups, 3, 0), strict=True):
        assert not set(groups[training]) & set(groups[test])
        run = search(dataset(X[training], rows.relevance[training], groups[training]))
        model = run.refit(run.choose(run.candidates()), run.candidates(), 1).model
        values = evaluate(list(METRICS.values()), model.score(X[test]), target.of(test).judgements, groups[test]).values
        assert result.values == pytest.approx(values)


def test_it_stops(rows, search):
    target = judge(rows)
    assert list(nested(rows, target, METRICS, lambda *_: None, folds=4, seed=0)) == []
    assert (
        list(nested(rows, target, METRICS, search, folds=4, seed=0, followers=Followers(should_stop=lambda: True)))
        == []
    )
    assert search.given == []
    followers = Followers(should_stop=lambda: len(search.given) > 1)
    outer = nested(rows, target, METRICS, search, folds=4, seed=0, followers=followers)
    assert len(list(outer)) == 1


def test_a_fold_too_few_names_the_outer_one(rows):
    def search(*_):
        raise FoldError("5 folds need at least 5 positive rows, found 4")

    with pytest.raises(FoldError, match="outer fold 1: 5 folds need"):
        next(nested(rows, judge(rows), METRICS, search, folds=4, seed=0))
