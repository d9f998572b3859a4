"""``apsvm eval``: the ranking metrics of models, files of scores or TREC runs, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from apsvm.cli.cluster.commands import evaluate_on_cluster, scheduler_option
from apsvm.cli.help import HelpfulCommand
from apsvm.cli.items import evaluate_items
from apsvm.cli.options.completion import MetricName, MetricOption
from apsvm.cli.options.parameters import LabelValue, Number
from apsvm.cli.output.grades import say_without_queries
from apsvm.cli.reading import how_to_read, read_any_model
from apsvm.cli.shared import BAD_DATA, Failure, refuse_if_given
from apsvm.cli.systems import RUN_TIES
from apsvm.data.read_options import ReadOptions
from apsvm.metrics import TIE_RULES

if TYPE_CHECKING:
    from apsvm.cli.systems import EvaluatedSystem
    from apsvm.metrics import Metric
    from apsvm.models.base import Model
    from apsvm.models.items import ItemRanker

#: What is reported unless the user says otherwise: of rows, and of TREC runs.
USUAL_METRICS = ("AP", "AUC", "P@5", "P@10", "nDCG")
RUN_METRICS = ("AP", "nDCG", "nDCG@10", "P@5", "P@10", "R@100", "RR", "Rprec", "bpref")


#: What ``--help`` shows.
_COMMON = {
    "What is evaluated (each may be given more than once)": {
        "models": "MODEL  The scores that this model gives the rows of DATA.",
        "scores": "FILE  Scores of the rows, one a line.",
        "runs": "FILE  A TREC run, with --qrels FILE in place of DATA.",
    },
    "How": {
        "metrics": "NAME  AP, AUC, nDCG@10, P@100, R@100, RR, F1, … [default: AP, AUC, P@k, nDCG]",
        "confidence": "LEVEL  Bootstrap intervals, of .95 say.",
        "compare": "Test whether the others differ from the first.",
        "per_query": "Print every query too.",
        "as_json": "Print one JSON object.",
    },
    "Data": {
        "positive_label": "LABEL  The label that is positive. [default: the model's]",
        "label_column": "NAME  Column of the labels of a table. [default: the model's]",
    },
}


@click.command(name="eval", cls=HelpfulCommand, common=_COMMON)
@click.argument("data", metavar="[DATA]", required=False)
@click.option("--model", "models", metavar="MODEL", multiple=True, help="Score DATA with this model …")
@click.option(
    "--scores", metavar="FILE", multiple=True,
    help="… or take one score a row from this file. Each may be given more than once: they stand side by side.",
)  # fmt: skip
@click.option("--qrels", metavar="FILE", help="In place of DATA: relevance judgements as TREC writes them …")
@click.option("--run", "runs", metavar="FILE", multiple=True, help="… and retrieved documents; more than one may be.")
@click.option("--complete", is_flag=True, help="Queries of the qrels that a run lacks count 0 (trec_eval -c).")
@click.option(
    "-m", "--metric", "metrics", metavar="NAME", type=MetricName(), multiple=True, cls=MetricOption,
    help="A metric to report in place of the usual ones and the one that the model was trained for; may be given more "
    "than once. Precision, Recall, Accuracy and F1, F0.5, … look at the model's threshold, or 0. There are",
)  # fmt: skip
@click.option(
    "--ties", type=click.Choice([*TIE_RULES, RUN_TIES]),
    help="Rows of equal score: as one block (scikit-learn; the expectation over their orders where AP is not "
    "concerned), negatives first, in file order, or, of a run, by document name as trec_eval does. "
    "[default: block; of runs docno]",
)  # fmt: skip
@click.option("--positive-label", type=LabelValue(), help="The label that is positive. [default: the model's]")
@click.option(
    "--relevant-from", type=Number(), metavar="GRADE",
    help="Labels are grades: rows of this grade or a higher one are relevant, and nDCG and WMW read the grades. "
    "[default of runs: 1]",
)  # fmt: skip
@click.option("--per-query", is_flag=True, help="Report every query too.")
@click.option(
    "--confidence", type=Number(0, 1, open_low=True), metavar="LEVEL",
    help="Report bootstrap intervals of this level, say 0.95: over queries, or over the rows if there are none.",
)  # fmt: skip
@click.option(
    "--compare", is_flag=True,
    help="Test whether the others differ from the first: paired randomisation, two-sided p, not corrected for the "
    "number of tests.",
)  # fmt: skip
@click.option(
    "--known", metavar="FILE",
    help="Of a model of items: what DATA's users like already, row by row. Without it a fifth of each row's items is "
    "hidden, to be found from the rest.",
)  # fmt: skip
@click.option("--ignore-unknown", is_flag=True, help="Ignore features the model does not know instead of refusing.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@scheduler_option
@how_to_read
def evaluate(data: str | None, read: ReadOptions, **options: Any) -> None:
    """Evaluate rankings of the rows of DATA, or TREC runs: average precision, ROC area, precision at k, NDCG, …

    With queries (qid:) each figure is the mean over the queries. Of a model that ranks items for users
    (--rows-as-users) it is the mean over the users: how high stand the items that were hidden, among all not known.

    \f
    A model of several classes (train --one-vs-rest) is evaluated class by class; the figures are then means over the
    classes, which also take the place of the queries in intervals and tests. --positive-label picks one class.

    \b
    apsvm eval test.svm --model a.model --model b.model --compare --confidence 0.95
    apsvm eval --qrels qrels.txt --run run.txt -m AP -m nDCG@10
    """
    evaluation = _EvaluateOptions(data=data, read=read, **options)
    evaluation.check()
    of_items = None
    models: dict[str, Model] = {}
    if data is not None:
        models = {path: read_any_model(path) for path in evaluation.models}
        of_items = _one_of_items(models, evaluation.scores)
    metrics = _metrics(evaluation, models.values())
    if of_items is not None:
        evaluation.evaluate_items(of_items, metrics)
        return
    if evaluation.known is not None:
        raise click.UsageError("--known is for a model of items (apsvm train --rows-as-users)")
    evaluation.show(evaluation.entries(models, metrics), metrics)


@dataclass(frozen=True, kw_only=True)
class _EvaluateOptions:
    """The command's options, each as its help says."""

    data: str | None
    read: ReadOptions
    models: tuple[str, ...]
    scores: tuple[str, ...]
    qrels: str | None
    runs: tuple[str, ...]
    complete: bool
    metrics: tuple[str, ...]
    ties: str | None
    positive_label: float | str | None
    relevant_from: float | None
    per_query: bool
    confidence: float | None
    compare: bool
    known: str | None
    ignore_unknown: bool
    as_json: bool
    scheduler: str | None

    def check(self) -> None:
        """Ends the command for options that do not go together."""
        sources = [*self.models, *self.scores, *self.runs]
        if (self.qrels is None) != (not self.runs):
            raise click.UsageError("--qrels and --run go together")
        if (self.data is None) == (self.qrels is None):
            raise click.UsageError("give either DATA, with --model or --scores, or --qrels and --run")
        if self.qrels is None and not (self.models or self.scores):
            raise click.UsageError("give --model or --scores")
        if len({*sources}) < len(sources):
            raise click.UsageError("the same file is given twice")
        if [self.data, self.qrels, *sources].count("-") > 1:
            raise click.UsageError("only one of the files can be standard input")
        if self.scheduler is not None:
            self._check_for_cluster()
        if self.compare and len(sources) < 2:
            raise click.UsageError("--compare needs at least two of --model, --scores or --run")
        if self.positive_label is not None and self.relevant_from is not None:
            raise click.UsageError("give either --positive-label or --relevant-from")
        if self.known is not None and self.known in (self.data, *self.models, "-"):
            raise click.UsageError("--known is another file than DATA and MODEL, and not standard input")
        _named(self.metrics)
        self._check_source()

    def _check_source(self) -> None:
        """Ends the command for options of runs with DATA, and of DATA with runs."""
        if self.qrels is None:
            if self.complete or self.ties == RUN_TIES:
                raise click.UsageError(f"--complete and --ties {RUN_TIES} are for --qrels and --run")
            return
        if self.models or self.scores:
            raise click.UsageError("--model and --scores are for DATA: a run has its own scores")
        if self.ties == "file":
            raise click.UsageError(f"a run's order is that of its scores: --ties is {RUN_TIES}, block or pessimistic")
        if self.positive_label is not None:
            raise click.UsageError("--positive-label is for DATA; of runs see --relevant-from")

    def _check_for_cluster(self) -> None:
        if self.data is None or self.scores:
            raise click.UsageError("--scheduler is for DATA and --model")
        if self.ties not in (None, "block"):
            raise click.UsageError("with --scheduler rows of equal score are one block: leave out --ties")
        if self.compare or (self.confidence is not None):
            raise click.UsageError("--compare and --confidence draw rows anew: not with --scheduler")

    def entries(self, models: Mapping[str, Model], metrics: dict[str, Metric]) -> list[EvaluatedSystem]:
        """What to show side by side; failures end the command."""
        from apsvm.cli.scored import score_data
        from apsvm.cli.systems import of_data, of_runs
        from apsvm.data.labels import LabelOptions

        if self.qrels is not None:
            relevant_from = 1.0 if self.relevant_from is None else self.relevant_from
            ties = self.ties or RUN_TIES
            return of_runs(metrics, self.qrels, self.runs, ties, relevant_from, complete=self.complete)
        assert self.data is not None
        options = LabelOptions(positive_label=self.positive_label, relevant_from=self.relevant_from)
        if self.scheduler is not None:
            return evaluate_on_cluster(
                self.data,
                models,
                metrics,
                self.scheduler,
                self.read,
                options,
                leave_out_undefined=not self.metrics,
                ignore_unknown=self.ignore_unknown,
            )
        rankers = {path: model for path, model in models.items() if not model.lists_items}
        scored = score_data(self.data, rankers, self.scores, options, self.read, ignore_unknown=self.ignore_unknown)
        say_without_queries(scored.dataset, rankers)
        return of_data(metrics, scored, self.ties or "block", leave_out_undefined=not self.metrics)

    def show(self, entries: list[EvaluatedSystem], metrics: dict[str, Metric]) -> None:
        """Prints the entries, with intervals and tests if they are requested; failures end the command."""
        from apsvm.cli.output.evaluation import put_each, put_json, put_summary
        from apsvm.cli.systems import add_differences, add_intervals

        first = entries[0]
        if self.per_query and first.each == "class":
            raise click.UsageError("--per-query: each class is reported as it is, and the mean over its queries")
        if self.per_query and first.system.is_one_ranking:
            raise Failure(BAD_DATA, f"{self.data}: --per-query needs queries, and its rows have none (qid:)")
        if self.confidence is not None:
            add_intervals(entries, metrics, self.confidence)
        if self.compare:
            add_differences(entries, metrics, self.confidence)
        if self.as_json:
            put_json(entries, per_query=self.per_query)
            return
        if self.per_query or first.each == "class":
            put_each(entries)
        cutoffs = [int(name[2:]) for name in metrics if self.metrics and name.startswith("P@")]
        put_summary(entries, self.confidence, cutoffs)

    def evaluate_items(self, ranker: ItemRanker, metrics: Iterable[str]) -> None:
        """Prints the figures of a model of items; failures end the command."""
        from apsvm.cli.output.evaluation import put_items

        assert self.data is not None
        result = evaluate_items(
            ranker, self.data, self.read, list(metrics), known=self.known, ignore_unknown=self.ignore_unknown
        )
        put_items(result, as_json=self.as_json)


