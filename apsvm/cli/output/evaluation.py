"""Output of ``apsvm eval``: tables for people, one JSON object for programs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from apsvm._support.shown import as_json, printable
from apsvm._support.types import JsonDict
from apsvm.cli.scored import swaps_of
from apsvm.cli.shared import put
from apsvm.models.decision import line_of

if TYPE_CHECKING:
    from apsvm.cli.scored import EvaluatedSystem
    from apsvm.metrics.significance import Difference
    from apsvm.models.header import Threshold

#: Plurals of the units that means are over.
_PLURAL = {"query": "queries", "class": "classes"}
#: The width of the names at the left of the summary.
_LEFT = 12
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
        "classified": entry.classified,
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
    for line in _aligned(rows, left):
        put(line)


def _aligned(rows: Sequence[Sequence[str]], left: int) -> Iterator[str]:
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def put_summary(entries: Sequence[EvaluatedSystem], confidence: float | None, cutoffs: Sequence[int] = ()) -> None:
    """Prints the metrics, a column per system, the positives found in the first rows, tested differences, and
    counts."""
    left = max(_LEFT, *map(len, entries[0].system.evaluation.values))
    for name, text in _summary(entries, confidence, cutoffs):
        put(f"{name:<{left}} {text}".rstrip())


def _summary(
    entries: Sequence[EvaluatedSystem], confidence: float | None, cutoffs: Sequence[int]
) -> Iterator[tuple[str, str]]:
    figures = {} if len(entries) == 1 else {"metric": [entry.name for entry in entries]}
    figures |= {name: [_figure(entry, name) for entry in entries] for name in entries[0].system.evaluation.values}
    for k in cutoffs:
        found = [found_in_first(entry, k) or "" for entry in entries]
        figures |= {f"found in {k}": found} if all(found) else {}
    yield from zip(figures, _aligned(list(figures.values()), len(entries)), strict=True)
    whose = ["" if len(entries) == 1 else f"{entry.name}: " for entry in entries]
    for of, entry in zip(whose, entries, strict=True):
        if entry.classified is not None:
            rule = "of the rows called what they are, by the highest score above its threshold"
            yield "classified", f"{of}{entry.classified:.6f} {rule}; Accuracy is of each class's yes or no"
    tested = [entry.against_first for entry in entries if entry.against_first is not None]
    for entry in entries[1:]:
        if entry.against_first is not None:
            yield from _comparison(entries[0], entry, entry.against_first, confidence)
    if confidence is not None:
        yield "intervals", f"bootstrap, {100 * confidence:g} % of the draws{_too_few(entries[0])}"
    elif tested:
        swaps = swaps_of(entries[0])
        yield "p", f"two-sided, paired randomisation, at most {swaps} swaps, not corrected for many tests"
        if any(difference.p is None for one in tested for difference in one.values()):
            yield "", "-: too few queries differ, or a class has too few rows, for a p below .05"
    for of, entry in zip(whose, entries, strict=True):
        if entry.thresholds:
            yield "threshold", f"{of}{_thresholds_in_words(entry.thresholds)}"
    if any(name.startswith("nDCG") and "(" not in name for name in figures) and entries[0].system.rows.grades.max() > 1:
        yield "gain", "nDCG: the grade; nDCG(exp), as LightGBM and XGBoost compute it: 2^grade − 1"
    if entries[0].undefined:
        yield "undefined", f"{', '.join(entries[0].undefined)}: not on these rows"
    for of, entry in zip(whose, entries, strict=True):
        yield from _counts(entry, of, is_first=entry is entries[0])


def _too_few(entry: EvaluatedSystem) -> str:
    """A remark on intervals of few queries or classes, or of few rows of one kind."""
    evaluation = entry.system.evaluation
    count, units = min((evaluation.n_positives, "positives"), (evaluation.n_rows - evaluation.n_positives, "negatives"))
    if evaluation.groups is not None:
        count, units = evaluation.n_groups - evaluation.groups_skipped, _PLURAL[entry.each]
    return f"; likely too narrow: fewer than {_FEW} {units} ({count})" if count < _FEW else ""


def found_in_first(entry: EvaluatedSystem, k: int) -> str | None:
    """Positives among the first k rows and in all, averaged over the orders of equal scores; None for several
    rankings."""
    precision = entry.system.evaluation.values.get(f"P@{k}")
    if precision is None or not entry.system.is_one_ranking:
        return None
    return f"{precision * k:.6g} of {entry.system.evaluation.n_positives}"


def _thresholds_in_words(thresholds: Sequence[Threshold | None]) -> str:
    """The thresholds above which rows are called positive."""
    from apsvm.report.words import rule_in_words

    first, lacking = thresholds[0], thresholds.count(None)
    if lacking == len(thresholds):
        return "0, as there is none"
    if len(thresholds) > 1:
        return "each class's own" + (f", 0 for {lacking} that have none" if lacking else "")
    assert first is not None
    return f"{first.value:.6g}, the model's ({rule_in_words(first)})"


def _figure(entry: EvaluatedSystem, name: str) -> str:
    value = f"{entry.system.evaluation.values[name]:.6f}"
    if entry.intervals is None:
        return value
    low, high = entry.intervals[name]
    return f"{value} [{low:.4f}, {high:.4f}]"


def _comparison(
    a: EvaluatedSystem, b: EvaluatedSystem, differences: Mapping[str, Difference], confidence: float | None
) -> Iterator[tuple[str, str]]:
    """A line per metric: effect, and p or the interval, over the queries that both systems have."""
    with_queries, both = not a.system.is_one_ranking, f", over the {_PLURAL[a.each]} that both have"
    yield f"{b.name} against {a.name}{both if with_queries else ''}", ""
    better = ["better", "worse"] if with_queries else []
    rows = [["effect", "p" if confidence is None else f"{100 * confidence:g} % interval", *better]]
    for d in differences.values():
        p = "-" if d.p is None else f"{d.p:.6f}"
        tested = p if d.low is None or d.high is None else f"[{d.low:+.4f}, {d.high:+.4f}]"
        rows.append([f"{d.effect:+.6f}", tested, *([str(d.better), str(d.worse)] if with_queries else [])])
    yield from zip(["metric", *differences], _aligned(rows, 0), strict=True)


def _with_a_value(entry: EvaluatedSystem, name: str) -> int:
    """Number of queries or classes for which the metric has a value."""
    import numpy as np

    return int(np.count_nonzero(~np.isnan(entry.system.evaluation.in_group[name])))


def _counts(entry: EvaluatedSystem, whose: str, *, is_first: bool) -> Iterator[tuple[str, str]]:
    """Rows and queries, printed once if all systems share them, and each system's ties."""
    result = entry.system.evaluation
    of_one = whose if entry.counts else ""
    if is_first or entry.counts:
        of = "labels" if entry.each == "class" else "positive"
        yield entry.unit, f"{of_one}{result.n_rows} ({result.n_positives} {of})"
        if result.n_groups:
            yield _PLURAL[entry.each], f"{of_one}{_averaged(entry)}"
        if "documents_retrieved" in entry.counts:
            retrieved, unjudged = entry.counts["documents_retrieved"], entry.counts["documents_unjudged"]
            yield "documents", f"{whose}{retrieved} retrieved, {unjudged} not judged"
    if result.tied_blocks:
        blocks = f"{result.tied_blocks} block{'' if result.tied_blocks == 1 else 's'}"
        tied = f"{result.tied_rows} rows in {blocks} of equal score, positives among negatives"
        yield "ties", f"{whose}{tied}; rule: {entry.ties}"


def _averaged(entry: EvaluatedSystem) -> str:
    """Number of queries or classes averaged, and of those left out."""
    result = entry.system.evaluation
    left_out, counts = result.groups_skipped, entry.counts
    used = result.n_groups - left_out
    if "classes_unranked" in counts:
        text = f"{used} averaged" + (f", {left_out} without both kinds of rows left out" if left_out else "")
        unranked = counts["classes_unranked"]
        return text + (f"; {unranked} of the data's classes are not ranked" if unranked else "")
    if "queries_missing" in counts:
        return f"{used} averaged; {counts['queries_missing']} missing, {counts['queries_unjudged']} not judged"
    text = f"{used} averaged" + (f", {left_out} without both classes left out" if left_out else "")
    of_metrics = {name: _with_a_value(entry, name) for name in result.in_group}
    return text + "".join(f"; {name} over {n}" for name, n in of_metrics.items() if n != used)


def _name_of(query: float | str, words: Sequence[str]) -> str:
    """A query's id or a class's label, as in the file; its word if it has one."""
    if words:
        return words[int(query)]
    return str(query).removesuffix(".0") if isinstance(query, float) else str(query)
