"""One against the rest (``--one-vs-rest``): a ranker for each label against all other rows, several at a time.

Each class has its own trainer; its result is the same, to the last bit, as if trained alone. All classes share the rows
in memory, and the kernels release the interpreter lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from apsvm._support.log import Log
from apsvm._support.machine import memory, thread_count
from apsvm._support.threads import results
from apsvm.data.takes import Takes
from apsvm.models.header import SkippedClass
from apsvm.solvers.state import State
from apsvm.trainers.base import AnyTrainer, Outcome, Progress, Trainer, TrainingError, TrainingSet, Watch
from apsvm.trainers.settings import Settings, SettingsError
from apsvm.trainers.summary import end_in_full

if TYPE_CHECKING:
    pass


class OneVsRestTrainer(Trainer[Settings]):
    """Runs ``trainer`` once for each class; skips classes that it cannot train."""

    title: ClassVar[str] = "One against the rest"

    def __init__(self, trainer: AnyTrainer) -> None:
        super().__init__(trainer.loss_name, trainer.settings, trainer.named)
        refusal = trainer.capabilities.refusal("one_vs_rest")
        if refusal is not None:
            raise SettingsError(refusal)
        self.trainer = trainer
        self.family = trainer.family  # type: ignore[misc]  # a property of the instance here
        self.capabilities = replace(trainer.capabilities, labels=Takes.CLASSES)

    @property
    def metric(self) -> str | None:
        return self.trainer.metric

    def inputs(self) -> Mapping[str, str]:
        return self.trainer.inputs()

    def warnings(self) -> Iterator[str]:
        return self.trainer.warnings()

    def remedies(self, outcome: Outcome, **training: bool) -> list[str]:
        return self.trainer.remedies(outcome, **training)

    def check(self, data: TrainingSet) -> Iterator[str]:
        """Raises TrainingError if no class can be trained."""
        assert data.target.classes is not None
        labels, width = data.target.classes.labels, data.rows.dimension
        if 8 * len(labels) * width > memory():
            raise TrainingError(
                f"{len(labels):,} classes ask for {width:,} weights each, more than this machine's memory can hold; "
                "are the labels a regression target?"
            )
        failure: ValueError = TrainingError("no row has a label")
        for label in labels:
            try:
                yield from list(self.trainer.check(of_class(data, label)))
                return
            except ValueError as error:
                failure = error
        raise failure

    def train(  # type: ignore[override]  # only ``selection.completion`` trains several classes
        self,
        data: TrainingSet,
        watch: Watch,
        *,
        validation: TrainingSet | None = None,
        train_class: TrainClass,
    ) -> Iterator[Outcome]:
        """See ``Trainer.train``; ``train_class`` trains one class and completes its plan."""
        assert data.target.classes is not None
        labels = data.target.classes.labels
        run = _Run(self, data, watch, validation, len(labels), train_class)
        began = time.perf_counter()
        classes: list[ClassTraining] = []
        for training in results(run.train, labels, run.at_a_time, stop=run.stop):
            classes.append(training)
            for line in training.lines(data.target.classes.dataset.shown_label):
                watch.remark(line)
        seconds = time.perf_counter() - began
        outcome = outcome_of(classes, seconds)
        if outcome is not None:
            yield outcome


#: Trains one class, given trainer, label, rows, watch and validation rows.
TrainClass: TypeAlias = Callable[[AnyTrainer, float, TrainingSet, Watch, "TrainingSet | None"], Iterator[Outcome]]


def of_class(data: TrainingSet, label: float) -> TrainingSet:
    """The rows with this label against all others."""
    assert data.target.classes is not None
    return replace(data, target=data.target.classes.target(label))


@dataclass(slots=True)
class ClassTraining:
    """Training of a class: its outcome, unless ``stopped`` before; ``reason``: why it is missing or incomplete."""

    label: float
    outcome: Outcome | None = None
    reason: str = ""
    stopped: bool = False

    def lines(self, format_label: Callable[[float], str]) -> Iterator[str]:
        """Summary of the class's training, for people; ``format_label`` formats the label."""
        if self.outcome is not None:
            yield f"class {format_label(self.label)}: {'; '.join(end_in_full(self.outcome))}"
        else:
            yield f"class {format_label(self.label)} is left out: {self.reason}"


