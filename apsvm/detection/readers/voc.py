"""Objects and detections as PASCAL VOC has them.

Objects: a folder of XML files, one an image, which has the file's name.

    <annotation> <filename/>
        <object> <name/> <difficult/> <bndbox> <xmin/> <ymin/> <xmax/> <ymax/> </bndbox> </object> … </annotation>

Other elements (parts of objects among them) are passed over.

Detections: a file a class, ``comp3_det_test_CLASS.txt``, of lines ``image score xmin ymin xmax ymax``, as the devkits
read them, a folder of these files or one of them; or a folder with a file an image, which has its name, of lines
``class score xmin ymin xmax ymax``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from apsvm.data.dataset import DataError
from apsvm.detection.base import Detections, Objects
from apsvm.detection.fields import Box, box_of, files_in, number_of, read_lines
from apsvm.detection.readers.xml_tree import Element, read_xml

_OF_CLASS = re.compile(r"(?:[^_]*_)?det_[^_]+_(.+)")
_FIELDS = {True: "class, score, xmin, ymin, xmax, ymax", False: "image, score, xmin, ymin, xmax, ymax"}


def read_objects(path: str) -> Objects:
    """Reads objects, with classes in the order of their names. Raises DataError with the line of the fault, OSError."""
    images: list[str] = []
    rows: list[tuple[int, str, Box, bool]] = []
    filenames: dict[str, str] = {}
    for name, file in files_in(path, ".xml"):
        root = read_xml(file)
        if root.tag != "annotation":
            raise DataError(f"{file}:{root.line}: expected <annotation>, found <{root.tag}>")
        filename = root.one("filename")
        if filename is not None and filename.text.strip():
            first = filenames.setdefault(filename.text.strip(), file)
            if first != file:
                raise DataError(
                    f"{file}:{filename.line}: image {filename.text.strip()!r} is annotated twice, first in {first}"
                )
        for element in root.all("object"):
            of_class = _text(_needed(element, "name", file), file)
            rows.append((len(images), of_class, _box(element, file), _is_difficult(element, file)))
        images.append(name)
    classes = sorted({of_class for _, of_class, *_ in rows})
    numbered = [(image, classes.index(of_class), box, difficult, False) for image, of_class, box, difficult in rows]
    return Objects.of_rows(images, classes, numbered, path)


def read_detections(path: str, objects: Objects, class_names: str | None = None) -> Detections:
    """``class_names`` : a file of names; a class that is a number is a line of it, counted from 0. Raises DataError
    with the line of what is wrong, of an image that ``objects`` lack too, OSError."""
    names = [] if class_names is None else [" ".join(words) for _, words in read_lines(class_names)]
    images = {image: at for at, image in enumerate(objects.images)}
    classes = {name: at for at, name in enumerate(objects.classes)}
    rows: list[tuple[int, int, Box, float]] = []
    found, place = "", ""
    for image, class_word, score, box, place in _lines(path, {*classes, *names}):
        if image not in images:
            raise DataError(
                f"{place}: expected one of the {len(images)} images of {objects.source}, such as "
                f"{objects.images[0]!r}, found {image!r}"
            )
        is_number = class_word.isascii() and class_word.isdigit() and int(class_word) < len(names)
        found = names[int(class_word)] if is_number else class_word
        rows.append((images[image], classes.setdefault(found, len(classes)), box, score))
    if rows and min(of_class for _, of_class, *_ in rows) >= len(objects.classes):
        raise DataError(
            f"{place}: expected one of the classes of {objects.source}, such as {objects.classes[0]!r}, found "
            f"{found!r}, and none of them anywhere; numbers need a list of classes"
        )
    return Detections.of_rows(classes, rows)


def _lines(path: str, classes: set[str]) -> Iterator[tuple[str, str, float, Box, str]]:
    """Image, class, score, box and place of each detection; one of the ``classes`` may have blanks in its name."""
    files = files_in(path, ".txt") if os.path.isdir(path) else [(os.path.basename(path).removesuffix(".txt"), path)]
    of_classes = [match[1] for stem, _ in files if (match := _OF_CLASS.fullmatch(stem))]
    if of_classes and len(set(of_classes)) < len(files):
        raise DataError(f"{path}: expected one file a class, found {', '.join(stem for stem, _ in files[:9])}")
    of_images = not of_classes and os.path.isdir(path)
    for at, (stem, file) in enumerate(files):
        for number, words in read_lines(file):
            if len(words) > 6 and of_images and " ".join(words[:-5]) in classes:
                words = [" ".join(words[:-5]), *words[-5:]]
            if len(words) != 6:
                raise DataError(f"{file}:{number}: expected the 6 fields {_FIELDS[of_images]}, found {len(words)}")
            score = number_of(words[1], "a score", file, number)
            image, of_class = (stem, words[0]) if of_images else (words[0], of_classes[at] if of_classes else stem)
            yield image, of_class, score, box_of(words[2:], file, number), f"{file}:{number}"


def _is_difficult(element: Element, path: str) -> bool:
    mark = element.one("difficult")
    if mark is None or mark.text.strip() in ("0", ""):
        return False
    if mark.text.strip() != "1":
        raise DataError(f"{path}:{mark.line}: expected 0 or 1 in <difficult>, found {mark.text.strip()[:40]!r}")
    return True


def _box(element: Element, path: str) -> Box:
    frame = _needed(element, "bndbox", path)
    corners = [_text(_needed(frame, tag, path), path) for tag in ("xmin", "ymin", "xmax", "ymax")]
    return box_of(corners, path, frame.line)


def _needed(parent: Element, tag: str, path: str) -> Element:
    """The one child of this name."""
    children = parent.all(tag)
    if len(children) != 1:
        raise DataError(f"{path}:{parent.line}: expected one <{tag}> in <{parent.tag}>, found {len(children)}")
    return children[0]


def _text(element: Element, path: str) -> str:
    text = element.text.strip()
    if not text:
        raise DataError(f"{path}:{element.line}: expected text in <{element.tag}>, found none")
    return text
