"""Runs comparisons: paths of settings in folds, each trained on the training rows and measured on the test rows.

``apsvm train`` compares a few plans on rows in memory (``quick``). ``apsvm cv`` compares whole trainings
(``cross_validation``), and so does a threshold that needs scores of held-out rows. They differ in what a path trains;
threads and stopping are here. Results do not depend on the number of threads or their order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support.threads import results
from apsvm._support.types import JsonObject
from apsvm.models.net import Net
from apsvm.selection.folds import Fold
from apsvm.selection.grids import Variant
from apsvm.trainers.base import Watch


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A path to train in a fold.

    Attributes
    ----------
    grid : number of the grid, from 0
    fold : number of the fold, from 0
    start : (dimension,) float64, the starting point, or None
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
    values : metric → value on the test rows
    seconds : time of training after the previous value of the path
    state : reason why training stopped
    as_asked : True if that is not a trouble
    C : weight of the risk, if there is one
    w : weights or net; None if not kept
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
    """Result of a task: its settings in the order of the path, fewer after a stop. ``failure`` is the reason of a
    tolerated failure."""

    task: Task
    settings: list[Measured] = field(default_factory=list)
    failure: str = ""


class OutOfFold(NamedTuple):
    """Scores of a ranker trained on the training rows (or bags) of a fold.

    Attributes
    ----------
    test, scores : (m,) int64 and float64, the test rows and their scores
    training, own : (k,) int64 and float64, the training rows and their scores
    """

    test: NDArray[np.int64]
    scores: NDArray[np.float64]
    training: NDArray[np.int64]
    own: NDArray[np.float64]


@dataclass(slots=True, eq=False)
class Candidate:
    """A setting finished in every fold.

    Attributes
    ----------
    grid : number of the grid, from 0
    loss : the loss, as ``--loss`` names it
    choice : the setting: a value for each axis of the grid
    folds : measurements by fold
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
    def seconds(self) -> list[float]:
        """Seconds of training, by fold."""
        return [one.seconds for one in self.folds]

    @property
    def states(self) -> list[str]:
        """Why training stopped, by fold."""
        return [one.state for one in self.folds]

    def values(self, metric: str) -> list[float]:
        """Values of the metric by fold."""
        return [one.values[metric] for one in self.folds]

    def mean(self, metric: str) -> float:
        """Mean of the metric over the folds."""
        return math.fsum(self.values(metric)) / len(self.folds)

    def deviation(self, metric: str) -> float:
        """Sample standard deviation of the metric over the folds."""
        mean = self.mean(metric)
        return math.sqrt(math.fsum((value - mean) ** 2 for value in self.values(metric)) / (len(self.folds) - 1))


class Measurements:
    """Results of paths in folds, grouped by setting."""

    def __init__(self, losses: Sequence[str], folds: int) -> None:
        self._losses, self._folds = losses, folds
        self._by_setting: dict[tuple[int, tuple[object, ...]], dict[int, Measured]] = {}

    def add(self, path: PathInFold) -> None:
        """Records the results of a finished path."""
        for measured in path.settings:
            key = path.task.grid, tuple(measured.choice.values())
            self._by_setting.setdefault(key, {})[path.task.fold] = measured

    def candidates(self, folds: int | None = None) -> list[Candidate]:
        """Settings finished in every fold, or in this many first folds, in the order in which they were first added."""
        first = range(self._folds if folds is None else folds)
        needed = set(first)
        return [
            Candidate(grid, self._losses[grid], by_fold[0].choice, [by_fold[fold] for fold in first])
            for (grid, _), by_fold in self._by_setting.items()
            if by_fold.keys() >= needed
        ]


class Race(ABC):
    """Tasks on the folds of a set of rows.

    Attributes
    ----------
    folds : training and test rows, or bags, of each fold
    """

    folds: Sequence[Fold]

    @abstractmethod
    def trained(self, task: Task, watch: Watch) -> PathInFold:
        """Runs a task."""

    @abstractmethod
    def scored(self, measured: Measured, grid: int, fold: int) -> OutOfFold:
        """Scores of test and training rows of a fold by a setting's ranker."""

    def run(self, tasks: Sequence[Task], threads: int, should_stop: Callable[[], bool]) -> Iterator[PathInFold]:
        """Runs the tasks with this many threads; yields results as they end.

        Raises
        ------
        SelectionError : a metric is not defined on the test rows of a fold
        ValueError, FloatingPointError : as ``Trainer.train``
        """
        ended = Event()

        def must_stop() -> bool:
            return ended.is_set() or should_stop()

        def work(task: Task) -> PathInFold:
            if must_stop():
                return PathInFold(task)
            return self.trained(task, Watch(should_stop=must_stop))

        yield from results(work, tasks, threads, stop=ended.set, in_order=False)
