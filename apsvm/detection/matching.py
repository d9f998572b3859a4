"""Matching of detections to objects by the rules of PASCAL VOC and of COCO, within each image and class.

**VOC** (devkits, VOCevaldet.m): each detection is compared with the object of highest IoU, the first of equals. If that
IoU reaches the threshold, the detection is left out if the object is difficult, and right if no better detection had
this object. Otherwise it is wrong, even if a second object overlaps as much.

**COCO** (pycocotools, cocoeval.py): in the order of scores, each detection takes the free object of highest IoU, the
last of equals, if its IoU reaches the threshold. Without such an object it may take one that does not count, and is
left out: a difficult one, or a crowd, which can be taken repeatedly.

Equal scores keep their order; in COCO, image by image. Cost: O(n + pairs within an image and class). The loop in Python
runs over ranks within an image, not over detections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.detection.base import Counts, Detections, Flags, Floats, Objects
from apsvm.detection.boxes import iou, places_in

RIGHT, WRONG, LEFT_OUT = 1, 0, -1
_AT_ONCE = 1 << 20  # number of pairs whose IoU is computed at a time


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Result of matching at each of T thresholds.

    Attributes
    ----------
    outcomes : ndarray
        (T, n) int8, ``RIGHT``, ``WRONG`` or ``LEFT_OUT`` for each detection.
    found : ndarray
        (T, m) bool, True for objects found by a right detection.
    """

    outcomes: NDArray[np.int8]
    found: Flags


class _MatchedBoxes(NamedTuple):
    """Detections and objects (k,) of one image and class, and their IoU."""

    detection: Counts
    object: Counts
    overlap: Floats

    def take(self, rows: Counts | Flags) -> _MatchedBoxes:
        return _MatchedBoxes(self.detection[rows], self.object[rows], self.overlap[rows])


def match_voc(
    objects: Objects,
    detections: Detections,
    thresholds: Floats,
    counted: Flags,
    considered: Flags,
) -> Matches:
    """Match detections to objects by the rules of PASCAL VOC.

    Parameters
    ----------
    objects : Objects
        The true objects.
    detections : Detections
        The detections of the same images.
    thresholds : ndarray
        (T,) float64, least IoU of a match.
    counted : ndarray
        (m,) bool, objects that count.
    considered : ndarray
        (n,) bool, detections to match.

    Returns
    -------
    Matches
        The outcome at each threshold.
    """
    least = float(thresholds.min())
    parts = _overlapping(objects, detections, considered, least, coco=False)
    pairs = _together(_best_of_each_detection(part) for part in parts)
    outcomes = np.tile(np.where(considered, WRONG, LEFT_OUT).astype(np.int8), (thresholds.size, 1))
    found = np.zeros((thresholds.size, counted.size), dtype=np.bool_)
    place = np.argsort(np.argsort(-detections.scores, kind="stable"))
    for at, threshold in enumerate(thresholds.tolist()):
        looked = pairs.take(pairs.overlap >= threshold)
        counts = counted[looked.object]
        outcomes[at, looked.detection[~counts]] = LEFT_OUT
        looked = looked.take(counts)
        looked = looked.take(np.lexsort((place[looked.detection], looked.object)))
        first = looked.take(_firsts(looked.object))
        outcomes[at, first.detection] = RIGHT
        found[at, first.object] = True
    return Matches(outcomes, found)


