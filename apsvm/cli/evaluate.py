"""``apsvm eval``: the ranking metrics of models, files of scores or TREC runs, side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from apsvm.cli.completion import MetricName
from apsvm.cli.items import HIDE, evaluate_items
from apsvm.cli.parameters import Number, plain_float
from apsvm.cli.reading import how_to_read, one_ranker, read_any_model, read_rows, score_rows
from apsvm.cli.shared import BAD_DATA, Failure, given_by_user, put, reading
from apsvm.data.read_options import ReadOptions
from apsvm.files import read_bytes
from apsvm.metrics import TIE_RULES

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.data.labels import LabelOptions, Target
    from apsvm.header import Labels
    from apsvm.metrics import Metric
    from apsvm.metrics.significance import Difference, System
    from apsvm.model import ItemRanker, LinearRanker, Model, RankerSet
    from apsvm.trainers.item_factors import ListEvaluation

AP_NAMES = {"ap": "AP", "voc2007": "AP(voc2007)", "voc2010": "AP(voc2010)"}
RUN_METRICS = ("AP", "nDCG", "nDCG@10", "P@5", "P@10", "R@100", "RR", "Rprec", "bpref")
RUN_TIES = "docno"
_EACH = {"query": "queries", "class": "classes"}
SWAPS = {"queries": 10_000, "one ranking": 1_000}


@click.command(name="eval")
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
    "-m", "--metric", "metrics", metavar="NAME", type=MetricName(), multiple=True,
    help="A metric to report in place of the usual ones; may be given more than once: AP, AP(voc2007), AP(voc2010), "
    "AUC, WMW, WMW(adjacent), WMW(0<1,0<2), P@5, R@100, Rprec, RR, RBP(0.8), bpref, nDCG, nDCG@10, nDCG(exp)@10, F1, "
    "F0.5.",
)  # fmt: skip
@click.option(
    "--ap", "ap", type=click.Choice(list(AP_NAMES)), multiple=True, default=("ap",), show_default=True,
    help="Mean precision at the positives; the PASCAL devkit's 11-point figure; the area under the monotone "
    "precision envelope. May be given more than once.",
)  # fmt: skip
@click.option(
    "-k", "--at", "cutoffs", type=click.IntRange(1, 10**9), multiple=True, default=(5, 10), show_default=True,
    help="Cut-offs of P@k. May be given more than once.",
)  # fmt: skip
@click.option(
    "--ties", type=click.Choice([*TIE_RULES, RUN_TIES]),
    help="Rows of equal score: as one block (scikit-learn; the expectation over their orders where AP is not "
    "concerned), negatives first, in file order, or, of a run, by document name as trec_eval does. "
    "[default: block; of runs docno]",
)  # fmt: skip
@click.option("--positive-label", type=Number(), help="The label that is positive. [default: the model's]")
@click.option(
    "--relevant-from", type=Number(), metavar="GRADE",
    help="Labels are grades: rows of this grade or a higher one are relevant, and nDCG and WMW read the grades. "
    "[default of runs: 1]",
)  # fmt: skip
@click.option(
    "--all-queries", is_flag=True,
    help="Average over every query, 0 where a metric is undefined, as trec_eval (and always of runs), and not only "
    "over those whose order can matter.",
)  # fmt: skip
@click.option("--per-query", is_flag=True, help="Report every query too.")
@click.option(
    "--confidence", type=Number(0, 1, open_low=True), metavar="LEVEL",
    help="Report bootstrap intervals of this level, say 0.95: over queries, or over the rows if there are none.",
)  # fmt: skip
@click.option("--bootstrap", type=click.IntRange(1), default=1000, show_default=True, help="Draws of the bootstrap.")
@click.option(
    "--compare", is_flag=True,
    help="Test whether the others differ from the first: paired randomisation, two-sided p, not corrected for the "
    "number of tests.",
)  # fmt: skip
@click.option(
    "--swaps", type=click.IntRange(1),
    help="Random swaps tried by --compare. [default: "
    + ", ".join(f"{count} for {what}" for what, count in SWAPS.items()) + "]",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the draws and swaps.")
@click.option(
    "--known", metavar="FILE", help="Of a model of items: what DATA's users like already, row by row. Without it …"
)
@click.option(
    "--hide", type=Number(0, 100, open_low=True), default=HIDE, show_default=True, metavar="PERCENT",
    help="… this much of each row's items, drawn by --seed, is hidden, to be found from the rest.",
)  # fmt: skip
@click.option("--ignore-unknown", is_flag=True, help="Ignore features the model does not know instead of refusing.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@how_to_read
def evaluate(
    data: str | None,
    models: tuple[str, ...],
    scores: tuple[str, ...],
    qrels: str | None,
    runs: tuple[str, ...],
    complete: bool,
    metrics: tuple[str, ...],
    ap: tuple[str, ...],
    cutoffs: tuple[int, ...],
    ties: str | None,
    positive_label: float | None,
    relevant_from: float | None,
    all_queries: bool,
    per_query: bool,
    confidence: float | None,
    bootstrap: int,
    compare: bool,
    swaps: int | None,
    seed: int,
    known: str | None,
    hide: float,
    ignore_unknown: bool,
    as_json: bool,
    read: ReadOptions,
) -> None:
    """Evaluate rankings of the rows of DATA, or TREC runs: average precision, ROC area, precision at k, NDCG, …

    With queries (qid:) each figure is the mean over the queries. Of a model that ranks items for users
    (--rows-as-users) it is the mean over the users: how high stand the items that were hidden, among all not known.

    A model of several classes (train --one-vs-rest), or a file of a score a class (predict --header), is evaluated
    class by class; the figures are then means over the classes, which also take the place of the queries in intervals
    and tests. --positive-label picks one class.

    \b
    apsvm eval test.svm --model a.model --model b.model --compare --confidence 0.95
    apsvm eval --qrels qrels.txt --run run.txt -m AP -m nDCG@10
    """
    _check_usage(data, models, scores, qrels, runs, complete, metrics, ties, positive_label, relevant_from, compare)
    if known is not None and known in (data, *models, "-"):
        raise click.UsageError("--known is another file than DATA and MODEL, and not standard input")
    if known is not None and given_by_user("hide"):
        raise click.UsageError("give either --known or --hide")
    from apsvm.data.labels import LabelOptions
    from apsvm.metrics import MetricError
    from apsvm.metrics.evaluate import parse_metrics
    from apsvm.metrics.significance import differences, intervals
    from apsvm.model import ItemRanker

    try:
        if metrics:
            parsed = parse_metrics(metrics)
        elif runs:
            parsed = parse_metrics(RUN_METRICS)
        else:
            parsed = parse_metrics([*(AP_NAMES[which] for which in ap), "AUC", *(f"P@{k}" for k in cutoffs), "nDCG"])
    except MetricError as error:
        raise click.UsageError(str(error)) from None
    if qrels is not None:
        entries = _of_runs(
            parsed, qrels, runs, ties or RUN_TIES, 1.0 if relevant_from is None else relevant_from, complete
        )
    else:
        assert data is not None
        rankers = {path: read_any_model(path) for path in models}
        of_items = _one_of_items(rankers, scores)
        if of_items is not None:
            found = evaluate_items(
                of_items, data, read, list(parsed), known=known, hide=hide, seed=seed, ignore_unknown=ignore_unknown
            )  # fmt: skip
            _put_items(found, as_json=as_json)
            return
        if known is not None or given_by_user("hide"):
            raise click.UsageError("--known and --hide are for a model of items (apsvm train --rows-as-users)")
        options = LabelOptions(positive_label=positive_label, relevant_from=relevant_from)
        of_rows = {path: ranker for path, ranker in rankers.items() if not isinstance(ranker, ItemRanker)}
        entries = _of_data(
            parsed, data, of_rows, scores, ties or "block", options, read,
            all_queries=all_queries, ignore_unknown=ignore_unknown,
        )  # fmt: skip
    first = entries[0]
    if per_query and first.each == "class":
        raise click.UsageError("--per-query: each class is reported as it is, and the mean over its queries")
    if per_query and first.system.is_one_ranking:
        raise Failure(BAD_DATA, f"{data}: --per-query needs queries, and its rows have none (qid:)")
    if confidence is not None:
        for entry in entries:
            entry.intervals = intervals(parsed, entry.system, confidence, bootstrap, seed)
    if compare:
        if swaps is None:
            swaps = SWAPS["one ranking" if first.system.is_one_ranking else "queries"]
        for entry in entries[1:]:
            try:
                entry.against_first = differences(
                    parsed, first.system, entry.system,
                    n_swaps=swaps, seed=seed, confidence=confidence, n_draws=bootstrap,
                )  # fmt: skip
            except MetricError as error:
                raise Failure(BAD_DATA, f"{first.name} and {entry.name}: {error}") from None
    if as_json:
        put(json.dumps(_as_json(entries, per_query), indent=1, ensure_ascii=False))
        return
    if per_query or first.each == "class":
        _put_queries(entries, list(parsed))
    _put_summary(entries, list(parsed), confidence, swaps if compare else None)


@dataclass
class _Entry:
    """A column of the report. extra : what else to count, name → number; rule : the tie rule's name; each : what the
    means are over, if they are"""

    name: str
    system: System
    rule: str
    extra: dict[str, int]
    each: str = "query"
    intervals: dict[str, tuple[float, float]] | None = None
    against_first: dict[str, Difference] | None = None


def _check_usage(
    data: str | None,
    models: tuple[str, ...],
    scores: tuple[str, ...],
    qrels: str | None,
    runs: tuple[str, ...],
    complete: bool,
    metrics: tuple[str, ...],
    ties: str | None,
    positive_label: float | None,
    relevant_from: float | None,
    compare: bool,
) -> None:
    if (qrels is None) != (not runs):
        raise click.UsageError("--qrels and --run go together")
    if (data is None) == (qrels is None):
        raise click.UsageError("give either DATA, with --model or --scores, or --qrels and --run")
    if qrels is not None and (models or scores):
        raise click.UsageError("--model and --scores are for DATA: a run has its own scores")
    if qrels is None and not (models or scores):
        raise click.UsageError("give --model or --scores")
    sources = [*models, *scores, *runs]
    if len({*sources}) < len(sources):
        raise click.UsageError("the same file is given twice")
    if [data, qrels, *sources].count("-") > 1:
        raise click.UsageError("only one of the files can be standard input")
    if compare and len(sources) < 2:
        raise click.UsageError("--compare needs at least two of --model, --scores or --run")
    if metrics and (given_by_user("ap") or given_by_user("cutoffs")):
        raise click.UsageError("--metric says all there is to report: --ap and -k do not go with it")
    if qrels is None and (complete or ties == RUN_TIES):
        raise click.UsageError(f"--complete and --ties {RUN_TIES} are for --qrels and --run")
    if qrels is not None and ties == "file":
        raise click.UsageError(f"a run's order is that of its scores: --ties is {RUN_TIES}, block or pessimistic")
    if qrels is not None and (positive_label is not None or given_by_user("ap") or given_by_user("cutoffs")):
        raise click.UsageError("--positive-label, --ap and -k are for DATA; of runs see --relevant-from and --metric")
    if positive_label is not None and relevant_from is not None:
        raise click.UsageError("give either --positive-label or --relevant-from")


def _one_of_items(rankers: Mapping[str, Model], scores: tuple[str, ...]) -> ItemRanker | None:
    """The model, if it is one of items: then it must be alone, without options that are for rankings of rows."""
    from apsvm.model import ItemRanker

    for path, ranker in rankers.items():
        if isinstance(ranker, ItemRanker):
            if len(rankers) + len(scores) > 1:
                raise click.UsageError(f"{path} is {ranker.what}, which is evaluated alone")
            given = ("ties", "positive_label", "relevant_from", "all_queries", "per_query", "confidence", "compare")
            for name in given:
                if given_by_user(name):
                    raise click.UsageError(f"--{name.replace('_', '-')} does not apply to {path}: it is {ranker.what}")
            return ranker
    return None


@dataclass(frozen=True)
class Scored:
    """Rows and what models and files of scores give them, by path: (n,) float64, or of several ``classes`` (k,) float64
    a column each, (n, k). ``of_models`` : what labels mean to the models, if they agree."""

    dataset: Dataset
    scores: Mapping[str, Any]
    classes: Mapping[str, Any]
    options: LabelOptions
    of_models: Labels | None

    def labels(self, path: str) -> Any:
        """(n, k) bool, whether the rows have the classes of ``path``."""
        import numpy as np

        return np.stack([self.dataset.have(label) for label in self.classes[path].tolist()], axis=1)

    def target(self, metrics: Mapping[str, Metric]) -> Target:
        """What the labels mean to the metrics: as asked for, else as to the models; failures end the command."""
        from apsvm.data.labels import judge

        graded = all(metric.graded for metric in metrics.values())
        with reading(self.dataset.source):
            return judge(self.dataset, self.options, self.of_models, graded_metrics=graded)


def score_data(
    data: str,
    models: Mapping[str, LinearRanker | RankerSet],
    scores: tuple[str, ...],
    options: LabelOptions,
    read: ReadOptions,
    *,
    ignore_unknown: bool,
) -> Scored:
    """DATA read and scored by every model and file; failures end the command."""
    from apsvm.model import RankerSet

    read_already: dict[tuple[bool, int, bool], Dataset] = {}
    columns_of: dict[str, Any] = {}
    classes: dict[str, Any] = {}
    rankers: list[LinearRanker] = []
    for path, model in models.items():
        ranker = model if options.positive_label is None else one_ranker(model, options.positive_label, path)
        if isinstance(ranker, RankerSet):
            classes[path] = ranker.classes
        else:
            rankers.append(ranker)
        key = (ranker.zero_based, ranker.width, ranker.header.labels.several)
        if key in read_already:
            columns_of[path] = ranker.score(read_already[key].X)
            continue
        if read_already and data == "-":
            raise Failure(
                BAD_DATA, f"{path}: it has other features than {next(iter(models))}, and standard input is read once"
            )
        read_already[key], columns_of[path] = score_rows(ranker, data, read, ignore_unknown=ignore_unknown)
    tables = {path: _read_scores(path) for path in scores}
    if read_already:
        dataset = next(iter(read_already.values()))
    else:
        several = any(table.shape[1] > 1 for table in tables.values())
        dataset = read_rows(data, read, multilabel=several, any_base=True)
    for path, table in tables.items():
        columns_of[path], labels = _scores_of(table, path, dataset, options.positive_label)
        if labels is not None:
            classes[path] = labels
    if classes and len(classes) < len(columns_of):
        alone = next(path for path in columns_of if path not in classes)
        raise click.UsageError(f"{next(iter(classes))} ranks several classes and {alone} only one")
    return Scored(dataset, columns_of, classes, options, None if classes else _agreed(rankers, options))


def _agreed(rankers: list[LinearRanker], options: LabelOptions) -> Labels | None:
    """What labels mean to all of the rankers; None where there are none, or the user said so."""
    from apsvm.data.labels import LabelOptions

    if not rankers or options != LabelOptions():
        return None
    first, *others = (ranker.header.labels for ranker in rankers)
    if not all(first.means_as(other) for other in others):
        raise click.UsageError(
            "the models have different positive labels: choose by --positive-label or --relevant-from"
        )
    return first


def _of_data(
    metrics: dict[str, Metric],
    data: str,
    models: Mapping[str, LinearRanker | RankerSet],
    scores: tuple[str, ...],
    ties: str,
    options: LabelOptions,
    read: ReadOptions,
    *,
    all_queries: bool,
    ignore_unknown: bool,
) -> list[_Entry]:
    from apsvm.metrics import MetricError
    from apsvm.metrics.evaluate import Judgements, number_groups, summarise
    from apsvm.metrics.significance import System

    scored = score_data(data, models, scores, options, read, ignore_unknown=ignore_unknown)
    dataset = scored.dataset
    if scored.classes:
        if options.relevant_from is not None or all_queries:
            raise click.UsageError("--relevant-from and --all-queries are not for several classes")
        return [_of_classes(metrics, scored, path, ties) for path in scored.scores]
    target = scored.target(metrics)
    entries = []
    for path, values in scored.scores.items():
        try:
            ids, codes = (None, None) if dataset.groups is None else number_groups(dataset.groups, values.size)
            rows = Judgements(target.judgements, target.lowest_relevant, codes, ids)
            result = summarise(metrics, rows.table(values, ties), ids, ties, all_groups=all_queries)
        except MetricError as error:
            raise Failure(BAD_DATA, f"{dataset.source}: {error}") from None
        entries.append(_Entry(path, System(values, rows, result), ties, {}))
    return entries


def _of_classes(metrics: dict[str, Metric], scored: Scored, path: str, ties: str) -> _Entry:
    """Every class's own ranking of the rows, column by column of the scores (n, k); classes take the queries' place."""
    import numpy as np

    from apsvm.metrics import MetricError
    from apsvm.metrics.classes import evaluate_classes
    from apsvm.metrics.evaluate import Judgements
    from apsvm.metrics.significance import System

    dataset, scores, classes = scored.dataset, scored.scores[path], scored.classes[path]
    labels = scored.labels(path)
    try:
        result = evaluate_classes(list(metrics.values()), scores, labels, classes, ties, groups=dataset.groups)
    except MetricError as error:
        raise Failure(BAD_DATA, f"{dataset.source}: {error}") from None
    unranked = np.setdiff1d(dataset.classes(), classes)
    return _Entry(path, System(scores, Judgements(labels), result), ties, {"classes_unranked": unranked.size}, "class")


def _of_runs(
    metrics: dict[str, Metric], qrels: str, runs: tuple[str, ...], ties: str, relevant_from: float, complete: bool
) -> list[_Entry]:
    import math

    from apsvm.data.trec import join, read_qrels, read_run
    from apsvm.metrics.evaluate import Judgements, summarise
    from apsvm.metrics.significance import System

    with reading(qrels):
        judgements = read_qrels(qrels)
    entries = []
    for path in runs:
        with reading(path):
            run = join(judgements, read_run(path), complete=complete)
        rows = Judgements(
            run.grades, relevant_from, run.codes, run.queries, run.ranked, run.judged,
            # what is retrieved is predicted to be relevant
            threshold=-math.inf,
        )  # fmt: skip
        # The rows stand in trec_eval's order.
        rule = "file" if ties == RUN_TIES else ties
        result = summarise(metrics, rows.table(run.scores, rule), run.queries, rule, all_groups=True)
        extra = {"queries_missing": run.missing_queries, "queries_unjudged": run.unjudged_queries}
        entries.append(_Entry(path, System(run.scores, rows, result), ties, extra))
    return entries


def _as_json(entries: list[_Entry], per_query: bool) -> dict[str, Any]:
    import math
    from dataclasses import asdict

    systems = {}
    for entry in entries:
        result = entry.system.evaluation
        shown: dict[str, Any] = {"metrics": result.values}
        if entry.intervals is not None:
            shown["intervals"] = entry.intervals
        shown |= {
            "rows": result.n_rows,
            "positives": result.n_positives,
            f"{_EACH[entry.each]}": result.n_groups,
            f"{_EACH[entry.each]}_skipped": result.groups_skipped,
            **entry.extra,
            "tied_blocks": result.tied_blocks,
            "tied_rows": result.tied_rows,
            "ties": entry.rule,
        }
        if (per_query or entry.each == "class") and result.groups is not None:
            shown[f"per_{entry.each}"] = {
                _name_of(query): {
                    name: None if math.isnan(values[i]) else float(values[i])
                    for name, values in result.in_group.items()
                }
                for i, query in enumerate(result.groups.tolist())
            }
        if entry.against_first is not None:
            shown["against_first"] = {name: asdict(found) for name, found in entry.against_first.items()}
        systems[entry.name] = shown
    return systems[entries[0].name] if len(entries) == 1 else {"systems": systems}


def _put_queries(entries: list[_Entry], names: list[str]) -> None:
    """A line a query (a class), or a query and system; ``-`` where the query is left out of the mean."""
    import math

    rows = [[entries[0].each, *(["system"] if len(entries) > 1 else []), *names]]
    by_query: dict[Any, list[tuple[str, int, Any]]] = {}
    for entry in entries:
        result = entry.system.evaluation
        assert result.groups is not None
        for i, query in enumerate(result.groups.tolist()):
            by_query.setdefault(query, []).append((entry.name, i, result))
    for query in sorted(by_query):
        for name, i, result in by_query[query]:
            values = [result.in_group[metric][i] for metric in names]
            shown = ["-" if math.isnan(value) else f"{value:.6f}" for value in values]
            rows.append([_name_of(query), *([name] if len(entries) > 1 else []), *shown])
    n_left = len(rows[0]) - len(names)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = (
            cell.ljust(width) if i < n_left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        put("  ".join(cells).rstrip())
    put("")


def _put_summary(entries: list[_Entry], names: list[str], confidence: float | None, swaps: int | None) -> None:
    first = max(12, *(len(name) for name in names))
    columns = [[_shown(entry, name) for name in names] for entry in entries]
    widths = [max(len(entry.name), *map(len, column)) for entry, column in zip(entries, columns, strict=True)]
    if len(entries) > 1:
        put(
            f"{'metric':<{first}} " + "  ".join(f"{e.name:<{w}}" for e, w in zip(entries, widths, strict=True)).rstrip()
        )
    for i, name in enumerate(names):
        cells = "  ".join(f"{column[i]:<{w}}" for column, w in zip(columns, widths, strict=True))
        put(f"{name:<{first}} {cells.rstrip()}")
    for entry in entries[1:]:
        if entry.against_first is not None:
            _put_comparison(entries[0], entry, entry.against_first, first, confidence)
    if confidence is not None:
        put(f"{'intervals':<{first}} bootstrap, {100 * confidence:g} % of the draws")
    if swaps is not None:
        put(f"{'p':<{first}} two-sided, paired randomisation, at most {swaps} swaps, not corrected for many tests")
    results = [entry.system.evaluation for entry in entries]
    several = len(entries) > 1
    for entry, result in zip(entries, results, strict=True):
        whose = f"{entry.name}: " if several else ""
        of = "labels" if entry.each == "class" else "positive"
        if entry is entries[0] or entry.extra:
            put(f"{'rows':<{first}} {whose if entry.extra else ''}{result.n_rows} ({result.n_positives} {of})")
            if result.n_groups:
                put(f"{_EACH[entry.each]:<{first}} {whose if entry.extra else ''}{_queries(entry)}")
        blocks = f"{result.tied_blocks} block{'' if result.tied_blocks == 1 else 's'}"
        tied = f"{result.tied_rows} rows in {blocks}" if result.tied_blocks else "none"
        put(f"{'ties':<{first}} {whose}{tied} of equal score across the classes; rule: {entry.rule}")


def _queries(entry: _Entry) -> str:
    """How many queries the means are over, and what became of the others."""
    import numpy as np

    result = entry.system.evaluation
    used = result.n_groups - result.groups_skipped
    if entry.each == "class":
        unranked = entry.extra["classes_unranked"]
        shown = f"{used} averaged, {result.groups_skipped} without both positive and negative rows left out"
        return shown + (f"; {unranked} of the data's classes are not ranked" if unranked else "")
    if entry.extra:
        passed = f"{entry.extra['queries_missing']} missing, {entry.extra['queries_unjudged']} not judged"
        return f"{used} averaged; {passed}"
    shown = f"{used} averaged, {result.groups_skipped} without both classes left out"
    for name, values in result.in_group.items():
        n = int(np.count_nonzero(~np.isnan(values)))
        if n != used:
            shown += f"; {name} over {n}"
    return shown


def _shown(entry: _Entry, name: str) -> str:
    value = f"{entry.system.evaluation.values[name]:.6f}"
    if entry.intervals is None:
        return value
    low, high = entry.intervals[name]
    return f"{value} [{low:.4f}, {high:.4f}]"


def _put_comparison(a: _Entry, b: _Entry, found: dict[str, Difference], first: int, confidence: float | None) -> None:
    put(f"{b.name} against {a.name}")
    with_queries = not a.system.is_one_ranking
    interval = f"{f'{100 * (confidence or 0):g} % interval':<20}  " if confidence is not None else ""
    put(f"{'metric':<{first}} {'effect':>9}  {interval}{'p':>8}{'  better  worse' if with_queries else ''}")
    for name, d in found.items():
        line = f"{name:<{first}} {d.effect:>+9.6f}  "
        if d.low is not None and d.high is not None:
            line += f"{f'[{d.low:+.4f}, {d.high:+.4f}]':<20}  "
        line += f"{d.p:>8.6f}"
        if with_queries:
            line += f"  {d.better:>6}  {d.worse:>5}"
        put(line)


def _put_items(result: ListEvaluation, *, as_json: bool) -> None:
    if as_json:
        counts = {"users": result.users, "users_skipped": result.users_skipped}
        put(json.dumps({"metrics": result.values, **counts}, indent=1))
        return
    for name, value in result.values.items():
        put(f"{name:<12} {value:.6f}")
    put(f"{'users':<12} {result.users} averaged, {result.users_skipped} without a hidden item left out")


def _name_of(query: float | str) -> str:
    """A query's id or a class's label, as in the file."""
    return str(query).removesuffix(".0") if isinstance(query, float) else str(query)


def _read_scores(path: str) -> Any:
    """Finite numbers, as many in each line: (lines, columns) float64."""
    import math

    import numpy as np

    with reading(path):
        content = read_bytes(path)
    name = "<stdin>" if path == "-" else path
    rows: list[list[float]] = []
    lines = content.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, start=1):
        words = line.split() or [line]
        try:
            row = [plain_float(word.decode()) for word in words]
        except ValueError:
            row = [math.nan]
        if not all(map(math.isfinite, row)) or (rows and len(row) != len(rows[0])):
            shown = line[:40].decode("utf-8", "backslashreplace").strip()
            expected = "one finite number" if not rows or len(rows[0]) == 1 else f"{len(rows[0])} finite numbers"
            raise Failure(BAD_DATA, f"{name}:{number}: expected {expected}, found {shown!r}")
        rows.append(row)
    return np.array(rows, dtype=np.float64).reshape(len(rows), -1 if rows else 1)


def _scores_of(table: Any, path: str, dataset: Dataset, positive_label: float | None) -> tuple[Any, Any]:
    """The scores in a table as ``apsvm predict`` writes it: (n,) and None, or (n, k) and the classes of its columns."""
    name = "<stdin>" if path == "-" else path
    n_rows = dataset.X.shape[0]
    n, k = table.shape
    if n != n_rows and not (k > 1 and n == n_rows + 1):
        raise Failure(BAD_DATA, f"{name}: expected {n_rows} scores, one for each row of {dataset.source}, found {n}")
    if k == 1:
        return table[:, 0], None
    classes = dataset.classes()
    if n > n_rows:
        classes, table = table[0], table[1:]
        if len(set(classes.tolist())) < k:
            raise Failure(BAD_DATA, f"{name}:1: expected the label of each column, each once")
    elif classes.size != k:
        raise Failure(
            BAD_DATA,
            f"{name}: expected a column for each of the {classes.size} classes of {dataset.source}, found {k}; "
            "a line of their labels at the top (apsvm predict --header) says which they are",
        )
    if positive_label is None:
        return table, classes
    if positive_label not in classes:
        raise Failure(BAD_DATA, f"{name}: it has no column for the class {_name_of(positive_label)}")
    return table[:, classes == positive_label][:, 0], None
