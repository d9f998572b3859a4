"""CSV, a line a box, by the names of the columns, in any case: objects and detections in a file each

image,class,xmin,ymin,xmax,ymax[,difficult]
image,class,score,x,y,width,height

x and y are the upper left corner. A line of objects whose box is empty is an image without objects.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from apsvm._support.files import read_bytes
from apsvm.data.dataset import DataError
from apsvm.detection.base import Detections, Objects
from apsvm.detection.fields import box_of, checked, number_of
from apsvm.detection.readers.gathered import ClassNames, Gathered

IMAGE = ("image", "image_id", "imageid", "image_name", "filename", "file_name", "file", "img")
CLASS = ("class", "class_name", "label", "category", "category_name", "class_id", "category_id", "labelname")
SCORE = ("score", "confidence", "conf", "probability")
CORNERS = (
    ("xmin", "ymin", "xmax", "ymax"),
    ("x_min", "y_min", "x_max", "y_max"),
    ("x1", "y1", "x2", "y2"),
    ("left", "top", "right", "bottom"),
)
SIZES = (("x", "y", "width", "height"), ("x", "y", "w", "h"), ("left", "top", "width", "height"))


def read_objects(path: str, classes: ClassNames | None = None) -> Objects:
    """Raises DataError with the line of what is wrong, OSError."""
    return _gathered(path, classes, has_scores=False).objects()


def read_detections(path: str, classes: ClassNames | None = None) -> Detections:
    """Raises DataError with the line of what is wrong, OSError."""
    return _gathered(path, classes, has_scores=True).detections()


def _gathered(path: str, classes: ClassNames | None, *, has_scores: bool) -> Gathered:
    gathered, lines = Gathered(path, classes), _lines(path)
    _, first = next(lines, (1, []))
    names = [name.lower() for name in first]
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path}:1: expected different names of columns, found {twice} more than once")
    image, of_class = (_column(names, of, path, what) for of, what in ((IMAGE, "images"), (CLASS, "classes")))
    box = next((of for of in (*CORNERS, *SIZES) if set(of) <= set(names)), None)
    if box is None:
        raise _lacks(path, names, "boxes", "xmin, ymin, xmax and ymax, or x, y, width and height")
    corners = [names.index(name) for name in box]
    value = _column(names, SCORE, path, "scores") if has_scores else None
    difficult = names.index("difficult") if "difficult" in names and not has_scores else None
    for number, words in lines:
        if len(words) != len(names):
            raise DataError(f"{path}:{number}: expected {len(names)} fields, as the first line has, found {len(words)}")
        if not words[image] or (not words[of_class] and any(words[column] for column in corners)):
            raise DataError(f"{path}:{number}: expected an image and a class, found an empty field")
        at = gathered.image(words[image])
        sides = [words[column] for column in corners]
        if not has_scores and not any(sides):
            continue
        if value is not None:
            kind = number_of(words[value], "a score", path, number)
        else:
            kind = float(difficult is not None and words[difficult].lower() in ("1", "true"))
        if box in SIZES:
            x, y, width, height = (number_of(side, name, path, number) for side, name in zip(sides, box, strict=True))
            corner = checked((x, y, x + width, y + height), f"{path}:{number}")
        else:
            corner = box_of(sides, path, number)
        gathered.add(at, gathered.class_of(words[of_class], f"{path}:{number}"), corner, kind, (path, number))
    return gathered


def _lines(path: str) -> Iterator[tuple[int, list[str]]]:
    """Numbers, from 1, and fields of the lines that are not empty."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected text in UTF-8, found the byte 0x{error.object[error.start]:02x}") from None
    head = text[: text.find("\n")]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count))
    try:
        for fields in reader:
            words = [field.strip() for field in fields]
            if any(words):
                yield reader.line_num, words
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: {error}") from None


def _column(names: Sequence[str], called: Sequence[str], path: str, what: str) -> int:
    found = next((names.index(name) for name in called if name in names), None)
    if found is None:
        raise _lacks(path, names, what, ", ".join(called[:-1]) + f" or {called[-1]}")
    return found


def _lacks(path: str, names: Sequence[str], what: str, called: str) -> DataError:
    found = ", ".join(names[:12]) or "nothing"
    return DataError(f"{path}:1: expected the {what} in columns called {called}, found {found}")
