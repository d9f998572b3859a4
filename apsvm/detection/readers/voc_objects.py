"""Objects as PASCAL VOC annotates them: a folder of XML files, one an image, which has the file's name.

    <annotation> <filename/> <size> <width/> <height/> </size>
        <object> <name/> <difficult/> <bndbox> <xmin/> <ymin/> <xmax/> <ymax/> </bndbox> </object> … </annotation>

Other elements (parts of objects among them) are passed over.
"""

from __future__ import annotations

from apsvm.data.dataset import DataError
from apsvm.detection.base import Objects
from apsvm.detection.fields import Box, box_of, files_in, number_of
from apsvm.detection.readers.gathered import ClassNames, Gathered
from apsvm.detection.readers.xml_tree import Element, read_xml


def read_objects(path: str, classes: ClassNames | None = None) -> Objects:
    """Raises DataError with the line of what is wrong, OSError."""
    gathered = Gathered(path, classes)
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
        image = gathered.image(name, _size(root, file))
        for element in root.all("object"):
            class_name = _needed(element, "name", file)
            place = (file, class_name.line)
            of_class = gathered.class_of(_text(class_name, file), f"{file}:{class_name.line}")
            gathered.add(image, of_class, _box(element, file), float(_is_difficult(element, file)), place)
    return gathered.objects()


def _size(root: Element, path: str) -> tuple[float, float] | None:
    """Width and height; None where they are not given (or 0, as some tools write that)."""
    size = root.one("size")
    if size is None:
        return None
    sides = []
    for tag in ("width", "height"):
        element = _needed(size, tag, path)
        side = number_of(_text(element, path), tag, path, element.line)
        if side < 0:
            raise DataError(f"{path}:{element.line}: expected a {tag} of pixels, found {side:g}")
        sides.append(side)
    return None if 0 in sides else (sides[0], sides[1])


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
