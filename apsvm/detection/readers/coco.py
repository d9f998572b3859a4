"""COCO's JSON: objects as ``instances_val2017.json`` has them, and a list of results.

    {"images": [{"id", "width", "height", "file_name"}, …], "categories": [{"id", "name"}, …],
     "annotations": [{"image_id", "category_id", "bbox": [x, y, width, height], "iscrowd"}, …]}
    [{"image_id", "category_id", "bbox", "score"}, …]

Images are in the order of their ids. Their name is that of ``file_name`` without its ending where that tells them all
apart (so that detections of other formats may name them), else the id. Results refer to the ids.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, NoReturn

from apsvm._support.files import read_bytes
from apsvm._support.shown import shortened
from apsvm._support.types import JsonObject
from apsvm.data.dataset import DataError
from apsvm.detection.base import Detections, Objects
from apsvm.detection.fields import Box, checked
from apsvm.detection.readers.gathered import ClassNames, Gathered


def read_objects(path: str, classes: ClassNames | None = None) -> Objects:
    """Raises DataError that names what is wrong, OSError."""
    content = _load(path)
    if not isinstance(content, Mapping):
        raise DataError(f"{path}: expected an object of images, annotations and categories, found {_kind(content)}")
    images = _by_id(content, "images", path)
    categories = _by_id(content, "categories", path)
    gathered = Gathered(path, classes)
    image_ids = _images(gathered, images, path)
    class_ids = _classes(gathered, categories, path)
    for at, annotation in enumerate(_list(content, "annotations", path)):
        place = f"annotations[{at}]"
        where = f"{path}: {place}"
        image = _number_of(annotation, "image_id", image_ids, where)
        of_class = _number_of(annotation, "category_id", class_ids, where)
        crowd = annotation.get("iscrowd", 0)
        if crowd not in (0, 1):
            raise DataError(f"{where}: expected iscrowd 0 or 1, found {_text(crowd)}")
        gathered.add(image, of_class, _box(annotation, where), 2.0 * crowd, (path, place))
    return gathered.objects(image_ids, class_ids)


def read_detections(path: str, objects: Objects) -> Detections:
    """``objects`` say what the ids are. Raises DataError that names what is wrong, OSError."""
    image_ids, class_ids = objects.image_ids, objects.class_ids
    if image_ids is None or class_ids is None:
        raise DataError(f"{path}: COCO results name images and classes by ids, and {objects.source} has none")
    content = _load(path)
    if not isinstance(content, list):
        raise DataError(f"{path}: expected a list of results, found {_kind(content)}")
    gathered = Gathered(path)
    gathered.images = {name: at for at, name in enumerate(objects.images)}
    gathered.classes = {name: at for at, name in enumerate(objects.classes)}
    for at, result in enumerate(content):
        where = f"{path}: [{at}]"
        if not isinstance(result, Mapping):
            raise DataError(f"{where}: expected an object, found {_kind(result)}")
        image = _number_of(result, "image_id", image_ids, where)
        of_class = _number_of(result, "category_id", class_ids, where)
        gathered.add(image, of_class, _box(result, where), _number(result, "score", where), (path, f"[{at}]"))
    return gathered.detections()


def _load(path: str) -> object:
    """What a JSON file says, which may be anything."""
    content = read_bytes(path)
    try:
        return json.loads(content, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise DataError(f"{path}: not COCO's JSON: it is nested too deeply") from None
    except ValueError as error:  # UTF-8, constants, digits without end
        raise DataError(f"{path}: not JSON: {error}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"expected finite numbers, found {constant}")


def _list(content: JsonObject, key: str, path: str) -> list[JsonObject]:
    result = content.get(key)
    if not isinstance(result, list):
        raise DataError(f"{path}: expected a list of {key}, found {_kind(result)}")
    for at, item in enumerate(result):
        if not isinstance(item, Mapping):
            raise DataError(f"{path}: {key}[{at}]: expected an object, found {_kind(item)}")
    return result


def _by_id(content: JsonObject, key: str, path: str) -> dict[int | str, tuple[str, JsonObject]]:
    """By id, rising, the place and the object."""
    result: dict[int | str, tuple[str, JsonObject]] = {}
    for at, item in enumerate(_list(content, key, path)):
        where = f"{path}: {key}[{at}]"
        number = item.get("id")
        if isinstance(number, bool) or not isinstance(number, int if key == "categories" else int | str):
            raise DataError(f"{where}: expected an id, a whole number, found {_text(number)}")
        if number in result:
            raise DataError(f"{where}: id {_text(number)} is there twice, first at {result[number][0]}")
        result[number] = (f"{key}[{at}]", item)
    if not result:
        raise DataError(f"{path}: expected {key}, found none")
    return dict(sorted(result.items(), key=lambda pair: (isinstance(pair[0], str), pair[0])))


def _images(gathered: Gathered, images: Mapping[int | str, tuple[str, JsonObject]], path: str) -> dict[int | str, int]:
    """By id, the images' numbers."""
    files = [item.get("file_name") for _, item in images.values()]
    stems = [PurePosixPath(file).stem for file in files if isinstance(file, str)]
    names = stems if len(set(stems)) == len(images) else [str(number) for number in images]
    if len(set(names)) < len(images):
        raise DataError(f"{path}: images: expected each id once, found one as a number and as text")
    result = {}
    for (number, (place, item)), name in zip(images.items(), names, strict=True):
        size = None
        if "width" in item or "height" in item:
            size = _number(item, "width", f"{path}: {place}"), _number(item, "height", f"{path}: {place}")
            if min(size) <= 0:
                found = f"{size[0]:g} and {size[1]:g}"
                raise DataError(f"{path}: {place}: expected a width and a height above 0, found {found}")
        result[number] = gathered.image(name, size)
    return result


