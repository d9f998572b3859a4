"""How ``apsvm eval-detections`` shows what it found: tables for people, one JSON object for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from apsvm._support.shown import printable
from apsvm._support.types import JsonDict
from apsvm.cli.output.evaluation import put_table
from apsvm.cli.shared import put

if TYPE_CHECKING:
    from apsvm.detection.base import Detections
    from apsvm.detection.joined import Joined
    from apsvm.detection.measure import DetectionEvaluation
    from apsvm.metrics.significance import Difference
    from apsvm.report.pictures.base import Picture

_LEFT = 12
_MEAN = "mean (mAP)"


@dataclass
class DetectionSystem:
    """One DETECTIONS.

    name : its path; detections : those that were evaluated
    evaluations : by metric
    intervals, differences : by metric, of every class and of the mean, the last
    """

    name: str
    detections: Detections
    evaluations: dict[str, DetectionEvaluation] = field(default_factory=dict)
    intervals: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    differences: dict[str, list[Difference]] = field(default_factory=dict)

    @property
    def first(self) -> DetectionEvaluation:
        """The first metric's, which the counts are of."""
        return next(iter(self.evaluations.values()))

    def values(self, metric: str) -> list[float]:
        """Of every class, and their mean."""
        evaluation = self.evaluations[metric]
        return [*evaluation.ap.tolist(), evaluation.mean]


def put_detections(
    joined: Joined, systems: Sequence[DetectionSystem], *, nms: float | None, confidence: float | None, draws: int
) -> None:
    """The rules, a line a class and system, how the systems differ, and what was counted."""
    for name, evaluation in systems[0].evaluations.items():
        put(f"{name:<{_LEFT}} {_rules(evaluation)}")
    if nms is not None:
        put(f"{'suppressed':<{_LEFT}} detections of IoU > {nms:g} with a better one of their image and class")
    put("")
    put_table(_table(joined, systems), left=1 + (len(systems) > 1))
    put("")
    for system in systems[1:]:
        for metric, differences in system.differences.items():
            _put_differences(joined, systems[0], system, metric, differences)
    if confidence is not None:
        put(f"{'intervals':<{_LEFT}} bootstrap over the images, {100 * confidence:g} % of {draws} draws")
    if systems[-1].differences:
        put(f"{'p':<{_LEFT}} two-sided, bootstrap over the images, {draws} draws, not corrected for many tests")
    _put_counts(joined, systems)


def _rules(evaluation: DetectionEvaluation) -> str:
    """Every rule that the figures depend on."""
    metric, rules = evaluation.metric, evaluation.rules
    thresholds = [f"{threshold:.9g}" for threshold in metric.thresholds]
    at = thresholds[0] if len(thresholds) == 1 else f"{thresholds[0]}, {thresholds[1]}, …, {thresholds[-1]}"
    side = "max − min + 1" if rules.convention == "inclusive" else "max − min"
    most = "all detections" if rules.most is None else f"the best {rules.most} detections of an image and class"
    difficult = "counted" if rules.count_difficult else "ignored"
    return (
        f"{metric.in_words}; {metric.rule.upper()} matching at IoU ≥ {at}, sides {side} ({rules.convention}); "
        f"difficult objects {difficult}; {most}; ties {rules.ties}"
    )


def _table(joined: Joined, systems: Sequence[DetectionSystem]) -> list[list[str]]:
    """A line a class and system, and the means."""
    names = list(systems[0].evaluations)
    several = len(systems) > 1
    rows = [["class", *(["system"] if several else []), *names, "objects", "detections", "true positives", "recall"]]
    for number, of_class in enumerate(joined.classes):
        if not any(_has_any(system, number) for system in systems):
            continue
        for system in systems:
            first = system.first
            counts = [first.n_objects[number], first.n_detections[number], first.n_right[number]]
            cells = [_cell(system, name, number) for name in names] + [str(count) for count in counts]
            cells.append(_figure(float(first.recall[number])))
            rows.append([printable(of_class), *([system.name] if several else []), *cells])
    for system in systems:
        averaged = int((system.first.n_objects > 0).sum())
        recall = [value for value in system.first.recall.tolist() if not math.isnan(value)]
        cells = [_cell(system, name, -1) for name in names]
        counts = ["", "", "", _figure(math.fsum(recall) / len(recall))]
        rows.append([f"{_MEAN} of {averaged}", *([system.name] if several else []), *cells, *counts])
    return rows


