"""``apsvm train --one-vs-rest``: a ranker for each class against all other rows, several at a time, in one model.

Each class is trained by the recipe of ``--loss`` exactly as ``--positive-label`` alone would train it, to the last bit;
the rows are in memory once, for all of them: the kernels read them in place and let go of the interpreter.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import click
from click.globals import pop_context, push_context

from apsvm.cli.recipes.base import Common, Job, Made, Recipe
from apsvm.cli.shared import BAD_DATA, INTERRUPTED, Failure, memory, one_ranker, read_any_model, say, thread_count

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.model import RankerSet
    from apsvm.records import Log


class OneVsRest(Recipe):
    """``recipe`` once a class. What holds for it holds for each class; a class that it cannot train is skipped."""

    title = "One against the rest"
    options: ClassVar[Sequence[click.Option]] = ()

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe

    def losses(self) -> Sequence[str]:
        return self._recipe.losses()

    def check(self, common: Common, own: Mapping[str, Any]) -> None:
        if common.positive_label is not None or common.relevant_from is not None:
            raise click.UsageError("--one-vs-rest takes each label as positive in turn: leave out the choice of one")
        if not self._recipe.takes_classes(own):
            raise click.UsageError(
                f"--one-vs-rest is not for this --loss {common.loss}: it looks at all labels at once"
            )
        self._recipe.check(common, own)

    def inputs(self, own: Mapping[str, Any]) -> Mapping[str, str | None]:
        return self._recipe.inputs(own)

    def models(self, own: Mapping[str, Any]) -> Sequence[str]:
        return self._recipe.models(own)

    def check_data(self, dataset: Dataset, common: Common, own: Mapping[str, Any]) -> None:
        """Raises ``Failure`` where no class can be trained."""
        labels, width = dataset.classes().tolist(), dataset.X.shape[1]
        if 8 * len(labels) * width > memory():
            raise Failure(
                BAD_DATA,
                f"{dataset.source}: {len(labels):,} classes ask for {width:,} weights each, more than this machine's "
                "memory can hold; are the labels a regression target?",
            )
        if common.verbose:
            say(
                f"{dataset.source}: {dataset.X.shape[0]} rows, {len(labels)} classes, {width} features, "
                f"{dataset.n_values} values"
            )
        failure = None
        for label in labels:
            try:
                return self._recipe.check_data(dataset, replace(common, positive_label=label, verbose=False), own)
            except Failure as found:
                failure = found
        raise failure or Failure(BAD_DATA, f"{dataset.source}: no row has a label")

    def train(self, job: Job) -> Iterator[Made]:
        from joblib import Parallel, delayed

        labels = job.dataset.classes().tolist()
        names = self._recipe.models(job.own)
        run = _Run(job, self._recipe, len(labels))
        began = time.perf_counter()
        parallel = Parallel(n_jobs=run.at_a_time, backend="threading", return_as="generator")
        outcomes = []
        try:
            for outcome in parallel(delayed(run.train)(label) for label in labels):
                outcomes.append(outcome)
                if not job.common.quiet:
                    for line in outcome.lines():
                        say(line)
        finally:
            run.stopped = True  # whatever happened here: the other threads end after their iteration
        seconds = time.perf_counter() - began
        for at in range(len(names)):
            trained = [outcome for outcome in outcomes if len(outcome.made) > at]
            if trained:
                yield _whole(job, at, trained, [outcome for outcome in outcomes if outcome not in trained], seconds)
            elif at == 0 and any(outcome.stopped for outcome in outcomes):
                raise Failure(INTERRUPTED, "stopped, no model written")
            elif at == 0:
                raise Failure(BAD_DATA, f"{job.dataset.source}: no class was trained: {outcomes[0].reason}")
            seconds = 0.0


@dataclass(slots=True)
class _Outcome:
    """A class: its models, one a value of C, fewer if it was ``stopped``; ``reason``: why there are none or not
    all."""

    label: float
    made: list[Made] = field(default_factory=list)
    reason: str = ""
    stopped: bool = False

    def lines(self) -> Iterator[str]:
        from apsvm.data.dataset import shown_label

        for made in self.made:
            at_C = f" C={made.record['C']:g}" if "C" in made.record else ""
            yield f"class {shown_label(self.label)}{at_C}: {'; '.join(made.summary)}"
        if not self.made:
            yield f"class {shown_label(self.label)} is left out: {self.reason}"


def _mean_training_AP(dataset: Dataset, model: RankerSet) -> str:
    import numpy as np

    from apsvm.metrics.classes import evaluate_classes

    labels = np.stack([dataset.have(label) for label in model.classes], axis=1)
    result = evaluate_classes(["AP"], model.score(dataset.X), labels)
    return f"mean training AP {result.values['AP']:.6f}"


class _Run:
    """What the classes share while they are trained. ``at_a_time`` classes have a thread each; where there are more
    threads than classes, each has several."""

    def __init__(self, job: Job, recipe: Recipe, n_classes: int) -> None:
        threads = thread_count(job.common.threads)
        self.at_a_time = min(threads, n_classes)
        self.stopped = False
        self._job = job
        self._recipe = recipe
        self._context = click.get_current_context()
        own_threads = 1 if n_classes >= threads else job.common.threads // n_classes  # 0 stays 0: as many as cores
        self._common = replace(job.common, quiet=True, verbose=False, threads=own_threads)
        self._rows = replace(job, common=self._common).rows()
        self._rows.for_many_passes()  # now and not by several threads at once
        self._start = None if job.common.warm_start is None else read_any_model(job.common.warm_start)
        self._lock = threading.Lock()
        self._waiting, self._running, self._trained = n_classes, 0, 0
        limit = job.common.time_limit
        self._deadline = None if limit is None else time.monotonic() + limit

    def train(self, label: float) -> _Outcome:
        """The models of one class; what goes wrong with it alone is its ``reason``."""
        with self._lock:
            self._waiting, self._running = self._waiting - 1, self._running + 1
        push_context(self._context)  # click keeps it for each thread
        outcome = _Outcome(label)
        try:
            self._train(outcome)
        except Failure as failure:
            if failure.exit_code != BAD_DATA:
                raise
            outcome.reason = failure.message.removeprefix(f"{self._job.dataset.source}: ")
        finally:
            pop_context()
            with self._lock:
                self._running -= 1
        return outcome

    def _train(self, outcome: _Outcome) -> None:
        from apsvm.model import RankerSet

        label, path = outcome.label, self._common.warm_start
        start = None
        if self._start is not None and path is not None:
            is_new = isinstance(self._start, RankerSet) and label not in self._start.classes
            start = None if is_new else one_ranker(self._start, label, path)
        common = replace(
            self._common,
            positive_label=label,
            time_limit=self._share_of_time(),
            warm_start=None if start is None else path,
        )
        self._recipe.check_data(self._job.dataset, common, self._job.own)
        with self._lock:
            if self._trained and self._should_stop():
                outcome.reason, outcome.stopped = "stopped before its turn", True
                return
            self._trained += 1
        log = _ClassLog(label, self._job.log, self._lock, show=self._job.common.verbose)
        job = replace(
            self._job, common=common, log=log, should_stop=self._should_stop, shared=self._rows, start_from=start
        )
        for made in self._recipe.train(job):
            outcome.made.append(made)
            if made.interrupted:
                outcome.reason, outcome.stopped = "stopped", True
                return

    def _should_stop(self) -> bool:
        return self.stopped or self._job.should_stop()

    def _share_of_time(self) -> float | None:
        """Seconds for a class that begins: those left, shared among the classes that wait or run, so that the last ones
        are trained too; what one does not need, later ones get."""
        if self._deadline is None:
            return None
        share = self.at_a_time / (self._waiting + self._running)
        return max(0.0, self._deadline - time.monotonic()) * min(1.0, share)


class _ClassLog:
    """The log of one class among several: every record says its class; ``show``: iterations go to stderr too."""

    def __init__(self, label: float, log: Log, lock: threading.Lock, *, show: bool) -> None:
        self._label = label
        self._log = log
        self._lock = lock
        self._show = show

    def write(self, event: str, **fields: Any) -> None:
        with self._lock:
            self._log.write(event, **{"class": self._label, **fields})
            if self._show and event == "iteration":
                shown = (f"{name} {value:.7g}" for name, value in fields.items() if _is_worth_a_look(name, value))
                say(f" class {self._label:g}: {', '.join(shown)}")


def _is_worth_a_look(name: str, value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not name.endswith("_ns")


def _whole(job: Job, at: int, trained: list[_Outcome], missing: list[_Outcome], seconds: float) -> Made:
    """The model of all classes for the ``at``-th value of C."""
    from apsvm.data.dataset import shown_label
    from apsvm.model import LinearRanker, RankerSet

    rankers = [ranker for ranker in (outcome.made[at].model for outcome in trained) if isinstance(ranker, LinearRanker)]
    skipped = [{"label": outcome.label, "reason": outcome.reason} for outcome in missing]
    model = RankerSet.of(rankers, classes_skipped=skipped)
    each = [outcome.made[at] for outcome in trained]
    states = [made.state for made in each]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    summary = [f"{len(each)} classes: {counts}"]
    if missing:
        summary[0] += f"; left out: {', '.join(shown_label(outcome.label) for outcome in missing)}"
    if not job.common.quiet and job.dataset.groups is None:
        summary.append(_mean_training_AP(job.dataset, model))
    record: dict[str, Any] = {
        "classes": [
            {"class": outcome.label, "state": made.state, **made.record}
            for outcome, made in zip(trained, each, strict=True)
        ],
        "classes_skipped": skipped,
    }
    values_of_C = {made.record.get("C") for made in each}
    if len(values_of_C) == 1 and None not in values_of_C:  # by default each class has its own
        (record["C"],) = values_of_C
    return Made(
        model=model,
        state=next((state for state, made in zip(states, each, strict=True) if not made.converged), states[0]),
        converged=all(made.converged for made in each),
        interrupted=any(outcome.stopped for outcome in (*trained, *missing)),
        record=record,
        summary=summary,
        seconds={"training": seconds},
    )
