"""``apsvm predict``: a score a row, and what the features gave to it; a score for each of several classes; or the best
items for a user."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from apsvm._support.shown import printable
from apsvm._support.types import Matrix
from apsvm.cli.cluster.commands import predict_on_cluster, scheduler_option
from apsvm.cli.help import HelpfulCommand
from apsvm.cli.items import TOP, best_items
from apsvm.cli.options.parameters import Number
from apsvm.cli.output.decisions import CLASSIFY, PROBABILITY, answers
from apsvm.cli.ranked import best_first, names_of_queries, names_of_rows
from apsvm.cli.reading import how_to_read, read_any_model, rows_for
from apsvm.cli.shared import BAD_DATA, Failure, reading, refuse_if_given, refuse_same_file, say, writing
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.dataset import Dataset
    from apsvm.data.features.additive import Contributions
    from apsvm.models.base import Model
    from apsvm.report.reasons import Reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictOptions:
    """What is written, each field as the option of its name says."""

    ignore_unknown: bool
    header: bool
    top: int | None
    trec_run: str | None
    html: str | None
    explain: int | None
    classify: bool
    probability: bool
    which: bool
    boxes: str | None
    detections: str | None
    nms: float | None

    def check(self, model: Model, path: str) -> None:
        """Raises UsageError for an option that the kind of model, of the file ``path``, has no use for, or that does
        not go with another one."""
        if self.header and not model.has_classes:
            raise click.UsageError(f"--header names the classes, and {path} is {model.what}")
        if self.top is not None and model.has_classes:
            what = f"takes a model of one ranking, and with --top K {path}, {model.what}, lists the best K of each"
            refuse_if_given(("html", "classify", "probability", "header"), what)
        if self.trec_run is not None and (model.has_classes or model.lists_items):
            raise click.UsageError(f"--trec-run is for a model of one ranking, and {path} is {model.what}")
        if self.explain is not None and model.has_classes and self.top is None:
            raise click.UsageError(
                f"--explain needs --top K where a model is {model.what}: of each class the K best rows"
            )
        if self.explain is not None and not (model.explainable or model.has_classes):
            raise click.UsageError(f"--explain is for a model of one linear ranker, and {path} is {model.what}")
        self._refuse_together()
        if model.lists_items:
            refuse_if_given(("classify", "probability", "html"), "is for rows, and the model ranks items")
        self._check_bags(model, path)

    def _refuse_together(self) -> None:
        lines = ("top", "trec_run", "which", "boxes")
        chosen = [f"--{name.replace('_', '-')}" for name in lines if getattr(self, name)]
        if (self.top is not None or self.trec_run is not None) and len(chosen) > 1 and chosen != ["--top", "--which"]:
            raise click.UsageError(f"{' and '.join(chosen)} do not go together")
        if self.trec_run is not None and (self.explain is not None or self.trec_run.split() != [self.trec_run]):
            raise click.UsageError("--trec-run takes a TAG without blanks, and no --explain")
        if self.classify or self.probability:
            refuse_if_given(("trec_run", "boxes"), "takes scores: leave out --classify and --probability")

    def _check_bags(self, model: Model, path: str) -> None:
        of_bags = [f"--{name}" for name in ("which", "boxes") if getattr(self, name)]
        if of_bags and not model.header.latent:
            raise click.UsageError(f"{of_bags[0]} is for a model of bags by their best rows (--latent): {path} is none")
        if self.which and model.has_classes:
            raise click.UsageError("--which is for a model of one ranker: of several each has its own deciding row")
        if (self.boxes is None) != (self.detections is None):
            raise click.UsageError(
                "--boxes FILE and --detections go together: where the rows' boxes are, and the format"
            )
        if self.nms is not None and self.boxes is None:
            raise click.UsageError("--nms is for detections: --boxes FILE --detections")
        if self.boxes is not None and self.which:
            raise click.UsageError("--which is not for detections")


def write_detections(model: Model, path: str, out: str, read: ReadOptions, options: PredictOptions) -> None:
    """The rows as detections: boxes of the images that their bags are, scored."""
    import numpy as np

    from apsvm.detection.boxes import read_boxes
    from apsvm.models.bags import scores_of

    data = rows_for(model, path, read, ignore_unknown=options.ignore_unknown, unlabelled=True)
    if data.bags is None:
        raise Failure(BAD_DATA, f"{data.source}: the image of a box is the bag of its row, and these rows are in none")
    assert options.boxes is not None
    with reading(options.boxes):
        boxes = read_boxes(options.boxes, data.X.shape[0])
    with reading(path):
        scores = scores_of(model, data)
    columns = scores[:, None] if scores.ndim == 1 else scores
    labels = [(header, header.labels.positive) for header in model.headers]
    classes = [header.shown_label(1.0 if label is None else label) for header, label in labels]
    kept = [_kept(data, column, boxes, options.nms) for column in columns.T]
    of_class = np.repeat(np.arange(len(kept)), [rows.size for rows in kept])
    rows = np.concatenate(kept)
    contents = _contents(data, rows, columns[rows, of_class], boxes[rows], [classes[at] for at in of_class], options)
    _write(out, contents, options.detections == "voc" and len(classes) > 1)


def _kept(
    data: Dataset, scores: NDArray[np.float64], boxes: NDArray[np.float64], nms_threshold: float | None
) -> NDArray[np.int64]:
    import numpy as np

    from apsvm.detection.boxes import nms

    assert data.bags is not None
    if nms_threshold is None:
        return np.arange(scores.size)
    _, image = np.unique(data.bags, return_inverse=True)
    return nms(boxes, scores, image, threshold=nms_threshold)


def _contents(
    data: Dataset,
    rows: NDArray[np.int64],
    scores: NDArray[np.float64],
    boxes: NDArray[np.float64],
    classes: Sequence[str],
    options: PredictOptions,
) -> dict[str, bytes]:
    from apsvm.detection.writers import coco_results, voc_results

    assert data.bags is not None
    named = data.table is not None and data.table.bags
    bags = data.bags[rows].tolist()
    with reading(data.source):
        if options.detections == "coco":  # ids are whole numbers, or names
            images = [data.bag_name(bag) if named else bag for bag in bags]
            return {"": coco_results(images, classes, scores, boxes)}
        return voc_results([data.bag_name(bag) for bag in bags], classes, scores, boxes)


def _write(out: str, contents: dict[str, bytes], folder: bool) -> None:
    """One file, or VOC's one a class into a folder."""
    from apsvm._support.files import write_whole

    if not folder:
        (content,) = contents.values() if contents else (b"",)
        with writing(out):
            write_whole(out, content)
        return
    if out == "-":
        raise click.UsageError("VOC has a file a class: name a folder OUT for a model of several")
    with writing(out):
        os.makedirs(out, exist_ok=True)
        for name, content in contents.items():
            write_whole(os.path.join(out, name), content)


