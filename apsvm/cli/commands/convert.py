"""``apsvm convert``: data files as a folder of arrays, which every command opens in milliseconds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from apsvm.cli.output.bar import Bar
from apsvm.cli.reading import (
    features_wanted,
    how_to_read_anew,
    queries_beside,
    read_any_model,
    read_rows,
    say_queries_unused,
    say_remarks,
)
from apsvm.cli.shared import reading, refuse_if_given, refuse_same_file, say, writing
from apsvm.data.parts import parts_of
from apsvm.data.read_options import UNSAID, ReadOptions

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.data.tables.reading import ForModel
    from apsvm.data.tables.recognising import Kind


@click.command()
@click.argument("paths", metavar="DATA [DATA …] OUT", nargs=-1, required=True)
@click.option(
    "--dense", is_flag=True, help="Write all values, zeros too; without it if 60 % of them are stored in DATA."
)
@click.option(
    "--threads", type=click.IntRange(0, 1024), default=0, show_default=True,
    help="Threads for the parsing; 0: as many as there are cores. The result does not depend on it.",
)  # fmt: skip
@click.option(
    "--model", metavar="MODEL", help="Make of the columns of a table what this model does, which is to be given them."
)
@click.option("--check", is_flag=True, help="Write nothing; check every byte of DATA, such a folder.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@how_to_read_anew
def convert(
    paths: tuple[str, ...],
    dense: bool,
    threads: int,
    check: bool,
    quiet: bool,
    model: str | None,
    read: ReadOptions,
) -> None:
    """Write DATA as the folder OUT, which may stand for DATA in every command and is not parsed but mapped into memory.

    Text may be larger than memory, and several files, one behind the other. So may tables (CSV, Parquet, Arrow), whose
    rows are kept beside OUT meanwhile; parts of one have the same columns. A data folder that is already there is
    replaced; anything else is refused.
    """
    from apsvm.data.folder import check_replaceable, write_folder

    if check:
        _check(paths, quiet=quiet)
        return
    if len(paths) < 2:
        raise click.UsageError("name the folder OUT to write, or give --check")
    *named, out = paths
    sources = [part for name in named for part in parts_of(name)]
    for source in sources:
        refuse_same_file(out, data=source, model=model)
    with writing(out):
        check_replaceable(out)
    wanted = None if model is None else features_wanted(read_any_model(model))
    with Bar(f"converting {', '.join(sources)}") as bar, _rows(sources, read, out, wanted, bar) as dataset:
        if dataset.ignores_bags:
            dataset = replace(dataset, bags=None)
        with writing(out):
            write_folder(dataset, out, dense=True if dense else None)
        if not quiet:
            n, d = dataset.X.shape
            say(f"{out}: {n} rows, {d} features, {dataset.n_values} values of {', '.join(sources)}")


def _check(paths: tuple[str, ...], *, quiet: bool) -> None:
    from apsvm.data.folder import open_folder

    if len(paths) > 1:
        raise click.UsageError("--check writes nothing: name the folder only")
    with reading(paths[0]), Bar(f"checking {paths[0]}"):
        dataset = open_folder(paths[0])
    if not quiet:
        say(f"{paths[0]}: undamaged: {len(dataset)} rows, {dataset.X.shape[1]} features")


@contextmanager
def _rows(sources: list[str], read: ReadOptions, out: str, model: ForModel | None, bar: Bar) -> Iterator[Dataset]:
    """The rows of all sources; text of files block by block, so that it is never in memory as a whole."""
    from apsvm.data.tables.recognising import Kind, recognised

    scratch = os.path.dirname(os.path.abspath(out))
    kinds = []
    for source in sources:
        with reading(source):
            kinds.append(None if source == "-" else recognised(source)[0])
    text = set(kinds) == {Kind.SVMLIGHT}
    groups = read.groups is not None or (len(sources) == 1 and bool(queries_beside(sources)))
    if len(sources) > 1:
        say_queries_unused(sources, "where several files become one folder,")
    if len(sources) > 1 and not text:
        yield _rows_of_tables(sources, kinds, read, model, scratch)
    elif text and not groups and read.labels is None and read.table == UNSAID and model is None:
        with _rows_of_text(sources, read, out, bar) as dataset:
            yield dataset
    else:
        yield read_rows(sources[0], read, model=model, scratch=scratch)


def _rows_of_tables(
    sources: list[str], kinds: list[Kind | None], read: ReadOptions, model: ForModel | None, scratch: str
) -> Dataset:
    """The rows of several tables; else the command ends."""
    import numpy as np

    from apsvm.data.reading import in_bags
    from apsvm.data.tables.cells import Scratch
    from apsvm.data.tables.reading import read_tables

    tables = [(source, kind) for source, kind in zip(sources, kinds, strict=True) if kind is not None and kind.is_table]
    if len(tables) < len(sources):
        read_alone = next(source for source in sources if source not in dict(tables))
        raise click.UsageError(
            f"several files are read as one where all are svmlight text, or all are tables, and {read_alone} is none"
        )
    refuse_if_given(("labels", "groups"), "is for a matrix")
    with reading(" and ".join(sources)):
        rule = "own" if read.ignores_bags else read.bag_label
        dataset = read_tables(
            tables, read.table, model=model, bag_label=rule, dtype=np.dtype(read.dtype).type, scratch=Scratch(scratch),
        )  # fmt: skip
        dataset = dataset if read.bags is None else in_bags(dataset, read.bags, rule)
    say_remarks(dataset)
    return replace(dataset, ignores_bags=True) if read.ignores_bags else dataset


@contextmanager
def _rows_of_text(sources: list[str], read: ReadOptions, out: str, bar: Bar) -> Iterator[Dataset]:
    import numpy as np

    from apsvm._support.machine import thread_count
    from apsvm.data.bags import Places, with_bags
    from apsvm.data.gathering import gathered
    from apsvm.data.reading import in_bags
    from apsvm.data.svmlight import TextBlocks

    blocks = TextBlocks(
        sources,
        zero_based=bool(read.zero_based),
        dtype=np.dtype(read.dtype).type,
        max_features=read.max_features,
        sort_features=read.sort_features,
        multilabel=read.multilabel,
        threads=thread_count(read.threads),
    )
    rule = "own" if read.ignores_bags else read.bag_label

    def read_blocks() -> Iterator[Dataset]:
        with reading(" and ".join(sources)):
            n_rows = 0
            for block in blocks:
                n_rows += block.X.shape[0]
                bar.reach(n_rows, f"converting {', '.join(sources)}: rows")
                yield block

    with (
        reading(blocks.name),
        writing(out),
        gathered(read_blocks(), Path(os.path.abspath(out)).parent, blocks.name) as dataset,
    ):
        dataset = replace(dataset, fingerprint=blocks.fingerprint, ignores_bags=read.ignores_bags)
        if read.bags is not None and not read.ignores_bags:
            dataset = in_bags(dataset, read.bags, rule)
        else:
            lines = blocks.row_lines if len(sources) == 1 and dataset.bags is not None else None
            dataset = with_bags(dataset, dataset.bags, Places(blocks.name, lines), rule)
        yield dataset
