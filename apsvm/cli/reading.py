"""Reading for the commands: options, data files, models, and rows with a model's scores."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from apsvm._support.shown import printable
from apsvm.cli.options.table import LEARNING, READING, options
from apsvm.cli.output.progress import Bar
from apsvm.cli.shared import BAD_DATA, Failure, all_given, bad_data, is_set, reading, remark, say
from apsvm.data.read_options import ReadOptions, TableOptions, bags_named

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.models.base import Model, Ranker
    from apsvm.models.columns import Columns, ForModel
    from apsvm.models.linear import LinearRanker

CommandT = TypeVar("CommandT", bound=Callable[..., object])


def how_to_read(command: CommandT) -> CommandT:
    """Gives the command the options for reading a data file, as one argument ``read``: ReadOptions."""
    return options(*READING)(with_read_options(command))


def how_to_read_anew(command: CommandT) -> CommandT:
    """``how_to_read`` for a command that reads without a model."""
    return options(*LEARNING)(with_read_options(command))


def with_read_options(command: CommandT) -> CommandT:
    """The command, with one argument ``read`` in place of the options on reading."""

    @functools.wraps(command)
    def with_options(**options: Any) -> Any:
        said = {name.removesuffix("_column"): options.pop(name, None) for name in LEARNING}
        said = {name: value for name, value in said.items() if value is not None}
        ignores_bags, bags = bags_named(said.pop("bags", None))
        if "features_from" in said:
            said["features"] = _names_of(said.pop("features_from"))
        check = not said.pop("no_check", False)
        of_table = {one.name: said.pop(one.name) for one in fields(TableOptions) if one.name in said}
        table = TableOptions(**of_table, positive_label=options.get("positive_label"))
        threads = options.get("threads") or 0
        read = ReadOptions(**said, ignores_bags=ignores_bags, bags=bags, check=check, threads=threads, table=table)
        return command(**options, read=read)

    return with_options  # type: ignore[return-value]


def _names_of(path: str) -> tuple[str, ...]:
    """The names in a file, one a line."""
    with bad_data(path), reading(path), open(path, encoding="utf-8-sig") as stream:
        return tuple(dict.fromkeys(line.strip() for line in stream if line.strip()))


def read_rows(
    path: str,
    read: ReadOptions,
    *,
    zero_based: bool | None = None,
    multilabel: bool = False,
    **more: Any,
) -> Dataset:
    """``read_data`` as the options say; failures end the command. Remarks on a table are printed.

    zero_based : taken from the model that the rows are for
    multilabel : read several labels per row, even without the option
    more : see ``read_data``
    """
    from apsvm.data.file_patterns import parts_of
    from apsvm.data.reading import read_data

    place = " and ".join(file for file in (path, read.groups, read.labels, read.bags) if file is not None)
    base = read.zero_based if zero_based is None else zero_based
    with reading(place), Bar(f"reading {place}"):
        dataset = read_data(path, read, zero_based=base, multilabel=multilabel or read.multilabel, **more)
    dataset = in_queries_beside(dataset, parts_of(path))
    say_remarks(dataset)
    return dataset


def in_queries_beside(dataset: Dataset, paths: Sequence[str]) -> Dataset:
    """The rows of these files, with queries from ``.query`` files unless they have queries or are a table."""
    from apsvm.data.matrices import read_groups

    sizes = queries_beside(paths) if dataset.groups is None and dataset.table is None else []
    if not sizes:
        return dataset
    names = " and ".join(sizes)
    dataset = replace(dataset, groups=read_groups(sizes, len(dataset), dataset.source))
    remark(f"its queries are those of {printable(names)}", dataset.source)
    return dataset


def queries_beside(paths: Sequence[str]) -> list[str]:
    """LightGBM's files of query sizes (``.query``) of all these files; empty if one is missing."""
    sizes = [f"{path}.query" for path in paths]
    return sizes if all(map(os.path.isfile, sizes)) else []


def say_remarks(dataset: Dataset) -> None:
    """Prints remarks on a table; --verbose adds each column's kind and reason."""
    if dataset.table is None:
        return
    details = (*dataset.table.details, *columns_in_words(dataset.table.columns)) if is_set("verbose") else ()
    for text in (*dataset.table.remarks, *details):
        remark(printable(text), dataset.source)


