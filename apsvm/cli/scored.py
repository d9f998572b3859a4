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
    """DATA read, once for all models of the same features, and scored by every model and file; failures end the
    command. ``unlabelled``: it needs no labels."""
    from apsvm.data.matrices import read_scores
    from apsvm.data.pooling import pooled
    from apsvm.models.bags import ranked
    from apsvm.models.columns import NO_FEATURES

    label = options.positive_label
    if label is not None:
        models = {path: one_ranker(one, label, path) if one.has_classes else one for path, one in models.items()}
    dataset: Dataset | None = None
    datasets: dict[object, Dataset] = {}
    columns: dict[str, NDArray[np.float64]] = {}
    for path, model in models.items():
        header, of = model.header, model.header.features
        features = (of.zero_based, model.width, of.pool, header.latent, header.labels.several, of.columns, of.names)
        if features not in datasets:
            datasets[features] = rows_for(model, data, read, ignore_unknown=ignore_unknown, unlabelled=unlabelled)
        rows, columns[path] = ranked(model, datasets[features], by_rows=read.ignores_bags)
        dataset = dataset or rows
        if len(columns[path]) != len(dataset):
            raise click.UsageError(f"of {next(iter(models))} and {path}, one ranks bags and the other their rows")
    for path in scores:
        with reading(path):
            columns[path] = read_scores(path)
    if dataset is None:
        dataset = read_rows(data, read, zero_based=True if data == "-" else None, model=NO_FEATURES)
    if dataset.bags is not None and not dataset.ignores_bags:
        bags, sizes = pooled(dataset, ()), {len(columns[path]) for path in scores}
        if len(bags) in sizes and len(dataset) not in sizes:  # a score a bag
            dataset = bags
    for path in scores:
        if len(columns[path]) != len(dataset):
            name = "<stdin>" if path == "-" else path
            expected = f"{len(dataset)} scores, one for each row of {dataset.source}"
            raise Failure(BAD_DATA, f"{name}: expected {expected}, found {len(columns[path])}")
    scored = Scored(dataset, columns, models, options)
    classes, alone = scored.classes, [path for path in scored.scores if path not in scored.classes]
    if classes and options.relevant_from is not None:
        raise click.UsageError("--relevant-from is not for several classes")
    if classes and alone:
        raise click.UsageError(f"{next(iter(classes))} ranks several classes and {alone[0]} only one")
    return scored


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
    """An entry for each of ``scored``'s models and files; failures end the command. With several classes each has its
    own ranking of the rows, by its column of the scores (n, k), in place of the queries."""
    import numpy as np

    from apsvm.metrics.classes import evaluate_classes
    from apsvm.metrics.evaluate import summarise
    from apsvm.metrics.ranking_table import Judgements
    from apsvm.metrics.significance import System

    dataset, table, entries = scored.dataset, scored.dataset.table, []
    groups, target = dataset.groups, None if scored.classes else scored.target(metrics)
    cuts = any(metric.thresholded for metric in metrics.values())
    for path, scores in scored.scores.items():
        thresholds = scored.thresholds(path)
        lines = [line_of(threshold) for threshold in thresholds]
        with bad_data(dataset.source):
            if target is not None:
                rows = Judgements.of(groups, target.judgements, target.lowest_relevant, threshold=lines[0])
                result = summarise(metrics, rows.table(scores, ties), leave_out_undefined=leave_out_undefined)
                about: JsonDict = {"unit": dataset.unit, "words": () if table is None else table.queries}
            else:
                labels, classes = scored.labels(path), scored.classes[path]
                rows = Judgements(labels, codes=groups)
                result = evaluate_classes(
                    list(metrics.values()), scores, labels, classes, ties, groups=groups, thresholds=lines
                )
                counts = {"classes_unranked": int(np.setdiff1d(dataset.classes(), classes).size)}
                about = {"counts": counts, "each": "class", "words": () if table is None else table.columns.label_words}
        about["thresholds"] = thresholds if cuts else ()
        entries.append(EvaluatedSystem(path, System(scores, rows, result), ties, **about))
    return entries


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
