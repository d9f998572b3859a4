"""The end of every training: writes the model, logs and prints the end, and chooses the exit code."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from apsvm.cli.options.decision import say_decision
from apsvm.cli.options.training import Signals, exit_code
from apsvm.cli.output.training_log import TrainingLog, end_record
from apsvm.cli.shared import CANNOT_WRITE, STOPPED_EARLY, Failure, say, writing

if TYPE_CHECKING:
    from apsvm.models.base import Model
    from apsvm.trainers.base import Outcome


class TrainedModel(NamedTuple):
    """A model that is ready; ``figures``, lines on its worth on the training rows, are taken once it is written."""

    outcome: Outcome
    model: Model
    figures: Iterable[str]


def write_model(
    name: str,
    trained: Iterator[TrainedModel],
    log: TrainingLog,
    signals: Signals,
    *,
    read_seconds: float,
    quiet: bool,
) -> int:
    """Writes what is ``trained``, one model or, if it was stopped before, none; the exit code."""
    began = time.perf_counter()
    ready = next(trained, None)
    if ready is None:
        raise Failure(exit_code(signals), "stopped, no model written")
    outcome, model, figures = ready
    with writing(name):
        model.save(name)
    signals.are_late = not outcome.interrupted
    seconds = {"reading": read_seconds, **outcome.seconds}
    taken = time.perf_counter() - began + read_seconds
    seconds["other"] = max(0.0, taken - sum(seconds.values()))
    log.write("end", state=outcome.state, model=name, **end_record(outcome), seconds=seconds)
    for caution in outcome.cautions:  # shown with --quiet too
        say(f"warning: {name}: {caution}")
    if quiet:
        say_if_stopped_early(name, outcome, model)
    else:
        say_what_became(outcome, model, figures, name, seconds)
    if outcome.interrupted:
        return exit_code(signals)
    if log.failed:
        return CANNOT_WRITE
    return 0 if outcome.as_asked and outcome.ranks else STOPPED_EARLY


def say_what_became(
    outcome: Outcome, model: Model, figures: Iterable[str], name: str, seconds: Mapping[str, float] | None = None
) -> None:
    """How training ended, the model's worth and decision, the seconds of each part, and where it was written."""
    from apsvm.trainers.summary import summary

    for line in (*summary(outcome), *figures):
        say(line)
    say_decision(model)
    if seconds is not None:
        parts = ", ".join(f"{part} {taken:.2f}" for part, taken in seconds.items())
        say(f"{math.fsum(seconds.values()):.2f} s: {parts}")
    say(f"model written to {'standard output' if name == '-' else name}")


def say_if_stopped_early(name: str, outcome: Outcome, model: Model) -> None:
    """Why training ended before it was done, where it did: an exit code is explained with --quiet too."""
    if not model.header.as_asked:  # the outcome's is also of the threshold, for whose lack there is a caution
        from apsvm.trainers.summary import ending

        say(f"warning: {name}: {ending(outcome)}")
