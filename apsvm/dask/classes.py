"""``--one-vs-rest`` on a cluster, for rows that fit a worker: classes are tasks, and each worker reads all parts once.

A task trains its class as one machine does (``trainers.one_vs_rest``), from the same rows in the same order
and to the same bits. Only what was trained comes back. dask gives the tasks of a worker that dies to another one.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from apsvm._support.log import Log
from apsvm.dask.actors import done_of, named_worker, result_of
from apsvm.dask.data import Extent
from apsvm.dask.sources import Source, on_worker
from apsvm.data.dataset import DataError, Dataset
from apsvm.data.joining import joined
from apsvm.data.labels import LabelOptions
from apsvm.selection.completion import Completion
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.fitting import FeatureOptions, Fit
from apsvm.trainers.one_vs_rest import ClassTraining, OneVsRestTrainer, of_class
from apsvm.trainers.ranking_check import ranking_checked

if TYPE_CHECKING:
    from distributed import Client

    from apsvm._support.types import JsonDict
    from apsvm.models.base import Model
    from apsvm.trainers.base import Outcome


@dataclass(frozen=True, slots=True, eq=False)
class ClassesPlan:
    """What tasks are done on; it goes along with each.

    Attributes
    ----------
    source : what messages call the rows
    parts : in order
    trainer, labels, features : see ``Fit``
    query_weights : weight of each query, 1 where not named
    logs : whether what is logged comes back
    threads : of each task
    key : by which a worker knows the rows it has read
    """

    source: str
    parts: Sequence[Source]
    trainer: OneVsRestTrainer
    labels: LabelOptions
    features: FeatureOptions
    query_weights: Mapping[int, float] | None
    logs: bool
    threads: int = 1
    key: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True, slots=True, eq=False)
class AboutRows:
    """What the driver knows of the rows.

    Attributes
    ----------
    dataset : a row for each class, which says of itself what is true of the whole
    has_qid : whether rows are in queries
    remarks : of the trainer
    """

    dataset: Dataset
    has_qid: bool
    remarks: Sequence[str]


# On the workers.


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """The rows, read: the training as requested, with what is learned of the features, and what trainers see."""

    raw: Fit
    fit: Fit
    data: TrainingSet


_HELD: dict[str, _Held] = {}
_READING = threading.Lock()


def _held(plan: ClassesPlan) -> _Held:
    """The rows of the plan, read by the first task of this process; those of another plan are let go.

    Raises
    ------
    DataError, OSError, ValueError : they cannot be read or trained on; says which part, and on which worker
    """
    with _READING:
        held = _HELD.get(plan.key)
        if held is None:
            _HELD.clear()
            dataset = joined([_read(part, plan.threads) for part in plan.parts], plan.source)
            trainer = OneVsRestTrainer(plan.trainer.trainer.with_settings(threads=plan.threads))
            raw = Fit.of(dataset, trainer, plan.labels, plan.features, query_weights=plan.query_weights)
            fit = raw.prepared()
            data = fit.training_set()
            data = replace(data, rows=data.rows.for_many_passes())
            held = _HELD[plan.key] = _Held(raw, fit, data)
        return held


def _forget() -> None:
    _HELD.clear()


def _read(part: Source, threads: int) -> Dataset:
    from distributed import get_worker

    with on_worker(get_worker().address, part.name):
        data = part.read(threads)
        if data.bags is not None:
            raise DataError(f"{part.name}: rows in bags are not trained on a cluster; --bags ignore")
    return data


class _OneBlasThread:
    """One BLAS thread while any task is at work, as on one machine: more would decide over the last bits. What holds
    for the process is set by the first of its tasks and set back by the last."""

    def __init__(self) -> None:
        self._lock, self._tasks = threading.Lock(), 0
        self._limits: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        from threadpoolctl import threadpool_limits

        with self._lock:
            if not self._tasks:
                self._limits = threadpool_limits(1, user_api="blas")
            self._tasks += 1
        try:
            yield
        finally:
            with self._lock:
                self._tasks -= 1
                if not self._tasks:
                    self._limits.restore_original_limits()


one_blas_thread = _OneBlasThread()


@named_worker()
def _about(plan: ClassesPlan) -> AboutRows:
    with one_blas_thread():
        held = _held(plan)
        dataset, data = held.raw.dataset, held.data
        assert data.target.classes is not None
        labels = np.array(data.target.classes.labels, dtype=np.float64)
        extent: Any = Extent(dataset.X.shape, dataset.n_values)
        remarks = list(plan.trainer.check(data))
        of_labels = replace(dataset, X=extent, relevance=labels, groups=None, costs=None, label_sets=None)
        return AboutRows(of_labels, dataset.groups is not None, remarks)


class _Records:
    """A log that is kept, to be written by the driver."""

    def __init__(self) -> None:
        self.records: list[tuple[str, JsonDict]] = []

    def write(self, event: str, **fields: object) -> None:
        self.records.append((event, fields))


@named_worker()
def _chosen(plan: ClassesPlan) -> Completion:
    """What is chosen once, for the classes of all workers."""
    with one_blas_thread():
        held = _held(plan)
        trainer = held.fit.trainer
        assert isinstance(trainer, OneVsRestTrainer)
        return Completion.of_classes(trainer, held.data, Watch())


@named_worker()
def _train(plan: ClassesPlan, label: float, completion: Completion) -> tuple[ClassTraining, list[tuple[str, JsonDict]]]:
    """One class; what goes wrong with it alone is its ``reason``."""
    one, log = ClassTraining(label), _Records()
    with one_blas_thread():
        held = _held(plan)
        data = of_class(held.data, label)
        data = replace(data, rows=data.rows.with_threads(plan.threads))
        trainer = plan.trainer.trainer.with_settings(threads=plan.threads)
        watch = Watch(log) if plan.logs else Watch()
        try:
            for _ in trainer.check(data):
                pass  # the remarks were printed once
            (one.outcome,) = completion.train_class(trainer, label, data, watch)
        except ValueError as error:
            one.reason = str(error).removeprefix(f"{data.source}: ")
    return one, log.records


@named_worker()
def _finish(
    plan: ClassesPlan, outcome: Outcome, measure: Callable[[Fit, Model], Iterator[str]]
) -> tuple[Outcome, Model, list[str]]:
    """All classes together: the outcome, checked, the model, and what ``measure`` says of it."""
    with one_blas_thread():
        held = _held(plan)
        outcome = ranking_checked(outcome, held.data, held.fit.trainer)
        model = held.fit.model(outcome)
        return outcome, model, list(measure(held.raw, model))


# On the driver.


def about_rows(client: Client, plan: ClassesPlan) -> AboutRows:
    """Has a worker read the rows. Raises DataError, OSError, TrainingError, ClusterError."""
    result: AboutRows = result_of(client.submit(_about, plan, pure=False))
    return result


def train_classes(
    client: Client, plan: ClassesPlan, labels: Sequence[float], log: Log, should_stop: Callable[[], bool]
) -> Iterator[ClassTraining]:
    """The classes, in the order of ``labels``; if it should stop, those that are not finished are left
    out.

    Raises
    ------
    ClusterError : the workers are lost; DataError, OSError : a part that cannot be read
    """
    chosen = client.submit(_chosen, plan, pure=False)
    futures = [client.submit(_train, plan, label, chosen, pure=False) for label in labels]
    try:
        for label, future in zip(labels, futures, strict=True):
            if not done_of([future], should_stop):
                yield ClassTraining(label, reason="stopped", stopped=True)
                continue
            one, records = result_of(future)
            for event, fields in records:
                log.write(event, **{"class": label, **fields})
            yield one
    finally:
        client.cancel([chosen, *futures])


def finished(
    client: Client, plan: ClassesPlan, outcome: Outcome, measure: Callable[[Fit, Model], Iterator[str]]
) -> tuple[Outcome, Model, list[str]]:
    """The outcome of all classes, its model, and the lines of ``measure``, made where the rows are."""
    result: tuple[Outcome, Model, list[str]] = result_of(client.submit(_finish, plan, outcome, measure, pure=False))
    return result


def let_go(client: Client) -> None:
    """The workers forget the rows, those that are still there."""
    with suppress(OSError):
        client.run(_forget)
