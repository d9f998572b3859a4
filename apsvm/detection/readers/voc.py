"""Objects and detections in the formats of PASCAL VOC.

Objects: a folder with an XML file for each image; the image has the file's name.

    <annotation> <filename/>
        <object> <name/> <difficult/> <bndbox> <xmin/> <ymin/> <xmax/> <ymax/> </bndbox> </object> … </annotation>

Other elements, such as parts of objects, are ignored.

Detections: a file for each class, ``comp3_det_test_CLASS.txt``, with lines ``image score xmin ymin xmax ymax``, as the
devkits read them; a folder of such files or a single one. Or a folder with a file for each image, named after it, with
lines ``class score xmin ymin xmax ymax``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from apsvm.data.dataset import DataError
from apsvm.detection.base import Detections, Objects
from apsvm.detection.fields import Box, box_of, files_in, number_of, read_lines

_OF_CLASS = re.compile(r"(?:[^_]*_)?det_[^_]+_(.+)")
#: Size in bytes above which an annotation is refused: its tree would take a hundred times as much memory.
MOST_BYTES = 1_000_000
_FIELDS = {True: "class, score, xmin, ymin, xmax, ymax", False: "image, score, xmin, ymin, xmax, ymax"}


def read_objects(path: str) -> Objects:
    """Reads objects, with classes in the order of their names. Raises DataError with the line of the fault, OSError."""
    images: list[str] = []
    rows: list[tuple[int, str, Box, bool]] = []
    filenames: dict[str, str] = {}
    for name, file in files_in(path, ".xml"):
        root = _read_xml(file)
        if root.tag != "annotation":
            raise DataError(f"{_place(root, file)}: expected <annotation>, found <{root.tag}>")
        filename = root.find("filename")
        image = "" if filename is None else _stripped(filename)
        if filename is not None and image and filenames.setdefault(image, file) != file:
            place = _place(filename, file)
            raise DataError(f"{place}: image {image!r} is annotated twice, first in {filenames[image]}")
        for element in root.findall("object"):
            of_class = _text(_needed(element, "name", file), file)
            rows.append((len(images), of_class, _box(element, file), _is_difficult(element, file)))
        images.append(name)
    classes = sorted({of_class for _, of_class, *_ in rows})
    numbered = [(image, classes.index(of_class), box, difficult, False) for image, of_class, box, difficult in rows]
    return Objects.of_rows(images, classes, numbered, path)


def read_detections(path: str, objects: Objects, class_names: str | None = None) -> Detections:
    """Reads detections of ``objects``. ``class_names``: a file with a name on each line, to which classes given as
    numbers from 0 refer. Raises DataError with the line of the fault, also for an unknown image; OSError."""
    names = [] if class_names is None else [" ".join(words) for _, words in read_lines(class_names)]
    images = {image: at for at, image in enumerate(objects.images)}
    classes = {name: at for at, name in enumerate(objects.classes)}
    rows: list[tuple[int, int, Box, float]] = []
    name, place = "", ""
    for image, class_word, score, box, place in _lines(path, {*classes, *names}):
        if image not in images:
            raise DataError(
                f"{place}: expected one of the {len(images)} images of {objects.source}, such as "
                f"{objects.images[0]!r}, found {image!r}"
            )
        is_number = class_word.isascii() and class_word.isdigit() and int(class_word) < len(names)
        name = names[int(class_word)] if is_number else class_word
        rows.append((images[image], classes.setdefault(name, len(classes)), box, score))
    if rows and min(of_class for _, of_class, *_ in rows) >= len(objects.classes):
        raise DataError(
            f"{place}: expected one of the classes of {objects.source}, such as {objects.classes[0]!r}, found "
            f"{name!r}, and none of them anywhere; numbers need a list of classes"
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
            place = f"{file}:{number}"
            if len(words) != 6:
                raise DataError(f"{place}: expected the 6 fields {_FIELDS[of_images]}, found {len(words)}")
            score = number_of(words[1], "a score", place)
            image, of_class = (stem, words[0]) if of_images else (words[0], of_classes[at] if of_classes else stem)
            yield image, of_class, score, box_of(words[2:], place), place


def _read_xml(path: str) -> Element:
    """Root element of a small XML file; the attribute ``line`` of each element is its line, from 1. A document type is
    refused, since its entities could expand. Raises DataError with the line of the fault, OSError."""
    with open(path, "rb") as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise DataError(f"{path}: expected an annotation of at most {MOST_BYTES} bytes, found more")
    builder, parser = TreeBuilder(), expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        builder.start(tag, {"line": str(parser.CurrentLineNumber)})

    def refuse(name: str, *_: object) -> NoReturn:
        place = f"{path}:{parser.CurrentLineNumber}"
        raise DataError(f"{place}: expected no document type or entities, found <!DOCTYPE {name}")

    parser.StartElementHandler, parser.EndElementHandler = start, builder.end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = builder.data, refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise DataError(f"{path}:{error.lineno}: not XML: {expat.ErrorString(error.code)}") from None
    except DataError:
        raise
    except (LookupError, ValueError) as error:  # an unknown encoding
        raise DataError(f"{path}: not XML: {error}") from None
    return builder.close()


def _place(element: Element, path: str) -> str:
    return f"{path}:{element.get('line')}"


def _stripped(element: Element) -> str:
    return (element.text or "").strip()


def _is_difficult(element: Element, path: str) -> bool:
    mark = element.find("difficult")
    if mark is None or _stripped(mark) in ("0", ""):
        return False
    if _stripped(mark) != "1":
        raise DataError(f"{_place(mark, path)}: expected 0 or 1 in <difficult>, found {_stripped(mark)[:40]!r}")
    return True


def _box(element: Element, path: str) -> Box:
    frame = _needed(element, "bndbox", path)
    corners = [_text(_needed(frame, tag, path), path) for tag in ("xmin", "ymin", "xmax", "ymax")]
    return box_of(corners, _place(frame, path))


def _needed(parent: Element, tag: str, path: str) -> Element:
    """The one child of this name."""
    children = parent.findall(tag)
    if len(children) != 1:
        raise DataError(f"{_place(parent, path)}: expected one <{tag}> in <{parent.tag}>, found {len(children)}")
    return children[0]


def _text(element: Element, path: str) -> str:
    text = _stripped(element)
    if not text:
        raise DataError(f"{_place(element, path)}: expected text in <{element.tag}>, found none")
    return text
