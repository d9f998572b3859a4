"""Shared parts of ``apsvm train`` and ``cv``: checks of options, remarks on the rows, signals, the threshold, and
writing the model."""

from __future__ import annotations

import math
import os
import shlex
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from apsvm._support.machine import can_train
from apsvm._support.types import JsonObject
from apsvm.cli.options.config import CONFIG_FILE
from apsvm.cli.output.records import TrainingLog, end_record
from apsvm.cli.reading import read_rows, refuse_model
from apsvm.cli.shared import (
    BAD_DATA,
    CANNOT_WRITE,
    INTERRUPTED,
    STOPPED_EARLY,
    TERMINATED,
    Failure,
    is_set,
    reading,
    refuse_same_file,
    remark,
    say,
    writing,
)
from apsvm.data.read_options import ReadOptions
from apsvm.trainers.base import AnyTrainer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm._support.types import Matrix
    from apsvm.data.dataset import Dataset
    from apsvm.data.labels import LabelOptions, Target
    from apsvm.metrics.evaluate import Evaluation
    from apsvm.models.base import Model
    from apsvm.selection.race import OutOfFold
    from apsvm.trainers.base import Outcome, TrainingSet
    from apsvm.trainers.fitting import FeatureOptions, Fit

# Before reading


def checked(trainer: AnyTrainer, options: JsonObject, read: ReadOptions) -> tuple[LabelOptions, FeatureOptions]:
    """The options on labels and features; ends the command for options that conflict, that the trainer does not take,
    and for a file that it cannot read."""
    from apsvm.data.labels import LabelOptions
    from apsvm.trainers.fitting import FeatureOptions

    pool = options["pool"]
    if read.ignores_bags and pool:
        raise click.UsageError("--bags ignore takes every row for itself: leave out --pool")
    if read.bag_label == "any" and options["positive_label"] is not None:
        raise click.UsageError("--bag-label any gives a bag its highest label: --relevant-from goes with it")
    if pool is not None and trainer.capabilities.bags:
        raise click.UsageError("--pool makes a row of each bag, --latent trains on the rows in bags: give only one")
    for option in ("positive_label", "relevant_from", "query_weights", "scale", "features"):
        refusal = trainer.capabilities.refusal(option)
        if refusal is not None and options.get(option) not in (None, "auto", "none", "linear"):
            raise click.UsageError(refusal)
    for path in trainer.inputs().values():
        with reading(path), open(path, "rb"):
            pass
    for warning in trainer.warnings():
        remark(f"warning: {warning}")
    labels = LabelOptions(positive_label=options["positive_label"], relevant_from=options["relevant_from"])
    return labels, FeatureOptions(options["scale"], options["bias"], options["features"], pool)


def check_output(output: str, **inputs: str | None) -> None:
    """Checks before the work that ``output`` can be written, and overwrites neither an input nor the configuration."""
    from apsvm._support.files import check_writable

    config = click.get_current_context().meta.get(CONFIG_FILE)
    refuse_same_file(output, config=config, **inputs)
    with writing(output):
        check_writable(output)


def check_outputs(model: str | None, what: str, other: str | None, *, data: str, **inputs: str | None) -> None:
    """``check_output`` of the model and of another output, ``what``. They are two files; the model replaces only a
    model (``train rows.svm more.svm`` would overwrite the second file), and the other output none."""
    from apsvm.models.reading import is_model_file

    refuse_model(data)
    outputs = [path for path in (model, other) if path is not None]
    for path in outputs:
        check_output(path, data=data, **inputs)
        with writing(path):
            is_there = os.path.isfile(path) and os.path.getsize(path) > 0
            is_model = is_there and is_model_file(path)
        if path == model and is_there and not is_model:
            raise click.UsageError(
                f"MODEL is the file to write, and {model!r} exists and is not a model: name another, or remove it "
                "(several files to train on are a pattern in quotes, 'part-*.csv')"
            )
        if path == other and is_model:
            raise click.UsageError(f"{what} {other}: this file is a model: name another, or remove it")
    if len({"-" if path == "-" else os.path.realpath(path) for path in outputs}) < len(outputs):
        raise click.UsageError(f"the model and {what} cannot go to the same place")


# The rows


