"""Output of ``apsvm eval``: tables for people, one JSON object for programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from apsvm._support.shown import as_json, printable
from apsvm._support.types import JsonDict
from apsvm.cli.shared import put
from apsvm.models.decision import line_of

if TYPE_CHECKING:
    from apsvm.cli.scored import EvaluatedSystem
    from apsvm.metrics.significance import Difference
    from apsvm.models.header import Threshold

#: Plurals of the units that means are over.
_PLURAL = {"query": "queries", "class": "classes"}
#: The least width of the names at the left of the summary.
_LEFT = 11
#: With fewer queries or rows of a kind, an interval is called too narrow. For nine numbers from a beta
#: distribution, a 95 % interval holds the mean 89 times of 100; for five, 83 times.
_FEW = 10


def put_json(entries: Sequence[EvaluatedSystem], *, per_query: bool) -> None:
    """Writes one JSON object: the entry's, or each entry's by its name."""
    systems = {entry.name: _entry_as_json(entry, per_query=per_query) for entry in entries}
    put(as_json(systems[entries[0].name] if len(entries) == 1 else {"systems": systems}))


def _entry_as_json(entry: EvaluatedSystem, *, per_query: bool) -> JsonDict:
    result, several, by_class = entry.system.evaluation, _PLURAL[entry.each], entry.each == "class"
    content: JsonDict = {
        "metrics": result.values,
        "intervals": entry.intervals,
        "rows": result.n_rows,
        "positives": result.n_positives,
        several: result.n_groups,
        f"{several}_skipped": result.groups_skipped,
        **entry.counts,
        "tied_blocks": result.tied_blocks,
        "tied_rows": result.tied_rows,
        "ties": entry.ties,
    }
    if entry.thresholds:
        values = [line_of(threshold) for threshold in entry.thresholds]
        content |= {"thresholds": values} if by_class else {"threshold": values[0]}
    if (per_query or by_class) and result.groups is not None:
        content[f"per_{entry.each}"] = {
            _name_of(query, entry.words): {
                name: None if math.isnan(values[at]) else float(values[at]) for name, values in result.in_group.items()
            }
            for at, query in enumerate(result.groups.tolist())
        }
    if entry.against_first is not None:
        content["against_first"] = {name: asdict(difference) for name, difference in entry.against_first.items()}
    return {name: value for name, value in content.items() if value is not None}


def put_each(entries: Sequence[EvaluatedSystem]) -> None:
    """Prints a line per query (or class), or per query and system; ``-`` for queries left out of the mean."""
    names, several = list(entries[0].system.evaluation.values), len(entries) > 1
    lines: dict[float, list[list[str]]] = {}
    for entry in entries:
        result, system = entry.system.evaluation, [entry.name] if several else []
        assert result.groups is not None
        for at, query in enumerate(result.groups.tolist()):
            values = [result.in_group[name][at] for name in names]
            figures = ["-" if math.isnan(value) else f"{value:.6f}" for value in values]
            lines.setdefault(query, []).append([_name_of(query, entry.words), *system, *figures])
    heading = [entries[0].each, *(["system"] if several else []), *names]
    rows = [heading, *(line for query in sorted(lines) for line in lines[query])]
    put_table(rows, left=len(rows[0]) - len(names))
    put("")


def put_table(rows: Sequence[Sequence[str]], *, left: int) -> None:
    """Prints a table; the first ``left`` columns are flush left, the others flush right."""
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) if at < left else cell.rjust(width)
                 for at, (cell, width) in enumerate(zip(row, widths, strict=True))]  # fmt: skip
        put("  ".join(cells).rstrip())


def put_summary(entries: Sequence[EvaluatedSystem], confidence: float | None, cutoffs: Sequence[int] = ()) -> None:
    """Prints a column per system: the metrics, the positives found in the first rows, and counts; then tested
    differences."""
    columns = [_column(entry, cutoffs) for entry in entries]
    rows = [["metric", *(entry.name for entry in entries)]] if len(entries) > 1 else []
    for name in dict.fromkeys(name for column in columns for name in column):
        rows.append([name.ljust(_LEFT), *(column.get(name, "") for column in columns)])
    put_table(rows, left=len(rows[0]))
    for entry in entries[1:]:
        if entry.against_first is not None:
            _put_comparison(entries[0], entry, entry.against_first, confidence)
    if confidence is not None:
        put(f"intervals: bootstrap, {100 * confidence:g} % of the draws{_too_few(entries[0])}")
    elif entries[-1].against_first is not None:
        put("p: two-sided, paired randomisation, not corrected for many tests; -: too few differ")


def _column(entry: EvaluatedSystem, cutoffs: Sequence[int]) -> dict[str, str]:
    """Names and texts of a system's metrics and counts."""
    result, counts = entry.system.evaluation, entry.counts
    column = {name: f"{value:.6f}" for name, value in result.values.items()}
    for name, (low, high) in (entry.intervals or {}).items():
        column[name] += f" [{low:.4f}, {high:.4f}]"
    for k in cutoffs if entry.system.is_one_ranking else ():
        column[f"found in {k}"] = f"{result.values[f'P@{k}'] * k:.6g} of {result.n_positives}"
    if entry.thresholds:
        column["threshold"] = _thresholds_in_words(entry.thresholds)
    column[entry.unit] = f"{result.n_rows} ({result.n_positives} {'labels' if entry.each == 'class' else 'positive'})"
    if result.n_groups:
        column[_PLURAL[entry.each]] = _averaged(entry)
    if "documents_retrieved" in counts:
        column["documents"] = f"{counts['documents_retrieved']} retrieved, {counts['documents_unjudged']} not judged"
    if result.tied_blocks:
        column["tied rows"] = f"{result.tied_rows} (rule: {entry.ties})"
    return column