def top_lines(
    ranker: Model,
    rows: Dataset,
    scores: NDArray[np.float64],
    answers: Sequence[str],
    model: str,
    path: str,
    options: PredictOptions,
) -> Iterator[str]:
    """The best rows, best first, those of equal score as they stand: their names, or their numbers from 1, what stands
    for their scores in ``answers``, of bags with ``--which`` the number of the deciding row, and the features that put
    them there. Where there are queries, the best of each, behind its qid. ``model``, ``path``: the files of the model
    and of the rows."""
    assert options.top is not None
    order, rank = best_first(rows, scores)
    best = order[rank <= options.top]
    names, queries = _documents(rows, path), names_of_queries(rows)
    reasons = _reasons(ranker, rows, best, options.explain, model)
    if queries is not None:
        say(f"{rows.source}: the best {options.top} of each query, behind its qid")
    for at, row in enumerate(best.tolist()):
        query = [] if queries is None else [queries[row]]
        decided = [] if not options.which or rows.deciding is None else [str(rows.deciding[row] + 1)]
        why = [] if reasons is None else reasons[at].in_words()
        yield "\t".join([*query, names[row], answers[row], *decided, *map(printable, why)])


def _reasons(
    ranker: Model, rows: Dataset, which: NDArray[np.int64], most: int | None, model: str
) -> list[Reasons] | None:
    """Of these rows, None where none are requested."""
    from apsvm.report.reasons import reasons_of

    if most is None:
        return None
    try:
        return list(reasons_of(ranker, rows.select(which), most))
    except ValueError as error:
        raise Failure(BAD_DATA, f"{model}: it does not tell what each feature gave: {error}") from None


