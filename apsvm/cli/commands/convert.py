"""``apsvm convert``: data files as a folder of arrays, which every command opens in milliseconds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from apsvm.cli.help import HelpfulCommand
from apsvm.cli.options.table import files, options
from apsvm.cli.output.progress import Bar
from apsvm.cli.reading import features_wanted, how_to_read_anew, queries_beside, read_any_model, read_rows
from apsvm.cli.shared import reading, refuse_same_file, remark, say, writing
from apsvm.data.file_patterns import parts_of
from apsvm.data.read_options import UNSAID, ReadOptions

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.models.columns import ForModel


@click.command(cls=HelpfulCommand)
@files("DATA", "OUT")
@options("threads", "quiet", model={"help": "Make of a table's columns what this model takes."})
@how_to_read_anew
def convert(data: str, out: str, threads: int, quiet: bool, model: str | None, read: ReadOptions) -> None:
    """Write DATA as the folder OUT, which every command takes as DATA and maps into memory instead of parsing it.

    DATA may be several files, by a pattern in quotes ('part-*.csv'), one after the other; parts of a table have the
    same columns. svmlight text may be larger than memory. A data folder that is already there is replaced; anything
    else is refused. Values are written dense where 60 % of them are stored in DATA.
    """
    from apsvm.data.folder import check_replaceable, write_folder

    refuse_same_file(out, data=data, model=model)
    with writing(out):
        check_replaceable(out)
    wanted = None if model is None else features_wanted(read_any_model(model))
    with Bar(f"converting {data}") as bar, _rows(data, read, out, wanted, bar) as dataset:
        if dataset.ignores_bags:
            dataset = replace(dataset, bags=None)
        with writing(out):
            write_folder(dataset, out)
        n, d = dataset.X.shape
        remark(f"{out}: {n} rows, {d} features, {dataset.n_values} values of {data}")


@contextmanager
def _rows(data: str, read: ReadOptions, out: str, model: ForModel | None, bar: Bar) -> Iterator[Dataset]:
    """The rows; text is read in blocks, never whole into memory."""
    from apsvm.data.tables.kinds import Kind, recognised

    sources = parts_of(data)
    kinds = {None if source == "-" else recognised(source)[0] for source in sources}
    groups = read.groups is not None or (len(sources) == 1 and bool(queries_beside(sources)))
    if kinds == {Kind.SVMLIGHT} and not groups and read.labels is None and read.table == UNSAID and model is None:
        unused = [sizes for source in sources for sizes in queries_beside([source])]
        if unused:  # of one of several files
            why = "where several files become one folder, queries stand in the rows"
            say(f"warning: {unused[0]}: it is not used: {why}")
        with _rows_of_text(sources, read, out, bar) as dataset:
            yield dataset
    else:
        yield read_rows(data, read, model=model)


@contextmanager
def _rows_of_text(sources: list[str], read: ReadOptions, out: str, bar: Bar) -> Iterator[Dataset]:
    from apsvm.data.bags import with_bags
    from apsvm.data.on_disk import gathered
    from apsvm.data.reading import in_bags
    from apsvm.data.svmlight import TextBlocks

    blocks = TextBlocks(sources, read)
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
            dataset = with_bags(dataset, dataset.bags, rule, lines)
        yield dataset
