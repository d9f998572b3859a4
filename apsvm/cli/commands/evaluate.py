"""``apsvm eval``: the ranking metrics of models, files of scores or TREC runs, side by side."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from apsvm.cli.help import HelpfulCommand
from apsvm.cli.options.table import RUN_TIES, files, options
from apsvm.cli.output.progress import Bar
from apsvm.cli.reading import how_to_read, read_any_model, refuse_model, rows_for
from apsvm.cli.shared import BAD_DATA, Failure, bad_data, put, refuse_if_given, say
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    from apsvm.cli.scored import EvaluatedSystem
    from apsvm.metrics import Metric
    from apsvm.models.base import Model
    from apsvm.models.items import ItemRanker

#: Default metrics, for rows and for TREC runs.
USUAL_METRICS = ("AP", "AUC", "P@5", "P@10", "nDCG")
RUN_METRICS = ("AP", "nDCG", "nDCG@10", "P@5", "P@10", "R@100", "RR", "Rprec", "bpref")

#: The share of each user's items that is hidden, of a model of items.
HIDDEN_SHARE = 0.2

#: Options that ``--help`` lists, by section.
_COMMON = {
    "What is evaluated": "models scores runs qrels",
    "How": "metrics confidence compare per_query as_json",
    "Data": "positive_label label_column id_column",
}


@click.command(name="eval", cls=HelpfulCommand, common=_COMMON)
@files("[DATA]")
@click.argument("others", metavar="", nargs=-1)
@options("models", "scores", "qrels", "runs", "metrics", "ties", "relevant_from", "per_query",
         "confidence", "compare", "ignore_unknown", "as_json",
         positive_label={"excludes": "relevant_from qrels"})  # fmt: skip
@how_to_read
def evaluate(data: str | None, others: tuple[str, ...], read: ReadOptions, **values: Any) -> None:
    """Evaluate rankings of the rows of DATA, or TREC runs: average precision, ROC area, precision at k, NDCG, …

    With queries (qid:) each figure is the mean over the queries. For a model that ranks items for users
    (--rows-as-users), a fifth of each user's items is hidden, and the figures, means over the users, tell how high
    these rank among all items that are not known.

    \b
    apsvm eval new.csv --model payments.model -m AP -m P@100
    apsvm eval new.csv --model a.model --model b.model --compare --confidence 0.95
    apsvm eval --qrels qrels.txt --run run.txt -m AP -m nDCG@10
    \f
    A model of several classes (train --one-vs-rest) is evaluated class by class; the figures are then means over the
    classes, which also take the place of the queries in intervals and tests. --positive-label picks one class.
    """
    if others:
        raise click.UsageError(f"models are named by --model, scores by --scores: --model {others[0]}")
    wanted = SimpleNamespace(data=data, **values)
    _check(wanted)
    models = {} if data is None else {path: read_any_model(path) for path in wanted.models}
    of_items = _one_of_items(models, wanted.scores)
    metrics = _metrics(wanted, models.values())
    if of_items is None:
        _show(_entries(wanted, read, models, metrics), metrics, wanted)
    else:
        _show_items(of_items, wanted, read, metrics)


def _check(wanted: SimpleNamespace) -> None:
    """Ends the command for files and options that conflict, as far as the options' rules do not."""
    sources = [*wanted.models, *wanted.scores, *wanted.runs]
    if (wanted.data is None) == (wanted.qrels is None):
        raise click.UsageError("give either DATA, with --model or --scores, or --qrels and --run")
    if wanted.data is not None:
        refuse_model(wanted.data)
    if not sources:
        raise click.UsageError("give --model or --scores")
    if len({*sources}) < len(sources):
        raise click.UsageError("the same file is given twice")
    if [wanted.data, wanted.qrels, *sources].count("-") > 1:
        raise click.UsageError("only one of the files can be standard input")
    if wanted.compare and len(sources) < 2:
        raise click.UsageError("--compare needs at least two of --model, --scores or --run")
    if wanted.ties == (RUN_TIES if wanted.qrels is None else "file"):
        raise click.UsageError(f"--ties: {RUN_TIES} is for runs, file for DATA; block and pessimistic are for both")


