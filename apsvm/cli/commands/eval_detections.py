"""``apsvm eval-detections``: average precision of boxes with a class and a score against the objects of images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from apsvm.cli.options.parameters import Number, ParamType
from apsvm.cli.shared import BAD_DATA, Failure, given_by_user, reading
from apsvm.detection import CONVENTIONS, FORMATS, TIE_RULES

if TYPE_CHECKING:
    from apsvm.cli.output.detections import DetectionSystem
    from apsvm.detection.joined import Joined
    from apsvm.detection.measure import DetectionMetric, Rules

#: What is reported unless the user says otherwise, by the format of the objects.
USUAL_METRICS = {"coco": ("AP(coco)", "AP50", "AP75"), "voc": ("AP(voc2010)",), "text": ("AP(voc2010)",)}
USUAL_METRICS["csv"] = USUAL_METRICS["coco"]
_USUAL_CONFIDENCE = 0.95


class _Formats(ParamType):
    """One format for both sides, or two with a comma between them."""

    name = "formats"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        words = value if isinstance(value, tuple) else tuple(str(value).lower().split(","))
        if not 1 <= len(words) <= 2 or not all(word in FORMATS for word in words):
            self.fail(f"expected one of {', '.join(FORMATS)}, or two of them with a comma, found {value!r}")
        return words[0], words[-1]

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        return [CompletionItem(f"{before}{comma}{name}") for name in FORMATS if name.startswith(last)]


class _DetectionMetricName(ParamType):
    """The name of a metric of detections, as it is."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from apsvm.detection.measure import FORMS

        names = (form.replace("@t", "@0.7") for form in FORMS)
        return [CompletionItem(name) for name in names if name.lower().startswith(incomplete.lower())]


@click.command(name="eval-detections")
@click.argument("objects", metavar="OBJECTS")
@click.argument("detections", metavar="DETECTIONS…", nargs=-1, required=True)
@click.option(
    "--format", "formats", type=_Formats(), metavar="|".join(FORMATS) + "[,…]",
    help="How OBJECTS and DETECTIONS are written, one name for both or two with a comma, as in voc,text. [default: "
    "by the names of the files]",
)  # fmt: skip
@click.option(
    "--classes", metavar="FILE",
    help="The classes that there are, a line each; a number in the other files is a line of it, counted from 0.",
)  # fmt: skip
@click.option("--images", metavar="FILE", help="The images to evaluate, a line each.  [default: all]")
@click.option(
    "-m", "--metric", "metrics", metavar="NAME", type=_DetectionMetricName(), multiple=True,
    help="AP(voc2010), AP(voc2007), AP(coco), AP50, AP75; AP(voc2010)@0.7 is at another IoU. May be given more than "
    "once. [default: AP(voc2010); with objects in COCO's format or CSV AP(coco), AP50, AP75]",
)  # fmt: skip
@click.option(
    "--iou", "convention", type=click.Choice(CONVENTIONS),
    help="The side of a box is max − min + 1 (whole pixels), or max − min. [default: inclusive for VOC's metrics, "
    "continuous for COCO's]",
)  # fmt: skip
@click.option(
    "--difficult", type=click.Choice(["ignored", "counted"]), default="ignored", show_default=True,
    help="Objects marked as difficult need not be found, and what finds them is left out; or they are like others.",
)  # fmt: skip
@click.option(
    "--max-detections", "most", type=click.IntRange(1, 10**9), metavar="N",
    help="Look at the N best detections of each image and class. [default: all; 100 for COCO's metrics]",
)  # fmt: skip
@click.option(
    "--ties", type=click.Choice(TIE_RULES), default="stable", show_default=True,
    help="Detections of equal score: in the order of the files, as the devkits and pycocotools do, or as one block.",
)  # fmt: skip
@click.option(
    "--nms", type=Number(0, 1), metavar="IOU",
    help="First drop detections that overlap a better one of their image and class by more.  [default: take all]",
)  # fmt: skip
@click.option(
    "--confidence", type=Number(0, 1, open_low=True), metavar="LEVEL",
    help="Report intervals of this level from a bootstrap over the images. [default: none; 0.95 with --bootstrap]",
)  # fmt: skip
@click.option("--bootstrap", type=click.IntRange(1), default=1000, show_default=True, help="Draws of the bootstrap.")
@click.option(
    "--compare", is_flag=True,
    help="Test whether the others differ from the first DETECTIONS: two-sided p of the bootstrap over the images, not "
    "corrected for the number of tests.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the draws.")
