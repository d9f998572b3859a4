"""Objects or detections while they are being read: names numbered as they come, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from apsvm.data.dataset import DataError
from apsvm.detection.base import Detections, Floats, Objects, Place
from apsvm.detection.fields import Box


class ClassNames:
    """The names that a file of classes lists, a line each; in the other files a class is one of them, or the number of
    its line, counted from 0."""

    def __init__(self, names: Sequence[str], source: str) -> None:
        self.names = tuple(names)
        self.source = source
        self._names = {str(at): name for at, name in enumerate(names)} | {name: name for name in names}

    def name_of(self, word: str, place: str) -> str:
        """Raises DataError for a class that is not listed."""
        try:
            return self._names[word]
        except KeyError:
            raise DataError(
                f"{place}: expected one of the {len(self.names)} classes of {self.source}, found {word!r}"
            ) from None


class Gathered:
    """images, classes : name → number; both may be given from the start"""

    def __init__(self, source: str, classes: ClassNames | None = None) -> None:
        self.source = source
        self.images: dict[str, int] = {}
        self.classes: dict[str, int] = {}
        self._names = classes
        if classes is not None:
            self.classes = {name: at for at, name in enumerate(classes.names)}
        self._sizes: dict[int, tuple[float, float]] = {}
        self._of_image: list[int] = []
        self._of_class: list[int] = []
        self._boxes: list[Box] = []
        self._values: list[float] = []
        self.places: list[Place] = []

    def image(self, name: str, size: tuple[float, float] | None = None) -> int:
        """The image's number, with or without boxes."""
        number = self.images.setdefault(name, len(self.images))
        if size is not None:
            self._sizes[number] = size
        return number

    def class_of(self, word: str, place: str) -> int:
        """The number of a class. Raises DataError if a list says which there are and it is not among them."""
        name = word if self._names is None else self._names.name_of(word, place)
        return self.classes.setdefault(name, len(self.classes))

    def add(self, image: int, of_class: int, box: Box, value: float, place: Place) -> None:
        """value : a detection's score, or what kind of an object it is: 1 difficult, 2 crowd, 0 neither"""
        self._of_image.append(image)
        self._of_class.append(of_class)
        self._boxes.append(box)
        self._values.append(value)
        self.places.append(place)

    @property
    def boxes(self) -> Floats:
        """(n, 4) float64"""
        return np.array(self._boxes, dtype=np.float64).reshape(-1, 4)

    def objects(
        self, image_ids: Mapping[int | str, int] | None = None, class_ids: Mapping[int, int] | None = None
    ) -> Objects:
        """What was gathered, as objects; classes that no file lists are in the order of their names."""
        classes = tuple(self.classes)
        if self._names is None and class_ids is None:
            classes = tuple(sorted(classes))
        renumbered = np.array([classes.index(name) for name in self.classes], dtype=np.int64)
        sizes = np.full((len(self.images), 2), np.nan)
        for number, size in self._sizes.items():
            sizes[number] = size
        kinds = np.array(self._values, dtype=np.float64)
        return Objects(
            images=tuple(self.images),
            sizes=sizes,
            classes=classes,
            of_image=np.array(self._of_image, dtype=np.int64),
            of_class=renumbered[np.array(self._of_class, dtype=np.int64)],
            boxes=self.boxes,
            difficult=kinds == 1,
            crowd=kinds == 2,
            source=self.source,
            places=tuple(self.places),
            image_ids=image_ids,
            class_ids=class_ids,
        )

    def detections(self) -> Detections:
        """What was gathered, as detections."""
        return Detections(
            images=tuple(self.images),
            classes=tuple(self.classes),
            of_image=np.array(self._of_image, dtype=np.int64),
            of_class=np.array(self._of_class, dtype=np.int64),
            boxes=self.boxes,
            scores=np.array(self._values, dtype=np.float64),
            source=self.source,
            places=tuple(self.places),
        )
