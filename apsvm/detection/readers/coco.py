"""COCO's JSON: objects as ``instances_val2017.json`` has them, and a list of results.

    {"images": [{"id"}, …], "categories": [{"id", "name"}, …],
     "annotations": [{"image_id", "category_id", "bbox": [x, y, width, height], "iscrowd"}, …]}
    [{"image_id", "category_id", "bbox", "score"}, …]

Images and classes are in the order of their ids, which results refer to.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from apsvm._support.files import read_bytes
from apsvm._support.shown import shortened
from apsvm._support.types import JsonObject
from apsvm.data.dataset import DataError
from apsvm.detection.base import Detections, Objects
from apsvm.detection.fields import Box, checked


def read_objects(path: str) -> Objects:
    """Reads the objects of a file. Raises DataError that names the fault, OSError."""
    content = _load(path)
    if not isinstance(content, Mapping):
        raise DataError(f"{path}: expected an object of images, annotations and categories, found {_kind(content)}")
    images = tuple(_by_id(content, "images", path))
    categories = _by_id(content, "categories", path)
    annotations, refers = _list(content, "annotations", path), _references(images, categories)
    rows = [(*refers(one, where), _box(one, where), False, _is_crowd(one, where)) for one, where in annotations]
    objects = Objects.of_rows(images, _names(categories, path), rows, path)
    ignored = sum(bool(one.get("ignore")) and not one.get("iscrowd") for one, _ in annotations)
    remark = f"{ignored} annotations have ignore, and count all the same: as in pycocotools, only iscrowd is looked at"
    return replace(objects, class_ids=tuple(map(int, categories)), remark=remark if ignored else "")


def read_detections(path: str, objects: Objects) -> Detections:
    """Reads detections; their ids are those of ``objects``. Raises DataError that names the fault, OSError."""
    content = _load(path)
    if not isinstance(content, list):
        raise DataError(f"{path}: expected a list of results, found {_kind(content)}")
    refers, rows = _references(objects.images, objects.class_ids), []
    for at, result in enumerate(content):
        where = f"{path}: [{at}]"
        if not isinstance(result, Mapping):
            raise DataError(f"{where}: expected an object, found {_kind(result)}")
        score = _finite(result.get("score"))
        if score is None:
            raise DataError(f"{where}: expected score, a finite number, found {_text(result.get('score'))}")
        rows.append((*refers(result, where), _box(result, where), score))
    return Detections.of_rows(objects.classes, rows)


def _references(
    images: Iterable[int | str], categories: Iterable[int | str]
) -> Callable[[JsonObject, str], tuple[int, int]]:
    """The numbers of the image and the class that an object of a file refers to by their ids."""
    numbers = {
        key: {one: at for at, one in enumerate(ids)} for key, ids in (("image_id", images), ("category_id", categories))
    }

    def refers(item: JsonObject, where: str) -> tuple[int, int]:
        indices = []
        for key, known in numbers.items():
            value = item.get(key)
            if isinstance(value, bool) or not isinstance(value, int | str) or value not in known:
                what = "images" if key == "image_id" else "categories"
                raise DataError(f"{where}: expected {key} to be one of the {len(known)} {what}, found {_text(value)}")
            indices.append(known[value])
        return indices[0], indices[1]

    return refers


def _is_crowd(annotation: JsonObject, where: str) -> bool:
    crowd = annotation.get("iscrowd", 0)
    if crowd not in (0, 1):
        raise DataError(f"{where}: expected iscrowd 0 or 1, found {_text(crowd)}")
    return bool(crowd)


def _names(categories: Mapping[int | str, tuple[str, JsonObject]], path: str) -> tuple[str, ...]:
    """Names of the classes, in the order of their ids."""
    names: dict[str, None] = {}
    for place, item in categories.values():
        name = item.get("name")
        if not isinstance(name, str) or not name:
            raise DataError(f"{path}: {place}: expected a name, found {_text(name)}")
        if name in names:
            raise DataError(f"{path}: {place}: category {name!r} is there twice")
        names[name] = None
    return tuple(names)


def _load(path: str) -> object:
    """Parses a JSON file; the value may be of any type."""
    content = read_bytes(path)
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise DataError(f"{path}: not COCO's JSON: it is nested too deeply") from None
    except ValueError as error:  # bytes that are not UTF-8, or an integer of thousands of digits
        raise DataError(f"{path}: not JSON: {error}") from None


def _list(content: JsonObject, key: str, path: str) -> list[tuple[JsonObject, str]]:
    """The objects of a list, and the place of each."""
    result = content.get(key)
    if not isinstance(result, list):
        raise DataError(f"{path}: expected a list of {key}, found {_kind(result)}")
    for at, item in enumerate(result):
        if not isinstance(item, Mapping):
            raise DataError(f"{path}: {key}[{at}]: expected an object, found {_kind(item)}")
    return [(item, f"{path}: {key}[{at}]") for at, item in enumerate(result)]


def _by_id(content: JsonObject, key: str, path: str) -> dict[int | str, tuple[str, JsonObject]]:
    """Place and object by id, ascending."""
    result: dict[int | str, tuple[str, JsonObject]] = {}
    for item, where in _list(content, key, path):
        number = item.get("id")
        if isinstance(number, bool) or not isinstance(number, int if key == "categories" else int | str):
            raise DataError(f"{where}: expected an id, a whole number, found {_text(number)}")
        if number in result:
            raise DataError(f"{where}: id {_text(number)} is there twice, first at {result[number][0]}")
        result[number] = (where.removeprefix(f"{path}: "), item)
    if not result:
        raise DataError(f"{path}: expected {key}, found none")
    return dict(sorted(result.items(), key=lambda pair: (isinstance(pair[0], str), pair[0])))


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