@click.option(
    "--picture",
    metavar="FILE",
    help="Draw precision against recall, at the first metric's lowest IoU, as .png or .svg.",
)
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def eval_detections(**options: Any) -> None:
    """Evaluate detections: boxes with a class and a score against the objects of images, AP by PASCAL VOC or COCO.

    \b
    format  OBJECTS                                DETECTIONS
    voc     folder of XML annotations              folder of comp3_det_test_CLASS.txt
    coco    JSON, as instances_val2017.json        JSON, a list of results
    text    folder, a file an image, of lines      folder, a file an image, of lines
            class xmin ymin xmax ymax [difficult]  class score xmin ymin xmax ymax
    csv     image, class, xmin, ymin, xmax, ymax   image, class, score, x, y, width, height
            or x, y, width, height                 or xmin, ymin, xmax, ymax

    Several DETECTIONS stand side by side. The first lines say by which rules the figures are.

    \b
    apsvm eval-detections Annotations results -m 'AP(voc2007)'
    apsvm eval-detections instances.json a.json b.json --compare --picture pr.svg
    """
    from apsvm.detection.readers import format_of

    if options["formats"] is None:
        options["formats"] = tuple(format_of(path) for path in (options["objects"], options["detections"][0]))
    evaluation = _DetectionOptions(**options)
    evaluation.check()
    metrics = evaluation.named_metrics()
    evaluation.show(metrics, evaluation.joined(metrics[0]))


