"""Compares settings on the folds of a data set; trains the chosen setting, or the average of several, on all rows."""

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
from apsvm.selection.choose import Estimate, best, chosen_by_others, pooled_ap
from apsvm.selection.completion import train_fit
from apsvm.selection.cross_validation import CrossValidation
from apsvm.selection.folds import FOLDS, Fold, copies_of, make_folds
from apsvm.selection.grids import Grid, Variant
from apsvm.selection.race import Candidate, Measurements, OutOfFold, PathInFold, Task
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
    """Observers of a search.

    Attributes
    ----------
    path : called when a path ends, with the path, the number of finished paths and the number of all paths
    should_stop : called between iterations; the search stops if it returns True
    """

    path: Callable[[PathInFold, int, int], None] = unseen
    should_stop: Callable[[], bool] = never


class SettingsSearch:
    """Compares settings on the folds of a data set.

    Parameters
    ----------
    dataset : all rows
    grids : the settings to try, a grid for each loss
    metrics : metrics by name; the first one selects
    labels : label options of grids that have none of their own
    features : feature options of grids that have none of their own
    folds : number of folds
    seed : seed of the folds
    query_weights : weight of each query in training; 1 for queries not listed
    judged_by : meaning of the labels to the metrics; by default their meaning to the losses, if these agree
    tolerated : errors that end a path but not the search
    averages : True if the best rankers on several feature maps may be averaged

    Attributes
    ----------
    units : the rows that are dealt out and judged; bags as rows without features
    alive : numbers of the grids that are still compared
    failures : reasons of tolerated failures, by grid number

    Raises
    ------
    DataError : the labels do not fit
    FoldError : there are not enough rows for the folds
    """

    def __init__(
        self,
        dataset: Dataset,
        grids: Sequence[Grid],
        metrics: Mapping[str, Metric],
        *,
        labels: LabelOptions = LabelOptions(),  # noqa: B008  # frozen
        features: FeatureOptions = FeatureOptions(),  # noqa: B008  # frozen
        folds: int = FOLDS,
        seed: int = 0,
        query_weights: Mapping[int, float] | None = None,
        judged_by: Target | None = None,
        tolerated: tuple[type[Exception], ...] = (),
        averages: bool = False,
    ) -> None:
        self.dataset = dataset
        self.grids = grids
        self.metrics, self.metric = metrics, next(iter(metrics))
        self.seed = seed
        fits = list(_fits(dataset, grids, labels, features, query_weights))
        # Rows or bags, which all grids have in the same order.
        self.units = units = bags_as_rows(fits[0].dataset)
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
        """The training of each grid on all rows."""
        return self._cross.fits

    @property
    def folds(self) -> Sequence[Fold]:
        """Training and test rows of each fold."""
        return self._cross.folds

    @property
    def target(self) -> Target:
        """Meaning of the labels to the metrics."""
        return self._cross.target

    def judged(
        self, scores: NDArray[np.float64], fold: int, own: NDArray[np.float64] | None = None
    ) -> Mapping[str, float]:
        """Metrics of the ``scores`` (m,) of the test rows of a fold. Metrics with a threshold use the best one for the
        training rows, whose scores are ``own``, or 0. Raises SelectionError."""
        line = 0.0 if own is None else self._cross.line(own, fold)
        return self._cross.judged(scores, fold, line)

    @property
    def positives(self) -> int | None:
        """Number of positives of a single list; None with queries."""
        return None if self._by_query else int(self.target.relevant.sum())

    @property
    def _by_query(self) -> bool:
        return self._cross.groups is not None

    def run(self, jobs: int = 0, followers: Followers = Followers(), folds: Iterable[int] | None = None) -> None:
        """Trains and measures all unfinished paths. After a stop, finished paths count.

        Parameters
        ----------
        jobs : number of paths at a time; 0 means one per core
        folds : numbers of the folds; by default all

        Raises
        ------
        SelectionError : a metric is not defined on the test rows of a fold
        ValueError, FloatingPointError : as ``Trainer.train``
        """
        listed = [(number, variant) for number in self.alive for variant in self.grids[number].variants()]
        within = range(len(self.folds)) if folds is None else folds
        tasks = [task for task in _tasks(listed, within) if (task.grid, task.fold) not in self._tried]
        self._do(tasks, jobs, followers)
        self._tried |= {(task.grid, task.fold) for task in tasks}

    def least(self, jobs: int, followers: Followers) -> None:
        """Trains and measures a single setting in two folds after the search was stopped: the best one of the first
        fold, or else the middle one of the first grid. Raises as ``run``."""
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
        """Settings of the grids alive that were finished in every fold, or in this many first ones; ordered by grid."""
        whole = [one for one in self._measured.candidates(folds) if one.grid in self.alive]
        return sorted(whole, key=lambda one: (one.grid, self.grids[one.grid].order(one.choice)))

    def so_far(self) -> list[Candidate]:
        """Settings finished in the largest number of folds, which is at least two."""
        return next(filter(None, map(self.candidates, range(len(self.folds), 1, -1))), [])

    def out_of_fold(self, chosen: Candidate) -> list[OutOfFold]:
        """Held-out scores of all rows, or bags, by the candidate's rankers of the folds."""
        if isinstance(chosen, Average):
            return chosen.out_of_fold()
        folds = enumerate(chosen.folds)
        return [self._cross.scored(measured, chosen.grid, fold) for fold, measured in folds]

    def choose(self, candidates: Sequence[Candidate]) -> Candidate:
        """The candidate with the best mean."""
        return best(candidates, self.metric)

    def average(self, candidates: Sequence[Candidate]) -> Average | None:
        """Average of the best candidates of several feature maps, or None (``average_with``)."""
        return average_with(self, candidates) if self.averages else None

    def estimate(self, chosen: Candidate, candidates: Sequence[Candidate], metric: str) -> float:
        """Expected value of ``metric`` on new rows for the chosen candidate or average: ``expected_ap`` for AP of one
        list, otherwise the mean over the folds minus the optimism of the choice, which is 0 for an average."""
        expected = self.expected_ap(chosen, candidates) if metric == "AP" else None
        if expected is not None:
            return expected.value
        if isinstance(chosen, Average):
            return chosen.mean(metric)
        worth = [one.values(metric)[fold] for fold, one in enumerate(chosen_by_others(candidates, self.metric))]
        return min(chosen.mean(metric), math.fsum(worth) / len(worth))

    def expected_ap(self, chosen: Candidate, candidates: Sequence[Candidate]) -> Estimate | None:
        """AP of all held-out rows as one list, minus the optimism of the choice, which is 0 for an average. None with
        queries."""
        if chosen not in self._expected:  # used by the table, the interval and the header
            self._expected[chosen] = self._pooled(chosen, candidates)
        return self._expected[chosen]

    def _pooled(self, chosen: Candidate, candidates: Sequence[Candidate]) -> Estimate | None:
        if self._by_query:
            return None
        pooled = partial(pooled_ap, relevant=self.target.relevant)
        if isinstance(chosen, Average):
            return pooled(chosen.out_of_fold())
        others = enumerate(chosen_by_others(candidates, self.metric))
        by_others = [self._cross.scored(one.folds[at], one.grid, at) for at, one in others]
        return pooled(self.out_of_fold(chosen), others=by_others)

    def description(self) -> dict[str, Json]:
        """Description of the comparison, for the header."""
        return {
            "folds": len(self.folds),
            "folds_of": self._folds_of,
            "seed": self.seed,
            "metric": self.metric,
        }

    @property
    def _folds_of(self) -> str:
        if self.units.groups is not None:
            return "queries"
        if self.dataset.bags is not None or self.dataset.pool is not None:
            return "bags"
        return "rows" if self._copies is None else "rows, copies together"

    def refit(
        self,
        chosen: Candidate,
        candidates: Sequence[Candidate],
        jobs: int = 0,
        followers: Followers = Followers(),
    ) -> Refit | None:
        """Trains the chosen candidate, or the members of an average, on all rows. None if it was stopped before there
        was a model.

        Parameters
        ----------
        jobs : number of threads; 0 means one per core

        Raises
        ------
        ValueError, FloatingPointError : as ``Trainer.train``
        """
        members = chosen.members if isinstance(chosen, Average) else [chosen]
        refits: list[Refit] = []
        for member in members:
            refit = self._trained(member, jobs, followers)
            if refit is None or (refits and refit.outcome.interrupted):
                break
            refits.append(refit)
        if not refits:
            return None
        average = refitted(chosen, refits) if isinstance(chosen, Average) and len(refits) == len(members) else None
        refit, of = (refits[0], members[0]) if average is None else (average, chosen)
        header = replace(refit.model.header, selection=self._selection(of, candidates))
        return replace(refit, model=refit.model.with_header(header))

    def _trained(self, chosen: Candidate, jobs: int, followers: Followers) -> Refit | None:
        """Trains a setting on all rows."""
        trainer = self.grids[chosen.grid].chosen(chosen.choice).trainer.with_settings(threads=1)
        with one_blas_thread():
            fit = replace(self.fits[chosen.grid], trainer=trainer).prepared()
            # Threads of the rows only: those of some trainers' settings change the result.
            fit = replace(fit, shared=fit.rows().with_threads(thread_count(jobs)))
            outcome = next(train_fit(fit, Watch(should_stop=followers.should_stop)), None)
        if outcome is None:
            return None
        model = fit.model(outcome)
        if self.grids[chosen.grid].labels is not None:
            # Trained on two classes, but judged by the grades.
            model = model.with_header(replace(model.header, labels=self.target.labels))
        how = f"{len(self.folds)} folds of {self._folds_of}"
        return Refit(fit, outcome, model, partial(self.out_of_fold, chosen), how)

    def _selection(self, chosen: Candidate, candidates: Sequence[Candidate]) -> dict[str, Json]:
        """Description of the choice for the header: the settings that varied, and C; or the maps of an average."""
        about: dict[str, Json]
        if isinstance(chosen, Average):
            about = {"average": list[Json](chosen.maps)}
        else:
            grid = self.grids[chosen.grid]
            varied = [axis.name for axis in grid.axes if axis is grid.along or len(axis.values) > 1]
            about = {name: as_json(chosen.choice[name]) for name in varied if name in chosen.choice}
        return {
            **self.description(),
            "settings": len(candidates),
            **about,
            "mean": chosen.mean(self.metric),
            "deviation": chosen.deviation(self.metric),
            "estimate": self.estimate(chosen, candidates, self.metric),
        }


