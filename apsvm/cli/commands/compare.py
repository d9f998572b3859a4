"""``apsvm compare``: the changes of a new model in the first rows, and a test of its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from apsvm.cli.help import HelpfulCommand
from apsvm.cli.options.table import files, options
from apsvm.cli.output.lists import known_relevance, names_of_queries, names_of_rows
from apsvm.cli.output.progress import Bar
from apsvm.cli.reading import how_to_read, read_any_model
from apsvm.cli.scored import score_data
from apsvm.cli.shared import BAD_DATA, WORSE, Failure, put, say
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.cli.scored import Scored
    from apsvm.data.dataset import Dataset
    from apsvm.models.base import Model

#: A difference with p up to this is called more than chance.
CHANCE = 0.05


@click.command(cls=HelpfulCommand)
@files("OLD", "NEW", "DATA")
@options(top={"default": 100, "show_default": True, "help": "First rows to look at; where rows have queries, of each."})
@how_to_read
def compare(old: str, new: str, data: str, top: int, read: ReadOptions) -> int:
    """Tell how NEW changes the first rows of DATA, as OLD ranks them.

    Prints a line for each row that enters or leaves them, with its places by OLD and NEW, the longest moves first.
    Where DATA has labels, also the positives found in the first rows, and the metrics of both with the p of a
    paired randomisation test, as apsvm eval --compare has it. The models need not have the same columns.

    OLD and NEW are models. Files of scores are compared by apsvm eval DATA --scores FILE --compare.

    Ends with exit code 6 where NEW is worse by the metric that its loss is for.
    """
    from apsvm.data.labels import LabelOptions

    if data == "-":
        raise click.UsageError("DATA may be read once for each model: name a file")
    if old == new:
        raise click.UsageError("OLD and NEW are the same file")
    models = {old: read_any_model(old), new: read_any_model(new)}
    for path, model in models.items():
        if model.has_classes or model.lists_items:
            raise Failure(BAD_DATA, f"{path}: it is {model.description}: compare is for models of one ranking")
    scored = score_data(data, models, (), LabelOptions(), read, ignore_unknown=False, unlabelled=True)
    relevant = known_relevance(scored.dataset, models[new])
    _put_moves(scored, relevant, top)
    if relevant is None:
        say(f"{data}: not every row has a label, or all have the same: only places are compared")
        return 0
    return WORSE if _put_metrics(scored, models[new], top) else 0


def _put_moves(scored: Scored, relevant: NDArray[np.bool_] | None, top: int) -> None:
    """Prints a line per row that comes in or goes out, and the positives found."""
    import numpy as np

    from apsvm.cli.output.evaluation import put_table

    rows = scored.dataset
    old, new = (_places(rows, scores) for scores in scored.scores.values())
    names, queries, moved = names_of_rows(rows), names_of_queries(rows), np.abs(new - old)
    was, remains = old <= top, new <= top
    heading = ["", *([] if queries is None else ["query"]), "row", "old", "new"]
    lines = [heading if relevant is None else [*heading, "label"]]
    for word, changed in (("in", remains & ~was), ("out", was & ~remains)):
        found = np.flatnonzero(changed)
        for row in found[np.argsort(-moved[found], kind="stable")].tolist():
            query = [] if queries is None else [queries[row]]
            label = [] if relevant is None else ["positive" if relevant[row] else "negative"]
            lines.append([word, *query, names[row], str(old[row]), str(new[row]), *label])
    if len(lines) > 1:
        put_table(lines, left=len(heading) - 2)
    of_each = "" if queries is None else " of each query"
    first, changes = f"the first {top:,}{of_each}", int((remains & ~was).sum())
    put(f"{first}: {changes:,} of {int(was.sum()):,} {rows.unit} are new")
    if relevant is not None:
        before, after = (int(relevant[first_rows].sum()) for first_rows in (was, remains))
        put(f"found in {first}: {before:,} of {int(relevant.sum()):,} positive {rows.unit} by OLD, {after:,} by NEW")


def _places(rows: Dataset, scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """(n,) places in each query, from 1."""
    from apsvm.report.first_rows import best_first

    order, rank = best_first(rows, scores)
    places = rank.copy()
    places[order] = rank
    return places


def _put_metrics(scored: Scored, new: Model, top: int) -> bool:
    """Prints each metric of both models and the test of its difference; True if NEW is worse by its trained metric."""
    from apsvm.cli.scored import add_differences, of_data
    from apsvm.metrics import trained_metric
    from apsvm.metrics.evaluate import parse_metrics

    metrics = parse_metrics(list(dict.fromkeys([trained_metric(new.header.metric).name, "AP", f"P@{top}"])))
    entries = of_data(metrics, scored, "block", leave_out_undefined=True)
    with Bar("testing the difference by drawing rows anew"):
        add_differences(entries, metrics, None)
    differences = entries[1].against_first or {}
    for name, one in differences.items():
        verdict = f"{abs(one.effect):.4f} {'better' if one.effect > 0.0 else 'worse'}"
        if one.effect == 0.0:
            verdict = "as good as OLD"
        elif one.p is None:
            verdict += ", on too few to tell from chance (no p)"
        else:
            verdict += f", {'which may be' if one.p > CHANCE else 'more than'} chance (p = {one.p:.3g})"
        before, after = (entry.system.evaluation.values[name] for entry in entries)
        put(f"{name}: NEW is {verdict}; {before:.4f} by OLD, {after:.4f} by NEW")
    return next(iter(differences.values())).effect < 0.0