def _too_few(entry: EvaluatedSystem) -> str:
    """A remark on intervals of few queries or classes, or of few rows of one kind."""
    evaluation = entry.system.evaluation
    count, units = min((evaluation.n_positives, "positives"), (evaluation.n_rows - evaluation.n_positives, "negatives"))
    if evaluation.groups is not None:
        count, units = evaluation.n_groups - evaluation.groups_skipped, _PLURAL[entry.each]
    return f"; likely too narrow: fewer than {_FEW} {units} ({count})" if count < _FEW else ""


def _thresholds_in_words(thresholds: Sequence[Threshold | None]) -> str:
    """The thresholds above which rows are called positive."""
    first = thresholds[0]
    if len(thresholds) > 1:
        return "each class's own, 0 for those without"
    return "0, as there is none" if first is None else f"{first.value:.6g}, the model's ({first.rule})"


def _put_comparison(
    a: EvaluatedSystem, b: EvaluatedSystem, differences: Mapping[str, Difference], confidence: float | None
) -> None:
    """Prints a line per metric: effect, and p or the interval, over the queries that both systems have."""
    better = [] if a.system.is_one_ranking else ["better", "worse"]
    put(f"\n{b.name} against {a.name}" + (f", over the {_PLURAL[a.each]} that both have" if better else ""))
    tested = "p" if confidence is None else f"{100 * confidence:g} % interval"
    rows = [["metric".ljust(_LEFT), "effect", tested, *better]]
    for name, d in differences.items():
        tested = "-" if d.p is None else f"{d.p:.6f}"
        if d.low is not None and d.high is not None:
            tested = f"[{d.low:+.4f}, {d.high:+.4f}]"
        rows.append([name, f"{d.effect:+.6f}", tested, *([str(d.better), str(d.worse)] if better else [])])
    put_table(rows, left=1)


def _averaged(entry: EvaluatedSystem) -> str:
    """Number of queries or classes averaged, of those left out, and of those of each metric if it is another."""
    import numpy as np

    result, counts = entry.system.evaluation, entry.counts
    used = result.n_groups - result.groups_skipped
    text = f"{used} averaged"
    if result.groups_skipped:
        text += f", {result.groups_skipped} without positive or negative rows left out"
    if counts.get("classes_unranked"):
        text += f"; {counts['classes_unranked']} of the data's classes are not ranked"
    if "queries_missing" in counts:
        return f"{text}; {counts['queries_missing']} missing, {counts['queries_unjudged']} not judged"
    of_metrics = {name: np.count_nonzero(~np.isnan(values)) for name, values in result.in_group.items()}
    return text + "".join(f"; {name} over {n}" for name, n in of_metrics.items() if n != used)


def _name_of(query: float | str, words: Sequence[str]) -> str:
    """A query's id or a class's label, as in the file; its word if it has one."""
    if words:
        return words[int(query)]
    return str(query).removesuffix(".0") if isinstance(query, float) else str(query)
