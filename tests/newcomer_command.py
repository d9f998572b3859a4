"""``apsvm count``: how many rows there are, and how many of them are positive."""

from __future__ import annotations

import click

from apsvm.cli.options.parameters import LABEL
from apsvm.cli.reading import how_to_read_anew, read_rows
from apsvm.cli.shared import put, reading
from apsvm.data.read_options import ReadOptions


@click.command()
@click.argument("data", metavar="DATA")
@click.option("--positive-label", type=LABEL, help="The label that is positive; all others are negative.")
@how_to_read_anew
def count(data: str, positive_label: float | str | None, read: ReadOptions) -> None:
    """Print how many rows DATA has, and how many of them are positive."""
    from apsvm.data.labels import LabelOptions, Takes, decide  # numpy, where it is used: --help stays instant

    dataset = read_rows(data, read)
    with reading(data):
        relevant = decide(dataset, Takes.TWO_CLASSES, LabelOptions(positive_label=positive_label)).relevant
    put(f"{len(dataset)} rows, {int(relevant.sum())} of them positive")