def list_page(
    ranker: Model, rows: Dataset, scores: NDArray[np.float64], model: str, path: str, options: PredictOptions
) -> str:
    """The best rows as a page (``report.first_rows``)."""
    from apsvm.data.dataset import DataError
    from apsvm.data.labels import recall
    from apsvm.report.first_rows import FirstRows

    assert options.top is not None
    order, rank = best_first(rows, scores)
    best, places = order[rank <= options.top], rank[rank <= options.top]
    names, queries, called = _documents(rows, path), names_of_queries(rows), None
    if options.classify or options.probability:
        called = answers(ranker, scores, model, classify=options.classify, probability=options.probability)
    try:
        relevant = recall(rows, ranker.header.labels).relevant
    except DataError:  # all rows are alike: their labels are not known
        relevant = None
    first = FirstRows(
        places=places,
        names=[names[row] for row in best.tolist()],
        scores=scores[best],
        queries=None if queries is None else [queries[row] for row in best.tolist()],
        answers=None if called is None else [called[row] for row in best.tolist()],
        relevant=None if relevant is None else relevant[best],
        n_relevant=0 if relevant is None else int(relevant.sum()),
        reasons=_reasons(ranker, rows, best, options.explain, model),
        n_rows=scores.size,
    )
    source = os.path.basename(rows.source)
    header = ranker.header
    about = [("data", source), ("rows", f"{scores.size:,}"), ("model", os.path.basename(model)), ("loss", header.loss)]
    of_each = " of each query" if queries is not None else ""
    return first.page(f"The first {min(options.top, scores.size):,} rows{of_each} of {source}", about)


def documents_of(rows: Dataset, path: str) -> list[str]:
    """What a run calls its documents: as ``names_of_rows``, or by the docid of the comments where all rows of a file of
    svmlight text, which is read once more, have one. Says which, unless a column was named for it."""
    names = names_of_rows(rows)
    if rows.table is not None and (rows.table.keys is not None or (rows.table.bags and rows.stands_for is not None)):
        return names
    ids, why_not = _docids(rows, path)
    if ids is not None:
        say(f"{rows.source}: documents are called by the docid of their comments")
        return ids
    called = "their rows' numbers, from 1" if rows.stands_for is None else "their bags' numbers, as bag:INT"
    say(f"{rows.source}: documents are called by {called}: {why_not}")
    return names


def _documents(rows: Dataset, path: str) -> list[str]:
    """What rows are called in a list: as in a run where they have queries (``documents_of``), and nothing is said."""
    ids = None if rows.groups is None else _docids(rows, path)[0]
    return names_of_rows(rows) if ids is None else ids


def _docids(rows: Dataset, path: str) -> tuple[list[str] | None, str]:
    """A name a row, or None and why there are none."""
    from apsvm.data.reading import is_text
    from apsvm.data.svmlight import docids

    assert rows.groups is not None
    if rows.table is not None:
        return None, "--id-column has names"
    if not (os.path.isfile(path) or os.path.isdir(path)):
        return None, "comments (# docid = …) are read of files alone"
    if not is_text(path):
        return None, "only svmlight text has comments (# docid = …)"
    with reading(path):
        ids = docids(path)
    if ids is not None and rows.deciding is not None:
        ids = [ids[row] for row in rows.deciding.tolist()]
    if ids is None:
        return None, "not every row has a comment # docid = …"
    if len(ids) != rows.X.shape[0]:
        return None, "they are bags, and comments are of rows"
    if len(set(zip(rows.groups.tolist(), ids, strict=True))) < len(ids):
        return None, "in a query two of their docids are the same"
    return ids, ""