def match_coco(
    objects: Objects,
    detections: Detections,
    thresholds: Floats,
    counted: Flags,
    considered: Flags,
) -> Matches:
    """Match detections to objects by the rules of COCO; arguments and result as for ``match_voc``."""
    least = float(thresholds.min())
    pairs = _together(_overlapping(objects, detections, considered, least, coco=True))
    outcomes = np.tile(np.where(considered, WRONG, LEFT_OUT).astype(np.int8), (thresholds.size, 1))
    taken = np.zeros((thresholds.size, counted.size), dtype=np.bool_)
    for turn in _turns(pairs, detections, counted):
        counts = counted[turn.object]
        may = turn.overlap >= thresholds[:, np.newaxis]
        may &= ~taken[:, turn.object] | objects.crowd[turn.object]
        # pairs of one detection are adjacent, the best first
        starts = _firsts(turn.detection)
        falling = np.arange(turn.object.size, 0, -1)
        best = np.maximum.reduceat(np.where(may, falling, 0), starts, axis=1)
        threshold, which = np.nonzero(best)
        pair = turn.object.size - best[threshold, which]
        outcomes[threshold, turn.detection[pair]] = np.where(counts[pair], RIGHT, LEFT_OUT)
        taken[threshold, turn.object[pair]] = True
    return Matches(outcomes, taken & counted)


def _turns(pairs: _MatchedBoxes, detections: Detections, counted: Flags) -> Iterator[_MatchedBoxes]:
    """Yields the pairs of the best detection of every image and class, then those of the second best, …. Pairs of a
    detection are ordered by: objects that count first, falling IoU, last object first."""
    if not pairs.detection.size:
        return
    with_pairs = np.unique(pairs.detection)
    group = _groups(detections, len(detections.classes))[with_pairs]
    turn = np.zeros(detections.scores.size, dtype=np.int64)
    turn[with_pairs] = places_in(detections.scores[with_pairs], group)
    order = np.lexsort((-pairs.object, -pairs.overlap, ~counted[pairs.object], pairs.detection, turn[pairs.detection]))
    pairs = pairs.take(order)
    starts = _firsts(turn[pairs.detection])
    for first, last in zip(starts, [*starts[1:], order.size], strict=True):
        yield pairs.take(np.arange(first, last))


def _groups(part: Objects | Detections, n_classes: int) -> Counts:
    """(n,) int64, one number for each image and class."""
    result: Counts = part.of_image * n_classes + part.of_class
    return result


def _firsts(values: Counts) -> Counts:
    """Start positions of the runs of equal values (n,)."""
    changes = np.ones(values.size, dtype=np.bool_)
    changes[1:] = values[1:] != values[:-1]
    return np.flatnonzero(changes)


def _best_of_each_detection(pairs: _MatchedBoxes) -> _MatchedBoxes:
    """For each detection, the pair of highest IoU; the first object among equals."""
    pairs = pairs.take(np.lexsort((pairs.object, -pairs.overlap, pairs.detection)))
    return pairs.take(_firsts(pairs.detection))


def _together(parts: Iterable[_MatchedBoxes]) -> _MatchedBoxes:
    nothing = _MatchedBoxes(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return _MatchedBoxes(*map(np.concatenate, zip(nothing, *parts, strict=True)))


def _overlapping(
    objects: Objects, detections: Detections, considered: Flags, least: float, *, coco: bool
) -> Iterator[_MatchedBoxes]:
    """Yields blocks of pairs of one image and class whose IoU is at least ``least``, in the order of the detections."""
    n_classes, rows = len(detections.classes), np.flatnonzero(considered)
    of_objects = _groups(objects, n_classes)
    order = np.argsort(of_objects, kind="stable")
    in_order = of_objects[order]
    groups = _groups(detections, n_classes)[rows]
    begins = np.searchsorted(in_order, groups, side="left")
    counts = np.searchsorted(in_order, groups, side="right") - begins
    up_to = np.concatenate([[0], np.cumsum(counts)])
    first = 0
    while first < rows.size:
        last = max(first + 1, int(np.searchsorted(up_to, up_to[first] + _AT_ONCE, side="right")) - 1)
        n = counts[first:last]
        within = np.arange(up_to[last] - up_to[first]) - np.repeat(up_to[first:last] - up_to[first], n)
        detection = np.repeat(rows[first:last], n)
        of_object = order[np.repeat(begins[first:last], n) + within]
        crowd = objects.crowd[of_object] if coco else None
        overlap = iou(detections.boxes[detection], objects.boxes[of_object], inclusive=not coco, crowd=crowd)
        yield _MatchedBoxes(detection, of_object, overlap).take(overlap >= least)
        first = last
