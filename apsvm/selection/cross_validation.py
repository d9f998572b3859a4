"""Paths trained on folds and measured on what the folds leave out, in threads on rows that are in memory once.

A fold is a selection of the rows, its scaling a map in front of w: nothing of X is copied, unless a feature map makes
other columns of it, which are kept where memory allows. Grids of the same feature options share a fold's rows. Where
these are too many for the cache, paths go in lock-step, and share their passes over them (``data.lockstep``). The
result depends on neither the number of threads nor their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from threading import Event
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from apsvm.clock import wall_time_ns
from apsvm.data.bags import rows_of_bags
from apsvm.data.features.base import SHARE_OF_MEMORY
from apsvm.data.labels import Target
from apsvm.data.lockstep import Lockstep, members_at_once, rows_worth_sharing
from apsvm.data.rows import Rows
from apsvm.machine import memory, thread_count
from apsvm.models.kinds import AnyRankerSet, Net
from apsvm.selection.bags import scores_of_bags
from apsvm.selection.folds import Fold
from apsvm.selection.grids import Variant
from apsvm.threads import results
from apsvm.trainers.base import Outcome, Watch
from apsvm.trainers.fitting import FeatureOptions, Fit
from apsvm.trainers.ranking_check import scores_of
from apsvm.trainers.settings import saved_value, value_of_saved
from apsvm.trainers.training_threshold import line_by
from apsvm.types import JsonObject
from apsvm.work import Piece, Saved, Strand

if TYPE_CHECKING:
    from apsvm.metrics import Metric


#: The feature options and the seed of what they draw.
_Map: TypeAlias = tuple[FeatureOptions, int]


class SelectionError(ValueError):
    """A setting that cannot be judged in a fold; the message says which fold, and why."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A path to be trained in a fold.

    Attributes
    ----------
    grid : the number of its grid, from 0
    fold : the number of the fold, from 0
    start : (dimension,) float64, where to begin, or None
    """

    grid: int
    variant: Variant
    fold: int
    start: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """A setting in one fold.

    Attributes
    ----------
    choice : the setting
    values : metric → value on the rows left out
    seconds : of training, after the value before on the path
    state, as_asked : why the training stopped, and whether it was asked to stop there
    C : the weight of the risk, where there is one
    """

    choice: JsonObject
    values: Mapping[str, float]
    seconds: float
    state: str
    as_asked: bool
    C: float | None = None

    def to_saved(self) -> Saved:
        """For ``of_saved``."""
        choice = {name: saved_value(value) for name, value in self.choice.items()}
        values = {name: float(value) for name, value in self.values.items()}
        return {**asdict(self), "choice": choice, "values": values}

    @classmethod
    def of_saved(cls, saved: Saved) -> Measured:
        """What was saved."""
        choice = {name: value_of_saved(value) for name, value in saved["choice"].items()}
        return cls(**{**saved, "choice": choice})


@dataclass(slots=True, eq=False)
class PathInFold:
    """What became of a task: its settings in the path's order, fewer if it was stopped, and the weights of the last,
    where there is one for each column."""

    task: Task
    settings: list[Measured] = field(default_factory=list)
    w: NDArray[np.float64] | None = None

    def to_saved(self) -> Saved:
        """For ``of_saved``."""
        return {"settings": [one.to_saved() for one in self.settings], "w": self.w}

    @classmethod
    def of_saved(cls, task: Task, saved: Saved) -> PathInFold:
        """The path that was saved, of this task."""
        return cls(task, [Measured.of_saved(one) for one in saved["settings"]], saved["w"])


@dataclass(frozen=True, slots=True, eq=False)
class CrossValidation:
    """What tasks are done on.

    Attributes
    ----------
    fits : one a grid: all rows as its trainer sees them
    target, groups : what the rows, or the bags, are judged by, and their queries or None
    metrics : by name
    folds : of the rows, or of the bags
    """

    fits: Sequence[Fit]
    target: Target
    groups: NDArray[np.int64] | None
    metrics: Mapping[str, Metric]
    folds: Sequence[Fold]

    def run(
        self, tasks: Sequence[Task], jobs: int, should_stop: Callable[[], bool], strand: Strand
    ) -> Iterator[PathInFold]:
        """The tasks as they end, ``jobs`` at a time (0: one a core); they are a piece of ``strand``.

        Raises
        ------
        SelectionError : a metric is not defined on the rows that a fold leaves out
        ValueError, FloatingPointError : as ``Trainer.train``
        """
        from threadpoolctl import threadpool_limits

        threads = thread_count(jobs)
        piece = strand.piece(f"{len(tasks)} paths in folds")
        if piece.result is not None:
            yield from map(PathInFold.of_saved, tasks, piece.result["paths"])
            return
        # A quarter of the memory for the mapped rows of all folds and maps, however many threads there are.
        share = SHARE_OF_MEMORY * memory() / (len(self.folds) * len({self._map_of(fit) for fit in self.fits}))
        prepared: dict[tuple[int, _Map], Fit] = {}
        done: dict[Task, PathInFold] = {}
        ended = Event()

        def must_stop() -> bool:
            return ended.is_set() or should_stop()

        with threadpool_limits(1, user_api="blas"):
            for task in tasks:
                key = task.fold, self._map_of(self.fits[task.grid])
                if key not in prepared and not should_stop():
                    prepared[key] = self.prepared(task, share)
            together, fewest = self._together(tasks, list(prepared.values()), threads)
            lockstep = Lockstep(threads, fewest) if together > 1 else None

            def work(numbered: tuple[int, Task]) -> PathInFold:
                number, task = numbered
                fit = prepared.get((task.fold, self._map_of(self.fits[task.grid])))
                return self._done(task, fit, must_stop, lockstep, piece, number)

            at_a_time = max(together, threads)
            for path in results(work, list(enumerate(tasks)), at_a_time, stop=ended.set, in_order=False):
                done[path.task] = path
                yield path
        if should_stop():
            piece.broken_off()
        piece.done({"paths": [done[task].to_saved() for task in tasks]})

    def _together(self, tasks: Sequence[Task], prepared: Sequence[Fit], threads: int) -> tuple[int, int]:
        """How many paths share their passes, of at least how many rows; 1 where one has a time limit, which is its
        own."""
        trainers = {self.fits[task.grid].trainer for task in tasks}
        apart = any(not one.capabilities.shared_passes or one.settings.time_limit is not None for one in trainers)
        if apart or not prepared:
            return 1, 0
        rows = [fit.shared for fit in prepared if fit.shared is not None]
        n_bytes, n_rows = min(of.bytes_shared for of in rows), max(map(len, rows))
        return members_at_once(n_bytes, n_rows, len(tasks), threads), rows_worth_sharing(n_bytes, n_rows)

    @staticmethod
    def _map_of(fit: Fit) -> _Map:
        """What a fold's rows depend on."""
        return fit.features, fit.trainer.settings.seed

    def prepared(self, task: Task, share: float) -> Fit:
        """A training on the fold's training rows, with what is learned from them; ``shared``: all rows."""
        fit = self.fits[task.grid]
        fit = replace(fit, selection=rows_of_bags(fit.dataset, self.folds[task.fold].training)).prepared()
        return replace(fit, shared=fit.rows().with_threads(1).with_memory(share).for_many_passes())

    def _done(
        self,
        task: Task,
        prepared: Fit | None,
        should_stop: Callable[[], bool],
        lockstep: Lockstep | None,
        paths: Piece,
        number: int,
    ) -> PathInFold:
        """The ``number``-th of the ``paths``."""
        if prepared is None or should_stop():
            return PathInFold(task)
        with paths.strand(str(number)) as strand:
            piece = strand.piece("a path in a fold")
            if piece.result is not None:
                return PathInFold.of_saved(task, piece.result)
            with piece.strand("training") as within:
                path = self.trained(task, prepared, Watch(should_stop=should_stop, strand=within), lockstep)
            if should_stop():
                piece.broken_off()
            piece.done(path.to_saved())
            return path

    def trained(self, task: Task, prepared: Fit, watch: Watch, lockstep: Lockstep | None = None) -> PathInFold:
        """A task done, on what was ``prepared`` of its fold."""
        path = PathInFold(task)
        assert prepared.shared is not None
        if lockstep is None:
            return self._trained(path, prepared, prepared.shared, watch)
        with lockstep.joined() as kernels:
            return self._trained(path, prepared, prepared.shared.with_kernels(kernels), watch)

    def _trained(self, path: PathInFold, prepared: Fit, rows: Rows, watch: Watch) -> PathInFold:
        task = path.task
        fold, fit = self.folds[task.fold], self.fits[task.grid]
        training, test = (rows_of_bags(fit.dataset, part) for part in fold)
        fit = replace(
            fit,
            trainer=task.variant.trainer.with_settings(threads=1),
            selection=training,
            features=prepared.features,
            feature_map=prepared.feature_map,
            scaling=prepared.scaling,
            shared=rows.select(training),
        )
        held_out, target = rows.select(test), self.target.of(fold.test)
        cuts = any(metric.thresholded for metric in self.metrics.values())
        groups = None if self.groups is None else self.groups[fold.test]
        began = wall_time_ns()
        for outcome in fit.outcomes(watch, task.start):
            if outcome.interrupted or watch.should_stop():
                break
            assert isinstance(outcome.w, np.ndarray | Net)
            seconds = 1e-9 * (wall_time_ns() - began)
            scores = scores_of_bags(fit.dataset, test, scores_of(outcome.w, held_out))
            line = self._line(fit, outcome, fold) if cuts else 0.0
            values = self.judged(scores, target, groups, task.fold, line)
            path.settings.append(_measured(task, outcome, values, seconds))
            path.w = None if isinstance(outcome.w, Net) else outcome.w
            began = wall_time_ns()
        return path

    def _line(self, fit: Fit, outcome: Outcome, fold: Fold) -> float:
        """The score above which the model that the training makes calls a row positive, 0 where it has no threshold."""
        model = fit.model(outcome)
        threshold = None if isinstance(model, AnyRankerSet) else model.header.threshold
        if threshold is not None:
            return threshold.value
        if self.groups is not None and np.unique(self.groups).size > 1:
            return 0.0
        assert fit.shared is not None
        assert isinstance(outcome.w, np.ndarray | Net)
        training = rows_of_bags(fit.dataset, fold.training)
        return line_by(
            scores_of_bags(fit.dataset, training, scores_of(outcome.w, fit.shared)), self.target.of(fold.training)
        )

    def judged(
        self,
        scores: NDArray[np.float64],
        target: Target,
        groups: NDArray[np.int64] | None,
        fold: int,
        line: float = 0.0,
    ) -> Mapping[str, float]:
        """The metrics of ``scores`` (m,) of a fold's m test rows, positive are called those above the ``line``. Raises
        SelectionError."""
        from apsvm.metrics import MetricError
        from apsvm.metrics.evaluate import evaluate

        metrics, lowest = list(self.metrics.values()), target.lowest_relevant
        try:
            return evaluate(metrics, scores, target.judgements, groups, relevant_from=lowest, threshold=line).values
        except MetricError as error:
            raise SelectionError(f"fold {fold + 1}: {error}") from None


def _measured(task: Task, outcome: Outcome, values: Mapping[str, float], seconds: float) -> Measured:
    return Measured(
        task.variant.choice_of(outcome), values, seconds, outcome.state, as_asked=outcome.as_asked, C=outcome.C
    )
