"""``apsvm info``: the description of a model file."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from apsvm._support.shown import printable, shortened
from apsvm._support.types import JsonDict
from apsvm.cli.help import HelpfulCommand
from apsvm.cli.options.table import options
from apsvm.cli.reading import columns_in_words, read_any_model
from apsvm.cli.shared import put

if TYPE_CHECKING:
    from apsvm.models.base import Model
    from apsvm.models.columns import Columns
    from apsvm.models.header import Data, Features, Header

#: The width of the names at the left, and of the lines.
LEFT, WIDTH = 13, 100
#: Names of features that are listed.
MOST_NAMES = 100


#: Columns of a table that are listed.
_MOST_COLUMNS = 50


@click.command(cls=HelpfulCommand)
@click.argument("model", metavar="MODEL")
@options(as_json={"help": "Print all that the file says, as one JSON object."})
def info(model: str, as_json: bool) -> None:
    """Print how MODEL was trained, on what, how that ended, and its certificate; of a model of several classes, a line
    for each."""

    ranker = read_any_model(model)
    if as_json:
        put(json.dumps(_as_json(ranker), indent=1, sort_keys=True))
        return
    for name, text in _described(ranker):
        if text:
            _put(name, text)
    if ranker.has_classes:
        put("")
        _put_classes(ranker)


def _as_json(model: Model) -> JsonDict:

    content: JsonDict = {**model.header.to_json(), "kind": model.kind, "width": model.width}
    if model.feature_map is not None:
        content["columns"] = model.n_columns
    return {**content, **model.summary()}


def _norm(weights: JsonDict) -> str:
    norm = weights["norm"]
    return "beyond float64" if norm is None else f"{norm:.6g}"


def _described(model: Model) -> Iterator[tuple[str, str]]:
    """Names and texts of the description: model, training, settings, choice, decision, ending."""
    from apsvm.report.decisions import probabilities_in_words, threshold_in_words
    from apsvm.report.words import certificate, meaning, members
    from apsvm.trainers.summary import chosen

    header = model.header
    yield "model", model.what + (f": {len(model.headers)} classes" if model.has_classes else "")
    yield "loss", shortened(header.loss)
    yield "trainer", header.family
    yield "metric", shortened(header.metric or "")
    yield "labels", meaning(header.labels)
    yield from _sizes(model)
    yield from _settings(header)
    for line in chosen(header, header.metric):
        yield "choice", line
    yield "positive", "" if header.threshold is None else threshold_in_words(header.threshold)
    yield "probability", "" if header.calibration is None else probabilities_in_words(header.calibration)
    if model.has_classes:
        yield "ended", "every class as asked" if header.as_asked else f"not every class as asked ({header.state})"
    else:
        yield "ended", "; ".join(line for line in certificate(header) if line)
    for number, member in enumerate(members(header), start=1):
        yield f"member {number}", member
    for caution in header.cautions:
        yield "caution", caution
    for skipped in header.classes_skipped:
        yield "left out", f"class {header.shown_label(skipped.label)}: {skipped.reason}"
    yield "columns", _columns(header.features.columns)
    for line in () if header.features.columns is None else columns_in_words(header.features.columns)[:_MOST_COLUMNS]:
        yield "", line
    yield "data", _data(header.data)
    yield "sha256", header.data.sha256
    yield "estimator", header.estimator or ""
    yield "versions", ", ".join(f"{name} {version}" for name, version in header.versions.items())


def _features(features: Features, width: int, columns: int) -> str:
    parts = [f"{width // features.columns_of_feature:,} features"]
    if features.names is None:
        parts[0] += f", counted from {0 if features.zero_based else 1}"
    if features.pool is not None:
        parts.append(f"of each bag their {', '.join(features.pool)}: {width:,} columns")
    scales = {
        "maxabs": "each scaled to a largest magnitude of 1",
        "standard": "each scaled to a deviation of 1",
        "l2": "rows divided by their length",
    }
    if features.scale in scales:
        parts.append(scales[features.scale])
    if features.map != "linear":
        parts.insert(len(parts) - (features.scale in scales), f"mapped by {features.map} to {columns:,} columns")
    if features.bias is not None:
        parts.append(f"a constant feature of {features.bias:g}")
    text = "; ".join(parts)
    if features.names is not None:
        text += f": {', '.join(features.names[:MOST_NAMES])}{', …' if len(features.names) > MOST_NAMES else ''}"
    return text


def _columns(columns: Columns | None) -> str:
    """The table's columns other than features, and the rule for missing cells."""
    if columns is None:
        return ""
    named = ("label", "qid", "bag", "cost", "id")
    parts = [f"{part}: {getattr(columns, part)}" for part in named if getattr(columns, part) is not None]
    rule = {
        "median": "the median for a number, a feature of their own for words",
        "zero": "0",
        "indicator": "the median, and a feature that says so",
        "refuse": "refused",
    }[columns.missing]
    return "; ".join([*parts, f"missing cells: {rule}"])


