"""``apsvm plot``: pictures of logs, models and results, one command a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from apsvm.cli.help import HelpfulCommand
from apsvm.cli.options.table import FILE, files, options
from apsvm.cli.reading import how_to_read, one_linear_ranker, read_any_model
from apsvm.cli.scored import Scored, score_data
from apsvm.cli.shared import BAD_DATA, Failure, bad_data, reading, say, writing
from apsvm.cli.training import check_output
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    from apsvm._support.log import Record
    from apsvm.report.pictures.base import Picture


@click.group()
def plot() -> None:
    """Draw a picture: of logs, of precision and recall, of a model's curves.

    \b
    apsvm train data.svm --log log.jsonl --log-ranks
    apsvm plot convergence log.jsonl -o convergence.png
    apsvm plot heatmap log.jsonl -o ranks.svg

    Needs matplotlib: pip install 'apsvm[plot]'.
    """


_OUTPUT = options(output={"required": True, "metavar": "FILE", "help": "The picture: its name ends in .png or .svg."})


@plot.command()
@click.argument("logs", metavar="LOG…", nargs=-1, required=True, type=FILE)
@_OUTPUT
def convergence(logs: tuple[str, ...], output: str) -> None:
    """Bounds and gap of trainings (or gradient, or estimated loss) against iterations and seconds.

    LOG is what apsvm train --log wrote, or --run-dir's log.jsonl; a run that is still going on, or was killed, is drawn
    as far as it has come. Objectives and gaps are divided by C.
    """
    from apsvm.report.pictures.convergence import Convergence

    _draw(lambda: Convergence.of_logs({path: read_records(path) for path in logs}), output, logs)


@plot.command()
@files("LOG")
@_OUTPUT
def heatmap(log: str, output: str) -> None:
    """The interleaving ranks of the negatives over the iterations (Figure 1 of the 2014 paper).

    LOG is written by apsvm train --log LOG --log-ranks. A row is an iteration, a column a negative, from the highest
    score on; the deepest red are negatives below every positive in the most violated ranking.
    """
    from apsvm.report.pictures.heatmap import Heatmap

    _draw(lambda: Heatmap.of_log(read_records(log)), output, [log], log)


@plot.command(name="pr", cls=HelpfulCommand)
@files("DATA")
@options("positive_label", "relevant_from", "ignore_unknown", models={"excludes": ""}, scores={"excludes": ""})
@_OUTPUT
@how_to_read
def precision_recall(
    data: str, models: tuple[str, ...], scores: tuple[str, ...], output: str, read: ReadOptions, **more: Any
) -> None:
    """Precision against recall on DATA, as apsvm eval sees it: the area under a curve is its AP.

    Rows of equal score are one block. With queries (qid:) it is the mean of the queries' curves; of a model of several
    classes the mean of the classes', which are drawn too.
    """
    from apsvm.data.labels import LabelOptions

    if not models and not scores:
        raise click.UsageError("give --model or --scores")
    files = [data, *models, *scores]
    if files.count("-") > 1:
        raise click.UsageError("only one of the files can be standard input")
    labels = LabelOptions(positive_label=more["positive_label"], relevant_from=more["relevant_from"])

    def picture() -> Picture:
        rankers = {path: read_any_model(path) for path in models}
        for path, model in rankers.items():
            if model.lists_items:
                raise Failure(BAD_DATA, f"{path}: {model.description} has no precision–recall curve of rows")
        return curves_of(score_data(data, rankers, scores, labels, read, ignore_unknown=more["ignore_unknown"]))

    _draw(picture, output, files, data)


#: Curves that are drawn, and heat maps below them.
MOST_SHAPES, MOST_PAIRS = 12, 6


@plot.command()
@files("MODEL")
@options("one_class")
@_OUTPUT
def shapes(model: str, one_class: float | str | None, output: str) -> None:
    """Draw the effect of each feature on the score, over the values of the training rows.

    The twelve widest are drawn. With --features linear, logarithms or products, bars show the largest weights, each for
    one unit of its feature, logarithm or product. With --features piecewise or rules a curve is 0 at the feature's
    mean; of rules, heat maps below show what two features give together, and what more give together is not drawn. With
    --scale l2 the sum is divided by the length of the mapped row.
    """
    from apsvm.report.pictures.shapes import Bars, Shapes

    def picture() -> Picture:
        ranker = one_linear_ranker(read_any_model(model), one_class, model)
        feature_map = ranker.feature_map
        if feature_map is None or (feature_map.parts() is not None and feature_map.limits(0) is None):
            return Bars.of_ranker(ranker, MOST_SHAPES)
        return Shapes.of_ranker(ranker, (MOST_SHAPES, MOST_PAIRS))

    _draw(picture, output, [model], model)


def _draw(picture: Callable[[], Picture], output: str, inputs: Sequence[str], source: str = "") -> None:
    """Checks matplotlib, the format and the path before the work, makes the picture, of ``source``, and writes it."""
    from importlib.util import find_spec

    from apsvm.report.pictures.base import PictureError, format_of
    from apsvm.report.pictures.style import MissingMatplotlibError

    if find_spec("matplotlib") is None:
        raise MissingMatplotlibError
    try:
        format_of(output)
    except PictureError as error:
        raise click.UsageError(str(error)) from None
    check_output(output, **{f"input {at}": path for at, path in enumerate(inputs, 1)})
    with bad_data(source):
        drawn = picture()
        with writing(output):
            drawn.save(output)


def read_records(path: str) -> Sequence[Record]:
    """``records.read_log``; failures end the command, and a last line that is cut off is reported."""
    from apsvm._support.log import read_log

    with reading(path):
        result = read_log(path)
    if result.cut_off:
        say(f"warning: {path}: its last line is cut off; the {len(result.records)} records before it are used")
    return result.records


def curves_of(scored: Scored) -> Picture:
    """A curve for each of ``scored``'s; of several classes their mean, and each of them if they are of one model; those
    without both positive and negative rows are left out, as by ``apsvm eval``. Raises MetricError if none is left."""
    from apsvm.data.dataset import shown_label
    from apsvm.metrics import MetricError
    from apsvm.metrics.curves import Judged, judged_curve
    from apsvm.metrics.evaluate import parse_metrics
    from apsvm.report.pictures.precision_recall import Curve, PrecisionRecall, mean_and_each, mean_base_rate

    groups, target = scored.dataset.groups, None if scored.classes else scored.target(parse_metrics(["AP"]))
    curves, base_rate = list[Curve](), 0.0
    for path, scores in scored.scores.items():
        each, name = dict[str, Judged](), path
        if target is not None:
            each[""] = judged_curve(scores, target.judgements, target.lowest_relevant, groups)
        else:
            of_classes = zip(scored.classes[path].tolist(), scores.T, scored.labels(path).T, strict=True)
            for label, column, positive in of_classes:
                with suppress(MetricError):
                    each[f"class {shown_label(label)}"] = judged_curve(column, positive, None, groups)
            if not each:
                raise MetricError("none of the model's classes has both positive and negative rows")
            name = f"{path}, mean of {len(each)} classes"
        of_model = mean_and_each(each, name)
        curves += of_model if target is None and len(scored.scores) == 1 else of_model[:1]
        base_rate = mean_base_rate(each)
    return PrecisionRecall(curves, base_rate)
