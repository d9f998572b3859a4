"""``apsvm info``: the description of a model file."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
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
    from apsvm.models.header import Data

#: The width of the names at the left, and of the lines.
LEFT, WIDTH = 13, 100
#: Columns of a table that are listed.
MOST_COLUMNS = 50


@click.command(cls=HelpfulCommand)
@files("MODEL")
@options(as_json={"help": "Print all that the file says, as one JSON object."})
def info(model: str, as_json: bool) -> None:
    """Print how MODEL was trained, on which data, how training ended, and its certificate; for several classes, a line
    each."""
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
    """Names and texts of the description: model, features, settings, choice, decision, ending, data."""
    from apsvm.report.words import (
        as_text,
        certificate,
        meaning,
        members,
        probabilities_in_words,
        settings_of,
        threshold_in_words,
    )
    from apsvm.trainers.summary import chosen

    header, columns = model.header, model.header.features.columns
    yield "model", model.description + (f": {len(model.headers)} classes" if model.has_classes else "")
    yield "loss", shortened(header.loss)
    yield "labels", meaning(header.labels)
    yield "features", _features(model)
    yield "settings", _listed({name: as_text(value) for name, value in (*settings_of(header), ("seed", header.seed))})
    selection = {name: value for name, value in (header.selection or {}).items() if not isinstance(value, dict)}
    yield "chosen by", _listed({name: as_text(value) for name, value in selection.items()})
    for line in chosen(header, header.metric):
        yield "choice", line
    maps = header.details.get("features")
    if isinstance(maps, dict):
        both = f"columns {maps['of_columns']:.4f}, rules {maps['of_rules']:.4f} ({maps['held_out']})"
        yield "compared", f"{maps.get('metric', 'AP')} of {both}"
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
        roles = {part: getattr(columns, part) for part in ("label", "qid", "bag", "cost", "id", "missing")}
        yield "columns", _listed(roles)
        for line in columns_in_words(columns)[:MOST_COLUMNS]:
            yield "", line
    yield "data", _data(header.data)
    yield "sha256", header.data.sha256
    yield "versions", ", ".join(f"{name} {version}" for name, version in header.versions.items())


def _listed(values: Mapping[str, str | None]) -> str:
    return "; ".join(f"{name}: {value}" for name, value in values.items() if value)


def _features(model: Model) -> str:
    """Number of features or items, and their map."""
    features = model.header.features
    first = "" if features.names is not None else f", counted from {0 if features.zero_based else 1}"
    parts = [
        f"{model.width // features.columns_of_feature:,}{first}",
        "" if features.pool is None else f"of each bag their {', '.join(features.pool)}: {model.width:,} columns",
        "" if features.map == "linear" else f"mapped by {features.map} to {model.n_columns:,} columns",
        "" if features.scale == "none" else f"scale: {features.scale}",
        "" if features.bias is None else f"constant feature: {features.bias:g}",
    ]
    return "; ".join(filter(None, parts))


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

    rows: list[list[str]] = [["class", "ended", "C", "gap / C", "positives", "threshold"]]
    for label, header in zip(model.classes.tolist(), model.headers, strict=True):
        C, bounds, positives, threshold = header.C, header.certificate, header.data.positives, header.threshold
        of_C = ["-", "-"] if C is None else [f"{C:.6g}", "-" if bounds is None else f"{bounds.gap / C:.2g}"]
        above = "-" if threshold is None else f"{threshold.value:.6g}"
        count = "-" if positives is None else str(positives)
        rows.append([model.header.shown_label(label), state(header), *of_C, count, above])
    filled = [at for at, column in enumerate(zip(*rows, strict=True)) if set(column[1:]) != {"-"}]
    put_table([[row[at] for at in filled] for row in rows], left=len(filled))