@dataclass(frozen=True, kw_only=True)
class _DetectionOptions:
    """The command's options, each as its help says."""

    objects: str
    detections: tuple[str, ...]
    formats: tuple[str, str]
    classes: str | None
    images: str | None
    metrics: tuple[str, ...]
    convention: str | None
    difficult: str
    most: int | None
    ties: str
    nms: float | None
    confidence: float | None
    bootstrap: int
    compare: bool
    seed: int
    picture: str | None
    as_json: bool

    def check(self) -> None:
        """Ends the command for options that do not go together."""
        files = [self.objects, *self.detections, self.classes, self.images]
        if len({*self.detections}) < len(self.detections):
            raise click.UsageError("the same detections are given twice")
        if self.objects in self.detections:
            raise click.UsageError(f"OBJECTS and DETECTIONS are both {self.objects}")
        if files.count("-") > 1:
            raise click.UsageError("only one of the files can be standard input")
        if self.compare and len(self.detections) < 2:
            raise click.UsageError("--compare needs at least two DETECTIONS")
        if given_by_user("seed") and self.level is None and not self.compare:
            raise click.UsageError("--seed is for --confidence, --bootstrap and --compare")
        if self.picture is not None:
            from apsvm.cli.commands.plot import check_picture

            check_picture(self.picture, [file for file in files if file is not None])

    @property
    def level(self) -> float | None:
        """Of the intervals, None if none are requested."""
        if self.confidence is None and given_by_user("bootstrap") and not self.compare:
            return _USUAL_CONFIDENCE
        return self.confidence

    def named_metrics(self) -> list[DetectionMetric]:
        """Those asked for, each once, or the usual ones."""
        from apsvm.detection.measure import parse_metric
        from apsvm.metrics import MetricError

        try:
            metrics = [parse_metric(name) for name in self.metrics or USUAL_METRICS[self.formats[0]]]
        except MetricError as error:
            raise click.UsageError(str(error)) from None
        return list({metric.name: metric for metric in metrics}.values())

    def rules(self, metric: DetectionMetric) -> Rules:
        """The metric's usual ones except those requested."""
        from apsvm.detection.measure import Rules, usual_rules

        usual = usual_rules(metric)
        return Rules(
            convention=self.convention or usual.convention,
            most=self.most or usual.most,
            count_difficult=self.difficult == "counted",
            ties=self.ties,
        )

    def joined(self, first: DetectionMetric) -> Joined:
        """Both sides read, and detections suppressed if that is requested; failures end the command."""
        from apsvm.detection.boxes import nms
        from apsvm.detection.joined import join
        from apsvm.detection.readers import read_class_names, read_detections, read_names, read_objects

        of_objects, of_detections = self.formats
        classes = images = None
        if self.classes is not None:
            with reading(self.classes):
                classes = read_class_names(self.classes)
        if self.images is not None:
            with reading(self.images):
                images = read_names(self.images)
        with reading(self.objects):
            objects = read_objects(self.objects, of_objects, classes)
        systems = []
        for path in self.detections:
            with reading(path):
                system = read_detections(path, of_detections, objects, classes)
            if self.nms is not None:
                convention = self.rules(first).convention
                kept = nms(
                    system.boxes, system.scores, system.of_image, system.of_class, threshold=self.nms,
                    convention=convention,
                )  # fmt: skip
                system = system.take(kept)
            systems.append(system)
        with reading(self.objects):
            return join(objects, systems, images)

    def show(self, metrics: Sequence[DetectionMetric], joined: Joined) -> None:
        """Evaluates and prints; failures end the command."""
        from apsvm.cli.output.detections import put_detections, put_detections_json

        systems = self._evaluated(metrics, joined)
        if self.picture is not None:
            self._draw(systems)
        if self.as_json:
            put_detections_json(joined, systems, nms=self.nms)
        else:
            put_detections(joined, systems, nms=self.nms, confidence=self.level, draws=self.bootstrap)

    def _evaluated(self, metrics: Sequence[DetectionMetric], joined: Joined) -> list[DetectionSystem]:
        from apsvm.cli.output.detections import DetectionSystem
        from apsvm.detection.bootstrap import difference, draw_images, interval_of
        from apsvm.detection.measure import evaluate

        systems = [DetectionSystem(path, part) for path, part in zip(self.detections, joined.systems, strict=True)]
        for metric in metrics:
            with reading(self.objects):
                for system in systems:
                    system.evaluations[metric.name] = evaluate(metric, self.rules(metric), joined, system.detections)
            evaluations = [system.evaluations[metric.name] for system in systems]
            if not any(evaluation.n_objects.any() for evaluation in evaluations):
                raise Failure(
                    BAD_DATA, f"{self.objects}: expected objects that are not difficult or crowds, found none"
                )
            if self.level is None and not self.compare:
                continue
            draws = draw_images(evaluations, len(joined.images), self.bootstrap, self.seed)
            for at, system in enumerate(systems):
                if self.level is not None:
                    columns = draws[:, at].T
                    system.intervals[metric.name] = [interval_of(column, self.level) for column in columns]
                if self.compare and at:
                    before, after = systems[0].values(metric.name), system.values(metric.name)
                    system.differences[metric.name] = [
                        difference(a, b, draws[:, 0, column], draws[:, at, column], self.level)
                        for column, (a, b) in enumerate(zip(before, after, strict=True))
                    ]
        return systems

    def _draw(self, systems: Sequence[DetectionSystem]) -> None:
        from apsvm.cli.commands.plot import drawing, short_names, write_picture
        from apsvm.cli.output.detections import curves_of_detections

        assert self.picture is not None
        names = short_names([path if path != "-" else "stdin" for path in self.detections])
        with drawing(self.objects):
            write_picture(curves_of_detections(systems, names), self.picture)