class _Run:
    """State shared by the classes during training. ``at_a_time`` classes have a thread each; with more threads than
    classes, each class has several."""

    def __init__(
        self,
        plan: OneVsRestTrainer,
        data: TrainingSet,
        watch: Watch,
        validation: TrainingSet | None,
        n_classes: int,
        train_class: TrainClass,
    ) -> None:
        threads = thread_count(plan.settings.threads)
        self._stopped = False
        self._plan = plan
        self._train_class = train_class
        self._validation = validation
        self._watch = watch
        self._threads_each = max(1, threads // n_classes)
        self._data = replace(data, rows=data.rows.with_threads(self._threads_each))
        self._data.rows.for_many_passes()  # copied once, before threads start
        self.at_a_time = min(threads, n_classes)
        self._lock = threading.Lock()
        self._waiting, self._running, self._trained = n_classes, 0, 0
        limit = plan.settings.time_limit
        self._deadline = None if limit is None else time.monotonic() + limit

    def train(self, label: float) -> ClassTraining:
        """Trains one class; an error of this class becomes its ``reason``."""
        with self._lock:
            self._waiting, self._running = self._waiting - 1, self._running + 1
        training = ClassTraining(label)
        try:
            self._train(training)
        except ValueError as error:
            training.reason = str(error).removeprefix(f"{self._data.source}: ")
        finally:
            with self._lock:
                self._running -= 1
        return training

    def _train(self, training: ClassTraining) -> None:
        label = training.label
        data = of_class(self._data, label)
        trainer = self._plan.trainer.with_settings(time_limit=self._share_of_time(), threads=self._threads_each)
        for _ in trainer.check(data):
            pass  # the remarks were printed for the first class
        with self._lock:
            if self._trained and self._should_stop():
                training.reason, training.stopped = "stopped before its turn", True
                return
            self._trained += 1
        validation = None if self._validation is None else of_class(self._validation, label)
        watch = Watch(
            _LogOfClass(label, self._watch.log, self._lock),
            lambda progress: self._show(label, progress),
            self._watch.remark,
            self._should_stop,
        )
        for outcome in self._train_class(trainer, label, data, watch, validation):
            training.outcome = replace(outcome, settings=replace(outcome.settings, time_limit=None))
            if outcome.interrupted:
                training.reason, training.stopped = "stopped", True

    def _show(self, label: float, progress: Progress) -> None:
        classes = self._data.target.classes
        assert classes is not None
        with self._lock:
            self._watch.progress(replace(progress, stage=f"class {classes.dataset.shown_label(label)}"))

    def stop(self) -> None:
        """Stops running classes after their current iteration."""
        self._stopped = True

    def _should_stop(self) -> bool:
        return self._stopped or self._watch.should_stop()

    def _share_of_time(self) -> float | None:
        """Seconds for a class that starts: the remaining time divided among waiting and running classes. Later classes
        get the time that earlier ones leave."""
        if self._deadline is None:
            return None
        share = self.at_a_time / (self._waiting + self._running)
        return max(0.0, self._deadline - time.monotonic()) * min(1.0, share)


class _LogOfClass:
    """Log of one class; every record has the field ``class``."""

    def __init__(self, label: float, log: Log, lock: threading.Lock) -> None:
        self._label = label
        self._log = log
        self._lock = lock

    def write(self, event: str, **fields: object) -> None:
        with self._lock:
            self._log.write(event, **{"class": self._label, **fields})


def outcome_of(classes: Sequence[ClassTraining], seconds: float) -> Outcome | None:
    """Combined outcome of all classes after ``seconds`` of training; None if all were stopped before they began.

    Raises
    ------
    TrainingError : no class was trained
    """
    trained = [(training.label, training.outcome) for training in classes if training.outcome is not None]
    missing = [training for training in classes if training.outcome is None]
    if not trained:
        if any(training.stopped for training in classes):
            return None
        raise TrainingError(f"no class was trained: {classes[0].reason}")
    outcomes = [outcome for _, outcome in trained]
    values_of_C = {outcome.C for outcome in outcomes}
    states = [outcome.state for outcome in outcomes]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    note = f"{len(outcomes)} classes: {counts}"
    if missing:
        from apsvm.data.dataset import shown_label

        note += f"; left out: {', '.join(shown_label(training.label) for training in missing)}"
    stopped = any(training.stopped for training in classes)  # perhaps between two classes, each as asked
    of_all = str(State.INTERRUPTED) if stopped else states[0]
    return Outcome(
        w=None,
        state=next((training.state for training in outcomes if not training.as_asked), of_all),
        as_asked=all(outcome.as_asked for outcome in outcomes) and not stopped,
        interrupted=stopped,
        settings=outcomes[0].settings,
        # By default each class has another C.
        C=values_of_C.pop() if len(values_of_C) == 1 else None,
        notes=[note],
        seconds={"training": seconds},
        classes=trained,
        skipped=[SkippedClass(label=training.label, reason=training.reason) for training in missing],
    )