def columns_in_words(columns: Columns) -> list[str]:
    """A line for each column: its kind, and the reason if known."""
    kinds = {"number": "a number", "category": "words", "date": "a date"}
    used = [f"{column.name}: {kinds[column.kind]}{column.why and f' ({column.why})'}" for column in columns.features]
    return [*used, *(f"{name}: left out ({why})" for name, why in columns.why_left_out.items())]


def read_any_model(path: str) -> Model:
    """``load_any_model``; failures end the command."""
    from apsvm.models.reading import load_any_model

    with reading(path):
        return load_any_model(path)


def refuse_model(data: str) -> None:
    """Ends the command if the file given as DATA is a model."""
    from apsvm.models.reading import is_model_file

    if not os.path.isfile(data):
        return
    with reading(data):
        is_model = is_model_file(data)
    if is_model:
        usage = click.get_current_context().get_usage().removeprefix("Usage: ")
        raise click.UsageError(f"expected rows as DATA, and {data!r} is a model: {usage}")


def one_ranker(model: Model, label: float | str | None, path: str) -> Ranker:
    """The ranker of the file ``path``, or the one of the class ``label`` in a set; ends the command without one."""
    from apsvm.models.sets import RankerSet

    header = model.header
    if not isinstance(model, RankerSet):
        if label is not None:
            raise Failure(BAD_DATA, f"{path}: it has no ranker for each class: remove --positive-label")
        return next((ranker for ranker in model.rankers() if ranker.linear_parts()), None) or _not_linear(model, path)
    number = None if label is None else header.label_number(label)
    if number is not None and number in model.classes:
        return model.ranker(number)
    labels = ", ".join(map(header.shown_label, model.classes.tolist()))
    wanted = "choose one by --positive-label" if label is None else f"none of them is {label}"
    raise Failure(BAD_DATA, f"{path}: it has a ranker for each of the classes {labels}: {wanted}")


def one_linear_ranker(model: Model, label: float | str | None, path: str) -> LinearRanker:
    """``one_ranker`` of a single component; else the command ends."""
    parts = (ranker := one_ranker(model, label, path)).linear_parts()
    return parts[0] if len(parts) == 1 else _not_linear(ranker, path)


def _not_linear(model: Model, path: str) -> NoReturn:
    from apsvm.models.linear import LinearRanker

    raise Failure(BAD_DATA, f"{path}: expected {LinearRanker.description}, found {model.description}")


def rows_for(
    model: Model, path: str, read: ReadOptions, *, ignore_unknown: bool = False, unlabelled: bool = False
) -> Dataset:
    """The rows of ``path``, read like the model's training file: a row per bag for a model that pools bags, rows in
    bags for a latent one. With ``unlabelled`` a matrix needs no labels."""
    from apsvm.data.pooling import pooled

    features = model.header.features
    pool = None if features.pool is None else ",".join(features.pool)
    takes_bags = pool is not None or model.header.latent
    if not takes_bags and "bags" in all_given() and not read.ignores_bags:
        raise click.UsageError("--bags: the model ranks rows, not bags")
    if pool is not None and read.ignores_bags:
        raise click.UsageError(f"--bags ignore: the model ranks bags (--pool {pool})")
    data = read_rows(
        path,
        read if takes_bags else read.ignoring_bags(),
        zero_based=features.zero_based,
        n_features=model.width // features.columns_of_feature,
        ignore_unknown=ignore_unknown,
        unlabelled=unlabelled,
        multilabel=model.header.labels.several,
        model=features_wanted(model),
    )
    if data.unknown_features:
        say(f"{data.unknown_features} feature values unknown to the model were ignored")
    if features.pool is None:
        return data
    if data.bags is None:
        from apsvm.data.bags import HOW_SAID

        what = f"the model ranks bags (--pool {pool}), and these rows are in none: {HOW_SAID}"
        raise Failure(BAD_DATA, f"{data.source}: {what}")
    return pooled(data, features.pool)


def features_wanted(model: Model) -> ForModel:
    """The features of a model, for the reading of a table."""
    from apsvm.models.columns import ForModel

    header = model.header
    features, labels = header.features, header.labels
    width = model.width // features.columns_of_feature
    return ForModel(features.columns, features.names, width, labels.names or ())