def _classes(gathered: Gathered, categories: Mapping[int | str, tuple[str, JsonObject]], path: str) -> dict[int, int]:
    """By id, the classes' numbers."""
    result: dict[int, int] = {}
    for number, (place, item) in categories.items():
        name = item.get("name")
        if not isinstance(name, str) or not name:
            raise DataError(f"{path}: {place}: expected a name, found {_text(name)}")
        of_class = gathered.class_of(name, f"{path}: {place}")
        if of_class in result.values():
            raise DataError(f"{path}: {place}: category {name!r} is there twice")
        result[int(number)] = of_class
    return result


def _number_of(item: JsonObject, key: str, numbers: Mapping[Any, int], where: str) -> int:
    """The number of the image or class that ``item`` refers to."""
    value = item.get(key)
    if isinstance(value, bool) or not isinstance(value, int | str) or value not in numbers:
        what = "images" if key == "image_id" else "categories"
        raise DataError(f"{where}: expected {key} to be one of the {len(numbers)} {what}, found {_text(value)}")
    return numbers[value]


def _number(item: JsonObject, key: str, where: str) -> float:
    value = _finite(item.get(key))
    if value is None:
        raise DataError(f"{where}: expected {key}, a finite number, found {_text(item.get(key))}")
    return value


def _finite(value: object) -> float | None:
    """The number, if it is one that float64 holds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _box(item: JsonObject, where: str) -> Box:
    box = item.get("bbox")
    numbers = [_finite(value) for value in box] if isinstance(box, list) else []
    x, y, width, height = numbers if len(numbers) == 4 else (None,) * 4
    if x is None or y is None or width is None or height is None or min(width, height) < 0:
        raise DataError(f"{where}: expected bbox [x, y, width ≥ 0, height ≥ 0], found {_text(box)}")
    return checked((x, y, x + width, y + height), where)


def _kind(value: object) -> str:
    kinds = {type(None): "nothing", dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return kinds.get(type(value), "a number")


def _text(value: object) -> str:
    """A value of the file, short, for a message."""
    return shortened(json.dumps(value), 40)
