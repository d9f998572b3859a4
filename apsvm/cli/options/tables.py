"""``TableOptions`` from the options on table columns."""

from __future__ import annotations

import csv

import click

from apsvm._support.types import JsonDict
from apsvm.cli.shared import BAD_DATA, Failure, reading
from apsvm.data.read_options import TableOptions

_PARTS = ("label", "qid", "bag", "cost", "id")


def taken(options: JsonDict, positive_label: float | str | None) -> TableOptions:
    """Takes the values of the options on tables out of ``options``."""
    named: JsonDict = {part: options.pop(f"{part}_column", None) for part in _PARTS}
    named |= {
        name: options.pop(name)
        for name in ("missing", "max_categories", "encoding", "decimal", "skip_lines", "sheet", "date_order")
        if name in options
    }
    features_from = options.pop("features_from", None)
    for name in ("drop", "categorical"):
        names = options.pop(name, None)
        named[name] = () if names is None else names_in(names)
    named["features"] = None if features_from is None else _names_of(features_from)
    _check_encoding(named["encoding"])
    return TableOptions(**named, positive_label=positive_label)


def _check_encoding(name: str) -> None:
    import codecs

    if name == "auto":
        return
    try:
        is_of_text = codecs.lookup(name)._is_text_encoding
    except LookupError:
        is_of_text = False
    if not is_of_text:
        raise click.UsageError(f"--encoding: {name!r} is no encoding of text: utf-8, latin-1, cp1252, utf-16 …")


def names_in(text: str) -> tuple[str, ...]:
    """Names with commas between them; a name with a comma is in double quotes."""
    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []) if name.strip())


def _names_of(path: str) -> tuple[str, ...]:
    """The names in a file, one a line, or the columns of a model's features."""
    from apsvm._support.container import MAGIC
    from apsvm.models.reading import load_any_model

    with reading(path):
        with open(path, "rb") as stream:
            content = stream.read()
        if content.startswith(MAGIC):
            features = load_any_model(path).header.features
            if features.columns is not None:
                return tuple(column.name for column in features.columns.features)
            if features.names is None:
                raise Failure(BAD_DATA, f"{path}: the features of this model have no names")
            return features.names
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise Failure(BAD_DATA, f"{path}: expected names of columns, a name a line, or a model") from None
    return tuple(dict.fromkeys(line.strip() for line in lines if line.strip()))
