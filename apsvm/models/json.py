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
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeGuard, TypeVar

from apsvm._support.errors import ModelError
from apsvm._support.shown import shortened

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

T = TypeVar("T", bound="DataclassInstance")


def fields_of(one: DataclassInstance) -> dict[str, Json]:
    """Fields of a dataclass by name, as JSON values. Raises TypeError for a value that is none."""
    result: dict[str, Json] = json.loads(json.dumps(dataclasses.asdict(one), allow_nan=False))
    return result


def difference(one: DataclassInstance, other: DataclassInstance) -> dict[str, Json]:
    """Fields of ``one`` that differ from those of ``other``, recursively in dataclasses; mappings are compared
    whole."""
    mine, theirs = fields_of(one), fields_of(other)
    different: dict[str, Json] = {}
    for name, value in mine.items():
        if json.dumps(value, sort_keys=True) != json.dumps(theirs[name], sort_keys=True):  # 1 is not 1.0 or true
            parts = getattr(one, name), getattr(other, name)
            different[name] = difference(*parts) if all(map(dataclasses.is_dataclass, parts)) else value
    return different


@functools.cache
def _annotations(kind: type[DataclassInstance]) -> dict[str, object]:
    """Annotations of a dataclass's fields, by name."""
    # Json is a recursive alias, which is not checked.
    hints = typing.get_type_hints(kind, localns={"Json": object}, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def decoded(kind: type[T], value: object, where: str = "", whole: T | None = None) -> T:
    """Dataclass ``kind`` from ``value``, a JSON object at the path ``where``; fields that it lacks are those of
    ``whole``, or have their defaults. Raises ModelError."""
    if not isinstance(value, Mapping):
        raise _misfit("an object", where, value)
    annotations, prefix = _annotations(kind), f"{where}." if where else ""
    for key in value:
        if key not in annotations:
            raise ModelError(f"{prefix + str(key)!r} is not known to this version of apsvm")
    for field in dataclasses.fields(kind):
        is_required = whole is None and field.default is field.default_factory is dataclasses.MISSING
        if is_required and field.name not in value:
            raise ModelError(f"it lacks {prefix + field.name!r}")
    found = {
        key: checked(annotations[key], item, prefix + key, getattr(whole, key, None)) for key, item in value.items()
    }
    return kind(**found) if whole is None else dataclasses.replace(whole, **found)


def checked(kind: typing.Any, value: object, where: str, whole: typing.Any = None) -> typing.Any:
    """``value``, at the path ``where``, as the type of the annotation ``kind``; see ``decoded``. Raises ModelError."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        (inner,) = [argument for argument in arguments if argument is not types.NoneType]
        return None if value is None else checked(inner, value, where, whole)
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
        return decoded(typing.cast("type[DataclassInstance]", kind), value, where, whole)
    if origin is Annotated or issubclass(kind, StrEnum):
        choices = list(kind) if origin is None else arguments[1]
        if not isinstance(value, str) or value not in choices:
            raise _misfit(f"one of {', '.join(choices)}", where, value)
        return kind(value) if origin is None else value
    name, admits = _PLAIN[kind]
    if not admits(value):
        raise _misfit(name, where, value)
    return kind(value)


def _misfit(expected: str, where: str, value: object) -> ModelError:
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = "a huge integer"
    return ModelError(f"expected {expected} in {where!r}, found {shortened(text)}")


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
