"""The whole search against trainings done one by one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from sklearn.metrics import f1_score

from apsvm.data.labels import LabelOptions, decide
from apsvm.data.rows import Rows
from apsvm.metrics.evaluate import evaluate, parse_metrics
from apsvm.metrics.thresholds import ThresholdRule, choose_threshold
from apsvm.selection import cross_validation
from apsvm.selection.choose import best, chosen_by_others, pooled_ap
from apsvm.selection.cross_validation import CrossValidation, SelectionError
from apsvm.selection.race import Candidate, Measured
from apsvm.selection.search import Followers, SettingsSearch
from apsvm.trainers import TRAINERS
from apsvm.trainers.base import Outcome, Trainer, TrainingSet, Watch
from apsvm.trainers.fitting import FeatureOptions, Fit
from apsvm.trainers.settings import Multiple, Settings, setting

#: One path of C; with nothing named there is one for each bound.
HINGE = {"bound": ("hinge",)}


@pytest.fixture
def noisy(rng, dataset):
    """Grades 0, 1, 2 that the first feature tells from each other, badly; 150 rows."""
    X = rng.normal(size=(150, 4))
    return dataset(X, np.clip(np.round(X[:, 0] + rng.normal(size=150)), 0.0, 2.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrunkenSettings(Settings):
    """shrink : added to the deviation of each feature"""

    shrink: float = setting(1.0, grid=(0.1, 1.0, 10.0), help="Added to each deviation.")


class Shrunken(Trainer[ShrunkenSettings]):
    """A newcomer: the difference of the classes' means, over the features' deviations."""

    family: ClassVar[str] = "shrunken"
    title: ClassVar[str] = "Difference of means"
    Settings = ShrunkenSettings
    losses: ClassVar[tuple[str, ...]] = ("shrunken",)

    def train(self, data, watch, *, start=None, validation=None) -> Iterator[Outcome]:
        relevant, rows = data.target.relevant, data.rows
        c = np.where(relevant, 1.0 / relevant.sum(), -1.0 / (~relevant).sum())
        w = rows.combine(c) / (np.sqrt(rows.moments().variance) + self.settings.shrink)
        yield Outcome(w=w, state="done", settings=self.settings)


@pytest.fixture(autouse=True)
def newcomer(monkeypatch):
    monkeypatch.setitem(TRAINERS._places, "shrunken", f"{__name__}:Shrunken")


def by_hand(search, dataset, one, fold, labels=LabelOptions()):  # noqa: B008
    """The outcome of a candidate on a copy of a fold's training rows."""
    grid = search.grids[one.grid]
    trainer = grid.chosen(one.choice).trainer.compared()
    target = decide(dataset, trainer.capabilities.labels, labels).of(fold.training)
    groups = None if dataset.groups is None else dataset.groups[fold.training]
    data = TrainingSet(Rows(dataset.X[fold.training].copy()), target, groups)
    (outcome,) = trainer.with_settings(threads=1).train(data, Watch())
    return outcome


@pytest.mark.parametrize(
    ("loss", "named"),
    [
        ("ap", {"C": (0.1, 10.0), "bound": ("hinge", "tight"), "epsilon": (1e-6,)}),
        ("f1", {"C": (1.0, Multiple(1.0)), "epsilon": (1e-6,)}),
        ("wmw", {"regularisation": (1e-3, 1.0)}),
        ("warp", None),
        ("shrunken", None),
    ],
)
def test_every_candidate_against_a_training_of_its_own(loss, named, noisy, grid):
    binary = replace(noisy, relevance=np.where(noisy.relevance > 0.0, 1.0, -1.0))
    search = SettingsSearch(binary, [grid(loss, named)], parse_metrics(["AP", "AUC"]), folds=3)
    search.run(2)
    candidates = search.candidates()
    assert len(candidates) >= np.prod([len(axis.values) for axis in search.grids[0].axes])
    relevant = binary.relevance > 0.0
    for one in candidates:
        if one.choice.get("bound") == "tight":
            continue  # of several stationary points, a path may find another
        for at, fold in enumerate(search.folds):
            outcome = by_hand(search, binary, one, fold)
            scores = binary.X[fold.test] @ outcome.w
            for metric, value in evaluate(["AP", "AUC"], scores, relevant[fold.test]).values.items():
                assert one.values(metric)[at] == pytest.approx(value, abs=2e-3)
            if one.C:
                assert one.C[at] == pytest.approx(outcome.C)
    assert len({one.mean("AP") for one in candidates}) > 1


