"""The records of ``apsvm train``: the log, and the folder of a run, its model and its log, for ``apsvm report``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from apsvm._support.machine import cores
from apsvm._support.types import JsonDict
from apsvm.cli.shared import all_given, refuse_same_file, say, writing
from apsvm.data.read_options import ReadOptions
from apsvm.trainers.settings import Multiple

if TYPE_CHECKING:
    from apsvm._support.log import Log
    from apsvm.data.dataset import Dataset
    from apsvm.trainers.base import Outcome


MODEL = "ranker.model"
LOG = "log.jsonl"
#: Files, which stand elsewhere in the record.
_NOT_RECORDED = {"data", "model", "log", "run_dir"}


class TrainingLog:
    """The log, if one is kept. If writing fails, a message says so and training goes on."""

    def __init__(self, name: str, log: Log | None) -> None:
        self._name = name
        self._log = log
        self.failed = False

    def write(self, event: str, **fields: object) -> None:
        if self._log is None:
            return
        try:
            self._log.write(event, **fields)
        except BrokenPipeError:
            raise
        except OSError as error:
            self._log, self.failed = None, True
            say(f"error: cannot write {self._name}: {error.strerror or error}; the log ends here")


@contextmanager
def open_log(path: str | None) -> Iterator[TrainingLog]:
    """Opens the log only when there is something to write, so that a run that fails before destroys nothing. Ends the
    command if another training writes it."""
    from apsvm._support.files import open_alone
    from apsvm._support.log import JsonLinesLog

    folder = click.get_current_context().params.get("run_dir")
    if path is None:
        yield TrainingLog("", None)
    elif path == "-":
        yield TrainingLog("standard output", JsonLinesLog(sys.stdout))
    else:
        with writing(path):
            if folder is not None:
                os.makedirs(folder, exist_ok=True)
            # Another training may have begun a run in this folder since the options were checked. Each line is flushed
            # when written: close() cannot lose any.
            stream = open_alone(path, is_new=folder is not None)
        try:
            yield TrainingLog(path, JsonLinesLog(stream))
        finally:
            with suppress(OSError):
                stream.close()


def end_record(outcome: Outcome) -> JsonDict:
    """Fields of the log's closing record for a model, except its state."""
    record: JsonDict = {} if outcome.C is None else {"C": outcome.C}
    if outcome.classes:
        classes = [{"class": label, "state": part.state, **end_record(part)} for label, part in outcome.classes]
        skipped = [{"label": one.label, "reason": one.reason} for one in outcome.skipped]
        return {**record, "classes": classes, "classes_skipped": skipped}
    bounds, gradient, epochs = outcome.certificate, outcome.gradient, outcome.epochs
    if bounds is not None:
        record |= {name: getattr(bounds, name) for name in ("primal", "dual", "gap", "tolerance")}
    if gradient is not None:
        record |= {"iterations": outcome.iterations, "evaluations": gradient.evaluations, "value": gradient.value}
        record |= {"gradient_norm": gradient.gradient_norm, "asked": gradient.target}
    if epochs is not None:
        record |= {"epochs": epochs.count, "best_epoch": epochs.best, "loss": epochs.estimated_loss}
        record["validation"] = None if epochs.validation is None else epochs.validation.value
    return record


def model_and_log(folder: str, data: str) -> tuple[str, str]:
    """Paths of model and log in ``folder``, which is made later. It must hold no run yet: a log and a model of two runs
    would make a false report. Ends the command if it cannot be made or written to, or is the data."""
    from apsvm._support.files import check_writable

    model, log = (os.path.join(folder, name) for name in (MODEL, LOG))
    if os.path.lexists(log) or os.path.lexists(model):
        raise click.UsageError(f"{folder}: it holds a run already: name another folder, or remove it")
    refuse_same_file(folder, data=data)
    with writing(folder):
        check_writable(log if os.path.lexists(folder) else os.path.normpath(folder))
    return model, log


def run_record(data: str, dataset: Dataset, read: ReadOptions, read_seconds: float) -> JsonDict:
    """Fields of the log's ``run`` record that a report needs and the model lacks."""
    import platform
    import time

    options = click.get_current_context().params
    X = dataset.X
    return {
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "data": data if data == "-" else os.path.abspath(data),
        "reading": read.to_json(),
        "options": {name: as_json(options[name]) for name in all_given() - _NOT_RECORDED},
        "rows": int(X.shape[0]),
        "features": int(X.shape[1]),
        "values": dataset.n_values,
        "seconds": read_seconds,
        "machine": f"{platform.system()} {platform.machine()}, {cores()} cores",
    }


def as_json(value: object) -> object:
    """The value of an option."""
    if isinstance(value, list | tuple) and not isinstance(value, Multiple):
        return [as_json(one) for one in value]
    return value if isinstance(value, str | int | float | None) else str(value)