def run_lines(rows: Dataset, scores: NDArray[np.float64], tag: str, path: str) -> Iterator[str]:
    """A TREC run: qid Q0 docno rank score tag, the best of each query first, queries as they first appear. ``path`` is
    where the rows were read."""
    queries = names_of_queries(rows)
    if queries is None:
        raise Failure(BAD_DATA, f"{rows.source}: a TREC run is of queries, and its rows have none: qid:, --qid-column")
    names = documents_of(rows, path)
    for what, called in (("document", names), ("query", queries)):
        bad = next((name for name in called if not name or name.split() != [name]), None)
        if bad is not None:
            wanted = "no blanks, and not empty"
            raise Failure(BAD_DATA, f"{rows.source}: a TREC run takes no {what} called {bad!r}: {wanted}")
    for row, place in zip(*(values.tolist() for values in best_first(rows, scores)), strict=True):
        yield f"{queries[row]} Q0 {names[row]} {place} {float(scores[row])!r} {tag}"


#: Features that a bare --explain lists.
MOST_EXPLAINED = 5


class PredictCommand(HelpfulCommand):
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
\f
A model of several classes (train --one-vs-rest) gives a number for each class, with tabs between them, in the order
of the classes as apsvm info lists them: by label, ascending.

The numbers read back exactly. DATA is read as the training file was (feature base, width); its labels may be any
numbers, and a .npz or .npy matrix needs none.

With --explain a line goes on with name=value for the features that gave the most to the score, in either direction,
these first, a tab before each: 1.25 <tab> 7=+0.8 <tab> 3=-0.2. Names are those of the columns, or their numbers in
the file. A value is what the feature's own curve has there, relative to its mean in the training rows (--features
piecewise), or its weight times its value (linear), divided by the row's length with --scale l2. Those of
all features add up to the score except for a constant. Of a model of several components (--components) they are those
of the component that gave the score, and component=h stands before them.

With --classify a line is the row's label, with --probability the probability that it is positive, with both the two.

With --top and --explain a line says in words what raised the score, above what the column's median gives where
MODEL was trained on a table: payment-7 <tab> 3.2 <tab> amount=812.5 (+1.9) <tab> country=XX (+0.4). The features of a
word or a date are one column there, and what several columns give together is shared among them.

Of a model of bags a line is a bag's, in the order of their first rows: the score of its best row (train --latent;
with --bags ignore a line is a row's), or of what was made of its rows (train --pool).

With --scheduler OUT is a folder, and each worker writes the scores of its parts there, part-1.svm.scores for
part-1.svm.

