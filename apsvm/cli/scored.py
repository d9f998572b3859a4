"""Rows with scores of models and files, and their evaluation, for ``apsvm eval``, ``compare``, ``plot pr`` and the
training rows of ``train``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from apsvm._support.types import JsonDict
from apsvm.cli.options.table import RUN_TIES
from apsvm.cli.reading import one_ranker, read_rows, rows_for
from apsvm.cli.shared import BAD_DATA, Failure, bad_data, reading, say
from apsvm.data.read_options import ReadOptions
from apsvm.models.decision import line_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.dataset import Dataset
    from apsvm.data.labels import LabelOptions, Target
    from apsvm.metrics import Metric
    from apsvm.metrics.significance import Difference, System
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
    return np.array_equal(np.maximum(first, 0.0), np.maximum(second, 0.0))


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
    from apsvm.data.matrices import read_scores
    from apsvm.data.pooling import pooled
    from apsvm.models.columns import NO_FEATURES

    label = options.positive_label
    models = {
        path: one_ranker(model, label, path) if model.has_classes and label is not None else model
        for path, model in models.items()
    }
    dataset, columns = _scored_by_models(data, models, read, ignore_unknown=ignore_unknown, unlabelled=unlabelled)
    files = {}
    for path in scores:
        with reading(path):
            files[path] = read_scores(path)
    if dataset is None:
        dataset = read_rows(data, read, zero_based=True if data == "-" else None, model=NO_FEATURES)
    if dataset.bags is not None and not dataset.ignores_bags:
        bags, sizes = pooled(dataset, ()), {scores.size for scores in files.values()}
        if len(bags) in sizes and len(dataset) not in sizes:  # a score a bag
            dataset = bags
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


def _scored_by_models(
    data: str, rankers: Mapping[str, Model], read: ReadOptions, *, ignore_unknown: bool, unlabelled: bool
) -> tuple[Dataset | None, dict[str, NDArray[np.float64]]]:
    """The rows, read once for all models of the same features, and the models' scores by path; None without models."""
    from apsvm.models.bags import ranked

    datasets: dict[tuple[object, ...], Dataset] = {}
    result: Dataset | None = None
    columns: dict[str, NDArray[np.float64]] = {}
    for path, ranker in rankers.items():
        header, of = ranker.header, ranker.header.features
        base, bags = (of.zero_based, ranker.width), (of.pool, header.latent)
        features = (base, bags, header.labels.several, of.columns, of.names)
        if features not in datasets:
            if datasets and data == "-":
                raise Failure(
                    BAD_DATA,
                    f"{path}: it has other features than {next(iter(rankers))}, and standard input is read once",
                )
            datasets[features] = rows_for(ranker, data, read, ignore_unknown=ignore_unknown, unlabelled=unlabelled)
        of_this_model, columns[path] = ranked(ranker, datasets[features], by_rows=read.ignores_bags)
        result = result or of_this_model
        first = next(iter(columns))
        if len(columns[path]) != len(columns[first]):
            raise click.UsageError(f"of {first} and {path}, one ranks bags and the other their rows")
    return result, columns


#: Draws of the bootstrap, and random swaps of the test, of one ranking and of queries.
DRAWS, SWAPS_OF_ROWS, SWAPS_OF_QUERIES = 1_000, 1_000, 10_000


@dataclass
class EvaluatedSystem:
    """A system and its results, a column of the output.

    Attributes
    ----------
    name : the file of its model, scores or run
    system : its scores and their evaluation
    ties : the tie rule's name
    counts : other counts, by name
    each : unit of the means, if there are any: "query" or "class"
    unit : unit that has a score: "rows" or "bags"
    thresholds : rows above one are predicted positive; one per class if there are several; set if a metric needs them
    words : names of queries or classes, by number; empty: the numbers
    intervals : metric → bootstrap interval
    against_first : metric → difference from the first entry
    """

    name: str
    system: System
    ties: str
    counts: Mapping[str, int] = field(default_factory=dict)
    each: str = "query"
    unit: str = "rows"
    thresholds: Sequence[Threshold | None] = ()
    words: Sequence[str] = ()
    intervals: Mapping[str, tuple[float, float]] | None = None
    against_first: Mapping[str, Difference] | None = None


def of_data(
    metrics: dict[str, Metric], scored: Scored, ties: str, *, leave_out_undefined: bool
) -> list[EvaluatedSystem]:
    """An entry for each of ``scored``'s models and files; failures end the command."""
    from apsvm.metrics.evaluate import summarise
    from apsvm.metrics.ranking_table import Judgements
    from apsvm.metrics.significance import System

    dataset = scored.dataset
    if scored.classes:
        return [_of_classes(metrics, scored, path, ties) for path in scored.scores]
    target = scored.target(metrics)
    entries = []
    words = () if dataset.table is None else dataset.table.queries
    for path, scores in scored.scores.items():
        (threshold,) = scored.thresholds(path)
        with bad_data(dataset.source):
            line = line_of(threshold)
            rows = Judgements.of(dataset.groups, target.judgements, target.lowest_relevant, threshold=line)
            result = summarise(metrics, rows.table(scores, ties), leave_out_undefined=leave_out_undefined)
        about: JsonDict = {"words": words, "thresholds": _needed([threshold], metrics), "unit": dataset.unit}
        entries.append(EvaluatedSystem(path, System(scores, rows, result), ties, **about))
    return entries


