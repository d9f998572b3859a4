"""What is evaluated: the objects of images, and detections of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]
#: A file, and the line in it or, of JSON, the entry.
Place = tuple[str, int | str]


def shown_place(place: Place) -> str:
    """``file:line``, or ``file: entry``."""
    file, where = place
    return f"{file}:{where}" if isinstance(where, int) else f"{file}: {where}"


@dataclass(frozen=True, slots=True, eq=False)
class Objects:
    """The truth.

    Attributes
    ----------
    images : tuple[str, ...]
        Names of the I images, those without objects too, in the order of their files or ids.
    sizes : Floats
        (I, 2) float64, width and height in pixels; NaN where the files do not say.
    classes : tuple[str, ...]
        Names of the C classes.
    of_image, of_class : Counts
        (m,) int64, 0..I−1 and 0..C−1, of each object.
    boxes : Floats
        (m, 4) float64, xmin, ymin, xmax, ymax.
    difficult : Flags
        (m,) bool, marked as such (VOC).
    crowd : Flags
        (m,) bool, a region of many objects of the class (COCO).
    source : str
        The name used in messages.
    places : tuple[Place, ...]
        (m,) the file, and the line (the entry) in it, of each object.
    image_ids, class_ids : Mapping[int or str, int], optional
        COCO's ids → the numbers above; None if the files have none. Detections may then be in no other image
        and of no other class.
    """

    images: tuple[str, ...]
    sizes: Floats
    classes: tuple[str, ...]
    of_image: Counts
    of_class: Counts
    boxes: Floats
    difficult: Flags
    crowd: Flags
    source: str
    places: tuple[Place, ...]
    image_ids: Mapping[int | str, int] | None = None
    class_ids: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Detections:
    """What a detector says.

    Attributes
    ----------
    images, classes : tuple[str, ...]
        Names; every one has a number below, not every one has a detection.
    of_image, of_class : Counts
        (n,) int64, of each detection.
    boxes : Floats
        (n, 4) float64, xmin, ymin, xmax, ymax.
    scores : Floats
        (n,) float64, finite, higher is surer.
    source : str
        The name used in messages.
    places : tuple[Place, ...]
        (n,) the file, and the line (the entry) in it, of each detection.
    """

    images: tuple[str, ...]
    classes: tuple[str, ...]
    of_image: Counts
    of_class: Counts
    boxes: Floats
    scores: Floats
    source: str
    places: tuple[Place, ...]

    def take(self, rows: Counts | Flags) -> Detections:
        """Those of the rows, (k,) numbers or (n,) bool."""
        return Detections(
            self.images, self.classes, self.of_image[rows], self.of_class[rows], self.boxes[rows], self.scores[rows],
            self.source, tuple(self.places[row] for row in np.arange(self.scores.size)[rows].tolist()),
        )  # fmt: skip