def _metrics(options: _EvaluateOptions, models: Iterable[Model]) -> dict[str, Metric]:
    """Canonical name → metric: those asked for; or the usual ones, and before them what the models were trained for."""
    from apsvm.metrics import trained_metric
    from apsvm.metrics.evaluate import parse_metrics

    if options.metrics:
        return _named(options.metrics)
    if options.runs:
        return parse_metrics(RUN_METRICS)
    trained = dict.fromkeys(trained_metric(model.header.metric).name for model in models)
    return parse_metrics([*(name for name in trained if name not in USUAL_METRICS), *USUAL_METRICS])


def _named(metrics: Sequence[str]) -> dict[str, Metric]:
    from apsvm.metrics import MetricError
    from apsvm.metrics.evaluate import parse_metrics

    try:
        return parse_metrics(metrics)
    except MetricError as error:
        raise click.UsageError(str(error)) from None


def _one_of_items(models: Mapping[str, Model], scores: tuple[str, ...]) -> ItemRanker | None:
    """The model, if it is one of items: then it must be alone, without options that are for rankings of rows."""
    from apsvm.models.items import ItemRanker

    for path, model in models.items():
        if isinstance(model, ItemRanker):
            if len(models) + len(scores) > 1:
                raise click.UsageError(f"{path} is {model.what}, which is evaluated alone")
            what = f"does not apply to {path}: it is {model.what}"
            refuse_if_given(("ties", "positive_label", "relevant_from", "per_query", "confidence", "compare"), what)
            return model
    return None
