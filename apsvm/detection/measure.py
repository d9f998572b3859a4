"""Average precision of detections, by the ranking metrics.

The detections of a class over all images are ranked by score. Right detections are positives; each missed object is
another positive, without a position. So precision and recall are those of a `RankingTable`, P is the number of objects,
and recall ends below 1 if objects are missed:

    AP(voc2010) = Σ_i (R_i − R_{i−1}) · max_{j ≥ i} P_j                    area under the monotone envelope
    AP(voc2007) = (1/11) Σ_{t ∈ {0, .1, …, 1}} max { P_i : R_i ≥ t }
    AP(coco)    = mean over the IoU thresholds .5, .55, …, .95 of (1/101) Σ_{t ∈ {0, .01, …, 1}} max { P_i : R_i ≥ t }

(`metrics.average_precision_voc2010` and `…_voc2007` name the sources; COCO: pycocotools, cocoeval.py.) The mean is over
the classes with an object that counts; others have no AP. Difficult objects and crowds do not count, and detections of
them are left out.
"""

from __future__ import annotations

import difflib
import math
import re
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm._support.ranges import plain_float
from apsvm.detection.base import Counts, Detections, Flags, Floats, Objects
from apsvm.detection.boxes import places_in
from apsvm.detection.matching import LEFT_OUT, RIGHT, match_coco, match_voc
from apsvm.metrics.average_precision_voc2010 import AveragePrecisionVOC2010
from apsvm.metrics.base import Metric, number_in_name
from apsvm.metrics.errors import MetricError
from apsvm.metrics.ranking_table import Judgements, RankingTable

#: Names of the metrics; all except the first may have another IoU threshold after ``@``.
FORMS = ("AP(coco)", "AP50", "AP75", "AP(voc2007)", "AP(voc2010)", "AP(coco)@t", "AP(voc2007)@t", "AP(voc2010)@t")
#: Number of detections of each class that COCO evaluates in an image.
COCO_MOST = 100
_COCO_THRESHOLDS = tuple(np.linspace(0.5, 0.95, 10).tolist())
_USUAL_THRESHOLD = 0.5


@dataclass(frozen=True)
class _Interpolated(Metric):
    """Mean, over ``points`` recalls from 0 to 1, of the best precision from that recall on. Recall is compared in
    floating point, as in the devkits and pycocotools, to give their figures: 3 of 10 objects do not reach the point
    3·0.1 = 0.30000000000000004, but do in the rankings' ``AP(voc2007)``."""

    form = "AP(interpolated)"
    points: int

    def _compute(self, table: RankingTable) -> NDArray[np.float64]:
        recall = np.linspace(0.0, 1.0, self.points)[:, np.newaxis]
        return table.interpolated_precision(_least_hits(recall, table.n_positives))


