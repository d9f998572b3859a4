"""Objects in images, and detections of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import DataError
from apsvm.detection.fields import Box

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Objects:
    """True objects of the images.

    Attributes
    ----------
    images : names (COCO: ids) of the I images, with or without objects, in the order of their files or ids
    classes : names of the C classes
    of_image, of_class : (m,) int64, 0..I−1 and 0..C−1, of each object
    boxes : (m, 4) float64, xmin, ymin, xmax, ymax
    difficult : (m,) bool, marked as such (VOC)
    crowd : (m,) bool, a region of many objects of the class (COCO)
    source : name in messages
    class_ids : COCO's ids of the classes; empty if the files have none
    remark : a warning about marks in the file that are ignored; "" without one
    """

    images: tuple[str | int, ...]
    classes: tuple[str, ...]
    of_image: Counts
    of_class: Counts
    boxes: Floats
    difficult: Flags
    crowd: Flags
    source: str
    class_ids: tuple[int, ...] = ()
    remark: str = ""

    @classmethod
    def of_rows(
        cls,
        images: Iterable[str | int],
        classes: Iterable[str],
        rows: Sequence[tuple[int, int, Box, bool, bool]],
        source: str,
    ) -> Objects:
        """Builds objects from rows (image, class, box, difficult, crowd). Raises DataError if there are none."""
        if not rows:
            raise DataError(f"{source}: expected at least one object, found none")
        of_image, of_class, boxes, difficult, crowd = zip(*rows, strict=True)
        images_of, classes_of = np.array([of_image, of_class], dtype=np.int64)
        marked, crowds = np.array([difficult, crowd], dtype=np.bool_)
        corners = np.array(boxes, dtype=np.float64)
        return cls(tuple(images), tuple(classes), images_of, classes_of, corners, marked, crowds, source)


@dataclass(frozen=True, slots=True, eq=False)
class Detections:
    """Detections of one detector.

    Attributes
    ----------
    classes : names of the objects' classes, followed by classes without objects
    of_image, of_class : (n,) int64, image and class of each detection; images are numbered as in the objects
    boxes : (n, 4) float64, xmin, ymin, xmax, ymax
    scores : (n,) float64, finite, higher is more certain
    """

    classes: tuple[str, ...]
    of_image: Counts
    of_class: Counts
    boxes: Floats
    scores: Floats

    @classmethod
    def of_rows(cls, classes: Iterable[str], rows: Sequence[tuple[int, int, Box, float]]) -> Detections:
        """Builds detections from rows (image, class, box, score)."""
        of_image, of_class = np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2).T
        boxes = np.array([row[2] for row in rows], dtype=np.float64).reshape(-1, 4)
        scores = np.array([row[3] for row in rows], dtype=np.float64)
        return cls(tuple(classes), of_image, of_class, boxes, scores)

    def take(self, rows: Counts) -> Detections:
        """Detections at the positions ``rows`` (k,)."""
        return Detections(self.classes, self.of_image[rows], self.of_class[rows], self.boxes[rows], self.scores[rows])
