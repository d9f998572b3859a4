"""Options, reading, outputs and signals shared by ``apsvm train`` and ``apsvm cv``."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from apsvm._support.machine import can_train
from apsvm._support.shown import printable
from apsvm._support.types import JsonObject
from apsvm.cli.options.config import CONFIG_FILE
from apsvm.cli.reading import read_rows, refuse_swapped
from apsvm.cli.shared import (
    BAD_DATA,
    INTERRUPTED,
    TERMINATED,
    Failure,
    reading,
    refuse_same_file,
    remark,
    writing,
)
from apsvm.data.read_options import ReadOptions
from apsvm.trainers.base import AnyTrainer

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.data.labels import LabelOptions, Target
    from apsvm.trainers.base import TrainingSet
    from apsvm.trainers.fitting import FeatureOptions


def check_bag_options(read: ReadOptions, options: JsonObject) -> None:
    """Ends the command if options on bags conflict."""
    if read.ignores_bags and options["pool"]:
        raise click.UsageError("--bags ignore takes every row for itself: leave out --pool")
    if read.bag_label == "any" and options["positive_label"] is not None:
        raise click.UsageError(
            "--bag-label any gives a bag the highest label of its rows: --relevant-from goes with it"
        )


def refuse_untaken(trainer: AnyTrainer, options: JsonObject, *names: str) -> None:
    """Ends the command if the user gave one of ``options`` that the trainer does not take."""
    for option in names:
        refusal = None if options[option] is None else trainer.capabilities.refusal(option)
        if refusal is not None:
            raise click.UsageError(refusal)


def label_options(options: JsonObject, trainer: AnyTrainer) -> LabelOptions:
    """The label options; ends the command if the trainer does not take them."""
    from apsvm.data.labels import LabelOptions

    labels = LabelOptions(positive_label=options["positive_label"], relevant_from=options["relevant_from"])
    refuse_untaken(trainer, options, "positive_label", "relevant_from")
    return labels


def feature_options(options: JsonObject, trainer: AnyTrainer, pool: tuple[str, ...] | None = None) -> FeatureOptions:
    """The feature options, with pooling ``pool``; ends the command if the trainer does not take them."""
    from apsvm.trainers.fitting import AUTO, FeatureOptions

    for option, of_all in (("scale", (AUTO, "none")), ("features", (AUTO, "linear"))):
        if options[option] not in of_all:
            refuse_untaken(trainer, options, option)
    if pool is not None and trainer.capabilities.bags:
        raise click.UsageError("--pool makes a row of each bag, and this training is of the rows in bags: give one")
    return FeatureOptions(features=options["features"], scale=options["scale"], bias=options["bias"], pool=pool)


def check_inputs(trainer: AnyTrainer) -> Mapping[str, str]:
    """Input files that the settings name, by name; ends the command if one cannot be read."""
    inputs = trainer.inputs()
    for path in inputs.values():
        with reading(path), open(path, "rb"):
            pass
    return inputs


def query_weights(path: str | None, dataset: Dataset) -> dict[int, float] | None:
    """Weights of the queries, if a file is named."""
    from apsvm.data.query_weights import weights_of_queries

    if path is None:
        return None
    if dataset.groups is None:
        raise Failure(BAD_DATA, f"{dataset.source}: --query-weights needs rows with qid:, found none")
    with reading(path):
        weights, unknown = weights_of_queries(path, dataset)
    if unknown:
        remark(
            f"warning: {path}: {len(unknown)} of its qids are not in {dataset.source}, such as {printable(unknown[0])}"
        )
    return weights


def check_data(trainer: AnyTrainer, data: TrainingSet) -> None:
    """Prints remarks on the rows. Errors of ``trainer.check`` are left to the caller (``bad_data``)."""
    remarks = list(trainer.check(data))
    if data.costs is not None and not trainer.capabilities.costs:
        remarks.append("cost: is not used by this loss; it is ignored here")
    if data.queries is not None and not trainer.capabilities.queries and data.target.labels.kind == "none":
        remarks.append("qid: is not used here")
    for text in remarks:
        remark(f"warning: {data.source}: {text}")


def described(dataset: Dataset, target: Target) -> str:
    """A line that describes the data."""
    import numpy as np

    from apsvm.data.dataset import shown_label
    from apsvm.models.header import LabelKind

    (rows, features), labels = dataset.X.shape, target.labels
    if labels.kind is LabelKind.NONE:
        return f"{dataset.source}: {rows:,} users, {features:,} items"
    parts = [f"{rows:,} rows"]
    if dataset.groups is not None:
        parts.append(f"{np.unique(dataset.groups).size:,} queries")
    positives = target.relevant
    if dataset.bags is not None and not dataset.ignores_bags:
        in_bags, numbers = np.unique(dataset.bags, return_inverse=True)
        parts.append(f"{in_bags.size:,} bags")
        positives = np.bincount(numbers, positives) > 0.0
    if labels.kind is LabelKind.CLASSES:
        parts.append(f"{len(dataset.classes())} classes")
    elif labels.kind in (LabelKind.BINARY, LabelKind.ONE_LABEL):
        word = shown_label(1.0 if labels.positive is None else labels.positive)
        word = word if labels.names is None else labels.names[1]
        column = "label " if dataset.table is None else f"{dataset.table.columns.label} = "
        parts.append(f"{int(positives.sum()):,} positive ({column}{word})")
    else:
        parts.append(f"{int(target.relevant.sum()):,} relevant")
    return f"{dataset.source}: {', '.join(parts)}, {features:,} features"


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

    outputs = [path for path in (model, other) if path is not None]
    if model is not None:
        refuse_swapped(data=data, model=model)
    for path in outputs:
        check_output(path, data=data, **inputs)
        with writing(path):
            is_there = os.path.isfile(path) and os.path.getsize(path) > 0
            is_model = is_there and is_model_file(path)
        if path == model and is_there and not is_model:
            raise click.UsageError(
                f"MODEL is what is written, and {model!r} exists and is no model: name another, or remove it (several "
                "files to train on are a pattern in quotes, 'part-*.csv')"
            )
        if path == other and is_model:
            raise click.UsageError(f"{what} {other}: this file is a model: name another, or remove it")
    if len({"-" if path == "-" else os.path.realpath(path) for path in outputs}) < len(outputs):
        raise click.UsageError(f"the model and {what} cannot go to the same place")


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
