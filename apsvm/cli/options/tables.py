"""The options that say what the columns of a table are: CSV, Parquet, Arrow, JSON lines, a sheet."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import TypeVar

import click

from apsvm._support.types import JsonDict
from apsvm.cli.shared import BAD_DATA, Failure, reading
from apsvm.data.read_options import MAX_CATEGORIES, TableOptions
from apsvm.models.columns import MISSING_RULES

CommandT = TypeVar("CommandT", bound=Callable[..., object])

#: For every command that reads rows.
_OPTIONS = (
    click.option(
        "--label-column",
        metavar="NAME",
        help="Of a table (CSV, Parquet, Arrow): the column of the labels.  [default: the model's, or the one called "
        "label, target, y, class, outcome or relevance, else fraud, churn, clicked, …]",
    ),
    click.option(
        "--qid-column", metavar="NAME", help="The column of the queries.  [default: the model's, or qid, query_id]"
    ),
    click.option("--bag-column", metavar="NAME", help="The column of the bags.  [default: the model's]"),
    click.option("--id-column", metavar="NAME", help="What rows are called; no feature.  [default: the model's]"),
    click.option("--drop", metavar="NAME,…", help="Columns that are no features."),
    click.option(
        "--encoding",
        metavar="NAME",
        default="auto",
        show_default=True,
        help="The encoding of a CSV. auto: UTF-8, or else cp1252, of Windows in Western Europe.",
    ),
    click.option(
        "--skip-lines",
        type=click.IntRange(0),
        default=0,
        help="Lines of a CSV, or a sheet, above the names of columns.",
    ),
    click.option("--sheet", metavar="NAME", help="The sheet of a workbook.  [default: the first]"),
    click.option(
        "--decimal", type=click.Choice([".", ","]), help="Its decimal mark.  [default: derived from the first rows]"
    ),
)
#: For those alone that learn what becomes of the columns.
_LEARNING = (
    click.option("--cost-column", metavar="NAME", help="The column of the costs."),
    click.option(
        "--features-from", metavar="FILE",
        help="Only these columns are features: a name a line, or those of a model.",
    ),
    click.option(
        "--categorical", metavar="NAME,…",
        help="Columns that are categories, also of numbers: codes, of which 3 is not more than 2.",
    ),
    click.option(
        "--date-order", type=click.Choice(["dmy", "mdy"]),
        help="The order of day and month in columns of dates that leave it open, such as 03/04/2024.",
    ),
    click.option(
        "--missing", type=click.Choice(MISSING_RULES), default="median", show_default=True,
        help="What stands for a missing cell of a table: the column's median, of words a feature of their own; 0; the "
        "median and a feature that says so; or nothing, they are refused.",
    ),
    click.option(
        "--max-categories", type=click.IntRange(1, 10**6), default=MAX_CATEGORIES, show_default=True,
        help="How many words of a column have features of their own; the less frequent ones share one.",
    ),
)  # fmt: skip

_PARTS = ("label", "qid", "bag", "cost", "id")


def table_options(command: CommandT, *, learning: bool) -> CommandT:
    """Gives the command the options on tables; ``taken`` takes their values."""
    for option in (*reversed(_OPTIONS), *reversed(_LEARNING if learning else ())):
        command = option(command)
    return command


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
    """Names with commas between them; one with a comma in it stands in double quotes."""
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