def read_to_train(path: str, read: ReadOptions, *, unlabelled: bool = False, multilabel: bool = False) -> Dataset:
    """The rows to train on, stored only in the form that passes over them read fastest."""
    dataset = read_rows(path, read, unlabelled=unlabelled, multilabel=multilabel, dense=True)
    if not can_train(dataset.X.shape[1]):
        raise Failure(
            BAD_DATA,
            f"{dataset.source}: the highest feature index asks for {dataset.X.shape[1]:,} weights, more than this "
            "machine's memory can train; is it a stray index? (--max-features finds its line)",
        )
    return dataset


def query_weights(path: str | None, dataset: Dataset) -> dict[int, float] | None:
    """Weights of the queries, if a file is named."""
    from apsvm.data.query_weights import weights_of_queries

    if path is None:
        return None
    if dataset.groups is None:
        raise Failure(BAD_DATA, f"{dataset.source}: --query-weights needs rows with qid:, found none")
    weights, unknown = weights_of_queries(path, dataset)
    if unknown:
        remark(f"warning: {path}: {len(unknown)} of its qids are not in {dataset.source}, such as {unknown[0]}")
    return weights


#: Default options if labels are grades of rows in queries.
OF_GRADES = {"metric": "nDCG(exp)@10", "loss": "ndcg"}
#: Grades up to the first have usual gains 2^grade − 1; from the second the gain overflows float64.
USUAL_GRADE, HIGHEST_GRADE = 10.0, 1024.0


def chosen_by_grades(dataset: Dataset, options: JsonObject, named: Collection[str]) -> Mapping[str, str]:
    """Values for the options not in ``named``, if labels are grades of rows in queries and no option gives them another
    meaning. Prints them in a line."""
    from apsvm.data.labels import are_grades

    chosen = {option: value for option, value in OF_GRADES.items() if option in options and option not in named}
    if not chosen or not {"positive_label", "relevant_from"}.isdisjoint(named) or not are_grades(dataset):
        return {}
    values = " ".join(f"--{option} {shlex.quote(value)}" for option, value in chosen.items())
    remark(f"queries with grades: {values}", dataset.source)
    return chosen


def say_of_rows(fit: Fit, data: TrainingSet) -> None:
    """Prints warnings on the rows, and what does not count there. Errors of ``trainer.check`` are left to the caller
    (``bad_data``)."""
    trainer, can = fit.trainer, fit.trainer.capabilities
    remarks = list(trainer.check(data))
    if data.costs is not None and not can.costs:
        remarks.append("cost: is ignored: this loss does not use it")
    if data.queries is not None and not can.queries and data.target.labels.kind == "none":
        remarks.append("qid: is ignored: this training does not use it")
    for text in (*remarks, *_on_grades(fit)):
        remark(text, fit.dataset.source, warning=True)


def _on_grades(fit: Fit) -> Iterator[str]:
    from apsvm.data.dataset import distinct, shown_label
    from apsvm.models.header import LabelKind

    if fit.target.labels.kind is not LabelKind.GRADES or fit.target.grades is None:
        return
    grades, labels = distinct(fit.target.grades), fit.dataset.classes()
    if fit.dataset.groups is None and grades.size > 2:
        yield "its labels are grades, and its rows have no queries (qid:, --qid-column): they are ranked as one list"
    if labels[0] < 0.0 and (labels <= 0.0).sum() > 1:
        yield f"labels below 0, the lowest {shown_label(labels[0])}, count as the grade 0"
    highest = float(grades[-1])
    if fit.trainer.gain == "exponential" and USUAL_GRADE < highest < HIGHEST_GRADE and grades.size > 2:
        yield (
            f"the highest grade is {shown_label(highest)}, and its gain 2^grade − 1 = {2.0**highest - 1.0:.3g}: the "
            "lower ones hardly count. With --loss 'ndcg(linear)' a grade is its own gain"
        )


def describe(dataset: Dataset, target: Target) -> None:
    """Prints a line that describes the data."""
    import numpy as np

    from apsvm.data.dataset import shown_label
    from apsvm.models.header import LabelKind

    labels, positives = target.labels, target.relevant
    rows, features = dataset.X.shape
    if labels.kind is LabelKind.NONE:
        remark(f"{rows:,} users, {features:,} items", dataset.source)
        return
    parts = [f"{rows:,} rows"]
    if dataset.groups is not None:
        parts.append(f"{np.unique(dataset.groups).size:,} queries")
    if dataset.bags is not None and not dataset.ignores_bags:
        in_bags, numbers = np.unique(dataset.bags, return_inverse=True)
        parts.append(f"{in_bags.size:,} bags")
        positives = np.bincount(numbers, positives) > 0.0
    if labels.kind is LabelKind.CLASSES:
        parts.append(f"{len(dataset.classes())} classes")
    else:
        name = ""
        if labels.kind in (LabelKind.BINARY, LabelKind.ONE_LABEL):
            column = "label " if dataset.table is None else f"{dataset.table.columns.label} = "
            word = shown_label(1.0 if labels.positive is None else labels.positive)
            name = f" ({column}{word if labels.names is None else labels.names[1]})"
        parts.append(f"{int(positives.sum()):,} positive{name}")
    remark(f"{', '.join(parts)}, {features:,} feature{'' if features == 1 else 's'}", dataset.source)


