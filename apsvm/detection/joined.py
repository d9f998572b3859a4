"""Objects and the detections of several systems under one numbering of images and classes, checked against each other.

The images are the union of both sides: one without objects counts (every detection in it is wrong), and so does one
without detections (its objects are missed). Where the objects' file lists its images by id (COCO), or the user lists
them, there are no others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apsvm.data.dataset import DataError
from apsvm.detection.base import Counts, Detections, Floats, Objects, shown_place
from apsvm.detection.boxes import check_inside


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """What can be evaluated.

    Attributes
    ----------
    images, classes : tuple[str, ...]
        The names behind all the numbers below.
    objects : Objects
        M objects.
    systems : tuple[Detections, ...]
        Detections, a system each.
    only_detected : int
        How many of the images the objects' side does not have.
    left_out : tuple[int, ...]
        How many detections of each system are in images that were not asked for.
    relative : bool
        Whether coordinates are shares of the image's sides, and not pixels.
    """

    images: tuple[str, ...]
    classes: tuple[str, ...]
    objects: Objects
    systems: tuple[Detections, ...]
    only_detected: int
    left_out: tuple[int, ...]
    relative: bool


def join(objects: Objects, systems: Sequence[Detections], images: Sequence[str] | None = None) -> Joined:
    """``images`` : the names of those to evaluate; None: all that either side has.

    Raises DataError: nothing to evaluate, nothing in common, boxes that are no pixels of their images.
    """
    if images is not None:
        objects = _only(objects, images)
    if not objects.of_class.size:
        raise DataError(f"{objects.source}: expected at least one object, found none")
    image_numbers = {name: at for at, name in enumerate(objects.images)}
    class_numbers = {name: at for at, name in enumerate(objects.classes)}
    listed = objects.image_ids is not None
    selected, left_out = [], []
    for system in systems:
        _check_common(objects, system, image_numbers, class_numbers)
        if images is not None:
            inside = np.array([name in image_numbers for name in system.images], dtype=np.bool_)
            inside = inside[system.of_image]
            left_out.append(int(np.count_nonzero(~inside)))
            system = _without_unused(system.take(inside), image_numbers)
        else:
            left_out.append(0)
        for name in sorted({*system.images} - {*image_numbers}):
            if listed:
                raise DataError(f"{_place_in(system, name)}: image {name!r} is not among those of {objects.source}")
            image_numbers[name] = len(image_numbers)
        for name in sorted({*system.classes} - {*class_numbers}):
            class_numbers[name] = len(class_numbers)
        selected.append(system)
    names, classes = tuple(image_numbers), tuple(class_numbers)
    only_detected = len(names) - len(objects.images)
    sizes = np.concatenate([objects.sizes, np.full((only_detected, 2), np.nan)])
    objects = dataclasses.replace(objects, images=names, classes=classes, sizes=sizes)
    renumbered = [_renumbered(system, image_numbers, class_numbers) for system in selected]
    relative = bool((objects.boxes >= 0).all() and (objects.boxes <= 1).all())
    parts: list[Objects | Detections] = [objects, *renumbered]
    for part in parts:
        _check_boxes(part, sizes, relative=relative, source=objects.source)
    return Joined(names, classes, objects, tuple(renumbered), only_detected, tuple(left_out), relative)


def _only(objects: Objects, images: Sequence[str]) -> Objects:
    """Those of the images asked for."""
    numbers = {name: at for at, name in enumerate(objects.images)}
    for name in images:
        if name not in numbers:
            raise DataError(f"{objects.source}: expected the requested image {name!r}, found none of that name")
    wanted = np.array([numbers[name] for name in images], dtype=np.int64)
    new = np.full(len(numbers), -1, dtype=np.int64)
    new[wanted] = np.arange(wanted.size)
    rows = np.flatnonzero(new[objects.of_image] >= 0)
    image_ids = objects.image_ids
    if image_ids is not None:
        image_ids = {name: int(new[number]) for name, number in image_ids.items() if new[number] >= 0}
    return dataclasses.replace(
        objects,
        images=tuple(images),
        sizes=objects.sizes[wanted],
        of_image=new[objects.of_image[rows]],
        of_class=objects.of_class[rows],
        boxes=objects.boxes[rows],
        difficult=objects.difficult[rows],
        crowd=objects.crowd[rows],
        places=tuple(objects.places[row] for row in rows.tolist()),
        image_ids=image_ids,
    )


def _without_unused(system: Detections, image_numbers: dict[str, int]) -> Detections:
    """Its list of images shortened to those asked for."""
    kept = [at for at, name in enumerate(system.images) if name in image_numbers]
    new = np.full(len(system.images), -1, dtype=np.int64)
    new[kept] = np.arange(len(kept))
    return dataclasses.replace(system, images=tuple(system.images[at] for at in kept), of_image=new[system.of_image])


def _check_common(
    objects: Objects, system: Detections, image_numbers: dict[str, int], class_numbers: dict[str, int]
) -> None:
    """Refuses names that have nothing to do with each other: nothing would be found, and AP be 0."""
    if not system.scores.size:
        return
    if image_numbers.keys().isdisjoint(system.images):
        raise DataError(
            f"{system.source}: none of its images is among the {len(image_numbers)} of {objects.source}: expected "
            f"names such as {objects.images[0]!r}, found {system.images[0]!r}"
        )
    used = [system.classes[at] for at in np.unique(system.of_class).tolist()]
    if class_numbers.keys().isdisjoint(used):
        raise DataError(
            f"{shown_place(system.places[0])}: expected one of the classes of {objects.source}, such as "
            f"{objects.classes[0]!r}, found {used[0]!r}, and none of them anywhere; numbers need a list of classes"
        )
    if objects.class_ids is not None:
        for row, number in enumerate(system.of_class.tolist()):
            if system.classes[number] not in class_numbers:
                raise DataError(
                    f"{shown_place(system.places[row])}: expected one of the {len(class_numbers)} classes of "
                    f"{objects.source}, found {system.classes[number]!r}"
                )


def _place_in(system: Detections, image: str) -> str:
    """Where the image is first named."""
    rows = np.flatnonzero(system.of_image == system.images.index(image))
    return shown_place(system.places[int(rows[0])]) if rows.size else system.source


def _renumbered(system: Detections, image_numbers: dict[str, int], class_numbers: dict[str, int]) -> Detections:
    images, classes = tuple(image_numbers), tuple(class_numbers)
    return dataclasses.replace(
        system,
        images=images,
        classes=classes,
        of_image=_numbers(system.images, image_numbers)[system.of_image],
        of_class=_numbers(system.classes, class_numbers)[system.of_class],
    )


def _numbers(names: Sequence[str], numbers: dict[str, int]) -> Counts:
    return np.array([numbers[name] for name in names], dtype=np.int64)


def _check_boxes(part: Objects | Detections, sizes: Floats, *, relative: bool, source: str) -> None:
    """Refuses boxes that are not inside their images, or are in other units than the objects."""
    if not part.places:
        return
    if relative:
        check_inside(part.boxes, np.ones((len(part.places), 2)), lambda row: shown_place(part.places[row]))
        return
    if (part.boxes >= 0).all() and (part.boxes <= 1).all():
        raise DataError(
            f"{shown_place(part.places[0])}: expected pixels as in {source}, found all coordinates between 0 and 1"
        )
    check_inside(part.boxes, sizes[part.of_image], lambda row: shown_place(part.places[row]))
