"""``apsvm predict``: one score a row."""

from __future__ import annotations

import click

from apsvm.cli.shared import how_to_read, read_model, refuse_same_file, score_rows, writing


@click.command()
@click.argument("data", metavar="DATA")
@click.argument("model", metavar="MODEL")
@click.argument("out", metavar="[OUT]", default="-")
@click.option("--ignore-unknown", is_flag=True, help="Ignore features the model does not know instead of refusing.")
@how_to_read
def predict(data: str, model: str, out: str, ignore_unknown: bool, dtype: str, sort_features: bool) -> None:
    """Score the rows of DATA with MODEL: one number a line, in input order, to OUT (default: stdout).

    The numbers read back exactly. DATA is read as the training file was (feature base, width); its labels may be any
    numbers, and a .npz or .npy matrix needs none.
    """
    from apsvm.files import check_writable, write_whole

    if data == "-" and model == "-":
        raise click.UsageError("DATA and MODEL cannot both be standard input")
    refuse_same_file(out, data=data, model=model)
    with writing(out):
        check_writable(out)
    _, scores = score_rows(
        read_model(model),
        data,
        ignore_unknown=ignore_unknown,
        dtype=dtype,
        sort_features=sort_features,
        unlabelled=True,
    )
    with writing(out):
        write_whole(out, "".join(f"{score!r}\n" for score in scores.tolist()).encode())
