"""``apsvm predict``: a score a row, and what the features gave to it; a score for each of several classes; or the best
items for a user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from apsvm.cli.items import TOP, best_items
from apsvm.cli.on_cluster import predict_on_cluster, scheduler_option
from apsvm.cli.predict_bags import BagOutput, lines_of_rows, write_detections
from apsvm.cli.predict_decided import CLASSIFY, PROBABILITY, answers
from apsvm.cli.predict_top import run_lines, top_lines
from apsvm.cli.reading import how_to_read, read_any_model, score_rows
from apsvm.cli.shared import BAD_DATA, Failure, printable, refuse_if_given, refuse_same_file, writing
from apsvm.data.read_options import ReadOptions
from apsvm.types import Matrix

if TYPE_CHECKING:
    from apsvm.data.features.additive import Contributions
    from apsvm.models.base import Model


#: Features that a bare --explain lists.
MOST_EXPLAINED = 5


class PredictCommand(click.Command):
    """``apsvm predict``: a bare ``--explain`` takes no value from what follows it but a number."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spelled = list(args)
        for at in reversed(range(len(spelled))):
            if spelled[at] == "--explain":
                follows = spelled[at + 1 : at + 2]
                number = spelled.pop(at + 1) if follows and follows[0].isdecimal() else MOST_EXPLAINED
                spelled[at] = f"--explain={number}"
        return super().parse_args(ctx, spelled)


#: What ``apsvm predict --help`` says.
_HELP = """Score the rows of DATA with MODEL: one number a line, in input order, to OUT (default: stdout).

A model of several classes (train --one-vs-rest) gives a number for each class, with tabs between them, in the order
of the classes as apsvm info lists them: by label, ascending.

The numbers read back exactly. DATA is read as the training file was (feature base, width); its labels may be any
numbers, and a .npz or .npy matrix needs none.

With --explain a line goes on with name=value for the features that gave the most to the score, in either direction,
these first, a tab before each: 1.25 <tab> 7=+0.8 <tab> 3=-0.2. Names are those of the columns, or their numbers in
the file. A value is what the feature's own curve has there, relative to its mean in the training rows (--features
piecewise or spline), or its weight times its value (linear), divided by the row's length with --scale l2. Those of
all features add up to the score but for a constant. Of a model of several components (--components) they are those
of the component that gave the score, and component=h stands before them.

With --classify a line is the row's label, with --probability the probability that it is positive, with both the two.

With --top and --explain a line says in words what raised the score, above what the column's median gives where
MODEL was trained on a table: payment-7 <tab> 3.2 <tab> amount=812.5 (+1.9) <tab> country=XX (+0.4).

Of a model of bags a line is a bag's, in the order of their first rows: the score of its best row (train --latent),
or of what was made of its rows (train --pool).

With --scheduler OUT is a folder, and each worker writes the scores of its parts there, part-1.svm.scores for
part-1.svm.

Where MODEL ranks items for users (--rows-as-users), a line holds the row's best items, without those that it has,
as item:score, best first.
"""


