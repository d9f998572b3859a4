"""``apsvm convert``: a data file as a folder of arrays, which every command opens in milliseconds."""

from __future__ import annotations

import os
from dataclasses import replace

import click

from apsvm.cli.reading import features_wanted, how_to_read_anew, read_any_model, read_rows
from apsvm.cli.shared import reading, refuse_same_file, say, writing
from apsvm.data.read_options import ReadOptions


@click.command()
@click.argument("data", metavar="DATA")
@click.argument("out", metavar="[OUT]", required=False)
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
@click.option("--check", is_flag=True, help="Write nothing: DATA is such a folder; verify every byte of it.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@how_to_read_anew
def convert(
    data: str,
    out: str | None,
    dense: bool,
    threads: int,
    check: bool,
    quiet: bool,
    model: str | None,
    read: ReadOptions,
) -> None:
    """Write DATA as the folder OUT, which may stand for DATA in every command and is not parsed but mapped into memory.

    A data folder that is already there is replaced in one step; anything else is refused.

    The rows of a table (CSV, Parquet, Arrow) may be more than memory holds: they are kept beside OUT meanwhile.
    """
    from apsvm.data.folder import check_replaceable, open_folder, write_folder

    if check:
        if out is not None:
            raise click.UsageError("--check writes nothing: name the folder only")
        with reading(data):
            dataset = open_folder(data, verify=True)
        if not quiet:
            say(f"{data}: undamaged: {dataset.X.shape[0]} rows, {dataset.X.shape[1]} features")
        return
    if out is None:
        raise click.UsageError("name the folder OUT to write, or give --check")
    refuse_same_file(out, data=data, model=model)
    with writing(out):
        check_replaceable(out)
    wanted = None if model is None else features_wanted(read_any_model(model))
    dataset = read_rows(data, read, model=wanted, scratch=os.path.dirname(os.path.abspath(out)))
    if dataset.ignores_bags:
        dataset = replace(dataset, bags=None)
    with writing(out):
        write_folder(dataset, out, dense=True if dense else None)
    if not quiet:
        say(f"{out}: {dataset.X.shape[0]} rows, {dataset.X.shape[1]} features, {dataset.n_values} values of {data}")