@pytest.mark.slow
def test_the_order_and_number_of_threads_change_nothing(noisy, grid):
    binary = replace(noisy, relevance=np.where(noisy.relevance > 0.0, 1.0, -1.0))
    grids = [grid(loss, seed=3) for loss in ("wmw", "warp", "shrunken", "ap")]
    results = []
    for jobs in (1, 3):
        search = SettingsSearch(binary, grids, parse_metrics(["AP"]), folds=2)
        search.run(jobs)
        results.append([(one.loss, one.choice, one.values("AP"), one.C) for one in search.candidates()])
    assert results[0] == results[1]
    assert list(dict.fromkeys(loss for loss, *_ in results[0])) == ["wmw", "warp", "shrunken", "ap"]


@pytest.fixture
def few_among_noise(dataset):
    """120 rows of 40 equally good features, the simpler the model, the better; and 20 faint ones, because of which the
    default C is far too large."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(120) < 0.4, 1.0, -1.0)
    good = rng.normal(size=(120, 40)) + 0.25 * labels[:, None]
    return dataset(np.hstack([good, 1e-4 * rng.normal(size=(120, 20))]), labels)


@pytest.fixture
def faint(dataset):
    """200 rows that one feature of a tiny scale tells apart: w must be long."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(200) < 0.4, 1.0, -1.0)
    X = rng.normal(size=(200, 6))
    X[:, 0] = 3e-6 * (labels + 0.5 * rng.normal(size=200))
    return dataset(X, labels)


def searched(dataset, grids, **more):
    search = SettingsSearch(dataset, grids, parse_metrics(["AP"]), **more)
    search.run(2)
    return search


def test_the_best_of_many_is_worth_what_folds_give_to_the_choice_of_the_others(rng):
    def of(*values):
        return Candidate(0, "ap", {}, [Measured({}, {"AP": value}, 0.0, "", as_asked=True) for value in values])

    def worth(candidates):
        return np.mean([one.values("AP")[fold] for fold, one in enumerate(chosen_by_others(candidates, "AP"))])

    # By hand: the second is chosen by the last two folds, the first by the others.
    three = [of(0.9, 0.6, 0.4), of(0.5, 0.7, 0.7), of(0.1, 0.2, 0.9)]
    assert worth(three) == pytest.approx((0.5 + 0.6 + 0.4) / 3)
    assert worth(three[:1]) == pytest.approx(three[0].mean("AP"))
    # Of twenty that are alike the best has more than the others by chance.
    alike = [[of(*one) for one in rng.normal(0.7, 0.05, (20, 5)).tolist()] for _ in range(100)]
    assert np.mean([best(one, "AP").mean("AP") for one in alike]) > 0.73
    assert np.mean([worth(one) for one in alike]) == pytest.approx(0.7, abs=0.01)


def test_the_chosen_setting_is_trained_on_all_rows(noisy, grid):
    search = searched(noisy, [grid("wmw", {"regularisation": (1e-3, 1.0)})], features=FeatureOptions("standard", 1.0))
    candidates = search.candidates()
    chosen = search.choose(candidates)
    refit = search.refit(chosen, candidates)
    assert refit is not None
    header = refit.model.header
    pooled = pooled_ap(search.out_of_fold(chosen), search.target.relevant).value
    assert pooled - 0.1 < search.expected_ap(chosen, candidates).value <= pooled
    assert header.selection == {
        **search.description(),
        "settings": 2,
        "regularisation": chosen.choice["regularisation"],
        "mean": chosen.mean("AP"),
        "deviation": chosen.deviation("AP"),
        "estimate": search.expected_ap(chosen, candidates).value,
    }
    assert header.settings["regularisation"] == chosen.choice["regularisation"]
    assert (header.features.scale, header.features.bias, header.data.rows) == ("standard", 1.0, 150)
    Z = (noisy.X - noisy.X.mean(axis=0)) / noisy.X.std(axis=0)
    trainer = search.grids[0].chosen(chosen.choice).trainer
    target = decide(noisy, trainer.capabilities.labels)
    (alone,) = trainer.train(TrainingSet(Rows(Z), target), Watch())
    assert refit.model.coef * noisy.X.std(axis=0) == pytest.approx(alone.w, rel=1e-3, abs=1e-5)


