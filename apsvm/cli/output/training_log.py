"""The log of ``apsvm train``: its file and its closing record."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from apsvm._support.types import JsonDict
from apsvm.cli.shared import say, writing

if TYPE_CHECKING:
    from apsvm._support.log import Log
    from apsvm.trainers.base import Outcome


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

    if path is None:
        yield TrainingLog("", None)
    elif path == "-":
        yield TrainingLog("standard output", JsonLinesLog(sys.stdout))
    else:
        with writing(path):
            # Another training may have begun a run in this folder since the options were checked.
            in_folder = click.get_current_context().params.get("run_dir") is not None
            # Each line is flushed when written: close() cannot lose any.
            stream = open_alone(path, is_new=in_folder)
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