def _sizes(model: Model) -> Iterator[tuple[str, str]]:
    """Sizes of the model: items, features, layers, weights."""
    features, summary = model.header.features, model.summary()
    if model.lists_items:
        first = 0 if features.zero_based else 1
        yield "items", f"{model.width:,}, counted from {first}; {summary['factors']} factors each"
        return
    yield "features", _features(features, model.width, model.n_columns)
    if "units" in summary:
        yield "layers", _layers_in_words(summary["units"], summary["weights"])
    parts = model.linear_parts()
    for number, part in enumerate(parts, start=1):
        yield f"component {number}" if len(parts) > 1 else "weights", _weights_in_words(part.summary())


def _layers_in_words(units: Sequence[int], weights: JsonDict) -> str:
    *hidden, _ = units
    layers = f"hidden ones of {', '.join(map(str, hidden))} rectified linear units; " if hidden else "no hidden one; "
    return f"{layers}{weights['nonzero']:,} weights are not zero, norm {_norm(weights)}"


def _weights_in_words(linear: JsonDict) -> str:
    weights, intercept = linear["weights"], linear["intercept"]
    constant = f", constant {intercept:.6g}" if intercept else ""
    return f"{weights['nonzero']:,} are not zero, norm {_norm(weights)}{constant}"


def _settings(header: Header) -> Iterator[tuple[str, str]]:
    """C, settings that differ from the defaults, the seed, and the choice by ``apsvm cv``."""
    from apsvm.report.settings import settings_of, shown

    others = []
    for fact in settings_of(header):
        value = shown(fact.value)
        if fact.name == "C":
            yield "C", value
        elif value and not fact.is_default:
            others.append(f"{fact.name}: {value}")
    if header.seed:
        others.append(f"seed: {header.seed}")
    yield "settings", "; ".join(others)
    if header.selection:
        chosen = [f"{name}: {shown(value)}" for name, value in header.selection.items() if not isinstance(value, dict)]
        yield "chosen by", "; ".join(chosen)


def _data(data: Data) -> str:
    parts = [data.file, f"{data.rows:,} rows" if data.rows else ""]
    if data.positives is not None:
        parts.append(f"{data.positives:,} positive")
    if data.queries is not None:
        skipped = f" ({data.queries_skipped:,} left out)" if data.queries_skipped else ""
        parts.append(f"{data.queries:,} {'query' if data.queries == 1 else 'queries'}{skipped}")
    parts += [f"{count:,} {name.replace('_', ' ')}" for name, count in data.counts.items()]
    return ", ".join(part for part in parts if part)


def _put_classes(model: Model) -> None:
    """A line for each class, with the columns that any of them fills."""
    from apsvm.cli.output.evaluation import put_table

    rows: list[dict[str, str]] = []
    classes = zip(model.classes.tolist(), model.headers, model.summary()["classes"], strict=True)
    for label, header, summary in classes:
        weights, bounds, epochs, data = summary["weights"], header.certificate, header.epochs, header.data
        rows.append(
            {
                "class": model.header.shown_label(label),
                "state": header.state,
                "iterations": "" if header.iterations is None else str(header.iterations),
                "epochs": "" if epochs is None else str(epochs.count),
                "C": "" if header.C is None else f"{header.C:.6g}",
                "gap / C": "" if bounds is None or header.C is None else f"{bounds.gap / header.C:.2g}",
                "positives": "" if data.positives is None else str(data.positives),
                "threshold": "" if header.threshold is None else f"{header.threshold.value:.6g}",
                "not zero": str(weights["nonzero"]),
                "norm": _norm(weights),
            }
        )
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    put_table([names, *([row[name] or "-" for name in names] for row in rows)], left=len(names))


def _put(name: str, text: str) -> None:
    """Prints ``name`` at the left, and ``text`` wrapped to its right."""
    lines = textwrap.wrap(printable(text), WIDTH - LEFT, break_on_hyphens=False) or [""]
    put(f"{name:<{LEFT}}{lines[0]}")
    for line in lines[1:]:
        put(f"{'':<{LEFT}}{line}")