def test_what_was_finished_in_every_fold_counts_when_it_is_stopped(noisy, grid):
    binary = replace(noisy, relevance=np.where(noisy.relevance > 0.0, 1.0, -1.0))
    # One after the other: of the first fold a path of C and seven of λ, then the same of the second.
    for after, finished in ((0, []), (8, []), (9, ["ap"] * 7), (10, ["ap"] * 7 + ["wmw"])):
        ended = []
        search = SettingsSearch(binary, [grid("ap", HINGE), grid("wmw")], parse_metrics(["AP"]), folds=2)
        followers = Followers(
            path=lambda path, done, total, ended=ended: ended.append((path.task.fold, done, total)),
            should_stop=lambda ended=ended, after=after: len(ended) == after,
        )
        search.run(1, followers)
        assert [one.loss for one in search.candidates()] == finished
        assert ended == [(min(1, at // 8), at + 1, 16) for at in range(after)]


@pytest.mark.slow
def test_grids_may_have_features_of_their_own(dataset, grid, rng):
    """Each fold's rows are made once a map, of its training rows alone, and a grid is trained on its own."""
    X = rng.normal(size=(200, 3))
    rows = dataset(X, np.where(np.abs(X[:, 0]) < 0.7, 1.0, -1.0))
    grids = [grid("ap", {"C": (1.0, 10.0)}) for _ in range(3)]
    features = [
        FeatureOptions(features="piecewise:4"),
        FeatureOptions(),
        FeatureOptions("standard", features="nystroem:20"),
    ]
    values = []
    for options in features:
        alone = SettingsSearch(rows, grids[:1], parse_metrics(["AP"]), features=options, folds=3)
        alone.run(1)
        values.append([one.values("AP") for one in alone.candidates()])
    for jobs in (1, 2):
        search = SettingsSearch(rows, grids, parse_metrics(["AP"]), folds=3)
        fits = [replace(fit, features=one) for fit, one in zip(search.fits, features, strict=True)]
        search._cross = CrossValidation(fits, search.target, None, parse_metrics(["AP"]), search.folds)
        search.run(jobs)
        found = [[one.values("AP") for one in search.candidates() if one.grid == number] for number in range(3)]
        assert found == values
    means = [np.mean(of_grid) for of_grid in values]
    assert min(means[0], means[2]) > means[1] + 0.2


@pytest.mark.parametrize("loss", ["ap", "wmw", "zero-one"])
def test_rows_are_called_positive_as_the_fold_s_model_would(loss, few_among_noise, grid):
    """By the highest F1 on the rows it was trained on, or by the loss's own line at 0."""
    one = grid(loss, {"bound": ("hinge",)} if loss == "ap" else None)
    search = SettingsSearch(few_among_noise, [one], parse_metrics(["F1"]), folds=2)
    search.run(1)
    candidate = search.candidates()[0]
    for fold, value in zip(search.folds, candidate.values("F1"), strict=True):
        outcome = by_hand(search, few_among_noise, candidate, fold)
        scores, relevant = few_among_noise.X @ outcome.w, search.target.relevant
        threshold = choose_threshold(scores[fold.training], relevant[fold.training], ThresholdRule("f1")).value
        line = 0.0 if loss == "zero-one" else threshold
        assert value == pytest.approx(f1_score(relevant[fold.test], scores[fold.test] > line), abs=1e-12)


def test_threads_learn_a_map_once(few_among_noise, grid, monkeypatch):
    prepared, learned = Fit.prepared, []
    monkeypatch.setattr(Fit, "prepared", lambda fit: (learned.append(fit), time.sleep(0.02), prepared(fit))[2])
    search = SettingsSearch(few_among_noise, [grid("ap")], parse_metrics(["AP"]), folds=2)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(search._cross.part, [0] * 4, [0, 0, 1, 1]))
    assert len(learned) == 2
    assert parts[0] is parts[1] is not parts[2]
    assert parts[2] is parts[3]


def test_rows_that_are_too_many_to_keep_are_mapped_in_every_pass(dataset, grid, rng, monkeypatch):
    X = rng.normal(size=(200, 3))
    rows = dataset(X, np.where(np.abs(X[:, 0]) < 0.7, 1.0, -1.0))
    values = []
    for bytes_of_memory in (2**30, 0):
        monkeypatch.setattr(cross_validation, "memory", lambda size=bytes_of_memory: size)
        search = SettingsSearch(
            rows, [grid("ap", {"C": (10.0,), "epsilon": (1e-6,)})], parse_metrics(["AP"]), folds=3,
            features=FeatureOptions(features="piecewise"),
        )  # fmt: skip
        search.run(1)
        values.append(search.candidates()[0].values("AP"))
    assert values[0] == pytest.approx(values[1], abs=2e-3)


def test_a_metric_that_a_fold_does_not_have(dataset, grid, rng):
    X = rng.normal(size=(60, 2))
    search = SettingsSearch(dataset(X, -np.round(np.abs(X[:, 0]))), [grid("wmw")], parse_metrics(["nDCG"]))
    with pytest.raises(SelectionError, match=r"fold \d: nDCG is undefined: no grade above 0"):
        search.run(1)