def _needed(thresholds: Sequence[Threshold | None], metrics: Mapping[str, Metric]) -> Sequence[Threshold | None]:
    """The thresholds, if a metric needs them."""
    return thresholds if any(one.thresholded for one in metrics.values()) else ()


def _of_classes(metrics: dict[str, Metric], scored: Scored, path: str, ties: str) -> EvaluatedSystem:
    """Every class's own ranking of the rows, column by column of the scores (n, k); classes take the queries' place."""
    import numpy as np

    from apsvm.metrics.classes import evaluate_classes
    from apsvm.metrics.ranking_table import Judgements
    from apsvm.metrics.significance import System

    dataset, scores, classes = scored.dataset, scored.scores[path], scored.classes[path]
    labels = scored.labels(path)
    thresholds = scored.thresholds(path)
    with bad_data(dataset.source):
        result = evaluate_classes(
            list(metrics.values()), scores, labels, classes, ties,
            groups=dataset.groups, thresholds=[line_of(threshold) for threshold in thresholds],
        )  # fmt: skip
    counts = {"classes_unranked": int(np.setdiff1d(dataset.classes(), classes).size)}
    words = () if dataset.table is None else dataset.table.columns.label_words
    system = System(scores, Judgements(labels, codes=dataset.groups), result)
    return EvaluatedSystem(path, system, ties, counts, "class", words=words, thresholds=_needed(thresholds, metrics))


def of_runs(
    metrics: dict[str, Metric], qrels: str, runs: Sequence[str], ties: str, relevant_from: float
) -> list[EvaluatedSystem]:
    """An entry for each TREC run; failures end the command."""
    from apsvm.data.trec import join, read_qrels, read_run
    from apsvm.metrics.evaluate import summarise
    from apsvm.metrics.ranking_table import Judgements
    from apsvm.metrics.significance import System

    with reading(qrels):
        judgements = read_qrels(qrels)
    entries = []
    for path in runs:
        with reading(path):
            retrieved = read_run(path)
            run = join(judgements, retrieved)
        n_retrieved, n_judged = int(run.ranked.sum()), int((run.ranked & run.judged).sum())
        if run.ties_in_float32:
            say(
                f"{retrieved.source}: trec_eval reads scores as float32, and so ties {run.ties_in_float32:,} documents "
                "with the one above: its figures may differ"
            )
        if n_judged == 0:
            say(
                f"{judgements.source} judges none of the {n_retrieved:,} documents that {retrieved.source} retrieved "
                "for its queries: do both name documents alike?"
            )
        rows = Judgements(
            run.grades, relevant_from, run.codes, run.queries, run.ranked, run.judged,
            # retrieved documents are predicted relevant
            threshold=-math.inf,
        )  # fmt: skip
        # The rows stand in trec_eval's order.
        rule = "file" if ties == RUN_TIES else ties
        result = summarise(metrics, rows.table(run.scores, rule), all_groups=True)
        counts = {
            "queries_missing": run.missing_queries,
            "queries_unjudged": run.unjudged_queries,
            "documents_retrieved": n_retrieved,
            "documents_unjudged": n_retrieved - n_judged,
        }
        entries.append(EvaluatedSystem(path, System(run.scores, rows, result), ties, counts))
    return entries


def add_intervals(entries: Sequence[EvaluatedSystem], metrics: Mapping[str, Metric], confidence: float) -> None:
    """Bootstrap intervals of every entry."""
    from apsvm.metrics.significance import intervals

    for entry in entries:
        entry.intervals = intervals(_defined(metrics, entry), entry.system, confidence, DRAWS, seed=0)


def add_differences(
    entries: Sequence[EvaluatedSystem], metrics: Mapping[str, Metric], confidence: float | None
) -> None:
    """Sets each later entry's difference from the first; failures end the command."""
    from apsvm.metrics.significance import differences

    first = entries[0]
    swaps = SWAPS_OF_QUERIES if first.each == "query" and not first.system.is_one_ranking else SWAPS_OF_ROWS
    how: JsonDict = {"n_swaps": swaps, "seed": 0, "confidence": confidence, "n_draws": DRAWS}
    for entry in entries[1:]:
        with bad_data(f"{first.name} and {entry.name}"):
            entry.against_first = differences(_defined(metrics, entry), first.system, entry.system, **how)


def _defined(metrics: Mapping[str, Metric], entry: EvaluatedSystem) -> dict[str, Metric]:
    return {name: metric for name, metric in metrics.items() if name in entry.system.evaluation.values}