Where MODEL ranks items for users (--rows-as-users), a line holds the row's best items, without those that it has,
as item:score, best first; items of a table are called by their columns, with tabs between them.
"""


#: What ``--help`` shows.
_COMMON = {
    "What is written": {
        "top": "K  The K best rows only, best first, with their number or name.",
        "explain": "[K]  Behind each score the K features that count the most. [default of K: 5]",
        "html": "FILE  The rows of --top as a page, in place of lines.",
        "classify": "The row's label in place of the score, by the model's threshold.",
        "probability": "The probability that the row is positive (train --calibrate).",
        "trec_run": "TAG  A TREC run: qid Q0 docno rank score TAG.",
        "header": "Begin with a line of the classes, for a model of several.",
    },
    "Data": {
        "id_column": "NAME  Column of a table that names the rows.",
        "label_column": "NAME  Column of the labels, if it is not called as in training.",
        "ignore_unknown": "Ignore features that the model does not have.",
    },
}


@click.command(cls=PredictCommand, common=_COMMON, help=_HELP)
@click.argument("data", metavar="DATA")
@click.argument("model", metavar="MODEL")
@click.argument("out", metavar="[OUT]", default="-")
@click.option("--ignore-unknown", is_flag=True, help="Ignore features the model does not know instead of refusing.")
@click.option("--header", is_flag=True, help="Begin with a line of the classes, for a model of several.")
@click.option(
    "--top", type=click.IntRange(1),
    help="Only this many rows, the best first: the row's number, its bag (or bag:INT), or its name (--id-column), "
    "a tab, its score, and with --explain what raised it. Where rows have queries (qid:) this many of each, behind its "
    "qid and a tab; of several classes this many of each, behind its label. Of a model of items: how many to list for "
    f"each row. [default: {TOP}]",
)  # fmt: skip
@click.option(
    "--trec-run", metavar="TAG",
    help="Write a TREC run: qid Q0 docno rank score TAG; docno by --id-column, by svmlight comments "
    "# docid = …, or the row's number.",
)  # fmt: skip
@click.option(
    "--html", metavar="FILE",
    help="Write the rows of --top as a page for a browser, in place of lines: with bars for what --explain says, and "
    "the positives found so far where DATA has labels. It is one file, can be sorted and printed.",
)  # fmt: skip
@click.option(
    "--explain", type=click.IntRange(1), metavar="[K]",
    help="Behind each score, what the K features that count the most gave to it, as name=value.  "
    f"[default of K: {MOST_EXPLAINED}]",
)  # fmt: skip
@CLASSIFY
@PROBABILITY
@click.option(
    "--which", is_flag=True,
    help="Behind a bag's score the number of the row that decides it, from 1.",
)  # fmt: skip
@click.option(
    "--boxes", metavar="FILE",
    help="Where the rows of bags are windows of images: their boxes, xmin ymin xmax ymax a row, as text or .npy. "
    "Writes detections for apsvm eval-detections; an image's name is that of its bag.",
)  # fmt: skip
@click.option(
    "--detections", type=click.Choice(["voc", "coco"]),
    help="Their format: VOC's text (of several classes a file each, in the folder OUT), or COCO's JSON.",
)  # fmt: skip
@click.option(
    "--nms", type=Number(0.0, 1.0), metavar="IOU",
    help="Leave out a box whose IoU with a better one of its image and class is above.  [default: none]",
)  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Of a table, what each column is, and rare words in it.")
@scheduler_option
@how_to_read
def predict(
    data: str, model: str, out: str, scheduler: str | None, read: ReadOptions, verbose: bool, **values: Any
) -> None:
    del verbose  # the reading looks at it
    from apsvm._support.files import check_writable, write_whole

    options = PredictOptions(**values)
    if data == "-" and model == "-":
        raise click.UsageError("DATA and MODEL cannot both be standard input")
    if scheduler is not None:
        refuse_if_given([name for name in values if name != "ignore_unknown"], "does not go with --scheduler")
        predict_on_cluster(data, model, out, scheduler, read, ignore_unknown=options.ignore_unknown)
        return
    if options.html is not None:
        if options.top is None or out != "-":
            raise click.UsageError("--html is the page of the rows of --top K, and in place of OUT")
        refuse_if_given(("which", "trec_run", "boxes"), "is for lines, and --html is a page")
        out = options.html
    refuse_same_file(out, data=data, model=model)
    with writing(out):
        check_writable(out)
    ranker = read_any_model(model)
    options.check(ranker, model)
    if options.boxes is not None:
        write_detections(ranker, data, out, read, options)
        return
    lines = _lines(ranker, data, model, read, options)
    with writing(out):
        write_whole(out, "".join(f"{line}\n" for line in lines).encode())
    if options.html is not None and out != "-":
        say(f"page written to {out}")


def _lines(ranker: Model, data: str, model: str, read: ReadOptions, options: PredictOptions) -> list[str]:
    """A line for each row that the model ranks, or for each bag; or one for each user of a model of items."""
    from apsvm.models.bags import ranked
    from apsvm.models.items import ItemRanker

    if isinstance(ranker, ItemRanker):
        return best_items(ranker, data, read, options.top or TOP, ignore_unknown=options.ignore_unknown)
    rows = rows_for(ranker, data, read, ignore_unknown=options.ignore_unknown, unlabelled=True)
    with reading(rows.source):
        rows, scores = ranked(ranker, rows, by_rows=read.ignores_bags)
    if options.html is not None:
        return [list_page(ranker, rows, scores, model, data, options).removesuffix("\n")]
    if options.trec_run is not None:
        return list(run_lines(rows, scores, options.trec_run, data))
    if ranker.has_classes and options.top is not None:
        return list(_top_of_classes(ranker, rows, scores, model, data, options))
    lines = answers(ranker, scores, model, classify=options.classify, probability=options.probability)
    if ranker.has_classes:
        label = ["label"] if options.classify else []
        scored = ranker.classes.tolist() if options.probability or not options.classify else []
        classes = "\t".join([*label, *(printable(ranker.header.shown_label(one)) for one in scored)])
        return [classes, *lines] if options.header else lines
    if options.top is not None:
        if options.explain is not None and not (options.classify or options.probability):
            lines = _to_be_read(scores)
        return list(top_lines(ranker, rows, scores, lines, model, data, options))
    if options.which and rows.deciding is not None:
        lines = [f"{line}\t{row + 1}" for line, row in zip(lines, rows.deciding.tolist(), strict=True)]
    if options.explain is not None:
        explained = _explained(ranker, rows.X, options.explain, model)
        lines = ["\t".join([line, *parts]) for line, parts in zip(lines, explained, strict=True)]
    return lines


def _to_be_read(scores: NDArray[np.float64]) -> list[str]:
    """Scores of six digits, as the reasons beside them have."""
    return [f"{score:.6g}" for score in scores.tolist()]


def _top_of_classes(
    model: Model, rows: Dataset, scores: NDArray[np.float64], name: str, path: str, options: PredictOptions
) -> Iterator[str]:
    """``top_lines`` of each class in turn, behind its label."""
    for label, ranker, of_class in zip(model.classes.tolist(), model.rankers(), scores.T, strict=True):
        shown = printable(model.header.shown_label(label))
        lines = (
            answers(ranker, of_class, name, classify=False, probability=False)
            if options.explain is None
            else _to_be_read(of_class)
        )
        for line in top_lines(ranker, rows, of_class, lines, name, path, options):
            yield f"{shown}\t{line}"


def _explained(ranker: Model, X: Matrix, most: int, model: str) -> Iterator[list[str]]:
    """For each row the score of the features' means, base, what the features gave to its score beyond that, alone or
    together, as name=value, at most this many, and the rest: they add up to the score. What gave nothing is left out.
    Of several components the leading one's, and first which that is, as component=h, h from 1."""
    import numpy as np

    names = ranker.features()
    try:
        if ranker.components == 1:
            yield from _largest(ranker.contributions(X), most, names)
            return
        leading = ranker.leading(X)
        by_component = [
            _largest(ranker.contributions(X[leading == h], h), most, names) for h in range(ranker.components)
        ]
    except ValueError as error:
        raise Failure(BAD_DATA, f"{model}: it does not tell what each feature gave: {error}") from None
    for h in np.asarray(leading).tolist():
        yield [f"component={h + 1}", *next(by_component[h])]


def _largest(contributions: Contributions, most: int, features: list[str]) -> Iterator[list[str]]:
    """For each row the base, its largest contributions and the rest, as name=value."""
    import numpy as np

    names = [printable(name) for name in contributions.names(features)]
    for block in contributions.blocks():
        first = min(most, block.shape[1])
        some = np.sort(np.argpartition(-np.abs(block), first - 1, axis=1)[:, :first], axis=1)
        sizes = np.abs(np.take_along_axis(block, some, axis=1))
        order = np.take_along_axis(some, np.argsort(-sizes, axis=1, kind="stable"), axis=1)
        values = np.take_along_axis(block, order, axis=1)
        rest = block.sum(axis=1) - values.sum(axis=1) if first < block.shape[1] else np.zeros(len(block))
        for parts, gave, others in zip(order.tolist(), values.tolist(), rest.tolist(), strict=True):
            line = [f"{names[j]}={value:+.6g}" for j, value in zip(parts, gave, strict=True) if value]
            yield [f"base={contributions.base:+.6g}", *line, *([f"rest={others:+.6g}"] if others else [])]
