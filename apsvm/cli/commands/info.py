"""``apsvm info``: the description of a model file."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from apsvm._support.shown import printable, shortened
from apsvm._support.types import JsonDict
from apsvm.cli.help import HelpfulCommand
from apsvm.cli.options.table import files, options
from apsvm.cli.reading import columns_in_words, read_any_model
from apsvm.cli.shared import put

if TYPE_CHECKING:
    from apsvm.models.base import Model
    from apsvm.models.columns import Columns
    from apsvm.models.header import Data, Features, Header

#: The width of the names at the left, and of the lines.
LEFT, WIDTH = 13, 100
#: Names of features, and columns of a table, that are listed.
MOST_NAMES, MOST_COLUMNS = 100, 50


@click.command(cls=HelpfulCommand)
@files("MODEL")
@options(as_json={"help": "Print all that the file says, as one JSON object."})
def info(model: str, as_json: bool) -> None:
    """Print how MODEL was trained, on what, how that ended, and its certificate; of a model of several classes, a line
    for each."""
    ranker = read_any_model(model)
    if as_json:
        content: JsonDict = {**ranker.header.to_json(), "kind": ranker.kind, "width": ranker.width, **ranker.summary()}
        if ranker.feature_map is not None:
            content["columns"] = ranker.n_columns
        put(json.dumps(content, indent=1, sort_keys=True))
        return
    for name, text in _described(ranker):
        for line in textwrap.wrap(printable(text), WIDTH - LEFT, break_on_hyphens=False):
            put(f"{name:<{LEFT}}{line}")
            name = ""
    if ranker.has_classes:
        put("")
        _put_classes(ranker)


def _described(model: Model) -> Iterator[tuple[str, str]]:
    """Names and texts of the description: model, training, settings, choice, decision, ending."""
    from apsvm.report.decisions import probabilities_in_words, threshold_in_words
    from apsvm.report.settings import shown
    from apsvm.report.words import certificate, meaning, members
    from apsvm.trainers.summary import chosen

    header, columns = model.header, model.header.features.columns
    yield "model", model.what + (f": {len(model.headers)} classes" if model.has_classes else "")
    yield "loss", shortened(header.loss)
    yield "trainer", header.family
    yield "metric", shortened(header.metric or "")
    yield "labels", meaning(header.labels)
    yield from _sizes(model)
    yield from _settings(header)
    selection = {name: value for name, value in (header.selection or {}).items() if not isinstance(value, dict)}
    yield "chosen by", "; ".join(f"{name}: {shown(value)}" for name, value in selection.items())
    for line in chosen(header, header.metric):
        yield "choice", line
    yield "positive", "" if header.threshold is None else threshold_in_words(header.threshold)
    yield "probability", "" if header.calibration is None else probabilities_in_words(header.calibration)
    if model.has_classes:
        yield "ended", "every class as asked" if header.as_asked else f"not every class as asked ({header.state})"
    else:
        yield "ended", "; ".join(certificate(header))
    for number, member in enumerate(members(header), start=1):
        yield f"member {number}", member
    for caution in header.cautions:
        yield "caution", caution
    for skipped in header.classes_skipped:
        yield "left out", f"class {header.shown_label(skipped.label)}: {skipped.reason}"
    if columns is not None:
        yield "columns", _columns(columns)
        for line in columns_in_words(columns)[:MOST_COLUMNS]:
            yield "", line
    yield "data", _data(header.data)
    yield "sha256", header.data.sha256
    yield "estimator", header.estimator or ""
    yield "versions", ", ".join(f"{name} {version}" for name, version in header.versions.items())


#: A scaling, in words.
_SCALES = {
    "maxabs": "each scaled to a largest magnitude of 1",
    "standard": "each scaled to a deviation of 1",
    "l2": "rows divided by their length",
}
#: A rule for missing cells, in words.
_MISSING = {
    "median": "the median for a number, a feature of their own for words",
    "zero": "0",
    "indicator": "the median, and a feature that says so",
    "refuse": "refused",
}


def _features(features: Features, width: int, columns: int) -> str:
    first = "" if features.names is not None else f", counted from {0 if features.zero_based else 1}"
    parts = [
        f"{width // features.columns_of_feature:,} features{first}",
        "" if features.pool is None else f"of each bag their {', '.join(features.pool)}: {width:,} columns",
        "" if features.map == "linear" else f"mapped by {features.map} to {columns:,} columns",
        _SCALES.get(features.scale, ""),
        "" if features.bias is None else f"a constant feature of {features.bias:g}",
    ]
    names = features.names or ()
    listed = f": {', '.join(names[:MOST_NAMES])}{', …' if len(names) > MOST_NAMES else ''}" if names else ""
    return "; ".join(filter(None, parts)) + listed


def _columns(columns: Columns) -> str:
    """The table's columns other than features, and the rule for missing cells."""
    named = {part: getattr(columns, part) for part in ("label", "qid", "bag", "cost", "id")}
    parts = [f"{part}: {name}" for part, name in named.items() if name is not None]
    return "; ".join([*parts, f"missing cells: {_MISSING[columns.missing]}"])


