"""What is evaluated: the objects of images, and detections of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Objects:
    """The truth.

    Attributes
    ----------
    images : tuple[str or int, ...]
        Names (COCO: ids) of the I images, those without objects too, in the order of their files or ids.
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
    class_ids : tuple[int, ...]
        COCO's ids of the classes; empty if the files have none.
    remark : str
        A sentence on what the files say and the figures leave out of account; or "".
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


@dataclass(frozen=True, slots=True, eq=False)
class Detections:
    """What a detector says.

    Attributes
    ----------
    classes : tuple[str, ...]
        Names: the objects' classes, and behind them those that no object has.
    of_image, of_class : Counts
        (n,) int64, of each detection; images are numbered as the objects' are.
    boxes : Floats
        (n, 4) float64, xmin, ymin, xmax, ymax.
    scores : Floats
        (n,) float64, finite, higher is surer.
    """

    classes: tuple[str, ...]
    of_image: Counts
    of_class: Counts
    boxes: Floats
    scores: Floats

    def take(self, rows: Counts) -> Detections:
        """Those of the rows (k,)."""
        return replace(
            self, of_image=self.of_image[rows], of_class=self.of_class[rows], boxes=self.boxes[rows],
            scores=self.scores[rows],
        )  # fmt: skip
