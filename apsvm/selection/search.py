"""Settings compared on the folds of a data set: every grid in every fold, and the chosen setting, or the average of
several, trained on all rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm._support.blas import one_blas_thread
from apsvm._support.machine import thread_count
from apsvm.data.bags import bags_of
from apsvm.data.labels import LabelOptions, Target, judge
from apsvm.data.rows import Rows
from apsvm.models.header import Json
from apsvm.selection.average import Average, average_with, refitted
from apsvm.selection.bags import bags_as_rows, of_bags
from apsvm.selection.choose import Estimate, at_the_edge, best, chosen_by_others, pooled_ap
from apsvm.selection.completion import outcomes
from apsvm.selection.cross_validation import CrossValidation
from apsvm.selection.folds import Fold, copies_of, make_folds
from apsvm.selection.grids import Grid, Variant
from apsvm.selection.race import Candidate, Measurements, OutOfFold, PathInFold, Task
from apsvm.selection.thresholds import line_by
from apsvm.trainers.base import Outcome, Watch
from apsvm.trainers.fitting import AUTO, FeatureOptions, Fit, bags_settled
from apsvm.trainers.settings import Multiple

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.metrics import Metric
    from apsvm.models.base import Model


def never() -> bool:
    """Never stops."""
    return False


def unseen(*_: object) -> None:
    """Ignores progress."""


@dataclass(frozen=True, slots=True)
class Followers:
    """Who follows a search, and a way to stop it, asked between iterations.

    Attributes
    ----------
    path : called as each path ends, with it, how many have, and how many there are
    """

    path: Callable[[PathInFold, int, int], None] = unseen
    should_stop: Callable[[], bool] = never


class SettingsSearch:
    """Settings compared on the folds of a data set.

    Parameters
    ----------
    dataset : all rows
    grids : what is tried, one a loss
    metrics : by name; the first one chooses
    labels, features : what was said of the labels, and is done to the features where a grid has nothing of its own
    folds : how many
    seed : of the folds
    query_weights : weight of each query in training, 1 where not named
    judged_by : what the rows are judged by; None: what their labels mean to the losses, where these agree
    tolerated : errors that end a path and not the search

    Attributes
    ----------
    alive : the numbers of the grids that are still compared
    failures : why paths ended, by the number of their grid, where that is tolerated
    averages : whether the best rankers on several feature maps may be averaged

    Raises
    ------
    DataError : the labels do not fit
    FoldError : a fold would go without
    """

    def __init__(
        self,
        dataset: Dataset,
        grids: Sequence[Grid],
        metrics: Mapping[str, Metric],
        *,
        labels: LabelOptions = LabelOptions(),  # noqa: B008  # frozen
        features: FeatureOptions = FeatureOptions(),  # noqa: B008  # frozen
        folds: int = 5,
        seed: int = 0,
        query_weights: Mapping[int, float] | None = None,
        judged_by: Target | None = None,
        tolerated: tuple[type[Exception], ...] = (),
        averages: bool = False,
    ) -> None:
        self.whole = dataset
        self.grids = grids
        self.metric = next(iter(metrics))
        self.seed = seed
        fits = list(_fits(dataset, grids, labels, features, query_weights))
        # What is dealt out and judged: rows, or bags, which all grids have in the same order.
        self.dataset = units = bags_as_rows(fits[0].dataset)
        only_grades = all(metric.graded for metric in metrics.values())
        target = judged_by or _judged_by(
            units, [of_bags(fit.dataset, fit.target) for fit in fits], labels, only_grades=only_grades
        )
        self._copies = None
        if units.groups is None and bags_of(dataset) is None and units.bags is None:
            self._copies = copies_of(Rows(units.X), target)
        alike = units.bags if self._copies is None else self._copies
        made = make_folds(target, units.groups, folds, seed, only_grades=only_grades, bags=alike)
        self._cross = CrossValidation(fits, target, units.groups, metrics, made, tolerated)
        self._measured = Measurements([grid.trainer.loss_name for grid in grids], len(made))
        self._tried: set[tuple[int, int]] = set()
        self.alive: list[int] = list(range(len(grids)))
        self.failures: dict[int, str] = {}
        self.averages = averages
        self._expected: dict[Candidate, Estimate | None] = {}

    @property
    def fits(self) -> Sequence[Fit]:
        """One a grid: all rows as its trainer sees them."""
        return self._cross.fits

    @property
    def folds(self) -> Sequence[Fold]:
        """The rows to train and to test on."""
        return self._cross.folds

    @property
    def target(self) -> Target:
        """The target that rows are judged by."""
        return self._cross.target

    def judged(
        self, scores: NDArray[np.float64], fold: int, own: NDArray[np.float64] | None = None
    ) -> Mapping[str, float]:
        """The metrics of the ``scores`` (m,) of a fold's m test rows; positive are called those above the best line for
        its training rows, whose scores are ``own``, or above 0. Raises SelectionError."""
        (training, test), groups = self.folds[fold], self._cross.groups
        cuts = any(metric.thresholded for metric in self._cross.metrics.values())
        line = line_by(own, self.target.of(training)) if cuts and own is not None and not self._by_query else 0.0
        return self._cross.judged(scores, self.target.of(test), None if groups is None else groups[test], fold, line)

    @property
    def _by_query(self) -> bool:
        groups = self._cross.groups
        return groups is not None and np.unique(groups).size > 1

    def run(self, jobs: int = 0, followers: Followers = Followers(), folds: Iterable[int] | None = None) -> None:
        """Trains and measures what was not yet, ``jobs`` paths at a time (0: one a core); after being stopped, what was
        finished counts.

        Parameters
        ----------
        folds : their numbers; None: all of them

        Raises
        ------
        SelectionError : a metric is not defined on the rows that a fold leaves out
        ValueError, FloatingPointError : as ``Trainer.train``
        """
        listed = [(number, variant) for number in self.alive for variant in self.grids[number].variants()]
        within = range(len(self.folds)) if folds is None else folds
        tasks = [task for task in _tasks(listed, within) if (task.grid, task.fold) not in self._tried]
        self._do(tasks, jobs, followers)
        self._tried |= {(task.grid, task.fold) for task in tasks}

    def least(self, jobs: int, followers: Followers) -> None:
        """Trains and measures one setting in two folds, after the others had to be stopped: the best of those that one
        fold has, or else one in the middle. Raises as ``run``."""
        first = self.candidates(1)
        if first:
            peak = best(first, self.metric)
            number, choice = peak.grid, peak.choice
        else:
            number = self.alive[0]
            choice = {axis.name: axis.values[len(axis.values) // 2] for axis in self.grids[number].axes}
        self._do(_tasks([(number, self.grids[number].chosen(choice))], range(2)), jobs, followers)

    def _do(self, tasks: Sequence[Task], jobs: int, followers: Followers) -> None:
        paths = self._cross.run(tasks, thread_count(jobs), followers.should_stop)
        for done, path in enumerate(paths, start=1):
            self._measured.add(path)
            if path.failure:
                self.failures[path.task.grid] = path.failure
            if path.settings:
                followers.path(path, done, len(tasks))

    def candidates(self, folds: int | None = None) -> list[Candidate]:
        """The settings of the grids alive that were finished in every fold, or of all grids in this many from the first
        on, grid by grid."""
        whole = [one for one in self._measured.candidates(folds) if folds is not None or one.grid in self.alive]
        return sorted(whole, key=lambda one: (one.grid, self.grids[one.grid].order(one.choice)))

    def so_far(self) -> list[Candidate]:
        """The settings that were finished in every fold, or else in as many as any was, but two at least."""
        return next(filter(None, map(self.candidates, range(len(self.folds), 1, -1))), [])

    def out_of_fold(self, chosen: Candidate) -> list[OutOfFold]:
        """The scores that its rankers of the folds give to all rows, or bags."""
        if isinstance(chosen, Average):
            return chosen.out_of_fold()
        folds = enumerate(chosen.folds)
        return [self._cross.scored(measured, chosen.grid, fold) for fold, measured in folds]

    def choose(self, candidates: Sequence[Candidate]) -> Candidate:
        """The best."""
        return best(candidates, self.metric)

    def average(self, candidates: Sequence[Candidate]) -> Average | None:
        """The average of the best of these candidates on each feature map, where there is one (``average_with``)."""
        return average_with(self, candidates) if self.averages else None

    def estimate(self, chosen: Candidate, candidates: Sequence[Candidate], metric: str) -> float:
        """The metric of ``chosen``, one of these candidates or an average of them, on other rows: AP of one list by
        ``expected_ap``, others by their mean over the folds, without what the choice of the best adds."""
        expected = self.expected_ap(chosen, candidates) if metric == "AP" else None
        if expected is not None:
            return expected.value
        worth = [one.values(metric)[fold] for fold, one in enumerate(self._chosen_by_others(candidates))]
        optimism = self.choose(candidates).mean(metric) - math.fsum(worth) / len(worth)
        return chosen.mean(metric) - max(0.0, optimism)

    def expected_ap(self, chosen: Candidate, candidates: Sequence[Candidate]) -> Estimate | None:
        """AP of all rows held out, as one list, without what the choice of the best adds: to an average hardly
        anything. None where rows are in queries."""
        if chosen not in self._expected:  # the table, the interval and the header ask for it
            self._expected[chosen] = self._pooled(chosen, candidates)
        return self._expected[chosen]

    def _pooled(self, chosen: Candidate, candidates: Sequence[Candidate]) -> Estimate | None:
        if self._by_query:
            return None
        pooled = partial(pooled_ap, relevant=self.target.relevant)
        if isinstance(chosen, Average):
            return pooled(chosen.out_of_fold())
        others = enumerate(self._chosen_by_others(candidates))
        worth = pooled([self._cross.scored(one.folds[at], one.grid, at) for at, one in others])
        folds = self.out_of_fold(chosen)
        return pooled(folds, optimism=max(0.0, pooled(folds).value - worth.value))

    def _chosen_by_others(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """For each fold the one that is best in the others, of these and those that were given up."""
        folds = min(3, max(len(one.folds) for one in candidates))
        given_up = [one for one in self.candidates(folds) if one.grid not in self.alive]
        return chosen_by_others([*candidates, *given_up], self.metric)

    def edges(self, candidates: Sequence[Candidate], chosen: Candidate) -> list[str]:
        """The settings of which ``chosen`` has the lowest or the highest value that was tried."""
        return at_the_edge(candidates, self.grids[chosen.grid], chosen)

    def description(self) -> dict[str, Json]:
        """How settings are compared, for the header."""
        return {
            "folds": len(self.folds),
            "folds_of": self._folds_of,
            "seed": self.seed,
            "metric": self.metric,
        }

    @property
    def _folds_of(self) -> str:
        if self.dataset.groups is not None:
            return "queries"
        if self.whole.bags is not None or self.whole.pool is not None:
            return "bags, stratified"
        return "rows, stratified" if self._copies is None else "rows, copies together, stratified"

    def refit(
        self,
        chosen: Candidate,
        candidates: Sequence[Candidate],
        jobs: int = 0,
        followers: Followers = Followers(),
    ) -> Refit | None:
        """``chosen``, of these candidates or an average of them, trained on all rows by ``jobs`` threads (0: one a
        core); None if it was stopped before there was anything.

        Raises
        ------
        ValueError, FloatingPointError : as ``Trainer.train``
        """
        count, estimate = len(candidates), self.estimate(chosen, candidates, self.metric)
        members = chosen.members if isinstance(chosen, Average) else [chosen]
        refits: list[Refit] = []
        for member in members:
            refit = self._trained(member, self._selection(member, count, estimate), jobs, followers)
            if refit is None or refit.outcome.interrupted:
                return refits[0] if refits else refit
            refits.append(refit)
        if not isinstance(chosen, Average):
            return refits[0]
        return refitted(chosen, refits, self._selection(chosen, count, estimate))

    def _trained(
        self, chosen: Candidate, selection: Mapping[str, Json], jobs: int, followers: Followers
    ) -> Refit | None:
        """A setting trained on all rows; ``selection``: what the header says of the choice."""
        trainer = self.grids[chosen.grid].chosen(chosen.choice).trainer.with_settings(threads=1)
        with one_blas_thread():
            fit = replace(self.fits[chosen.grid], trainer=trainer).prepared()
            # The threads of the rows alone: those of some trainers' settings change the result.
            fit = replace(fit, shared=fit.rows().with_threads(thread_count(jobs)))
            outcome = next(outcomes(fit, Watch(should_stop=followers.should_stop)), None)
        if outcome is None:
            return None
        model = fit.model(outcome)
        header = replace(model.header, selection=selection)
        if self.grids[chosen.grid].labels is not None:
            # Trained on two classes, compared with others by what the labels mean to all of them.
            header = replace(header, labels=self.target.labels)
        how = f"{len(self.folds)} folds of {self._folds_of.removesuffix(', stratified')}"
        return Refit(fit, outcome, model.with_header(header), partial(self.out_of_fold, chosen), how)

    def _selection(self, chosen: Candidate, count: int, estimate: float) -> dict[str, Json]:
        """The choice for the model's header: settings of which several values were compared, and C; or the maps of an
        average. ``estimate``: expected value of the best of ``count`` on other rows."""
        about: dict[str, Json]
        if isinstance(chosen, Average):
            about = {"average": list[Json](chosen.maps)}
        else:
            grid = self.grids[chosen.grid]
            varied = [axis.name for axis in grid.axes if axis is grid.along or len(axis.values) > 1]
            about = {name: as_json(chosen.choice[name]) for name in varied if name in chosen.choice}
        return {
            **self.description(),
            "settings": count,
            **about,
            "mean": chosen.mean(self.metric),
            "deviation": chosen.deviation(self.metric),
            "estimate": estimate,
        }


def _tasks(variants: Iterable[tuple[int, Variant]], folds: Iterable[int]) -> list[Task]:
    """Each of (grid, variant) in each of these folds, fold by fold."""
    listed = list(variants)
    return [Task(number, variant, fold) for fold in folds for number, variant in listed]


@dataclass(frozen=True, slots=True, eq=False)
class Refit:
    """The chosen setting on all rows.

    Attributes
    ----------
    fit, outcome, model : the training, its outcome and its model
    out_of_fold : what the rankers of the search's folds give to all rows; ``how``: what the folds are, in words
    own : (n,) float64, what the model gives to all rows, or bags, where that is known already
    """

    fit: Fit
    outcome: Outcome
    model: Model
    out_of_fold: Callable[[], Sequence[OutOfFold]]
    how: str
    own: NDArray[np.float64] | None = None


def _fits(
    dataset: Dataset,
    grids: Sequence[Grid],
    labels: LabelOptions,
    features: FeatureOptions,
    query_weights: Mapping[int, float] | None,
) -> Iterator[Fit]:
    """The training of each grid; the rows once for all that pool bags alike, as passes over them go fastest."""
    settled: dict[tuple[str, ...] | None, Dataset] = {}
    for grid in grids:
        options = grid.features or features
        if options.scale == AUTO and any(one.trainer.capabilities.refusal("scale") for one in grid.variants()):
            options = replace(options, scale="none")  # the settings of a grid share their rows
        if options.pool not in settled:
            rows = bags_settled(dataset, grid.trainer, options.pool)
            settled[options.pool] = replace(rows, X=Rows(rows.X).for_many_passes().in_memory().matrix)
        yield Fit.of(settled[options.pool], grid.trainer, grid.labels or labels, options, query_weights=query_weights)


def as_json(value: Json | Multiple) -> Json:
    """A value of a setting."""
    return str(value) if isinstance(value, Multiple) else value


def _judged_by(dataset: Dataset, targets: Sequence[Target], labels: LabelOptions, *, only_grades: bool) -> Target:
    """The target that rows are judged by: the meaning of their labels to the losses if these agree on the relevant
    rows, else their meaning to metrics. Raises DataError."""
    first = targets[0]
    agreed = all(np.array_equal(first.relevant, other.relevant) for other in targets[1:])
    return judge(dataset, labels, first.labels if agreed else None, graded_metrics=only_grades)
