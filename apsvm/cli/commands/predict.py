"""``apsvm predict``: a score per row with reasons; ranked rows (``output.lists``); detections; items of users."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from apsvm._support.shown import printable
from apsvm.cli.help import HelpfulCommand
from apsvm.cli.options.table import files, options
from apsvm.cli.reading import how_to_read, read_any_model, refuse_model, rows_for
from apsvm.cli.shared import BAD_DATA, Failure, bad_data, refuse_if_given, refuse_same_file, remark, writing
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    from apsvm.models.base import Model
    from apsvm.models.items import ItemRanker

#: Columns of a bare --explain, and items that are listed without --top.
MOST_EXPLAINED, MOST_ITEMS = 5, 10


class PredictCommand(HelpfulCommand):
    """``apsvm predict``; after a bare ``--explain`` only a number is its value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        after = [*args[1:], ""]
        spelled = (
            f"{arg}={MOST_EXPLAINED}" if arg == "--explain" and not following.isdecimal() else arg
            for arg, following in zip(args, after, strict=True)
        )
        return super().parse_args(ctx, list(spelled))


#: Options that ``--help`` lists, by section.
_COMMON = {
    "What is written": "top explain show html classify probability trec_run header",
    "Data": "id_column label_column ignore_unknown",
}


@click.command(cls=PredictCommand, common=_COMMON)
@files("DATA", "MODEL", "[OUT]")
@options("ignore_unknown", "header", "top", "show", "trec_run", "html", "explain", "classify", "probability", "which",
         "boxes", "detections", "nms",
         quiet={"help": "Print errors only."},
         verbose={"help": "Of a table, what each column is, and rare words in it."})  # fmt: skip
@how_to_read
def predict(data: str, model: str, out: str, read: ReadOptions, **values: Any) -> None:
    """Score the rows of DATA with MODEL: one number a line, in input order, to OUT (default: stdout).

    \b
    apsvm predict new.csv payments.model scores.txt
    apsvm predict new.csv payments.model --top 100 --explain --show merchant,amount
    apsvm predict new.csv payments.model --top 100 --explain --html list.html
    \f
    A model of several classes (train --one-vs-rest) gives a number for each class, in ascending order of the labels,
    with tabs between them.

    Scores read back exactly, except for the six digits of --top. DATA is read as the training file was (feature base,
    width); its labels may be any numbers, and a .npz or .npy matrix needs none.

    With --explain a line goes on with parts that add up to the score, after tabs: base, the score of a row with the
    training's medians, and table columns or features with value and contribution, the largest first:
    3.2 <tab> base (-0.2) <tab> amount=812.5 (+1.9) <tab> country=XX (+0.4). The features of a word or a date are one
    column; columns share equally what they give together. Base includes what dates give to every row alike. With
    several components, the parts are those of the one that gave the score, after component=h.

    With --classify a line has the row's label, with --probability its probability to be positive, with both the two.

    For a model of bags, a line is for a bag, in the order of their first rows: the score of its best row (--latent;
    with --bags ignore a line is for a row), or of its pooled rows (--pool).

    If MODEL ranks items for users (--rows-as-users), a line has the best items that the row lacks, as item:score, best
    first; items of a table have the names of its columns, with tabs between them.
    """
    from apsvm._support.files import check_writable, write_whole

    wanted = SimpleNamespace(**values)  # the reading looks at quiet and verbose
    if data == "-" and (model == "-" or wanted.show is not None):
        raise click.UsageError("standard input is read once: name a file for DATA")
    if wanted.html is not None:
        if out != "-":
            raise click.UsageError("--html writes its own file: leave out OUT")
        out = wanted.html
    refuse_same_file(out, data=data, model=model)
    with writing(out):
        check_writable(out)
    refuse_model(data)
    ranker = read_any_model(model)
    _check(wanted, ranker, model)
    if wanted.boxes is not None:
        _write_detections(ranker, data, out, read, wanted)
        return
    lines = _lines(ranker, data, model, read, wanted)
    with writing(out):
        write_whole(out, "".join(f"{line}\n" for line in lines).encode())
    if wanted.html is not None and out != "-":
        remark(f"page written to {out}")