@click.command(cls=PredictCommand, help=_HELP)
@click.argument("data", metavar="DATA")
@click.argument("model", metavar="MODEL")
@click.argument("out", metavar="[OUT]", default="-")
@click.option("--ignore-unknown", is_flag=True, help="Ignore features the model does not know instead of refusing.")
@click.option("--header", is_flag=True, help="Begin with a line of the classes, for a model of several.")
@click.option(
    "--top", type=click.IntRange(1),
    help="Only so many rows, the best first: the row's number, or its bag (bag:INT), or its name (--id-column), a tab, "
    "its score, and with --explain what raised it. Where rows have queries (qid:) so many of each, behind its qid and "
    f"a tab. Of a model of items: how many to list for each row. [default: {TOP}]",
)  # fmt: skip
@click.option(
    "--trec-run", metavar="TAG",
    help="Write a TREC run: qid Q0 docno rank score TAG; docno by --id-column, by svmlight comments "
    "# docid = …, or the row's number.",
)  # fmt: skip
@click.option(
    "--explain", type=click.IntRange(1), metavar="[K]",
    help="Behind each score, what the K features that count the most gave to it, as name=value.  "
    f"[default of K: {MOST_EXPLAINED}]",
)  # fmt: skip
@CLASSIFY
@PROBABILITY
@click.option("--instances", is_flag=True, help="Of a model of bags (train --latent): a line a row, not a bag.")
@click.option(
    "--which", is_flag=True,
    help="Behind a bag's score the number of the row that decides it, from 1; with --instances, behind a row's, 1 if "
    "it decides its bag, else 0.",
)  # fmt: skip
@click.option(
    "--boxes", metavar="FILE",
    help="Where the rows of bags are windows of images: their boxes, xmin ymin xmax ymax a row, as text or .npy. "
    "Writes detections for apsvm eval-detections; an image's name is the number of its bag.",
)  # fmt: skip
@click.option(
    "--detections", type=click.Choice(["voc", "coco"]),
    help="Their format: VOC's text (of several classes a file each, in the folder OUT), or COCO's JSON.",
)  # fmt: skip
@click.option(
    "--nms", type=click.FloatRange(0.0, 1.0), metavar="IOU",
    help="Leave out a box whose IoU with a better one of its image and class is above.  [default: none]",
)  # fmt: skip
@scheduler_option
@how_to_read
def predict(
    data: str,
    model: str,
    out: str,
    ignore_unknown: bool,
    header: bool,
    top: int | None,
    trec_run: str | None,
    explain: int | None,
    classify: bool,
    probability: bool,
    instances: bool,
    which: bool,
    boxes: str | None,
    detections: str | None,
    nms: float | None,
    scheduler: str | None,
    read: ReadOptions,
) -> None:
    from apsvm.files import check_writable, write_whole
    from apsvm.models.items import ItemRanker

    if data == "-" and model == "-":
        raise click.UsageError("DATA and MODEL cannot both be standard input")
    if scheduler is not None:
        answered = ("header", "top", "trec_run", "explain", "classify", "probability", "instances", "which")
        refuse_if_given((*answered, "boxes", "detections", "nms"), "does not go with --scheduler")
        predict_on_cluster(data, model, out, scheduler, read, ignore_unknown=ignore_unknown)
        return
    refuse_same_file(out, data=data, model=model)
    with writing(out):
        check_writable(out)
    ranker = read_any_model(model)
    _require_kinds(ranker, model, header=header, top=top, trec_run=trec_run, explain=explain)
    _refuse_together(top=top, trec_run=trec_run, explain=explain, which=which, instances=instances, boxes=boxes)
    if classify or probability:
        refuse_if_given(("trec_run", "instances", "boxes"), "takes scores: leave out --classify and --probability")
    output = BagOutput(instances=instances, which=which, boxes=boxes, detections=detections, nms=nms)
    if isinstance(ranker, ItemRanker):
        refuse_if_given(("classify", "probability"), "is for rows, and the model ranks items")
        lines = list(best_items(ranker, data, read, top or TOP, ignore_unknown=ignore_unknown))
    else:
        output.check(ranker, model)
        if boxes is not None:
            write_detections(ranker, data, out, read, output, ignore_unknown=ignore_unknown)
            return
        if instances:
            lines = lines_of_rows(ranker, data, read, output, ignore_unknown=ignore_unknown)
        else:
            asked = _Asked(
                header=header, top=top, trec_run=trec_run, explain=explain, which=which, classify=classify,
                probability=probability,
            )  # fmt: skip
            lines = _lines(ranker, data, model, read, asked, ignore_unknown=ignore_unknown)
    with writing(out):
        write_whole(out, "".join(f"{line}\n" for line in lines).encode())


def _refuse_together(
    *, top: int | None, trec_run: str | None, explain: int | None, which: bool, instances: bool, boxes: str | None
) -> None:
    """Raises UsageError for options that ask for different lines."""
    chosen = [f"--{name}" for name, given in (("top", top), ("trec-run", trec_run), ("which", which)) if given]
    chosen += [f"--{name}" for name, given in (("instances", instances), ("boxes", boxes)) if given]
    if (top is not None or trec_run is not None) and len(chosen) > 1 and chosen != ["--top", "--which"]:
        raise click.UsageError(f"{' and '.join(chosen)} do not go together")
    if trec_run is not None and (explain is not None or trec_run.split() != [trec_run]):
        raise click.UsageError("--trec-run takes a TAG without blanks, and no --explain")


