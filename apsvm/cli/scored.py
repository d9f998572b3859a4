"""Rows with scores of models and files, for ``apsvm eval`` and ``apsvm plot pr``."""

from __future__ import annotations

import codecs
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from apsvm._support.files import read_bytes
from apsvm.cli.options.parameters import plain_float
from apsvm.cli.reading import one_ranker, read_rows, rows_for
from apsvm.cli.shared import BAD_DATA, Failure, reading
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.dataset import Dataset
    from apsvm.data.labels import LabelOptions, Target
    from apsvm.metrics import Metric
    from apsvm.models.base import Model
    from apsvm.models.header import Labels, Threshold


@dataclass(frozen=True)
class Scored:
    """Rows and their scores.

    Attributes
    ----------
    dataset : n rows
    scores : path of the model or file → (n,) float64; (n, k) for a model of k classes
    models : path → model; files of scores have none
    options : the user's label options
    """

    dataset: Dataset
    scores: Mapping[str, NDArray[np.float64]]
    models: Mapping[str, Model]
    options: LabelOptions

    @property
    def classes(self) -> Mapping[str, NDArray[np.float64]]:
        """Path → labels (k,) float64 of the columns; empty unless all models rank several classes."""
        return {path: model.classes for path, model in self.models.items() if model.has_classes}

    def thresholds(self, path: str) -> Sequence[Threshold | None]:
        """The threshold of a model, or one per class; None without one."""
        return [header.threshold for header in self.models[path].headers] if path in self.models else [None]

    def labels(self, path: str) -> NDArray[np.bool_]:
        """(n, k) bool, True where a row has a class of ``path``."""
        import numpy as np

        return np.stack([self.dataset.have(label) for label in self.classes[path].tolist()], axis=1)

    def target(self, metrics: Mapping[str, Metric]) -> Target:
        """The labels as the metrics use them: by the options, else as in the models. Failures end the command."""
        from apsvm.data.labels import LabelOptions, judge

        graded = all(metric.graded for metric in metrics.values())
        of_models = dict.fromkeys(model.header.labels for model in self.models.values() if not model.has_classes)
        meanings: Sequence[Labels | None] = (list(of_models) if self.options == LabelOptions() else []) or [None]
        with reading(self.dataset.source):
            targets = [judge(self.dataset, self.options, labels, graded_metrics=graded) for labels in meanings]
        if not all(_judge_alike(targets[0], other) for other in targets[1:]):
            raise click.UsageError(
                "the models have different positive labels: choose by --positive-label or --relevant-from"
            )
        # Grades contain the two classes, and name them.
        return next((target for target in targets if target.grades is not None), targets[0])


def _judge_alike(one: Target, other: Target) -> bool:
    """True if both targets have the same relevant rows, equally graded; two classes count as grades 1 and 0."""
    import numpy as np

    if not np.array_equal(one.relevant, other.relevant):
        return False
    if one.grades is None and other.grades is None:
        return True
    first, second = (np.asarray(target.judgements, dtype=np.float64) for target in (one, other))
    (_, first_order), (_, second_order) = (np.unique(grades, return_inverse=True) for grades in (first, second))
    return np.array_equal(first_order, second_order) and np.array_equal(np.maximum(first, 0.0), np.maximum(second, 0.0))


def score_data(
    data: str,
    models: Mapping[str, Model],
    scores: Sequence[str],
    options: LabelOptions,
    read: ReadOptions,
    *,
    ignore_unknown: bool,
    unlabelled: bool = False,
) -> Scored:
    """DATA read and scored by every model and file; failures end the command. ``unlabelled``: it needs no labels."""
    from apsvm.models.columns import NO_FEATURES

    label = options.positive_label
    models = {
        path: one_ranker(model, label, path) if model.has_classes and label is not None else model
        for path, model in models.items()
    }
    dataset, columns = _scored_by_models(data, models, read, ignore_unknown=ignore_unknown, unlabelled=unlabelled)
    files = {path: _read_scores(path) for path in scores}
    if dataset is None:
        dataset = read_rows(data, read, zero_based=True, any_base=True, model=NO_FEATURES)
    if dataset.bags is not None and not dataset.ignores_bags:
        dataset = _of_what_is_scored(dataset, files)
    for path, of_rows in files.items():
        if of_rows.size != len(dataset):
            name = "<stdin>" if path == "-" else path
            expected = f"{len(dataset)} scores, one for each row of {dataset.source}"
            raise Failure(BAD_DATA, f"{name}: expected {expected}, found {of_rows.size}")
    scored = Scored(dataset, {**columns, **files}, models, options)
    classes, alone = scored.classes, [path for path in scored.scores if path not in scored.classes]
    if classes and options.relevant_from is not None:
        raise click.UsageError("--relevant-from is not for several classes")
    if classes and alone:
        raise click.UsageError(f"{next(iter(classes))} ranks several classes and {alone[0]} only one")
    return scored


def _of_what_is_scored(dataset: Dataset, files: Mapping[str, NDArray[np.float64]]) -> Dataset:
    """The rows; the bags if a file has a score per bag and none has one per row."""
    from apsvm.data.pooling import pooled

    bags = pooled(dataset, ())
    sizes = {scores.size for scores in files.values()}
    return bags if len(bags) in sizes and len(dataset) not in sizes else dataset


def _scored_by_models(
    data: str, rankers: Mapping[str, Model], read: ReadOptions, *, ignore_unknown: bool, unlabelled: bool
) -> tuple[Dataset | None, dict[str, NDArray[np.float64]]]:
    """The rows, read once for all models of the same features, and the models' scores by path; None without models."""
    from apsvm.models.bags import ranked

    datasets: dict[tuple[object, ...], Dataset] = {}
    result: Dataset | None = None
    columns: dict[str, NDArray[np.float64]] = {}
    for path, ranker in rankers.items():
        features = (
            ranker.zero_based,
            ranker.width,
            ranker.header.labels.several,
            ranker.header.features.pool,
            ranker.header.latent,
            ranker.header.features.columns,
            ranker.header.features.names,
        )
        if features not in datasets:
            if datasets and data == "-":
                raise Failure(
                    BAD_DATA,
                    f"{path}: it has other features than {next(iter(rankers))}, and standard input is read once",
                )
            datasets[features] = rows_for(ranker, data, read, ignore_unknown=ignore_unknown, unlabelled=unlabelled)
        with reading(data):
            of_this_model, columns[path] = ranked(ranker, datasets[features], by_rows=read.ignores_bags)
        result = result or of_this_model
        first = next(iter(columns))
        if len(columns[path]) != len(columns[first]):
            raise click.UsageError(f"of {first} and {path} one ranks bags and the other their rows")
    return result, columns


def _read_scores(path: str) -> NDArray[np.float64]:
    """(lines,) float64, a finite number a line."""
    import numpy as np

    with reading(path):
        lines = read_bytes(path).removeprefix(codecs.BOM_UTF8).split(b"\n")
    lines = lines[:-1] if lines[-1] == b"" else lines
    scores = np.full(len(lines), np.nan)
    for at, line in enumerate(lines):
        with suppress(ValueError):
            scores[at] = plain_float(line.decode())
        if not math.isfinite(scores[at]):
            text, name = line[:40].decode("utf-8", "backslashreplace").strip(), "<stdin>" if path == "-" else path
            raise Failure(BAD_DATA, f"{name}:{at + 1}: expected one finite number, found {text!r}")
    return scores
