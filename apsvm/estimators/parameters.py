"""Conversion between an estimator's parameters and a trainer's settings.

A setting has the name of its parameter, unless the estimator's table ``renamed`` gives another. Every trainer has
``n_jobs`` (threads), ``random_state`` (seed) and ``time_limit`` too.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from apsvm._support.types import JsonDict, JsonObject
from apsvm.models.header import Header
from apsvm.selection.thresholds import RULE
from apsvm.trainers.settings import Declared, Multiple, Range, Settings, declared, plain_type

if typing.TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: Python types, numpy's included, that a setting of each type accepts, and their name in messages.
_IN_PYTHON: Mapping[type, tuple[type | tuple[type, ...], str]] = {
    float: (Real, "a number"),
    int: (Integral, "an integer"),
    bool: ((bool, np.bool_), "True or False"),
}


def settings_of(
    parameters: JsonObject, kind: type[Settings], renamed: Mapping[str, str], *, seed: int, threads: int
) -> Settings:
    """Settings from an estimator's parameters, by name; settings without a parameter keep their defaults.

    Raises
    ------
    ValueError, TypeError
        A parameter is out of range, not one of its choices, or of another type.
    """
    hints, declarations = typing.get_type_hints(kind), declared(kind)
    chosen: JsonDict = {}
    for parameter, value in parameters.items():
        name = renamed.get(parameter, parameter)
        if name in declarations:
            about = declarations[name][1]
            if value is not None or type(None) not in typing.get_args(hints[name]):
                value = _converted(parameter, value, about, plain_type(hints[name]))
            chosen[name] = (value,) if about.path else value
    limit = parameters["time_limit"]
    limit = None if limit is None else check_number("time_limit", limit, Range(0.0))
    return kind(**chosen, time_limit=limit, seed=seed, threads=threads)


def parameters_of(header: Header, kind: type[Settings], renamed: Mapping[str, str], *, draws: bool) -> JsonDict:
    """Parameters that a model's header records, by name, including those of other estimators. ``draws``: True if the
    trainer draws random numbers, so that a seed of 0 counts. Raises SettingsError for an invalid value."""
    values, parameter_of = kind.from_json(header.settings), {name: parameter for parameter, name in renamed.items()}
    recorded: JsonDict = {}
    for name, (_, about) in declared(kind).items():
        if header.settings.get(name) is not None:
            value = getattr(values, name)
            value = value[0] if about.path else value
            recorded[parameter_of.get(name, name)] = str(value) if isinstance(value, Multiple) else value
    if recorded.get("components") == 1:
        del recorded["components"]  # a named C trains one, as None does
    features, threshold, edges = header.features, header.threshold, typing.cast("Any", header.details.get("edges"))
    selection = header.selection or {}
    is_rule = threshold is not None and threshold.held_out and threshold.rule not in (str(RULE), "probability")
    others = {
        "C": header.C,
        "random_state": header.seed if header.seed or draws else None,
        "features": features.map,
        "scale": features.scale,
        "pool": None if features.pool is None else ",".join(features.pool),
        "relevant_from": header.labels.relevant_from if header.labels.kind == "threshold" else None,
        "intercept_scaling": features.bias,
        "fit_intercept": bool(header.details.get("fit_intercept", True)),
        "threshold": threshold.rule if threshold is not None and is_rule else None,
        "calibrate": None if header.calibration is None else header.calibration.method,
        "graph": None if edges is None else [(float(low), float(high)) for low, high in edges],
        "metric": selection.get("metric"),
        "cv": selection.get("folds"),
    }
    return {**recorded, **{name: value for name, value in others.items() if value is not None}}


def _converted(parameter: str, value: object, about: Declared, kind: type) -> object:
    """``value`` as the setting's type; the settings check its range. Raises TypeError, or ValueError for a text."""
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
    """``value`` as a float. Raises TypeError, or ValueError unless it is finite and ``admitted``."""
    if not isinstance(value, Real):
        raise TypeError(f"{parameter} must be a number, found {value!r}")
    if not admitted.admits(float(value)):
        raise ValueError(f"expected {parameter} to be a finite number {admitted}, found {value!r}")
    return float(value)


def distinct_values(name: str, values: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Distinct ``values`` in ascending order, and the index of each of the n values among them, (n,). Raises ValueError
    for values of types without a common order."""
    try:
        distinct = np.unique(values)
    except TypeError:
        types = sorted({type(value).__name__ for value in values.tolist()})
        raise ValueError(
            f"{name} has values of the types {' and '.join(types)}, which have no common order: convert them to "
            "one type, for example by map(str, …)"
        ) from None
    return distinct, np.searchsorted(distinct, values)  # return_inverse sorts the rows: two to ten times as long
