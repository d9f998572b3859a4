"""The end of every training: writes the model, logs and prints the end, and chooses the exit code."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from apsvm.cli.options.decision import say_decision
from apsvm.cli.options.training import Signals, exit_code
from apsvm.cli.output.training_log import TrainingLog, end_record
from apsvm.cli.shared import CANNOT_WRITE, STOPPED_EARLY, Failure, is_set, say, writing

if TYPE_CHECKING:
    from apsvm.models.base import Model
    from apsvm.trainers.base import Outcome


class TrainedModel(NamedTuple):
    """A trained model; ``figures``, lines on its training metric, are computed after it is written."""

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
) -> int:
    """Writes the model of ``trained``, if training was not stopped before; returns the exit code."""
    began = time.perf_counter()
    ready = next(trained, None)
    if ready is None:
        raise Failure(exit_code(signals), "stopped, no model written")
    outcome, model, _ = ready
    save(name, outcome, model, signals)
    seconds = {"reading": read_seconds, **outcome.seconds}
    taken = time.perf_counter() - began + read_seconds
    seconds["other"] = max(0.0, taken - sum(seconds.values()))
    log.write("end", state=outcome.state, model=name, **end_record(outcome), seconds=seconds)
    say_what_became(ready, name, seconds)
    if outcome.interrupted:
        return exit_code(signals)
    if log.failed:
        return CANNOT_WRITE
    return 0 if outcome.as_asked and outcome.ranks else STOPPED_EARLY


def save(name: str, outcome: Outcome, model: Model, signals: Signals) -> None:
    """Writes the model; failures end the command. Signals after it are too late."""
    with writing(name):
        model.save(name)
    signals.are_late = not outcome.interrupted


def say_what_became(trained: TrainedModel, name: str, seconds: Mapping[str, float] | None = None) -> None:
    """Prints the choice, figures, decision and output file. --verbose adds the ending, the certificate and seconds by
    part; --quiet leaves only cautions and the reason for the exit code."""
    from apsvm.trainers.summary import ending, short_summary, summary

    outcome, model, figures = trained
    header = model.header
    for caution in outcome.cautions:
        say(f"warning: {name}: {caution}")
    if is_set("quiet"):
        if not header.as_asked:  # a missing threshold, also in outcome.as_asked, has its own caution
            say(f"warning: {name}: {ending(outcome)}")
        return
    verbose = is_set("verbose")
    for line in (*(summary(outcome) if verbose else short_summary(outcome, header.metric)), *figures):
        say(line)
    for skipped in () if verbose else header.classes_skipped:
        say(f"class {header.shown_label(skipped.label)} is left out: {skipped.reason}")
    say_decision(model, verbose=verbose)
    taken = "" if seconds is None else f" after {math.fsum(seconds.values()):.2f} s"
    if seconds is not None and verbose:
        say(f"seconds: {', '.join(f'{part} {spent:.2f}' for part, spent in seconds.items())}")
    say(f"model written to {'standard output' if name == '-' else name}{taken}")
