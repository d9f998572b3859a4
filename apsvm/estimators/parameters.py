"""An estimator's parameters and a trainer's settings: the same values, by the names that scikit-learn's users know.

A setting is the parameter of its name, unless the estimator's table ``renamed`` says otherwise. Beside them stand
``n_jobs`` (threads), ``random_state`` (seed) and ``time_limit``, which every trainer has.
"""

from __future__ import annotations

import math
import re
import typing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_scalar

from apsvm._support.types import JsonDict, JsonObject
from apsvm.data.features import FEATURE_MAPS
from apsvm.trainers.settings import Declared, Multiple, Range, Settings, SettingsError, declared, plain_type


def settings_of(
    parameters: JsonObject, kind: type[Settings], renamed: Mapping[str, str], *, seed: int, threads: int
) -> Settings:
    """The settings that an estimator's parameters ask for; those without a parameter keep their defaults.

    Parameters
    ----------
    parameters : JsonObject
        By name; ``time_limit`` among them.
    kind : type[Settings]
        The trainer's settings.
    renamed : Mapping[str, str]
        Parameter → setting, where their names differ.

    Raises
    ------
    ValueError, TypeError
        A parameter that is out of range, none of its choices, or of another type.
    """
    types = _types(kind)  # type: ignore[arg-type]  # a class is hashable
    declarations = declared(kind)
    chosen: JsonDict = {}
    for parameter, value in parameters.items():
        name = renamed.get(parameter, parameter)
        if name in declarations:
            about, (plain, optional) = declarations[name][1], types[name]
            if value is not None or not optional:
                value = _converted(parameter, value, about, plain)
            chosen[name] = (value,) if about.path else value
    limit = parameters["time_limit"]
    if limit is not None:
        limit = check_number("time_limit", limit, Range(0.0))
    try:
        return kind(**chosen, time_limit=limit, seed=seed, threads=threads)
    except SettingsError as error:
        message = in_python(str(error), kind)
        for parameter, name in renamed.items():
            message = re.sub(rf"\b{name}\b", parameter, message)
        raise SettingsError(message) from None


@cache
def _types(kind: type[Settings]) -> Mapping[str, tuple[type, bool]]:
    """The type of each setting's value, and whether it may be None."""
    hints = typing.get_type_hints(kind)
    return {name: (plain_type(hints[name]), type(None) in typing.get_args(hints[name])) for name in declared(kind)}


def parameters_of(settings: JsonObject, kind: type[Settings], renamed: Mapping[str, str]) -> JsonDict:
    """The parameters that a model's header tells, by name: those of the settings that it has.

    Raises
    ------
    SettingsError
        A value that cannot be.
    """
    values = kind.from_json(settings)
    parameter_of = {name: parameter for parameter, name in renamed.items()}
    return {
        parameter_of.get(name, name): _plain(getattr(values, name))
        for name in declared(kind)
        if settings.get(name) is not None
    }


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        (value,) = value[:1]
    if isinstance(value, Multiple):
        return str(value)
    return value


#: What numbers of a type may be in Python, numpy's among them, and how they are called.
_IN_PYTHON: Mapping[type, tuple[type | tuple[type, ...], str]] = {
    float: (Real, "a number"),
    int: (Integral, "an integer"),
    bool: ((bool, np.bool_), "True or False"),
}


def _converted(parameter: str, value: object, about: Declared, kind: type) -> object:
    """``value`` as the setting's type, which checks the value itself. Raises TypeError, or ValueError for a text."""
    if about.choices:
        return value
    if about.multiples and isinstance(value, str):
        try:
            return Multiple.parsed(value)
        except ValueError:
            raise ValueError(
                f"{parameter} is a number > 0 or 'auto', or a multiple of that such as '10x', found {value!r}"
            ) from None
    abstract, expected = _IN_PYTHON.get(kind, (kind, f"a {kind.__name__}"))
    if not isinstance(value, abstract):
        raise TypeError(f"{parameter} must be {expected}, found {value!r}")
    return kind(value)


def check_number(parameter: str, value: object, admitted: Range) -> float:
    """``value``; ValueError (TypeError) unless it is a finite number that is ``admitted``."""
    number = float(check_scalar(value, parameter, Real, **_bounds(admitted)))
    if not math.isfinite(number):
        raise ValueError(f"{parameter} == {number}, must be finite")
    return number


def _bounds(admitted: Range) -> JsonDict:
    low = None if math.isinf(admitted.low) else admitted.low
    high = None if math.isinf(admitted.high) else admitted.high
    sides = {(False, False): "neither", (True, False): "left", (False, True): "right", (True, True): "both"}
    closed = sides[low is not None and not admitted.open_low, high is not None]
    return {"min_val": low, "max_val": high, "include_boundaries": "both" if low is high is None else closed}


#: A flag of the command line, and the word after it.
_FLAG = re.compile(r"--([a-z][a-z-]*)(?: ([^\s:;,()]+(?:\([^\s()]*\))?))?")


@contextmanager
def in_words_of_python(kind: type[Settings], loss: str = "") -> Iterator[None]:
    """What a trainer says of settings that do not go together, as ``in_python`` says it."""
    try:
        yield
    except SettingsError as error:
        raise SettingsError(in_python(str(error), kind, loss)) from None


def in_python(text: str, kind: type[Settings], loss: str = "") -> str:
    """A sentence for the command line, its flags as parameters: ``oracle='search'`` for ``--oracle search``."""
    choices = (choice for _, about in declared(kind).values() for choice in about.choices)
    values = {loss, *FEATURE_MAPS, *choices}

    def as_parameter(flag: re.Match[str]) -> str:
        name, word = flag[1].replace("-", "_"), flag[2]
        if word is None:
            return name
        return f"{name}={word!r}" if word in values else f"{name} {word}"

    return _FLAG.sub(as_parameter, text)
