"""``apsvm predict``: one score a row, or of a model of items each row's best ones."""

from __future__ import annotations

from typing import Any

import click

from apsvm.cli.items import TOP, best_items
from apsvm.cli.shared import how_to_read, read_any_model, refuse_same_file, score_rows, writing


@click.command()
@click.argument("data", metavar="DATA")
@click.argument("model", metavar="MODEL")
@click.argument("out", metavar="[OUT]", default="-")
@click.option("--ignore-unknown", is_flag=True, help="Ignore features the model does not know instead of refusing.")
@click.option(
    "--top", type=click.IntRange(1), help=f"Of a model of items: how many to list for each row. [default: {TOP}]"
)
@how_to_read
def predict(
    data: str, model: str, out: str, ignore_unknown: bool, top: int | None, dtype: str, sort_features: bool
) -> None:
    """Score the rows of DATA with MODEL: one number a line, in input order, to OUT (default: stdout).

    The numbers read back exactly. DATA is read as the training file was (feature base, width); its labels may be any
    numbers, and a .npz or .npy matrix needs none.

    Where MODEL ranks items for users (--rows-as-users), a line holds the row's best items, without those that it has,
    as item:score, best first.
    """
    from apsvm.files import check_writable, write_whole
    from apsvm.model import LinearRanker

    if data == "-" and model == "-":
        raise click.UsageError("DATA and MODEL cannot both be standard input")
    refuse_same_file(out, data=data, model=model)
    with writing(out):
        check_writable(out)
    ranker = read_any_model(model)
    how: dict[str, Any] = {"ignore_unknown": ignore_unknown, "dtype": dtype, "sort_features": sort_features}
    if isinstance(ranker, LinearRanker):
        if top is not None:
            raise click.UsageError(f"--top is for a model of items, and {model} is {ranker.what}")
        scores = score_rows(ranker, data, unlabelled=True, **how)[1]
        lines = [f"{score!r}\n" for score in scores.tolist()]
    else:
        lines = [f"{line}\n" for line in best_items(ranker, data, top or TOP, **how)]
    with writing(out):
        write_whole(out, "".join(lines).encode())