def _tasks(variants: Iterable[tuple[int, Variant]], folds: Iterable[int]) -> list[Task]:
    """A task for each (grid, variant) in each fold, fold by fold."""
    listed = list(variants)
    return [Task(number, variant, fold) for fold in folds for number, variant in listed]


@dataclass(frozen=True, slots=True, eq=False)
class Refit:
    """The chosen setting trained on all rows.

    Attributes
    ----------
    fit, outcome, model : the training, its outcome and its model
    out_of_fold : returns the held-out scores of all rows by the rankers of the folds
    how : description of the folds
    """

    fit: Fit
    outcome: Outcome
    model: Model
    out_of_fold: Callable[[], Sequence[OutOfFold]]
    how: str


def _fits(
    dataset: Dataset,
    grids: Sequence[Grid],
    labels: LabelOptions,
    features: FeatureOptions,
    query_weights: Mapping[int, float] | None,
) -> Iterator[Fit]:
    """The training of each grid. Grids that pool bags alike share one copy of the rows, laid out for many passes."""
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
    """The JSON form of a setting's value."""
    return str(value) if isinstance(value, Multiple) else value


def _judged_by(dataset: Dataset, targets: Sequence[Target], labels: LabelOptions, *, only_grades: bool) -> Target:
    """Meaning of the labels to the metrics: their meaning to the losses if these agree on the relevant rows. Raises
    DataError."""
    first = targets[0]
    agreed = all(np.array_equal(first.relevant, other.relevant) for other in targets[1:])
    return judge(dataset, labels, first.labels if agreed else None, graded_metrics=only_grades)
