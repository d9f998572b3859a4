"""``apsvm convert``: a data file as a folder of arrays, which every command opens in milliseconds."""

from __future__ import annotations

import click

from apsvm.cli.shared import how_to_read, read_rows, reading, refuse_same_file, say, writing


@click.command()
@click.argument("data", metavar="DATA")
@click.argument("out", metavar="[OUT]", required=False)
@click.option(
    "--dense", is_flag=True, help="Write all values, zeros too; without it if 60 % of them are stored in DATA."
)
@click.option(
    "--zero-based/--one-based", default=False, show_default=True, help="Whether feature indices count from 0 or 1."
)
@click.option("--max-features", type=click.IntRange(1, 2**62), help="Refuse a file with a feature beyond this many.")
@click.option(
    "--threads", type=click.IntRange(0, 1024), default=0, show_default=True,
    help="Threads for the parsing; 0: as many as there are cores. The result does not depend on it.",
)  # fmt: skip
@click.option("--check", is_flag=True, help="Write nothing: DATA is such a folder; verify every byte of it.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@how_to_read
def convert(
    data: str,
    out: str | None,
    dense: bool,
    zero_based: bool,
    max_features: int | None,
    threads: int,
    check: bool,
    quiet: bool,
    dtype: str,
    sort_features: bool,
) -> None:
    """Write DATA as the folder OUT, which may stand for DATA in every command and is not parsed but mapped into memory.

    A data folder that is already there is replaced in one step; anything else is refused.
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
    refuse_same_file(out, data=data)
    with writing(out):
        check_replaceable(out)
    dataset = read_rows(
        data,
        dtype=dtype,
        sort_features=sort_features,
        zero_based=zero_based,
        max_features=max_features,
        threads=threads,
    )
    with writing(out):
        write_folder(dataset, out, dense=True if dense else None)
    if not quiet:
        say(f"{out}: {dataset.X.shape[0]} rows, {dataset.X.shape[1]} features, {dataset.n_values} values of {data}")