def _entries(
    wanted: SimpleNamespace, read: ReadOptions, models: Mapping[str, Model], metrics: dict[str, Metric]
) -> list[EvaluatedSystem]:
    """The systems to show side by side; failures end the command."""
    from apsvm.cli.scored import of_data, of_runs, score_data
    from apsvm.data.labels import LabelOptions

    if wanted.qrels is not None:
        relevant_from = 1.0 if wanted.relevant_from is None else wanted.relevant_from
        ties = wanted.ties or RUN_TIES
        return of_runs(metrics, wanted.qrels, wanted.runs, ties, relevant_from)
    labels = LabelOptions(positive_label=wanted.positive_label, relevant_from=wanted.relevant_from)
    scored = score_data(wanted.data, models, wanted.scores, labels, read, ignore_unknown=wanted.ignore_unknown)
    trained_on = {path: model.header.data.queries or 0 for path, model in models.items()}
    path = next((path for path, queries in trained_on.items() if queries > 1), None)
    if path is not None and scored.dataset.groups is None:
        say(
            f"warning: {scored.dataset.source}: its rows have no queries (qid:, --qid-column), and {path} was trained "
            f"on {trained_on[path]}: they are judged as one list"
        )
    return of_data(metrics, scored, wanted.ties or "block", leave_out_undefined=not wanted.metrics)


def _show(entries: list[EvaluatedSystem], metrics: dict[str, Metric], wanted: SimpleNamespace) -> None:
    """Prints the entries, with intervals and tests if they are requested; failures end the command."""
    from apsvm.cli.output.evaluation import put_each, put_json, put_summary
    from apsvm.cli.scored import add_differences, add_intervals

    first = entries[0]
    if wanted.per_query and first.system.is_one_ranking:
        raise Failure(BAD_DATA, f"{wanted.data}: --per-query needs queries, and its rows have none (qid:)")
    with Bar("drawing rows anew for intervals and tests"):
        if wanted.confidence is not None:
            add_intervals(entries, metrics, wanted.confidence)
        if wanted.compare:
            add_differences(entries, metrics, wanted.confidence)
    if wanted.as_json:
        put_json(entries, per_query=wanted.per_query)
        return
    if wanted.per_query or first.each == "class":
        put_each(entries)
    cutoffs = [int(name[2:]) for name in metrics if wanted.metrics and name.startswith("P@")]
    put_summary(entries, wanted.confidence, cutoffs)


def _show_items(ranker: ItemRanker, wanted: SimpleNamespace, read: ReadOptions, metrics: Collection[str]) -> None:
    """Hides a share of each user's items, ranks them from the rest, and prints the means over the users."""
    import numpy as np

    from apsvm.data.item_lists import hide, rated_items
    from apsvm.trainers.warp.item_factors import evaluate_lists

    data = rows_for(ranker, wanted.data, read, ignore_unknown=wanted.ignore_unknown, unlabelled=True)
    with bad_data(data.source):
        known, hidden, _ = hide(rated_items(data.X), HIDDEN_SHARE, np.random.default_rng(0))
        result = evaluate_lists(ranker.score, known, hidden, list(metrics))
    if wanted.as_json:
        counts = {"users": result.users, "users_skipped": result.users_skipped}
        put(json.dumps({"metrics": result.values, **counts}, indent=1))
        return
    for name, value in result.values.items():
        put(f"{name:<12} {value:.6f}")
    put(f"users        {result.users} averaged, {result.users_skipped} without a hidden item left out")


def _metrics(wanted: SimpleNamespace, models: Iterable[Model]) -> dict[str, Metric]:
    """Canonical name → metric: the requested ones, or the models' trained metrics and the usual ones."""
    from apsvm.metrics import trained_metric
    from apsvm.metrics.evaluate import parse_metrics

    if wanted.metrics:
        return parse_metrics(wanted.metrics)
    if wanted.runs:
        return parse_metrics(RUN_METRICS)
    trained = dict.fromkeys(trained_metric(model.header.metric).name for model in models)
    return parse_metrics([*(name for name in trained if name not in USUAL_METRICS), *USUAL_METRICS])


def _one_of_items(models: Mapping[str, Model], scores: tuple[str, ...]) -> ItemRanker | None:
    """The model, if it is one of items: then it must be alone, without options that are for rankings of rows."""
    from apsvm.models.items import ItemRanker

    for path, model in models.items():
        if isinstance(model, ItemRanker):
            if len(models) + len(scores) > 1:
                raise click.UsageError(f"{path} is {model.description}, which is evaluated alone")
            what = f"does not apply to {path}: it is {model.description}"
            refuse_if_given(("ties", "positive_label", "relevant_from", "per_query", "confidence", "compare"), what)
            return model
    return None
