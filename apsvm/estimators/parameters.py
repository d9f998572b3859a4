"""An estimator's parameters: their types, and their conversion to a trainer's settings and back.

A setting has the name of its parameter, unless the estimator's table ``renamed`` gives another. Every trainer has
``n_jobs`` (threads), ``random_state`` (seed) and ``time_limit`` too.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from numbers import Integral, Real

import numpy as np

from apsvm._support.types import JsonDict, JsonObject
from apsvm.models.header import Header
from apsvm.selection.thresholds import RULE
from apsvm.trainers.settings import Multiple, Settings, declared, plain_type

if typing.TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from apsvm._support.types import AnyArray

#: Python types, numpy's included, of the values of a parameter, by the names in its annotation.
_TYPES: Mapping[str, tuple[type, ...]] = {
    "float": (Real,),
    "int": (Integral,),
    "bool": (bool, np.bool_),
    "str": (str,),
    "None": (type(None),),
}


def check_types(estimator: DataclassInstance) -> None:
    """Raises TypeError for a parameter whose value is not of the types in its annotation."""
    for field in dataclasses.fields(estimator):
        names, value = str(field.type).split(" | "), getattr(estimator, field.name)
        if set(names) <= set(_TYPES) and not any(isinstance(value, _TYPES[name]) for name in names):
            raise TypeError(f"{field.name} must be {' or '.join(names)}, found {value!r}")


def settings_of(
    parameters: JsonObject, kind: type[Settings], renamed: Mapping[str, str], *, seed: int, threads: int
) -> Settings:
    """Settings from an estimator's parameters, by name; settings without a parameter keep their defaults.

    Raises
    ------
    ValueError
        A parameter is out of range, or not one of its choices.
    """
    hints, declarations = typing.get_type_hints(kind), declared(kind)
    chosen: JsonDict = {}
    for parameter, value in parameters.items():
        name = renamed.get(parameter, parameter)
        if name in declarations:
            about = declarations[name][1]
            if about.multiples and isinstance(value, str):
                try:
                    value = Multiple.parsed(value)
                except ValueError as error:
                    raise ValueError(f"{parameter}: {error}") from None
            elif value is not None and not about.choices:
                value = plain_type(hints[name])(value)
            chosen[name] = (value,) if about.path else value
    limit = parameters["time_limit"]
    if limit is not None and not limit >= 0.0:
        raise ValueError(f"time_limit is a number of seconds ≥ 0, or None, found {limit!r}")
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
    features, threshold, edges = header.features, header.threshold, typing.cast("JsonDict", header.details).get("edges")
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
