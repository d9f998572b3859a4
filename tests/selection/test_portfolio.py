"""Entries of the portfolio, its screening, and the finalists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from over import over

from apsvm.data.features import FeatureMapError
from apsvm.data.features.rules import Rules
from apsvm.data.labels import LabelOptions, judge
from apsvm.losses.base import LossError
from apsvm.metrics.evaluate import parse_metrics
from apsvm.selection import candidates as table
from apsvm.selection import portfolio as module
from apsvm.selection.candidates import Entry, loss_of_metric, portfolio
from apsvm.selection.folds import FoldError
from apsvm.selection.portfolio import PortfolioSearch, sample
from apsvm.selection.race import Candidate, Measured
from apsvm.selection.search import Followers, SettingsSearch
from apsvm.trainers.fitting import FeatureOptions

AP = parse_metrics(["AP"])
STANDARD = FeatureOptions(scale="standard")
RELEVANT_FROM_1 = LabelOptions(relevant_from=1.0)


@pytest.fixture
def two_classes(rng, dataset):
    """200 rows, a fourth of them positive, that the first of four features tells from the others, badly."""
    X = rng.normal(size=(200, 4))
    return dataset(X, np.where(X[:, 0] + 0.7 * rng.normal(size=200) > 0.9, 1.0, -1.0))


@pytest.fixture
def grades(rng, dataset):
    """Grades 0, 1, 2 in 20 queries of 10 rows."""
    X = rng.normal(size=(200, 4))
    y = np.clip(np.round(X[:, 0] + 0.5 * rng.normal(size=200)), 0.0, 2.0)
    return dataset(X, y, np.repeat(np.arange(20), 10))


@pytest.fixture
def size(monkeypatch):
    """size(…) sets the limits of a sample."""

    def sets(values=10**6, rows=10**6, rarer=500):
        for name, limit in (("VALUES", values), ("ROWS", rows), ("ROWS_OF_CLASS", rarer)):
            monkeypatch.setattr(module, name, limit)

    return sets


@pytest.fixture
def tried(monkeypatch):
    """tried(entry, …) makes them the portfolio."""
    return lambda *entries: monkeypatch.setattr(module, "portfolio", lambda *_: list(entries))


def entry(loss, bound="hinge", features="linear", **more):
    settings = {"bound": bound} if bound else {}
    return Entry(loss, settings, FeatureOptions(scale="standard", features=features), **more)


def listed(dataset, metric="AP", features=FeatureOptions(), labels=LabelOptions()):  # noqa: B008  # frozen
    target = judge(dataset, labels, None, graded_metrics=dataset.groups is not None)
    return portfolio(dataset, metric, features, target, labels)


@over(
    ("metric", "loss"),
    [
        ("AP", "ap"),
        ("AUC", "auc"),
        ("P@5", "p@5"),
        ("nDCG(exp)@10", "ndcg@10"),
        ("nDCG(exp)", "ndcg"),
        ("nDCG", "ndcg(linear)"),
        ("RR", "mrr"),
        ("RBP(0.8)", "rbp(0.8)"),
        ("Rprec", "prbep"),
        ("nDCG@10", None),
        ("bpref", None),
    ],
)
def test_loss_of_metric(metric, loss):
    assert list(parse_metrics([metric])) == [metric]
    assert loss_of_metric(metric) == loss


def test_entries_of_two_classes(two_classes, monkeypatch):
    assert sorted(map(str, listed(two_classes))) == sorted([
        "ap, hinge, linear",
        "ap, tight, linear",
        "ap, hinge, piecewise",
        "ap, tight, piecewise",
        "ap, hinge, rules",
        "auc, hinge, rules",
        "ap, hinge, nystroem",
    ])  # fmt: skip
    monkeypatch.setattr(table, "KERNEL_ROWS", 199)
    assert "ap, hinge, nystroem" not in map(str, listed(two_classes))
    assert all(one.labels is None for one in listed(two_classes))


def test_of_bags_both_ways_are_tried(two_classes, size):
    bags = replace(two_classes, bags=np.arange(200) // 4, relevance=np.where(np.arange(200) % 12 < 4, 1.0, -1.0))
    pools = "mean", "min/mean/max"
    assert sorted(map(str, listed(bags))) == sorted([
        "ap, hinge, latent, linear",
        "zero-one, hinge, latent, linear",
        *(f"{loss}, linear, pool {pool}" for loss in ("ap, hinge", "ap, tight", "auc, hinge") for pool in pools),
        *(f"zero-one, hinge, linear, pool {pool}" for pool in pools),
        *(f"wmw, linear, pool {pool}" for pool in pools),
        *(f"auc, hinge, rules, pool {pool}" for pool in pools),
    ])  # fmt: skip
    size(values=320, rarer=10)
    chosen = sample(bags, judge(bags), 0)
    _, counts = np.unique(bags.bags[chosen], return_counts=True)
    assert (counts == 4).all()
    assert counts.size == 10 + round(0.4 * 33)


def test_two_components_where_positives_are_rare_but_not_few(rng, dataset):
    def tried(positives):
        rows = dataset(rng.normal(size=(400, 4)), (np.arange(400) < positives).astype(float))
        return "ap, tight, 2 components, linear" in map(str, listed(rows))

    assert [tried(positives) for positives in (59, 60, 80, 81)] == [False, True, True, False]


def test_the_metrics_own_loss(two_classes):
    """By the bounds that it can be trained by."""

    def own(metric, loss):
        return {one.settings["bound"] for one in listed(two_classes, metric) if one.loss == loss}

    assert own("RBP(0.8)", "rbp(0.8)") == {"tight"}
    assert own("P@5", "p@5") == {"tight"}
    assert own("F1", "f1") == {"hinge"}
    assert [str(one) for one in listed(two_classes, "AUC") if one.loss == "auc"] == [
        *(f"auc, {bound}, {columns}" for columns in ("linear", "piecewise") for bound in ("hinge", "tight")),
        "auc, hinge, rules",
    ]


def test_entries_of_grades(grades):
    """ndcg besides ap, which takes the grades above 0 as relevant; no rules by auc in queries."""
    own = {"ap": RELEVANT_FROM_1, "ndcg": None}
    assert {one.loss: one.labels for one in listed(grades)} == own
    said = LabelOptions(relevant_from=2.0)
    assert all(one.labels is None for one in listed(grades, labels=said))


def test_the_values_of_C(two_classes):
    def multiples(one):
        return [str(value) for value in one.grid(0).along.values]

    assert multiples(entry("ap")) == ["0.1x", "1x", "10x"]
    assert multiples(entry("ap", multiples=(1.0, 100.0))) == ["1x", "100x"]
    assert entry("ap").grid(3).settings.seed == 3
    wmw = entry("wmw", None).grid(0)
    assert 2 <= len(wmw.along.values) <= table.MOST_VALUES


@pytest.mark.parametrize(("n_positives", "relevant_is_rarer"), [(30, True), (370, False)])
def test_a_sample_keeps_the_rarer_class(n_positives, relevant_is_rarer, rng, dataset, size):
    size(values=200, rarer=35)
    labels = np.where(np.arange(400) < n_positives, 1.0, -1.0)
    rows = dataset(rng.normal(size=(400, 2)), labels)
    target = judge(rows)
    chosen = sample(rows, target, 0)
    assert (np.diff(chosen) > 0).all()
    rarer = target.relevant if relevant_is_rarer else ~target.relevant
    assert np.count_nonzero(rarer[chosen]) == 30
    assert np.count_nonzero(~rarer[chosen]) == round(370 * 200 / 800)
    assert not np.array_equal(chosen, sample(rows, target, 1))


def test_a_sample_and_all_rows_are_judged_alike(grades, tried, size, monkeypatch):
    """By the same relevant rows, of a sample in one and of all in the other; whatever a loss makes of the grades."""
    searches = []

    class Seen(SettingsSearch):
        def __init__(self, *arguments, **more):
            super().__init__(*arguments, **more)
            searches.append(self)

    monkeypatch.setattr(module, "SettingsSearch", Seen)
    monkeypatch.setattr(module, "FOLDS_OF_MANY", 2)
    size(values=300)
    tried(entry("ap", labels=RELEVANT_FROM_1), entry("ndcg", features="piecewise"))
    last = PortfolioSearch(grades, AP, folds=4).screen(1)
    first, final = searches
    assert last is final
    assert [len(search.folds) for search in searches] == [2, 4]
    assert first.dataset.X.shape[0] < 200
    assert final.dataset.X.shape[0] == 200
    for search in searches:
        assert np.array_equal(search.target.relevant, search.dataset.relevance > 0)
        assert np.array_equal(search.target.grades, search.dataset.relevance)
    final.alive = [number for number, fit in enumerate(final.fits) if fit.trainer.loss_name == "ap"]
    final.run(1)
    chosen = final.choose(final.candidates())
    assert final.refit(chosen, [chosen], 1).model.header.labels == final.target.labels


def raced(whole, *entries):
    """The candidates of a search among entries, of which each (entry, AP of a fold, …) says what it came to."""
    whole.racing = [one for one, *_ in entries]
    return [
        Candidate(at, one.loss, {}, [Measured({}, {whole.metric: value}, 0.0, "", as_asked=True) for value in values])
        for at, (one, *values) in enumerate(entries)
    ]


def test_who_goes_on_from_a_sample(two_classes, monkeypatch):
    """The best of each kind, and none that is behind by more than .02, or one standard error of the folds; in a single
    list of a share of the positives."""
    whole = PortfolioSearch(two_classes, AP)
    kinds = [entry("ap", features=name) for name in ("linear", "piecewise:2", "rules:9")]

    def finalists(*values, positives=None):
        ranked = raced(whole, *values)
        return [ranked.index(one) for one in whole._finalists(ranked, positives)]

    def of_means(*means, positives=None):
        return finalists(*zip(kinds, means, strict=False), positives=positives)

    assert of_means(0.5, 0.455, 0.44, positives=100) == [0, 1]
    assert of_means(0.5, 0.485, 0.475, positives=10_000) == [0, 1]
    assert of_means(0.9, 0.885, 0.875) == [0, 1]
    assert finalists((kinds[2], 0.9, 0.8), (kinds[0], 0.82, 0.8)) == [0, 1]
    assert finalists((kinds[2], 0.9, 0.8), (kinds[0], 0.86, 0.76)) == [0]
    assert finalists((entry("auc", features="rules:9"), 0.9), (kinds[2], 0.9)) == [0]
    monkeypatch.setattr(module, "MOST_ROWS", 100)
    assert of_means(0.9, 0.885) == [0]


def test_of_queries_the_metric_s_own_loss_goes_on(grades):
    """Also where another loss on the same features is ahead in the sample, by no more than chance."""
    queries = replace(grades, groups=np.arange(len(grades)) // 10)
    whole = PortfolioSearch(queries, parse_metrics(["nDCG(exp)"]))
    auc, ndcg, ap = (entry(loss, features="rules:9") for loss in ("auc", "ndcg", "ap"))
    near = raced(whole, (auc, 0.9), (ap, 0.89), (ndcg, 0.885))
    assert whole._finalists(near, None) == [near[2]]
    behind = raced(whole, (auc, 0.9), (ap, 0.89), (ndcg, 0.8))
    assert whole._finalists(behind, None) == [behind[0]]


def ends_of(whole):
    """The search, and the entries that were given up."""
    return whole.screen(1), whole.given_up


def test_of_many_rows_the_hopeless_are_tried_on_a_sample(rng, dataset, tried, size):
    """And each is told of once."""
    X = rng.normal(size=(600, 3))
    rows = dataset(X, np.where(X[:, 0] * X[:, 1] > 0.5, 1.0, -1.0))
    size(rows=290, rarer=50)
    tried(entry("ap"), entry("auc"), Entry("ap", {"bound": "hinge"}, FeatureOptions(features="rules:40:depth=2")))
    search, ends = ends_of(PortfolioSearch(rows, AP, folds=2))
    assert [one.entry.features.features for one in ends] == ["linear", "linear"]
    assert all("of a sample" in str(one) for one in ends)
    assert [fit.features.features for fit in search.fits] == ["rules:40:depth=2"]


@pytest.mark.parametrize("error", [FeatureMapError, LossError, FloatingPointError, np.linalg.LinAlgError])
def test_an_entry_that_cannot_be_tried_is_left_out(error, two_classes, tried):
    class Impossible(Entry):
        def grid(self, seed):
            raise error("it does not fit")

    impossible = Impossible("ap", {}, STANDARD)
    tried(impossible, entry("auc"), entry("ap"))
    _, ends = ends_of(PortfolioSearch(two_classes, AP))
    assert [(one.entry, one.why) for one in ends] == [(impossible, "it does not fit")]
    tried(impossible)
    with pytest.raises(error, match="it does not fit"):
        PortfolioSearch(two_classes, AP).screen(1)


def test_too_few_rows_are_said_before_anything_is_trained(two_classes, rng, dataset):
    labels = np.where(np.arange(200) < 1, 1.0, -1.0)
    with pytest.raises(FoldError, match="2 folds need at least 2 positive rows, found 1"):
        PortfolioSearch(dataset(two_classes.X, labels), AP).screen(1)


def test_a_sample_has_queries_with_something_to_rank(rng, dataset, size):
    """All six of 200 queries that have a positive."""
    relevant = np.zeros((200, 10))
    relevant[::37, 0] = 1.0
    rows = dataset(rng.normal(size=(2000, 2)), relevant.ravel(), np.repeat(np.arange(200), 10))
    size(rows=200)
    assert rows.relevance[sample(rows, judge(rows), 0)].sum() == 6.0


def test_copies_of_a_row_are_drawn_together(rng, dataset, size):
    X = np.tile(rng.normal(size=(200, 3)), (5, 1))
    rows = dataset(X, np.tile(np.where(np.arange(200) < 80, 1.0, -1.0), 5))
    size(rows=300, rarer=10)
    _, counts = np.unique(sample(rows, judge(rows), 0) % 200, return_counts=True)
    assert counts.size == 60
    assert (counts == 5).all()


def test_no_sample_that_holds_most_rows(rng, dataset, size):
    rows = dataset(rng.normal(size=(400, 2)), np.where(np.arange(400) < 200, 1.0, -1.0))
    size(rows=100, rarer=50)
    assert sample(rows, judge(rows), 0).size == 100
    size(rows=100, rarer=150)
    assert sample(rows, judge(rows), 0) is None


def test_a_stop_in_the_sample_leaves_the_best_of_what_was_finished(rng, dataset, tried, size):
    X = rng.normal(size=(600, 3))
    rows = dataset(X, np.where(X[:, 0] * X[:, 1] > 0.5, 1.0, -1.0))
    size(rows=250, rarer=50)
    tried(entry("ap"), entry("ap", features="rules:40"))
    ended = []
    followers = Followers(lambda *_: ended.append(1), lambda: len(ended) >= 3)
    search = PortfolioSearch(rows, AP).screen(1, followers)
    assert [fit.features.features for fit in search.fits] == ["rules:40"]


def test_what_was_tried_in_the_first_fold_is_not_trained_again(two_classes, tried, monkeypatch):
    """And feature maps are learned once a fold."""
    trained, learned = [], []
    done = module.SettingsSearch._do

    def counted(self, tasks, *more, **named):
        trained.extend((self.grids[task.grid].trainer.loss_name, task.fold) for task in tasks)
        done(self, tasks, *more, **named)

    def of_rules(cls, rows, parameter):
        learned.append(rows.selection.size)
        return learn(rows, parameter)

    learn = Rules.learn
    monkeypatch.setattr(module.SettingsSearch, "_do", counted)
    monkeypatch.setattr(Rules, "learn", classmethod(of_rules))
    rules = FeatureOptions(features="rules:20")
    tried(*(Entry(loss, {"bound": "hinge"}, rules, multiples=(1.0,)) for loss in ("ap", "auc")))
    search = PortfolioSearch(two_classes, AP).screen(1)
    assert trained == [("ap", 0), ("auc", 0)]
    search.run(1)
    assert sorted(trained) == [(loss, fold) for loss in ("ap", "auc") for fold in range(5)]
    assert len(learned) == 5


def test_entries_that_are_hopeless_in_one_fold_are_tried_in_no_other(rng, dataset, tried):
    X = rng.normal(size=(600, 3))
    rows = dataset(X, np.where(X[:, 0] * X[:, 1] > 0.5, 1.0, -1.0))
    hopeless = [entry("ap", multiples=(multiple,)) for multiple in (0.1, 1.0, 10.0)]
    rules = [Entry(loss, {"bound": "hinge"}, FeatureOptions(features="rules:40")) for loss in ("ap", "auc", "zero-one")]
    tried(*hopeless, *rules)
    search, ends = ends_of(PortfolioSearch(rows, AP))
    assert search.alive == [3, 4, 5]
    assert [one.entry for one in ends] == hopeless
    assert all("in one fold" in str(one) for one in ends)


def test_of_a_sample_few_go_on_to_all_rows(rng, dataset, tried, size):
    """The best entry of a kind alone, with the values of C around its best."""
    X = rng.normal(size=(600, 3))
    size(rows=250, rarer=100)
    tried(entry("ap"), entry("auc"), entry("ap", "tight"))
    search = PortfolioSearch(dataset(X, np.where(X[:, 0] + rng.normal(size=600) > 1.0, 1.0, -1.0)), AP).screen(1)
    (grid,) = search.grids
    below, middle, above = (C.factor for C in grid.along.values)
    assert (below, above) == (pytest.approx(0.1 * middle), pytest.approx(10.0 * middle))
    assert len(search.dataset) == 600
