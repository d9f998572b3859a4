"""``apsvm predict``: a score a row; by a model of several classes, one for each; by one of items, the best ones."""

from __future__ import annotations

import click

from apsvm.cli.items import TOP, best_items
from apsvm.cli.reading import how_to_read, read_any_model, score_rows
from apsvm.cli.shared import refuse_same_file, writing
from apsvm.data.read_options import ReadOptions


@click.command()
@click.argument("data", metavar="DATA")
@click.argument("model", metavar="MODEL")
@click.argument("out", metavar="[OUT]", default="-")
@click.option("--ignore-unknown", is_flag=True, help="Ignore features the model does not know instead of refusing.")
@click.option("--header", is_flag=True, help="Begin with a line of the classes, for a model of several.")
@click.option(
    "--top", type=click.IntRange(1), help=f"Of a model of items: how many to list for each row. [default: {TOP}]"
)
@how_to_read
def predict(
    data: str,
    model: str,
    out: str,
    ignore_unknown: bool,
    header: bool,
    top: int | None,
    read: ReadOptions,
) -> None:
    """Score the rows of DATA with MODEL: one number a line, in input order, to OUT (default: stdout).

    A model of several classes (train --one-vs-rest) gives a number for each class, with tabs between them, in the order
    of the classes as apsvm info lists them: by label, ascending.

    The numbers read back exactly. DATA is read as the training file was (feature base, width); its labels may be any
    numbers, and a .npz or .npy matrix needs none.

    Where MODEL ranks items for users (--rows-as-users), a line holds the row's best items, without those that it has,
    as item:score, best first.
    """
    from apsvm.data.dataset import shown_label
    from apsvm.files import check_writable, write_whole
    from apsvm.model import ItemRanker, RankerSet

    if data == "-" and model == "-":
        raise click.UsageError("DATA and MODEL cannot both be standard input")
    refuse_same_file(out, data=data, model=model)
    with writing(out):
        check_writable(out)
    ranker = read_any_model(model)
    if header and not isinstance(ranker, RankerSet):
        raise click.UsageError(f"--header names the classes, and {model} is {ranker.what}")
    if top is not None and not isinstance(ranker, ItemRanker):
        raise click.UsageError(f"--top is for a model of items, and {model} is {ranker.what}")
    if isinstance(ranker, ItemRanker):
        lines = list(best_items(ranker, data, read, top or TOP, ignore_unknown=ignore_unknown))
    else:
        scores = score_rows(ranker, data, read, ignore_unknown=ignore_unknown, unlabelled=True)[1]
        if isinstance(ranker, RankerSet):
            named = ["\t".join(map(shown_label, ranker.classes.tolist()))] if header else []
            lines = [*named, *("\t".join(map(repr, row)) for row in scores.tolist())]
        else:
            lines = [repr(score) for score in scores.tolist()]
    with writing(out):
        write_whole(out, "".join(f"{line}\n" for line in lines).encode())
