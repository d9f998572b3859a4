"""The one machine that compares: paths of settings × folds, each trained on a part of the rows, measured on the rest.

``apsvm train`` races a few plans on rows in memory (``quick``), ``apsvm cv`` whole trainings with all that belongs to
them (``cross_validation``), also a single one, where a threshold needs scores of rows held out. They differ in what a
path trains; threads, resuming, stopping and what is kept are here. The result depends on neither the number of threads
nor their order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support.threads import results
from apsvm._support.types import JsonObject
from apsvm._support.work import Piece, Saved, Strand
from apsvm.data.lockstep import Lockstep
from apsvm.models.net import Layer, Net
from apsvm.selection.folds import Fold
from apsvm.selection.grids import Variant
from apsvm.trainers.base import Watch
from apsvm.trainers.settings import saved_value, value_of_saved


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

    def to_saved(self) -> Saved:
        """For ``of_saved``."""
        choice = {name: saved_value(value) for name, value in self.choice.items()}
        values = {name: float(value) for name, value in self.values.items()}
        w: Any = {"layers": [list(layer) for layer in self.w.layers]} if isinstance(self.w, Net) else self.w
        parts = {name: getattr(self, name) for name in ("seconds", "state", "as_asked", "C")}
        return {**parts, "choice": choice, "values": values, "w": w}

    @classmethod
    def of_saved(cls, saved: Saved) -> Measured:
        """What was saved."""
        choice = {name: value_of_saved(value) for name, value in saved["choice"].items()}
        w = saved["w"]
        if isinstance(w, Mapping):
            w = Net(tuple(Layer(*layer) for layer in w["layers"]))
        return cls(**{**saved, "choice": choice, "w": w})


@dataclass(slots=True, eq=False)
class PathInFold:
    """The outcome of a task: its settings in the path's order, fewer if it was stopped; ``failure``: why there are no
    more, where that is something that the race tolerates."""

    task: Task
    settings: list[Measured] = field(default_factory=list)
    failure: str = ""

    @property
    def w(self) -> NDArray[np.float64] | None:
        """The weights of the last, where there is one for each column."""
        last = self.settings[-1].w if self.settings else None
        return last if isinstance(last, np.ndarray) else None

    def to_saved(self) -> Saved:
        """For ``of_saved``."""
        return {"settings": [measured.to_saved() for measured in self.settings], "failure": self.failure}

    @classmethod
    def of_saved(cls, task: Task, saved: Saved) -> PathInFold:
        """The path that was saved, of this task."""
        return cls(task, [Measured.of_saved(measured) for measured in saved["settings"]], saved["failure"])


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
        """What a setting's ranker of a fold gives to the rows."""

    def ready(
        self, tasks: Sequence[Task], threads: int, should_stop: Callable[[], bool]
    ) -> tuple[int, Lockstep | None]:
        """Prepares what threads share; how many tasks are at work at a time, and their lock-step, if they have one."""
        return threads, None

    def limits(self) -> AbstractContextManager[object]:
        """What holds while tasks are done."""
        return nullcontext()

    def run(
        self, tasks: Sequence[Task], threads: int, should_stop: Callable[[], bool], strand: Strand
    ) -> Iterator[PathInFold]:
        """The tasks as they end, by this many threads; they are a piece of ``strand``, and each is one within it.

        Raises
        ------
        SelectionError : a metric is not defined on the rows that a fold leaves out
        ValueError, FloatingPointError : as ``Trainer.train``
        """
        piece = strand.piece(f"{len(tasks)} paths in folds")
        if piece.result is not None:
            yield from map(PathInFold.of_saved, tasks, piece.result["paths"])
            return
        done: dict[Task, PathInFold] = {}
        ended = Event()

        def must_stop() -> bool:
            return ended.is_set() or should_stop()

        with self.limits():
            at_a_time, lockstep = self.ready(tasks, threads, should_stop)

            def work(numbered: tuple[int, Task]) -> PathInFold:
                number, task = numbered
                return PathInFold(task) if must_stop() else self._done(task, must_stop, lockstep, piece, number)

            numbered = list(enumerate(tasks))
            for path in results(work, numbered, at_a_time, stop=ended.set, in_order=False):
                done[path.task] = path
                yield path
        if should_stop():
            piece.broken_off()
        if strand.is_stored:
            piece.done({"paths": [done[task].to_saved() for task in tasks]})

    def _done(
        self, task: Task, should_stop: Callable[[], bool], lockstep: Lockstep | None, paths: Piece, number: int
    ) -> PathInFold:
        """The ``number``-th of the ``paths``."""
        with paths.strand(str(number)) as strand:
            piece = strand.piece("a path in a fold")
            if piece.result is not None:
                return PathInFold.of_saved(task, piece.result)
            path = self.attempted(task, Watch(should_stop=should_stop), lockstep)
            if should_stop():
                piece.broken_off()
            if strand.is_stored:
                piece.done(path.to_saved())
            return path