def _least_hits(recall: Floats, n_positives: Counts) -> Counts:
    """The least h with h / n ≥ recall in float64."""
    near = np.floor(recall * n_positives).astype(np.int64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return near - 1 + sum(((near + step) / n_positives < recall).astype(np.int64) for step in (-1, 0, 1))


@dataclass(frozen=True)
class DetectionMetric:
    """An average precision of detections.

    Attributes
    ----------
    name : str
        Canonical name.
    rule : str
        Rule of matching, "voc" or "coco".
    thresholds : tuple[float, ...]
        IoU thresholds in (0, 1], rising; AP is the mean over them.
    average : Metric
        Average computed from the ranking.
    in_words : str
        Description of this average.
    """

    name: str
    rule: str
    thresholds: tuple[float, ...]
    average: Metric
    in_words: str


def parse_metric(name: str) -> DetectionMetric:
    """Parse the name of a metric.

    Parameters
    ----------
    name : str
        One of ``FORMS``, in upper or lower case.

    Raises
    ------
    MetricError
        An unknown name; the message lists the known ones.
    """
    match = re.fullmatch(r"ap(50|75|\((\w+)\))(?:@(.+))?", name.strip().lower(), re.DOTALL)
    kind = match and (match[2] or "coco")
    if match is None or kind not in ("coco", "voc2007", "voc2010") or (match[2] is None and match[3] is not None):
        near = difflib.get_close_matches(name.strip(), FORMS, n=2, cutoff=0.4)
        hint = f"; nearest: {', '.join(near)}" if near else ""
        raise MetricError(f"unknown metric of detections {name!r}{hint}; known: {', '.join(FORMS)}")
    written = match[3] or {"50": "0.5", "75": "0.75"}.get(match[1])
    threshold = None if written is None else _threshold(name, written)
    if kind == "coco":
        thresholds = _COCO_THRESHOLDS if threshold is None else (threshold,)
        full = {None: "AP(coco)", 0.5: "AP50", 0.75: "AP75"}.get(threshold)
        full = full or f"AP(coco)@{number_in_name(threshold or 0.0)}"
        return DetectionMetric(full, "coco", thresholds, _Interpolated(101), "mean of 101 recall points")
    threshold = threshold or _USUAL_THRESHOLD
    full = f"AP({kind})" + ("" if threshold == _USUAL_THRESHOLD else f"@{number_in_name(threshold)}")
    if kind == "voc2007":
        return DetectionMetric(full, "voc", (threshold,), _Interpolated(11), "mean of 11 recall points")
    return DetectionMetric(full, "voc", (threshold,), AveragePrecisionVOC2010(), "area under the precision envelope")


def _threshold(name: str, written: str) -> float:
    with suppress(ValueError):
        if 0.0 < (value := plain_float(written)) <= 1.0:
            return value
    raise MetricError(f"bad parameter in metric {name!r}: expected an IoU above 0 and at most 1, found {written!r}")


@dataclass(frozen=True, slots=True, eq=False)
class DetectionEvaluation:
    """One metric of a detector.

    Attributes
    ----------
    metric : DetectionMetric
        The metric.
    ap : ndarray
        (C,) float64, AP of each class; NaN without an object that counts.
    n_objects : ndarray
        (C,) int64, number of objects that count.
    n_detections : ndarray
        (C,) int64, number of evaluated detections.
    n_right : ndarray
        (C,) int64, number of right detections at the lowest threshold.
    n_left_out : int
        Number of detections of a difficult object or a crowd, at the lowest threshold.
    """

    metric: DetectionMetric
    ap: Floats
    n_objects: Counts
    n_detections: Counts
    n_right: Counts
    n_left_out: int

    @property
    def mean(self) -> float:
        """Mean AP over the classes with objects; NaN without objects."""
        has = ~np.isnan(self.ap)
        return float(self.ap[has].mean()) if has.any() else math.nan

    @property
    def recall(self) -> Floats:
        """Recall at the end of the ranking at the lowest threshold, (C,) float64; NaN without objects."""
        unknown = np.full(self.ap.size, np.nan)
        result: Floats = np.divide(self.n_right, self.n_objects, out=unknown, where=self.n_objects > 0)
        return result


def evaluate(
    metric: DetectionMetric, objects: Objects, detections: Detections, *, count_difficult: bool = False
) -> DetectionEvaluation:
    """Evaluate detections by one metric.

    Parameters
    ----------
    metric : DetectionMetric
        The metric.
    objects : Objects
        The true objects.
    detections : Detections
        The detections of the same images.
    count_difficult : bool
        True if difficult objects count like others.
    """
    n_classes = len(detections.classes)
    counted = ~objects.crowd if count_difficult else ~(objects.crowd | objects.difficult)
    considered = np.ones(detections.scores.size, dtype=np.bool_)
    match = match_voc
    if metric.rule == "coco":
        match = match_coco
        detections = detections.take(np.argsort(detections.of_image, kind="stable"))
        considered = places_in(detections.scores, detections.of_image * n_classes + detections.of_class) < COCO_MOST
    matches = match(objects, detections, np.array(metric.thresholds), counted, considered)
    per_threshold = [
        _average_precision(metric, objects, detections, outcomes, counted & ~found)
        for outcomes, found in zip(matches.outcomes, matches.found, strict=True)
    ]
    lowest = matches.outcomes[0]
    return DetectionEvaluation(
        metric=metric,
        ap=np.mean(per_threshold, axis=0),
        n_objects=np.bincount(objects.of_class[counted], minlength=n_classes),
        n_detections=np.bincount(detections.of_class[considered], minlength=n_classes),
        n_right=np.bincount(detections.of_class[lowest == RIGHT], minlength=n_classes),
        n_left_out=int(np.count_nonzero(considered & (lowest == LEFT_OUT))),
    )


def _average_precision(
    metric: DetectionMetric, objects: Objects, detections: Detections, outcomes: NDArray[np.int8], missed: Flags
) -> Floats:
    """(C,) float64: AP of each class, from right and wrong detections by falling score (equal scores keep their order)
    and the missed objects, which have no position.

    outcomes : (n,) of the detections; missed : (m,) the objects that count and were not found
    """
    result = np.full(len(detections.classes), np.nan)
    kept = np.flatnonzero(outcomes != LEFT_OUT)
    of_class = np.concatenate([detections.of_class[kept], objects.of_class[missed]])
    if not of_class.size:
        return result
    ranked = np.arange(of_class.size) < kept.size
    scores = np.concatenate([detections.scores[kept], np.zeros(of_class.size - kept.size)])
    relevant = np.concatenate([outcomes[kept] == RIGHT, np.ones(of_class.size - kept.size, dtype=np.bool_)])
    order = np.lexsort((-scores, ~ranked, of_class))
    classes, codes = np.unique(of_class[order], return_inverse=True)
    rows = Judgements(relevant[order], codes=codes, ranked=ranked[order])
    result[classes] = metric.average.each(rows.table(scores[order], "file", in_order=True))
    return result