def _has_any(system: DetectionSystem, number: int) -> bool:
    return bool(system.first.n_objects[number] or system.first.n_detections[number])


def _cell(system: DetectionSystem, metric: str, number: int) -> str:
    """A class's figure (of -1 the mean) with its interval, if there is one."""
    text = _figure(system.values(metric)[number])
    if metric in system.intervals and text != "-":
        low, high = system.intervals[metric][number]
        text += " [-, -]" if math.isnan(low) else f" [{low:.4f}, {high:.4f}]"
    return text


def _figure(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.6f}"


def _put_differences(
    joined: Joined, a: DetectionSystem, b: DetectionSystem, metric: str, differences: Sequence[Difference]
) -> None:
    """b against a, the mean first."""
    put(f"{b.name} against {a.name}, {metric}")
    with_interval = any(difference.low is not None for difference in differences)
    rows = [["class", "effect", *(["interval"] if with_interval else []), "p"]]
    for name, difference in zip([_MEAN, *joined.classes], [differences[-1], *differences[:-1]], strict=True):
        if math.isnan(difference.effect):
            continue
        cells = [f"{difference.effect:+.6f}"]
        if with_interval:
            has_interval = difference.low is not None and difference.high is not None
            cells.append(f"[{difference.low:+.4f}, {difference.high:+.4f}]" if has_interval else "-")
        rows.append([printable(name), *cells, f"{difference.p:.6f}"])
    put_table(rows, left=1)
    put("")


def _put_counts(joined: Joined, systems: Sequence[DetectionSystem]) -> None:
    """Images and objects, and of each system what was left out, and its ties."""
    import numpy as np

    objects, counted = joined.objects, int(systems[0].first.n_objects.sum())
    with_objects = np.unique(objects.of_image).size
    unknown = (
        f"; {joined.only_detected} have detections only, and are not among OBJECTS" if joined.only_detected else ""
    )
    put(f"{'images':<{_LEFT}} {len(joined.images)}, {with_objects} of them with objects{unknown}")
    kinds = f"{int(objects.difficult.sum())} difficult, {int(objects.crowd.sum())} crowds"
    put(f"{'objects':<{_LEFT}} {counted} to be found, of {objects.of_class.size} ({kinds})")
    for at, system in enumerate(systems):
        first, whose = system.first, f"{system.name}: " if len(systems) > 1 else ""
        total, images = system.detections.scores.size, np.unique(system.detections.of_image).size
        line = f"{total} in {images} images, {first.n_left_out} of them left out: they found objects that do not count"
        beyond = total - int(first.n_detections.sum())
        if beyond:
            line += f"; {beyond} more than the best {first.rules.most} of an image and class"
        if joined.left_out[at]:
            line += f"; {joined.left_out[at]} in images that are not to be evaluated"
        put(f"{'detections':<{_LEFT}} {whose}{line}")
        blocks = f"{first.tied_blocks} block{'' if first.tied_blocks == 1 else 's'}"
        tied = f"{first.tied_rows} detections in {blocks} of equal score" if first.tied_blocks else "none"
        put(f"{'ties':<{_LEFT}} {whose}{tied} between right and wrong; rule: {first.rules.ties}")
    name, lowest = systems[0].first.metric.name, systems[0].first.metric.thresholds[0]
    put(f"{'counts':<{_LEFT}} those of {name} at IoU ≥ {lowest:.9g}")


def put_detections_json(joined: Joined, systems: Sequence[DetectionSystem], *, nms: float | None) -> None:
    """One object: a system's, or of several each one's by its name."""
    contents = {system.name: _as_json(joined, system, at, nms) for at, system in enumerate(systems)}
    content = contents[systems[0].name] if len(systems) == 1 else {"systems": contents}
    put(json.dumps(content, indent=1))


