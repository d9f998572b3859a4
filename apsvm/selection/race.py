"""The one machine that compares: paths of settings × folds, each trained on a part of the rows, measured on the rest;
and what it finds, gathered by setting.

``apsvm train`` races a few plans on rows in memory (``quick``), ``apsvm cv`` whole trainings with all that belongs to
them (``cross_validation``), also a single one, where a threshold needs scores of rows held out. They differ in what a
path trains; threads and stopping are here. The result depends on neither the number of threads nor their order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from threading import Event
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support.threads import results
from apsvm._support.types import JsonObject
from apsvm.data.lockstep import Lockstep
from apsvm.models.net import Net
from apsvm.selection.folds import Fold
from apsvm.selection.grids import Variant
from apsvm.trainers.base import Watch


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


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A setting in one fold.

    Attributes
    ----------
    choice : the setting
    values : metric → value on the rows left out
    seconds : of training, after the value before on the path
    state, as_asked : why the training stopped, and whether that is an end without trouble
    C : the weight of the risk, where there is one
    w : what was trained, weights or a net; None where it was not kept
    """

    choice: JsonObject
    values: Mapping[str, float]
    seconds: float
    state: str
    as_asked: bool
    C: float | None = None
    w: NDArray[np.float64] | Net | None = None


@dataclass(slots=True, eq=False)
class PathInFold:
    """The outcome of a task: its settings in the path's order, fewer if it was stopped; ``failure``: why there are no
    more, where that is something that the race tolerates."""

    task: Task
    settings: list[Measured] = field(default_factory=list)
    failure: str = ""


class OutOfFold(NamedTuple):
    """Scores by a ranker that was trained on some of the rows (or bags).

    Attributes
    ----------
    test, scores : (m,) int64 and float64, rows that it has not seen, and what it gives them
    training, own : (k,) int64 and float64, the rows that it was trained on, and what it gives those
    """

    test: NDArray[np.int64]
    scores: NDArray[np.float64]
    training: NDArray[np.int64]
    own: NDArray[np.float64]


@dataclass(slots=True, eq=False)
class Candidate:
    """A setting that was finished in every fold.

    Attributes
    ----------
    grid : the number of its grid, from 0
    loss : as ``--loss`` names it
    choice : the setting: a value of each axis of the grid
    folds : what was measured, by fold
    """

    grid: int
    loss: str
    choice: JsonObject
    folds: Sequence[Measured] = field(default_factory=list)

    @property
    def as_asked(self) -> bool:
        """True if training ended as requested in every fold."""
        return all(one.as_asked for one in self.folds)

    @property
    def C(self) -> list[float]:
        """C in each fold; empty for families without C."""
        return [one.C for one in self.folds if one.C is not None]

    @property
    def mean_C(self) -> float:
        """The mean of ``C``."""
        return math.fsum(self.C) / len(self.C)

    @property
    def seconds(self) -> list[float]:
        """Seconds of training, by fold."""
        return [one.seconds for one in self.folds]

    @property
    def states(self) -> list[str]:
        """Why training stopped, by fold."""
        return [one.state for one in self.folds]

    def values(self, metric: str) -> list[float]:
        """The metric, by fold."""
        return [one.values[metric] for one in self.folds]

    def mean(self, metric: str) -> float:
        """Mean of the folds' values."""
        return math.fsum(self.values(metric)) / len(self.folds)

    def deviation(self, metric: str) -> float:
        """Between the folds' values, of a sample."""
        mean = self.mean(metric)
        return math.sqrt(math.fsum((value - mean) ** 2 for value in self.values(metric)) / (len(self.folds) - 1))


class Measurements:
    """Results of paths in folds, gathered by setting."""

    def __init__(self, losses: Sequence[str], folds: int) -> None:
        self._losses, self._folds = losses, folds
        self._by_setting: dict[tuple[int, tuple[object, ...]], dict[int, Measured]] = {}

    def add(self, path: PathInFold) -> None:
        """Records the results of a finished path."""
        for measured in path.settings:
            key = path.task.grid, tuple(measured.choice.values())
            self._by_setting.setdefault(key, {})[path.task.fold] = measured

    def candidates(self, folds: int | None = None) -> list[Candidate]:
        """The settings that were finished in every fold, or in this many from the first on, in the order in which they
        were first."""
        first = range(self._folds if folds is None else folds)
        needed = set(first)
        return [
            Candidate(grid, self._losses[grid], by_fold[0].choice, [by_fold[fold] for fold in first])
            for (grid, _), by_fold in self._by_setting.items()
            if by_fold.keys() >= needed
        ]


class Race(ABC):
    """Tasks on the folds of some rows.

    Attributes
    ----------
    folds : the rows, or the bags, to train on and to judge by
    tolerated : errors that end a path and not the race
    """

    folds: Sequence[Fold]
    tolerated: tuple[type[Exception], ...] = ()

    @abstractmethod
    def trained(self, task: Task, watch: Watch, lockstep: Lockstep | None = None) -> PathInFold:
        """A task done."""

    def attempted(self, task: Task, watch: Watch, lockstep: Lockstep | None = None) -> PathInFold:
        """A task done, or why it could not be."""
        if not self.tolerated:
            return self.trained(task, watch, lockstep)
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite ends the path
                return self.trained(task, watch, lockstep)
        except self.tolerated as error:
            return PathInFold(task, failure=str(error))

    @abstractmethod
    def scored(self, measured: Measured, grid: int, fold: int) -> OutOfFold:
        """Scores of the rows by a setting's ranker of a fold."""

    def ready(
        self, tasks: Sequence[Task], threads: int, should_stop: Callable[[], bool]
    ) -> tuple[int, Lockstep | None]:
        """Prepares what threads share; how many tasks are at work at a time, and their lock-step, if they have one."""
        return threads, None

    def limits(self) -> AbstractContextManager[object]:
        """Limits that hold while tasks are done."""
        return nullcontext()

    def run(self, tasks: Sequence[Task], threads: int, should_stop: Callable[[], bool]) -> Iterator[PathInFold]:
        """The tasks as they end, by this many threads.

        Raises
        ------
        SelectionError : a metric is not defined on the rows that a fold leaves out
        ValueError, FloatingPointError : as ``Trainer.train``
        """
        ended = Event()

        def must_stop() -> bool:
            return ended.is_set() or should_stop()

        with self.limits():
            at_a_time, lockstep = self.ready(tasks, threads, should_stop)

            def work(task: Task) -> PathInFold:
                if must_stop():
                    return PathInFold(task)
                return self.attempted(task, Watch(should_stop=must_stop), lockstep)

            yield from results(work, tasks, at_a_time, stop=ended.set, in_order=False)