def _sizes(model: Model) -> Iterator[tuple[str, str]]:
    """Sizes of the model: items, features, layers, weights."""
    features, summary = model.header.features, model.summary()
    if model.lists_items:
        first = 0 if features.zero_based else 1
        yield "items", f"{model.width:,}, counted from {first}; {summary['factors']} factors each"
        return
    yield "features", _features(features, model.width, model.n_columns)
    if "units" in summary:
        *hidden, _ = summary["units"]
        layers = f"hidden ones of {', '.join(map(str, hidden))} rectified linear units" if hidden else "no hidden one"
        weights = summary["weights"]
        yield "layers", f"{layers}; {weights['nonzero']:,} weights are not zero, norm {_norm(weights)}"
    parts = [part.summary() for part in model.linear_parts()]
    for number, part in enumerate(parts, start=1):
        weights, intercept = part["weights"], part["intercept"]
        constant = f", constant {intercept:.6g}" if intercept else ""
        name = f"component {number}" if len(parts) > 1 else "weights"
        yield name, f"{weights['nonzero']:,} are not zero, norm {_norm(weights)}{constant}"


def _norm(weights: JsonDict) -> str:
    norm = weights["norm"]
    return "beyond float64" if norm is None else f"{norm:.6g}"


def _settings(header: Header) -> Iterator[tuple[str, str]]:
    """C, settings that differ from the defaults, and the seed."""
    from apsvm.report.settings import settings_of, shown

    others = {}
    for name, value in settings_of(header):
        if name == "C":
            yield "C", shown(value)
        else:
            others[name] = shown(value)
    others["seed"] = str(header.seed or "")
    yield "settings", "; ".join(f"{name}: {value}" for name, value in others.items() if value)


def _data(data: Data) -> str:
    skipped = f" ({data.queries_skipped:,} left out)" if data.queries_skipped else ""
    parts = [
        data.file,
        f"{data.rows:,} rows" if data.rows else "",
        "" if data.positives is None else f"{data.positives:,} positive",
        f"{data.queries:,} queries{skipped}" if (data.queries or 0) > 1 else "",
        *(f"{count:,} {name.replace('_', ' ')}" for name, count in data.counts.items()),
    ]
    return ", ".join(filter(None, parts))


def _put_classes(model: Model) -> None:
    """A line for each class, with the columns that any of them fills."""
    from apsvm.cli.output.evaluation import put_table
    from apsvm.trainers.summary import state

    rows: list[dict[str, str]] = []
    for label, header in zip(model.classes.tolist(), model.headers, strict=True):
        C, bounds, positives, threshold = header.C, header.certificate, header.data.positives, header.threshold
        rows.append(
            {
                "class": model.header.shown_label(label),
                "ended": state(header),
                "C": "" if C is None else f"{C:.6g}",
                "gap / C": "" if bounds is None or C is None else f"{bounds.gap / C:.2g}",
                "positives": "" if positives is None else str(positives),
                "threshold": "" if threshold is None else f"{threshold.value:.6g}",
            }
        )
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    put_table([names, *([row[name] or "-" for name in names] for row in rows)], left=len(names))
