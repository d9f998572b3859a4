"""Files of objects and detections, one file a format.

=======  =====================================  ==============================================
format   objects                                detections
=======  =====================================  ==============================================
voc      folder of XML annotations              folder of ``comp3_det_test_CLASS.txt``
coco     JSON: images, annotations, categories  JSON: list of results
text     folder, a file an image:               folder, a file an image:
         ``class xmin ymin xmax ymax``          ``class score xmin ymin xmax ymax``
csv      a line a box, with column names        a line a box, with column names
=======  =====================================  ==============================================
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apsvm.detection.base import Detections, Objects
    from apsvm.detection.readers.gathered import ClassNames


#: A file of VOC's: annotations of an image, or the detections of a class.
_VOC = re.compile(r".+\.xml|(?:[^_]*_)?det_[^_]+_.+\.txt")


def format_of(path: str) -> str:
    """In which of `detection.FORMATS` objects or detections are by the look of it."""
    if not os.path.isdir(path):
        endings = {".txt": "voc", ".csv": "csv", ".tsv": "csv"}
        return endings.get(os.path.splitext(path)[1].lower(), "coco")
    return "voc" if any(map(_VOC.fullmatch, os.listdir(path))) else "text"


def read_class_names(path: str) -> ClassNames:
    """A file of classes, a line each, in the order that their numbers have. Raises DataError, OSError."""
    from apsvm.detection.readers.gathered import ClassNames

    return ClassNames(read_names(path), path)


def read_names(path: str) -> list[str]:
    """Names, a line each, none twice, blanks between words as one. Raises DataError, OSError."""
    from apsvm.data.dataset import DataError
    from apsvm.detection.fields import read_lines

    names: dict[str, int] = {}
    for number, words in read_lines(path):
        name = " ".join(words)
        if name in names:
            raise DataError(f"{path}:{number}: {name!r} is there twice, first on line {names[name]}")
        names[name] = number
    if not names:
        raise DataError(f"{path}: expected names, a line each, found none")
    return list(names)


def read_objects(path: str, format: str, classes: ClassNames | None = None) -> Objects:
    """Objects in one of `detection.FORMATS`; ``classes``: those that there are. Raises DataError with the place of
    what is wrong, OSError."""
    from apsvm.detection.readers import coco, csv_tables, text, voc_objects

    readers = {
        "voc": voc_objects.read_objects,
        "coco": coco.read_objects,
        "text": text.read_objects,
        "csv": csv_tables.read_objects,
    }
    return readers[format](path, classes)


def read_detections(path: str, format: str, objects: Objects, classes: ClassNames | None = None) -> Detections:
    """Detections in one of `detection.FORMATS`, of the images of ``objects``. Raises as `read_objects`."""
    from apsvm.detection.readers import coco, csv_tables, text, voc_detections

    if format == "coco":
        return coco.read_detections(path, objects)
    readers = {
        "voc": voc_detections.read_detections,
        "text": text.read_detections,
        "csv": csv_tables.read_detections,
    }
    return readers[format](path, classes)
