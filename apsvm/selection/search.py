"""The whole of it: every grid in every fold, once more where the best setting stands at the edge of its grid, the
choice, and the chosen setting trained on all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm._support.blas import one_blas_thread
from apsvm._support.machine import thread_count
from apsvm.data.labels import LabelOptions, Target, judge
from apsvm.data.rows import Rows
from apsvm.models.header import Json
from apsvm.selection.average import Average, Member, average_with, refitted
from apsvm.selection.bags import bags_as_rows, of_bags
from apsvm.selection.choice import Candidate, Measurements, at_the_edge, best, beyond, worth_of_choice
from apsvm.selection.completion import outcomes
from apsvm.selection.cross_validation import CrossValidation
from apsvm.selection.estimate import Estimate, pooled_ap
from apsvm.selection.folds import Fold, make_folds
from apsvm.selection.grids import Grid, Variant
from apsvm.selection.race import OutOfFold, PathInFold, Task
from apsvm.selection.thresholds import line_by
from apsvm.trainers.base import Outcome, Watch
from apsvm.trainers.fitting import AUTO, FeatureOptions, Fit, bags_settled
from apsvm.trainers.settings import Multiple, SettingValue, amount

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.metrics import Metric
    from apsvm.models.base import Model
    from apsvm.selection.cache import Cache


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
    widened : called when a grid becomes wider, with its number, the setting, and the new values
    elsewhere : does what ``Race.run`` does, where that is not for threads of this process
    cache : where finished paths are kept; None: nowhere
    """

    path: Callable[[PathInFold, int, int], None] = unseen
    widened: Callable[[int, str, Sequence[SettingValue]], None] = unseen
    should_stop: Callable[[], bool] = never
    elsewhere: Callable[[CrossValidation, Sequence[Task], Callable[[], bool]], Iterator[PathInFold]] | None = None
    cache: Cache | None = None


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
    failures : why paths ended, by the number of their grid, where that is tolerated
    also : what may be averaged with the best, beside the search's own candidates; None: nothing may
    raced : settings that were compared on the same folds before, in all or the first of them: the search is of the best

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
        made = make_folds(target, units.groups, folds, seed, only_grades=only_grades, bags=units.bags)
        self._cross = CrossValidation(fits, target, units.groups, metrics, made, tolerated)
        self._measured = Measurements([grid.trainer.loss_name for grid in grids], len(made))
        self._tried: set[tuple[int, int]] = set()
        self.failures: dict[int, str] = {}
        self.also: Sequence[Member] | None = None
        self.raced: Sequence[Candidate] = ()

    def only(self, grids: Sequence[int]) -> SettingsSearch:
        """The search among these grids alone, with what was measured of them so far."""
        search = copy(self)
        search.grids = [self.grids[grid] for grid in grids]
        search._cross, search._measured = self._cross.only(grids), self._measured.only(grids)
        search._tried = {(grids.index(grid), fold) for grid, fold in self._tried if grid in grids}
        search.failures = {}
        return search

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
        """What the rows are judged by."""
        return self._cross.target

    def judged(
        self, scores: NDArray[np.float64], fold: int, own: NDArray[np.float64] | None = None
    ) -> Mapping[str, float]:
        """The metrics of the ``scores`` (m,) of a fold's m test rows; positive are called those above the best line for
        its training rows, whose scores are ``own``, or above 0. Raises SelectionError."""
        (training, test), groups = self.folds[fold], self._cross.groups
        cuts = any(metric.thresholded for metric in self._cross.metrics.values())
        by_query = groups is not None and np.unique(groups).size > 1
        line = line_by(own, self.target.of(training)) if cuts and own is not None and not by_query else 0.0
        return self._cross.judged(scores, self.target.of(test), None if groups is None else groups[test], fold, line)

    def run(
        self,
        jobs: int = 0,
        followers: Followers = Followers(),
        *,
        widen: bool = True,
        grids: Sequence[int] | None = None,
        folds: Sequence[int] | None = None,
    ) -> None:
        """Trains and measures what was not yet, ``jobs`` paths at a time (0: one a core); after being stopped, what was
        finished counts.

        Parameters
        ----------
        widen : whether grids are, where the best stands at an edge
        grids, folds : their numbers; None: all of them

        Raises
        ------
        SelectionError : a metric is not defined on the rows that a fold leaves out
        ValueError, FloatingPointError : as ``Trainer.train``
        """
        chosen = range(len(self.grids)) if grids is None else grids
        listed = [(number, variant) for number in chosen for variant in self.grids[number].variants()]
        within = range(len(self.folds)) if folds is None else folds
        tasks = [task for task in self._tasks(listed, within) if (task.grid, task.fold) not in self._tried]
        self._do_in_steps(tasks, jobs, followers, done=0)
        self._tried |= {(task.grid, task.fold) for task in tasks}
        if followers.should_stop() or not widen:
            return
        more = self._wider(followers)
        if more:
            peak = best(self.candidates(), self.metric)
            self._do_in_steps(more, jobs, followers, done=len(tasks), after=peak)

    def least(self, jobs: int, followers: Followers) -> None:
        """Trains and measures one setting in two folds, after the others had to be stopped: the best of those that one
        fold has, or else one in the middle.

        Raises
        ------
        SelectionError, ValueError, FloatingPointError : as ``run``
        """
        first = self.candidates(1)
        if first:
            peak = best(first, self.metric)
            number, choice = peak.grid, peak.choice
        else:
            number, choice = 0, {axis.name: axis.values[len(axis.values) // 2] for axis in self.grids[0].axes}
        variant = self.grids[number].chosen(choice)
        self._do(self._tasks([(number, variant)], range(2)), jobs, followers, done=0)

    def _tasks(self, variants: Iterable[tuple[int, Variant]], folds: Iterable[int]) -> list[Task]:
        """Each of (grid, variant) in each of these folds, fold by fold."""
        listed = list(variants)
        return [Task(number, variant, fold) for fold in folds for number, variant in listed]

    def _do_in_steps(
        self, tasks: Sequence[Task], jobs: int, followers: Followers, *, done: int, after: Candidate | None = None
    ) -> None:
        """The tasks; of a grid that climbs a value of C at a time, in all folds, each from the one before, up to the
        first at which the metric falls. ``after``: the candidate beyond which they go, up or down, if any."""

        def values_of_C(task: Task) -> tuple[SettingValue, ...]:
            return task.variant.trainer.settings.C if self.grids[task.grid].climbs else ()

        at_once = [task for task in tasks if len(values_of_C(task)) < 2]
        self._do(at_once, jobs, followers, done=done)
        done += len(at_once)
        for grid in dict.fromkeys(task.grid for task in tasks if len(values_of_C(task)) > 1):
            of_grid = [task for task in tasks if task.grid == grid]
            values, middle = values_of_C(of_grid[0]), 0.0 if after is None else amount(after.choice["C"])
            below = [C for C in reversed(values) if amount(C) < middle]
            for side in (below, [C for C in values if amount(C) > middle]):
                before = after
                for C in side:
                    step = [replace(task, variant=task.variant.with_settings(C=(C,))) for task in of_grid]
                    if before is not None:
                        step = [self._continued(task, before) for task in step]
                    self._do(step, jobs, followers, done=done)
                    done += len(step)
                    now = next((one for one in self.candidates() if one.grid == grid and one.choice["C"] == C), None)
                    if now is None or (before is not None and now.mean(self.metric) < before.mean(self.metric)):
                        break
                    before = now

    def _do(self, tasks: Sequence[Task], jobs: int, followers: Followers, *, done: int) -> None:
        def run(tasks: Sequence[Task]) -> Iterator[PathInFold]:
            if followers.elsewhere is None:
                return self._cross.run(tasks, thread_count(jobs), followers.should_stop)
            return followers.elsewhere(self._cross, tasks, followers.should_stop)

        total = done + len(tasks)
        for path in run(tasks) if followers.cache is None else followers.cache.paths(self._cross, tasks, run):
            done += 1
            self._measured.add(path)
            if path.failure:
                self.failures[path.task.grid] = path.failure
            if path.settings:
                followers.path(path, done, total)

    def _wider(self, followers: Followers) -> list[Task]:
        """What is left to do where the best setting stands at the edge of a grid whose values are the defaults."""
        candidates = self.candidates()
        if not candidates:
            return []
        peak = best(candidates, self.metric)
        grid = self.grids[peak.grid]
        tasks: list[Task] = []
        for name, values in beyond(candidates, grid, peak, self.metric).items():
            followers.widened(peak.grid, name, values)
            axis = grid.axis(name)
            variants = ((peak.grid, variant) for variant in grid.around(peak.choice, axis, values))
            wider = self._tasks(variants, range(len(self.folds)))
            onwards = axis.path and axis.position(values[0]) > axis.position(peak.choice[name])
            tasks += [self._continued(task, peak) for task in wider] if onwards else wider
        return tasks

    def _continued(self, task: Task, last: Candidate) -> Task:
        """A task whose path goes on where the one that ended with ``last`` did."""
        if task.variant.trainer.capabilities.refusal("warm_start") is not None:
            return task
        w = last.folds[task.fold].w
        return replace(task, start=w if isinstance(w, np.ndarray) else None)

    def candidates(self, folds: int | None = None) -> list[Candidate]:
        """The settings that were finished in every fold, or in this many from the first on, grid by grid."""
        whole = self._measured.candidates(folds)
        return sorted(whole, key=lambda one: (one.grid, self.grids[one.grid].order(one.choice)))

    def so_far(self) -> list[Candidate]:
        """The settings that were finished in every fold, or else in as many as any was, but two at least."""
        return next(filter(None, map(self.candidates, range(len(self.folds), 1, -1))), [])

    def out_of_fold(self, chosen: Candidate) -> list[OutOfFold]:
        """The scores that its rankers of the folds give to all rows, or bags."""
        folds = enumerate(chosen.folds)
        return [self._cross.scored(measured, chosen.grid, fold) for fold, measured in folds]

    def choose(self, candidates: Sequence[Candidate]) -> Candidate:
        """The best."""
        return best(candidates, self.metric)

    def gained_by_choice(self, candidates: Sequence[Candidate], metric: str | None = None) -> float:
        """By how much the mean over the folds of the best of these candidates is above what it is worth on other rows,
        by this metric, or the one that chooses: what the choice of the best adds to it."""
        top, name = self.choose(candidates), metric or self.metric
        raced = [replace(one, folds=one.folds[: len(top.folds)]) for one in self.raced]
        return max(0.0, top.mean(name) - worth_of_choice([*candidates, *raced], name, self.metric))

    def estimate(self, chosen: Candidate, candidates: Sequence[Candidate], metric: str) -> float:
        """The metric of ``chosen``, one of these candidates or an average of them, on other rows: AP of one list by
        ``expected_ap``, others by their mean over the folds without what the choice of the best adds."""
        expected = self.expected_ap(chosen) if metric == "AP" else None
        if expected is not None:
            return expected.value
        return chosen.mean(metric) - self.gained_by_choice(candidates, metric)

    def expected_ap(self, chosen: Candidate) -> Estimate | None:
        """AP of all rows held out, as one list; None where rows are in queries."""
        groups = self._cross.groups
        if groups is not None and np.unique(groups).size > 1:
            return None
        folds = chosen.out_of_fold() if isinstance(chosen, Average) else self.out_of_fold(chosen)
        return pooled_ap(folds, self.target.relevant)

    def average(
        self,
        candidates: Sequence[Candidate],
        chosen: Candidate,
        jobs: int = 0,
        followers: Followers = Followers(),
    ) -> Average | None:
        """The average of ``chosen``, of these candidates, and the best on other feature maps that are near to it; None
        where there are none, and in a search that is not for the best of all rankers. What was raced in some of the
        folds is trained in the others first (parameters and errors: see ``run``)."""
        if self.also is None:
            return None
        best, own = Member(self, chosen), [Member(self, one) for one in candidates if one is not chosen]
        average = average_with(best, [*own, *self.also], self.metric)
        if average is None or len(average.folds) == len(self.folds):
            return average
        for search in {id(member.search): member.search for member in average.members}.values():
            search._finish([member.candidate for member in average.members if member.search is search], jobs, followers)
        members = [Member(one.search, one.search._finished(one.candidate)) for one in average.members]
        others = [one for one in members if one.candidate is not chosen]
        return average_with(best, others, self.metric)

    def _finish(self, chosen: Sequence[Candidate], jobs: int, followers: Followers) -> None:
        """Trains and measures settings in the folds that they lack."""
        variants = [(one.grid, self.grids[one.grid].chosen(one.choice), len(one.folds)) for one in chosen]
        tasks = [
            Task(grid, variant, fold)
            for fold in range(len(self.folds))
            for grid, variant, done in variants
            if fold >= done
        ]
        self._do(tasks, jobs, followers, done=0)

    def _finished(self, one: Candidate) -> Candidate:
        """The setting in all folds, where it was finished in all, or as it is."""
        alike = (other for other in self.candidates() if (other.grid, other.choice) == (one.grid, one.choice))
        return next(alike, one)

    def edges(self, candidates: Sequence[Candidate], chosen: Candidate) -> list[str]:
        """The settings of which ``chosen`` has the lowest or the highest value that was tried."""
        return at_the_edge(candidates, self.grids[chosen.grid], chosen)

    def description(self) -> dict[str, Json]:
        """How settings are compared."""
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
        return "rows, stratified" if self.whole.bags is None and self.whole.pool is None else "bags, stratified"

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
        if not isinstance(chosen, Average):
            return self._trained(chosen, self._selection(chosen, count, estimate), jobs, followers)
        refits: list[Refit] = []
        for member in chosen.members:
            selection = member.search._selection(member.candidate, count, estimate)
            refit = member.search._trained(member.candidate, selection, jobs, followers)
            if refit is None or refit.outcome.interrupted:
                return refits[0] if refits else refit
            refits.append(refit)
        return refitted(chosen, refits, self._selection(chosen, count, estimate))

    def _trained(
        self, chosen: Candidate, selection: Mapping[str, Json], jobs: int, followers: Followers
    ) -> Refit | None:
        """A setting trained on all rows; ``selection``: what the header says of the choice."""
        grid, w = self.grids[chosen.grid], chosen.folds[0].w
        trainer = grid.chosen(chosen.choice).trainer.with_settings(threads=1)
        start = w if grid.climbs and isinstance(w, np.ndarray) else None
        with one_blas_thread():
            fit = replace(self.fits[chosen.grid], trainer=trainer).prepared()
            # The threads of the rows alone: those of some trainers' settings change the result.
            fit = replace(fit, shared=fit.rows().with_threads(thread_count(jobs)))
            watch = Watch(should_stop=followers.should_stop)
            outcome = next(outcomes(fit, watch, start), None)
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
        """What the model's header says of the choice: the settings of which there were several values, and C; or the
        maps of the rankers that are averaged. ``estimate``: what the best of ``count`` is worth on other rows."""
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
    """What the rows are judged by: what their labels mean to the losses, where these agree on which rows are relevant;
    else what they mean to metrics. Raises DataError."""
    first = targets[0]
    agreed = all(np.array_equal(first.relevant, other.relevant) for other in targets[1:])
    return judge(dataset, labels, first.labels if agreed else None, graded_metrics=only_grades)
