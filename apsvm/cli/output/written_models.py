"""The end of every training: writes the model, logs and prints the end, and chooses the exit code."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from apsvm.cli.options.training import Signals, exit_code
from apsvm.cli.output.records import TrainingLog, end_record
from apsvm.cli.shared import CANNOT_WRITE, STOPPED_EARLY, is_set, say, writing

if TYPE_CHECKING:
    from apsvm.models.base import Model
    from apsvm.trainers.base import Outcome


def write_model(
    name: str,
    outcome: Outcome,
    model: Model,
    figures: Iterable[str],
    log: TrainingLog,
    signals: Signals,
    *,
    began: float,
    read_seconds: float,
) -> int:
    """Writes the model of a training that ``began`` then, by ``time.perf_counter``, after ``read_seconds`` of reading;
    returns the exit code. ``figures``, lines on its training metric, are computed after it is written."""
    save(name, outcome, model, signals)
    seconds = {"reading": read_seconds, **outcome.seconds}
    seconds["other"] = max(0.0, time.perf_counter() - began + read_seconds - sum(seconds.values()))
    log.write("end", state=outcome.state, model=name, **end_record(outcome), seconds=seconds)
    say_what_became(outcome, model, name, figures, seconds)
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


def say_what_became(
    outcome: Outcome, model: Model, name: str, figures: Iterable[str], seconds: Mapping[str, float] | None = None
) -> None:
    """Prints the choice, figures, decision and output file. --verbose adds the ending, the certificate and seconds by
    part; --quiet leaves only cautions and the reason for the exit code."""
    from apsvm.report.decisions import probabilities_in_words, threshold_in_counts, threshold_in_words
    from apsvm.trainers.summary import ending, short_summary, summary

    header, verbose = model.header, is_set("verbose")
    for caution in outcome.cautions:
        say(f"warning: {name}: {caution}")
    if is_set("quiet"):
        if not header.as_asked:  # a missing threshold, also in outcome.as_asked, has its own caution
            say(f"warning: {name}: {ending(outcome)}")
        return
    for line in (*(summary(outcome) if verbose else short_summary(outcome, header.metric)), *figures):
        say(line)
    for skipped in () if verbose else header.classes_skipped:
        say(f"class {header.shown_label(skipped.label)} is left out: {skipped.reason}")
    threshold, calibration = header.threshold, header.calibration
    if threshold is not None:
        in_words = verbose or header.latent or header.features.pool is not None  # counts are of rows
        say(f"positive is {threshold_in_words(threshold) if in_words else threshold_in_counts(threshold, header.data)}")
    if calibration is not None:
        say(f"probabilities: {probabilities_in_words(calibration)}")
    if seconds is not None and verbose:
        say(f"seconds: {', '.join(f'{part} {spent:.2f}' for part, spent in seconds.items())}")
    taken = "" if seconds is None else f" after {math.fsum(seconds.values()):.2f} s"
    say(f"model written to {'standard output' if name == '-' else name}{taken}")