def _require_kinds(
    ranker: Model, name: str, *, header: bool, top: int | None, trec_run: str | None, explain: int | None
) -> None:
    """Raises UsageError for an option that the kind of model has no use for."""

    if header and not ranker.has_classes:
        raise click.UsageError(f"--header names the classes, and {name} is {ranker.what}")
    if top is not None and ranker.has_classes:
        raise click.UsageError(f"--top is for a model of one ranking, and {name} is {ranker.what}")
    if trec_run is not None and (ranker.has_classes or ranker.lists_items):
        raise click.UsageError(f"--trec-run is for a model of one ranking, and {name} is {ranker.what}")
    if explain is not None and not ranker.explainable:
        raise click.UsageError(f"--explain is for a model of one linear ranker, and {name} is {ranker.what}")


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What lines are to hold, each as the option of its name says."""

    header: bool
    top: int | None
    trec_run: str | None
    explain: int | None
    which: bool
    classify: bool
    probability: bool


def _lines(
    ranker: Model, data: str, model: str, read: ReadOptions, asked: _Asked, *, ignore_unknown: bool
) -> list[str]:
    """A line for each row that the model ranks, or for each bag."""

    rows, scores = score_rows(ranker, data, read, ignore_unknown=ignore_unknown, unlabelled=True)
    if asked.trec_run is not None:
        return list(run_lines(rows, scores, asked.trec_run, data))
    lines = answers(ranker, scores, model, classify=asked.classify, probability=asked.probability)
    if ranker.has_classes:
        label = ["label"] if asked.classify else []
        scored = ranker.classes.tolist() if asked.probability or not asked.classify else []
        return ["\t".join([*label, *map(ranker.header.shown_label, scored)]), *lines] if asked.header else lines
    if asked.top is not None:
        return list(top_lines(ranker, rows, scores, lines, asked.top, asked.explain, model, which=asked.which))
    if asked.which and rows.deciding is not None:
        lines = [f"{line}\t{row + 1}" for line, row in zip(lines, rows.deciding.tolist(), strict=True)]
    if asked.explain is not None:
        explained = _explained(ranker, rows.X, asked.explain, model)
        lines = ["\t".join([line, *parts]) for line, parts in zip(lines, explained, strict=True)]
    return lines


def _explained(ranker: Model, X: Matrix, most: int, model: str) -> Iterator[list[str]]:
    """For each row what the features gave to its score, as name=value, at most so many; those that gave nothing are
    left out. Of several components the leading one's, and first which that is, as component=h, h from 1."""
    import numpy as np

    names = [printable(name) for name in ranker.features()]
    try:
        if ranker.components == 1:
            yield from _largest(ranker.contributions(X), most, names)
            return
        leading = ranker.leading(X)
        by_component = [
            _largest(ranker.contributions(X[leading == h], h), most, names) for h in range(ranker.components)
        ]
    except ValueError as error:
        raise Failure(BAD_DATA, f"{model}: nobody can say what each feature gave: {error}") from None
    for h in np.asarray(leading).tolist():
        yield [f"component={h + 1}", *next(by_component[h])]


def _largest(contributions: Contributions, most: int, names: list[str]) -> Iterator[list[str]]:
    """For each row its largest contributions, as name=value."""
    import numpy as np

    for block in contributions.blocks():
        first = min(most, block.shape[1])
        some = np.sort(np.argpartition(-np.abs(block), first - 1, axis=1)[:, :first], axis=1)
        sizes = np.abs(np.take_along_axis(block, some, axis=1))
        order = np.take_along_axis(some, np.argsort(-sizes, axis=1, kind="stable"), axis=1)
        values = np.take_along_axis(block, order, axis=1)
        for features, gave in zip(order.tolist(), values.tolist(), strict=True):
            yield [f"{names[j]}={value:+.6g}" for j, value in zip(features, gave, strict=True) if value]
