"""``apsvm eval-detections``: average precision of boxes with a class and a score against the objects of images."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from apsvm._support.shown import printable
from apsvm._support.types import JsonDict
from apsvm.cli.help import HelpfulCommand
from apsvm.cli.options.parameters import DETECTION_METRIC
from apsvm.cli.options.table import files, options
from apsvm.cli.shared import BAD_DATA, Failure, put, say

if TYPE_CHECKING:
    from apsvm.detection.base import Detections, Objects
    from apsvm.detection.measure import DetectionEvaluation, DetectionMetric

_LEFT = 20


@click.command(name="eval-detections", cls=HelpfulCommand)
@files("OBJECTS", "DETECTIONS")
@options("classes", "as_json", metrics={
    "type": DETECTION_METRIC,
    "help": "AP(voc2010), AP(voc2007), AP(coco), AP50, AP75, or another IoU, as AP(voc2010)@0.7. May be repeated. "
    "[default: AP(voc2010); for COCO files AP(coco), AP50, AP75]",
})  # fmt: skip
def eval_detections(
    objects: str, detections: str, classes: str | None, metrics: tuple[DetectionMetric, ...], as_json: bool
) -> None:
    """Evaluate detections: boxes with a class and a score against the objects of images, AP by PASCAL VOC or COCO.

    \b
            OBJECTS                    DETECTIONS
    VOC     folder of XML annotations  folder of comp3_det_test_CLASS.txt, or one of them;
                                       or a file per image, of class score xmin ymin xmax ymax
    COCO    JSON, as                   JSON, a list of results
            instances_val2017.json

    Objects marked as difficult do not count, nor do detections of them. The first lines name the rules of the figures.

    \b
    apsvm eval-detections Annotations results -m 'AP(voc2007)'
    apsvm eval-detections instances.json results.json
    """
    from apsvm.detection.measure import evaluate, parse_metric
    from apsvm.detection.readers import read_detections, read_objects

    if objects == detections:
        raise click.UsageError(f"OBJECTS and DETECTIONS are both {objects}")
    truth = read_objects(objects)
    if truth.remark:
        say(f"{objects}: {truth.remark}")
    boxes = read_detections(detections, truth, classes)
    usual = map(parse_metric, ("AP(coco)", "AP50", "AP75") if truth.class_ids else ("AP(voc2010)",))
    by_name = {metric.name: metric for metric in metrics or usual}
    evaluations = [evaluate(metric, truth, boxes) for metric in by_name.values()]
    if not evaluations[0].n_objects.any():
        raise Failure(BAD_DATA, f"{objects}: every object is marked difficult or crowd: none counts")
    if boxes.scores.size and not any(evaluation.n_right.any() for evaluation in evaluations):
        corners = "x y width height" if truth.class_ids else "xmin ymin xmax ymax, not x y width height or centres"
        say(f"warning: no detection finds an object: boxes must be {corners}, in pixels")
    content = _as_json(evaluations, truth, boxes)
    if as_json:
        put(json.dumps(content, indent=1))
    else:
        _put_text(content, evaluations[0])


def _put_text(content: JsonDict, first: DetectionEvaluation) -> None:
    """Prints the rules, a line per class, the means and the counts; counts are those of the first metric."""
    from apsvm.cli.output.evaluation import put_table

    for name, rules in content["rules"].items():
        put(f"{name:<{_LEFT}} {rules}")
    put("")
    rows = [["class", *content["metrics"], "objects", "detections", "true positives", "recall"]]
    for name, of_class in content["classes"].items():
        counts = [str(of_class[count]) for count in ("objects", "detections", "true_positives")]
        figures = map(_figure, of_class["metrics"].values())
        rows.append([printable(name), *figures, *counts, _figure(of_class["recall"])])
    averaged = first.n_objects > 0
    recall = _figure(float(first.recall[averaged].mean()))
    means = [f"mean (mAP) of {averaged.sum()}", *map(_figure, content["metrics"].values()), "", "", "", recall]
    put_table([*rows, means], left=1)
    put("")
    for name in ("images", "objects", "difficult", "crowds", "detections", "detections_left_out"):
        put(f"{name.replace('_', ' '):<{_LEFT}} {content[name]}")


def _rules(metric: DetectionMetric) -> str:
    first, *_, last = metric.thresholds * 2
    at = f"{first:.9g}" + (f" to {last:.9g}" if last > first else "")
    return f"{metric.in_words}; {metric.rule.upper()} matching at IoU ≥ {at}; difficult objects ignored"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.6f}"


def _as_json(evaluations: Sequence[DetectionEvaluation], objects: Objects, detections: Detections) -> JsonDict:
    first = evaluations[0]
    return {
        "metrics": {evaluation.metric.name: evaluation.mean for evaluation in evaluations},
        "rules": {evaluation.metric.name: _rules(evaluation.metric) for evaluation in evaluations},
        "images": len(objects.images),
        "objects": int(first.n_objects.sum()),
        "difficult": int(objects.difficult.sum()),
        "crowds": int(objects.crowd.sum()),
        "detections": int(detections.scores.size),
        "detections_left_out": first.n_left_out,
        "classes": {
            detections.classes[number]: {
                "metrics": {by.metric.name: _or_none(float(by.ap[number])) for by in evaluations},
                "objects": int(first.n_objects[number]),
                "detections": int(first.n_detections[number]),
                "true_positives": int(first.n_right[number]),
                "recall": _or_none(float(first.recall[number])),
            }
            for number in (first.n_objects + first.n_detections).nonzero()[0].tolist()
        },
    }


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
