"""``apsvm eval``: the ranking metrics of a model or of a file of scores."""

from __future__ import annotations

import json
from typing import Any

import click

from apsvm.cli.shared import (
    BAD_DATA,
    Failure,
    Number,
    how_to_read,
    plain_float,
    put,
    read_model,
    read_rows,
    reading,
    score_rows,
)
from apsvm.files import standard_input
from apsvm.metrics import TIE_RULES

AP_NAMES = {"ap": "AP", "voc2007": "AP(voc2007)", "voc2010": "AP(voc2010)"}


@click.command(name="eval")
@click.argument("data", metavar="DATA")
@click.option("--model", metavar="MODEL", help="Score DATA with this model …")
@click.option("--scores", metavar="FILE", help="… or take one score a row from this file.")
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
    "--ties", type=click.Choice(list(TIE_RULES)), default="block", show_default=True,
    help="Rows of equal score: as one block (scikit-learn), negatives first, or in file order.",
)  # fmt: skip
@click.option("--positive-label", type=Number(), help="The label that is positive. [default: the model's]")
@click.option("--ignore-unknown", is_flag=True, help="Ignore features the model does not know instead of refusing.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@how_to_read
def evaluate(
    data: str,
    model: str | None,
    scores: str | None,
    ap: tuple[str, ...],
    cutoffs: tuple[int, ...],
    ties: str,
    positive_label: float | None,
    ignore_unknown: bool,
    as_json: bool,
    dtype: str,
    sort_features: bool,
) -> None:
    """Evaluate a ranking of the rows of DATA: average precision, ROC area, precision at k, NDCG, F1 at zero.

    With queries (qid:) each figure is the mean over the queries that have both classes.
    """
    if (model is None) == (scores is None):
        raise click.UsageError("give either --model or --scores")
    if [data, model, scores].count("-") > 1:
        raise click.UsageError("only one of the files can be standard input")

    from apsvm.metrics import MetricError
    from apsvm.metrics.evaluate import evaluate as evaluate_scores

    found: Any
    if model is not None:
        ranker = read_model(model)
        dataset, found = score_rows(
            ranker, data, ignore_unknown=ignore_unknown, dtype=dtype, sort_features=sort_features
        )
        if positive_label is None:
            positive_label = ranker.positive_label
    else:
        assert scores is not None
        # The features are not looked at: any index base will do.
        dataset = read_rows(data, dtype=dtype, sort_features=sort_features, zero_based=True)
        found = _read_scores(scores, dataset.X.shape[0], dataset.source)
    with reading(dataset.source):
        relevant = dataset.positives(positive_label)
    names = [*(AP_NAMES[which] for which in ap), "AUC", *(f"P@{k}" for k in cutoffs), "nDCG", "F1"]
    try:
        result = evaluate_scores(names, found, relevant, groups=dataset.groups, ties=ties)
    except MetricError as error:
        raise Failure(BAD_DATA, f"{dataset.source}: {error}") from None

    if as_json:
        counts = {
            "rows": result.n_rows,
            "positives": result.n_positives,
            "queries": result.n_groups,
            "queries_skipped": result.groups_skipped,
            "tied_blocks": result.tied_blocks,
            "tied_rows": result.tied_rows,
            "ties": result.ties,
        }
        put(json.dumps({"metrics": result.values, **counts}, indent=1))
        return
    for name, value in result.values.items():
        put(f"{name:<12} {value:.6f}")
    put(f"{'rows':<12} {result.n_rows} ({result.n_positives} positive)")
    if result.n_groups:
        used = result.n_groups - result.groups_skipped
        put(f"{'queries':<12} {used} averaged, {result.groups_skipped} without both classes left out")
    tied = f"{result.tied_rows} rows in {result.tied_blocks} blocks" if result.tied_blocks else "none"
    put(f"{'ties':<12} {tied} of equal score across the classes; rule: {result.ties}")


def _read_scores(path: str, n_rows: int, data: str) -> list[float]:
    """One finite number a line, as many as the data has rows."""
    import math

    with reading(path):
        if path == "-":
            content = standard_input().read()
        else:
            with open(path, "rb") as stream:
                content = stream.read()
    name = "<stdin>" if path == "-" else path
    values = []
    lines = content.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, start=1):
        try:
            value = plain_float(line.decode())
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            shown = line[:40].decode("utf-8", "backslashreplace").strip()
            raise Failure(BAD_DATA, f"{name}:{number}: expected one finite number, found {shown!r}")
        values.append(value)
    if len(values) != n_rows:
        raise Failure(BAD_DATA, f"{name}: expected {n_rows} scores, one for each row of {data}, found {len(values)}")
    return values