# Signals

#: Signals that stop a training.
SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


def exit_code(signals: Sequence[int]) -> int:
    """Exit code of a command that these signals stopped; SIGHUP counts as SIGTERM."""
    if not signals:
        return 0
    return INTERRUPTED if all(number == signal.SIGINT for number in signals) else TERMINATED


class Signals(list[int]):
    """The signals received.

    Attributes
    ----------
    are_late : True if the training had ended before they came
    """

    are_late = False


@contextmanager
def signals_caught() -> Iterator[Signals]:
    """Collects SIGINT, SIGTERM and SIGHUP (closed terminal), so that the best model so far can be written. Another
    signal after half a second or more stops at once. Ignored signals stay ignored."""
    caught = Signals()
    first = 0.0

    def handler(number: int, frame: object) -> None:
        nonlocal first
        now = time.monotonic()
        if caught and now - first > 0.5:
            raise Failure(exit_code([number]), "stopped" if caught.are_late else "stopped, no model written")
        first = first or now
        caught.append(number)

    watched = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, handler) for number in watched}
    try:
        yield caught
    finally:
        for number, old in previous.items():
            signal.signal(number, old)


# The threshold


def decided(
    fit: Fit,
    outcome: Outcome,
    model: Model,
    options: JsonObject,
    should_stop: Callable[[], bool],
    folds: Callable[[], Sequence[OutOfFold]] | None = None,
    how: str = "",
) -> tuple[Outcome, Model]:
    """Chooses the threshold and probabilities that the options ask for.

    Without a request, the threshold is chosen on the ``folds`` of a search (see ``selection.decision.decide``), or else
    on the training rows. If no rows can be held out for a requested rule, the model has no threshold, and the outcome
    is not as requested.
    """
    import numpy as np

    from apsvm.selection.decision import DecisionRule, HeldOutError, with_decision
    from apsvm.selection.thresholds import with_training_threshold

    rule, began = DecisionRule(options["threshold"], options["calibrate"]), time.perf_counter()
    is_one_list = fit.dataset.groups is None or np.unique(fit.dataset.groups).size == 1
    by_folds = folds is not None and model.header.threshold is None and is_one_list
    if outcome.interrupted or not (rule.asks or by_folds):
        return outcome, with_training_threshold(model, fit.dataset)
    try:
        made = with_decision(fit, outcome, model, rule, should_stop, folds and folds(), how)
    except HeldOutError as error:
        if not rule.asks:
            return outcome, with_training_threshold(model, fit.dataset)
        cautions = (*outcome.cautions, f"there is no threshold: {error}")
        return replace(outcome, as_asked=False, cautions=cautions), model
    if made is None:
        return replace(outcome, interrupted=True, as_asked=False), model
    model, cautions = made
    seconds = {**outcome.seconds, "held out": time.perf_counter() - began}
    return replace(outcome, cautions=(*outcome.cautions, *cautions), seconds=seconds), model


# The end