def _check(wanted: SimpleNamespace, model: Model, path: str) -> None:
    """Ends the command for an option that the model in ``path`` cannot use."""
    one_ranking, several = "needs a model of one ranking", model.has_classes
    best_of_each = f"{one_ranking} with --top, which lists the best of each class"
    for is_refused, names, why in (
        (several, ("trec_run", "which"), one_ranking),
        (several and wanted.top is not None, ("html", "classify", "probability", "header"), best_of_each),
        (several and wanted.top is None, ("explain",), "needs --top K, the K best of each class, here"),
        (not several, ("header",), "names classes"),
        (not several and not model.linear_parts(), ("explain",), "is for a model of one linear ranker"),
        (model.lists_items, ("classify", "probability", "html", "trec_run", "show"), "is for rows"),
        (not model.header.latent, ("which", "boxes"), "is for a model of bags by their best rows (--latent)"),
        (model.header.features.pool is not None, ("show",), "is for rows, not for bags (--pool)"),
    ):
        if is_refused:
            refuse_if_given(names, f"{why}, and {path} is {model.description}")
    if wanted.trec_run is not None and wanted.trec_run.split() != [wanted.trec_run]:
        raise click.UsageError("--trec-run takes a TAG without blanks")


def _lines(ranker: Model, data: str, model: str, read: ReadOptions, wanted: SimpleNamespace) -> list[str]:
    """Output lines: one per row or bag, or one per user for a model of items."""
    from apsvm.cli.output.lists import RankedRows, shown_columns
    from apsvm.models.bags import ranked
    from apsvm.models.items import ItemRanker

    if isinstance(ranker, ItemRanker):
        return _items(ranker, data, read, wanted)
    columns = {} if wanted.show is None else shown_columns(data, read, wanted.show)
    rows = rows_for(ranker, data, read, ignore_unknown=wanted.ignore_unknown, unlabelled=True)
    rows, scores = ranked(ranker, rows, by_rows=read.ignores_bags)
    scored = RankedRows(model=ranker, name=model, rows=rows, path=data, scores=scores, options=wanted, columns=columns)
    if wanted.html is not None:
        return [scored.page().removesuffix("\n")]
    return list(scored.run() if wanted.trec_run is not None else scored.best() if wanted.top else scored.lines())


def _items(ranker: ItemRanker, path: str, read: ReadOptions, wanted: SimpleNamespace) -> list[str]:
    """The best items of each row, best first, as ``item:score`` and without the row's own. Separated by blanks if the
    file numbers its items, by tabs if they are table columns."""
    data = rows_for(ranker, path, read, ignore_unknown=wanted.ignore_unknown, unlabelled=True)
    names = [printable(name) for name in ranker.features()]
    between = " " if ranker.header.features.names is None else "\t"
    with bad_data(data.source):
        best = ranker.top(data.X, wanted.top or MOST_ITEMS)
    return [
        between.join(f"{names[item]}:{score!s}" for item, score in zip(items.tolist(), scores, strict=True))
        for items, scores in best
    ]


def _write_detections(model: Model, path: str, out: str, read: ReadOptions, options: SimpleNamespace) -> None:
    """The rows as detections: boxes of the images that their bags are, scored."""
    import numpy as np

    from apsvm._support.files import write_whole
    from apsvm.detection.boxes import nms, read_boxes
    from apsvm.detection.writers import coco_results, voc_results
    from apsvm.models.bags import scores_of

    data = rows_for(model, path, read, ignore_unknown=options.ignore_unknown, unlabelled=True)
    if data.bags is None:
        raise Failure(BAD_DATA, f"{data.source}: the image of a box is the bag of its row, and these rows are in none")
    boxes, columns = read_boxes(options.boxes, data.X.shape[0]), np.atleast_2d(scores_of(model, data).T)
    labels = [(header, header.labels.positive) for header in model.headers]
    classes = [header.shown_label(1.0 if label is None else label) for header, label in labels]
    kept = [np.arange(len(boxes)) for _ in classes]
    if options.nms is not None:
        _, image = np.unique(data.bags, return_inverse=True)
        kept = [nms(boxes, column, image, threshold=options.nms) for column in columns]
    of_class, rows = np.repeat(np.arange(len(kept)), [one.size for one in kept]), np.concatenate(kept)
    bags, what = data.bags[rows].tolist(), ([classes[at] for at in of_class], columns[of_class, rows], boxes[rows])
    if options.detections == "coco":
        named = data.table is not None and data.table.bags
        contents = {"": coco_results([data.bag_name(bag) if named else bag for bag in bags], *what)}
    else:
        contents = voc_results([data.bag_name(bag) for bag in bags], *what)
    of_several = options.detections == "voc" and len(classes) > 1
    if of_several and out == "-":
        raise click.UsageError("VOC has a file a class: name a folder OUT for a model of several")
    with writing(out):
        if of_several:
            os.makedirs(out, exist_ok=True)
        for name, content in contents.items() or [("", b"")]:
            write_whole(os.path.join(out, name) if of_several else out, content)
