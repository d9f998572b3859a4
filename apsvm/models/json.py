"""Dataclasses as JSON and back, for ``models.header``; values are checked against the annotations of the fields.

A value of the wrong type, an unknown field and a missing one are each a ``ModelError`` that names the field's path.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias, TypeGuard, TypeVar

from apsvm._support.errors import ModelError
from apsvm._support.shown import shortened

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

T = TypeVar("T", bound="DataclassInstance")


def fields_of(one: DataclassInstance) -> dict[str, Json]:
    """Fields of a dataclass by name, as JSON values."""
    return {name: _encoded(getattr(one, name)) for name in _annotations(type(one))}


def difference(one: DataclassInstance, other: DataclassInstance) -> dict[str, Json]:
    """Fields of ``one`` that differ from those of ``other``, recursively in dataclasses; mappings are compared
    whole."""
    different: dict[str, Json] = {}
    for name in _annotations(type(one)):
        mine, theirs = getattr(one, name), getattr(other, name)
        if not _same(_encoded(mine), _encoded(theirs)):
            both = _is_dataclass(mine) and _is_dataclass(theirs)
            different[name] = difference(mine, theirs) if both else _encoded(mine)
    return different


def completed(value: Mapping[str, object], whole: DataclassInstance) -> dict[str, object]:
    """``value`` with its missing fields from the dataclass ``whole``."""
    result = dict(value)
    for name in _annotations(type(whole)):
        theirs, mine = getattr(whole, name), value.get(name)
        if name not in value:
            result[name] = _encoded(theirs)
        elif _is_dataclass(theirs) and isinstance(mine, Mapping):
            result[name] = completed(mine, theirs)
    return result


def _same(a: Json, b: Json) -> bool:
    """True if two JSON values have the same text; 1, 1.0 and true do not, though equal in Python."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def _is_dataclass(value: object) -> TypeGuard[DataclassInstance]:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _encoded(value: object) -> Json:
    if _is_dataclass(value):
        return fields_of(value)
    if isinstance(value, Mapping):
        return {str(key): _encoded(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_encoded(item) for item in value]
    if isinstance(value, str):
        return str(value)  # also of members of enumerations
    if value is None or isinstance(value, bool | int | float):
        return value
    raise TypeError(f"expected a JSON value in a header, found {_short(value)}")


@functools.cache
def _annotations(kind: type[DataclassInstance]) -> dict[str, object]:
    """Annotations of a dataclass's fields, by name."""
    hints = typing.get_type_hints(kind, localns={"Json": object})  # a recursive alias, which is not checked
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def decoded(kind: type[T], value: object, where: str = "") -> T:
    """Dataclass ``kind`` from ``value``, a JSON object at the path ``where``. Raises ModelError."""
    if not isinstance(value, Mapping):
        raise _misfit("an object", where, value)
    annotations, prefix = _annotations(kind), f"{where}." if where else ""
    for key in value:
        if key not in annotations:
            raise ModelError(f"{prefix + str(key)!r} is not known to this version of apsvm")
    for field in dataclasses.fields(kind):
        if field.default is field.default_factory is dataclasses.MISSING and field.name not in value:
            raise ModelError(f"it lacks {prefix + field.name!r}")
    return kind(**{key: checked(annotations[key], item, prefix + key) for key, item in value.items()})


def checked(kind: typing.Any, value: object, where: str) -> object:
    """``value``, at the path ``where``, as the type of the annotation ``kind``. Raises ModelError."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        (inner,) = [argument for argument in arguments if argument is not types.NoneType]
        return None if value is None else checked(inner, value, where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise _misfit("a list", where, value)
        return tuple(checked(arguments[0], item, f"{where}[{at}]") for at, item in enumerate(value))
    if origin is Mapping:
        if not isinstance(value, Mapping):
            raise _misfit("an object", where, value)
        plain = arguments[1] in _PLAIN
        return {key: checked(arguments[1], item, f"{where}.{key}") if plain else item for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return decoded(typing.cast("type[DataclassInstance]", kind), value, where)
    if issubclass(kind, StrEnum):
        if not isinstance(value, str) or value not in list(kind):
            raise _misfit(f"one of {', '.join(kind)}", where, value)
    elif not _PLAIN[kind][1](value):
        raise _misfit(_PLAIN[kind][0], where, value)
    return kind(value)


def _misfit(expected: str, where: str, value: object) -> ModelError:
    return ModelError(f"expected {expected} in {where!r}, found {_short(value)}")


def is_finite_number(value: object) -> TypeGuard[int | float]:
    """True if a JSON value is a number in the range of float64."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a large integer
        return False


#: For each plain type, its name in messages and a test of JSON values.
_PLAIN: Mapping[type, tuple[str, Callable[[object], bool]]] = {
    float: ("a finite number", is_finite_number),
    int: ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    str: ("text", lambda value: isinstance(value, str)),
}


def _short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = "a huge integer"
    return shortened(text)