def write_model(
    name: str,
    fit: Fit,
    outcome: Outcome,
    model: Model,
    log: TrainingLog,
    signals: Signals,
    *,
    began: float,
    read_seconds: float,
) -> int:
    """Writes the model of a training that ``began`` then, by ``time.perf_counter``, after ``read_seconds`` of reading;
    returns the exit code."""
    save(name, outcome, model, signals)
    seconds = {"reading": read_seconds, **outcome.seconds}
    seconds["other"] = max(0.0, time.perf_counter() - began + read_seconds - sum(seconds.values()))
    log.write("end", state=outcome.state, model=name, **end_record(outcome), seconds=seconds)
    say_what_became(fit, outcome, model, name, seconds)
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
    fit: Fit, outcome: Outcome, model: Model, name: str, seconds: Mapping[str, float] | None = None
) -> None:
    """Prints the choice, the decision and the output file. --verbose adds the ending, the certificate, the metric of
    the training rows and seconds by part; --quiet leaves only cautions and the reason for the exit code."""
    from apsvm.report.words import probabilities_in_words, threshold_in_words
    from apsvm.trainers.summary import ending, short_summary, summary

    header, verbose = model.header, is_set("verbose")
    for caution in outcome.cautions:
        say(f"warning: {caution}")
    if is_set("quiet"):
        if not header.as_asked:  # a missing threshold, also in outcome.as_asked, has its own caution
            say(f"warning: {ending(outcome)}")
        return
    for line in summary(outcome, header.metric) if verbose else short_summary(outcome, header.metric):
        say(line)
    if verbose and not model.lists_items:
        say(training_metric(fit.dataset, model))
    for caution in cautions_on_choice(fit, outcome):
        say(f"warning: {caution}")
    for skipped in () if verbose else header.classes_skipped:
        say(f"class {header.shown_label(skipped.label)} is left out: {skipped.reason}")
    threshold, calibration = header.threshold, header.calibration
    if threshold is not None:
        in_words = verbose or header.latent or header.features.pool is not None  # counts are of rows
        say(f"positive is {threshold_in_words(threshold, None if in_words else header.data)}")
    if calibration is not None:
        say(f"probabilities: {probabilities_in_words(calibration)}")
    taken = ""
    if seconds is not None:
        taken = f" after {math.fsum(seconds.values()):.2f} s"
        if verbose:
            say(f"seconds: {', '.join(f'{part} {spent:.2f}' for part, spent in seconds.items())}")
    say(f"model written to {'standard output' if name == '-' else name}{taken}")


def training_metric(dataset: Dataset, model: Model) -> str:
    """The line of the trained metric, and AP, on the training rows."""
    try:
        values = of_training_rows(dataset, model).values
    except Failure as error:
        return f"training rows have no metric: {error.message}"
    return f"training {', '.join(f'{name} {value:.6f}' for name, value in values.items())}"


def of_training_rows(dataset: Dataset, model: Model) -> Evaluation:
    """The trained metric, and AP, on the training rows, as ``apsvm eval`` computes them; failures end the command."""
    from apsvm.cli.scored import Scored, of_data
    from apsvm.data.labels import LabelOptions
    from apsvm.metrics import trained_metric
    from apsvm.metrics.evaluate import parse_metrics
    from apsvm.models.bags import ranked

    rows, scores = ranked(model, dataset)
    scored = Scored(rows, {"": scores}, {"": model}, LabelOptions())
    metrics = parse_metrics([trained_metric(model.header.metric), "AP"])
    return of_data(metrics, scored, "block", leave_out_undefined=True)[0].system.evaluation


#: A loss below this is rounding error.
_FLAWLESS = 1e-9
#: Most columns that a warning names.
_MOST_NAMED = 3


def cautions_on_choice(fit: Fit, outcome: Outcome) -> Iterator[str]:
    """Warns if few positives chose the settings, or if held-out rows are ranked perfectly; names columns at fault."""
    import numpy as np

    from apsvm.selection.choose import FEW_POSITIVES

    held_out: JsonObject = outcome.details.get("held_out") or {}  # type: ignore[assignment]
    if "AP" not in held_out or is_set("scheduler"):
        return
    dataset, relevant = fit.dataset, fit.target.relevant
    positives = int(relevant.sum())
    if dataset.bags is not None and fit.trainer.capabilities.bags:
        positives = np.unique(dataset.bags[relevant]).size
    if positives < FEW_POSITIVES:
        yield f"{positives} positives are few: the choice of settings is mostly chance"
    if held_out["AP"]["value"] < 1.0 - _FLAWLESS or fit.trainer.loss_name != "ap" or relevant.all():
        return
    (low, high), (other_low, other_high) = (_extremes(dataset.X[rows]) for rows in (relevant, ~relevant))
    columns = np.flatnonzero((low > other_high) | (high < other_low))[:_MOST_NAMED].tolist()
    what = "a feature may know the label (apsvm predict --explain shows what counts)"
    if columns:
        kind, names = "feature", [str(column + (not dataset.zero_based)) for column in columns]
        if dataset.table is not None:
            kind, names = "column", [dataset.table.columns.feature_names()[column] for column in columns]
        what = f"{kind} {', '.join(names)} alone tells positives from negatives: does it know the label (--drop)?"
    yield f"held-out rows are ranked without a fault: {what}"


def _extremes(X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(d,) each column's lowest and highest value."""
    import numpy as np

    if isinstance(X, np.ndarray):
        return X.min(axis=0), X.max(axis=0)
    return X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