def _as_json(joined: Joined, system: DetectionSystem, at: int, nms: float | None) -> JsonDict:
    first = system.first
    content: JsonDict = {
        "metrics": {name: _or_none(evaluation.mean) for name, evaluation in system.evaluations.items()},
        "rules": {
            name: {
                "average": one.metric.in_words,
                "matching": one.metric.rule,
                "iou_thresholds": list(one.metric.thresholds),
                **asdict(one.rules),
            }
            for name, one in system.evaluations.items()
        },
        "nms": nms,
        "images": len(joined.images),
        "images_only_detected": joined.only_detected,
        "objects": int(first.n_objects.sum()),
        "difficult": int(joined.objects.difficult.sum()),
        "crowds": int(joined.objects.crowd.sum()),
        "detections": int(system.detections.scores.size),
        "detections_left_out": first.n_left_out,
        "detections_not_asked_for": joined.left_out[at],
        "tied_blocks": first.tied_blocks,
        "tied_rows": first.tied_rows,
        "classes": {
            name: _class_as_json(system, number)
            for number, name in enumerate(joined.classes)
            if _has_any(system, number)
        },
    }
    if system.intervals:
        content["intervals"] = {name: _pair(values[-1]) for name, values in system.intervals.items()}
    if system.differences:
        content["against_first"] = {
            name: _difference_as_json(values[-1]) for name, values in system.differences.items()
        }
    return content


def _class_as_json(system: DetectionSystem, number: int) -> JsonDict:
    first = system.first
    content: JsonDict = {
        "metrics": {name: _or_none(float(one.ap[number])) for name, one in system.evaluations.items()},
        "objects": int(first.n_objects[number]),
        "detections": int(first.n_detections[number]),
        "true_positives": int(first.n_right[number]),
        "recall": _or_none(float(first.recall[number])),
    }
    if system.intervals:
        content["intervals"] = {name: _pair(values[number]) for name, values in system.intervals.items()}
    if system.differences:
        content["against_first"] = {
            name: _difference_as_json(values[number]) for name, values in system.differences.items()
        }
    return content


def _difference_as_json(difference: Difference) -> JsonDict | None:
    if math.isnan(difference.effect):
        return None
    return {"effect": difference.effect, "low": difference.low, "high": difference.high, "p": difference.p}


def _pair(interval: tuple[float, float]) -> list[float] | None:
    return None if math.isnan(interval[0]) else list(interval)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def curves_of_detections(systems: Sequence[DetectionSystem], names: Sequence[str]) -> Picture:
    """Of each system the mean over the classes with objects; of one system its classes too.

    Raises
    ------
    PictureError : no detection is right
    """
    from apsvm.cli.commands.plot import MOST_NAMED
    from apsvm.metrics.curves import Steps, mean_curve
    from apsvm.report.pictures.base import PictureError
    from apsvm.report.pictures.precision_recall import Curve, PrecisionRecall

    metric = systems[0].first.metric
    curves: list[Curve] = []
    for system, name in zip(systems, names, strict=True):
        first, of_class = system.first, system.first.curves()
        n_classes = int((first.n_objects > 0).sum())
        if not of_class:
            continue
        steps = mean_curve(list(of_class.values()))
        # classes without a right detection have precision 0 from the start
        steps = Steps(steps.recall, steps.precision * len(of_class) / n_classes)
        curves.append(Curve(f"{name}, mean of {n_classes} classes, {metric.name} {first.mean:.4f}", steps))
        if len(systems) == 1:
            named = len(of_class) <= MOST_NAMED
            for number, of_one in of_class.items():
                label = f"{system.detections.classes[number]}, {first.ap[number]:.4f}" if named else ""
                curves.append(Curve(label, of_one, aside=True))
    if not curves:
        raise PictureError("expected at least one right detection, found none")
    return PrecisionRecall(curves, title=f"IoU ≥ {metric.thresholds[0]:.9g}")
