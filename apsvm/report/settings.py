"""Settings of a training, under the names that its trainer declares.

If the model's family of trainers is unknown to this version, settings keep their names from the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apsvm._support.types import JsonObject
from apsvm.models.header import Header, Json
from apsvm.trainers import TRAINERS
from apsvm.trainers.settings import Settings, declared


@dataclass(frozen=True, slots=True)
class Fact:
    """A setting, or another fact of the training.

    Attributes
    ----------
    name : a readable name
    value : a JSON value, which ``shown`` formats
    is_default : True if it is the trainer's default
    has_label : True if the trainer declared a name for reports; others are shown only if not the default
    """

    name: str
    value: Json
    is_default: bool = False
    has_label: bool = True


def settings_of(header: Header) -> Iterator[Fact]:
    """Settings that the model of ``header`` was trained with, without unknown ones and None."""
    kind = TRAINERS[header.family].Settings if header.family in TRAINERS else None
    if header.C is not None:
        yield Fact("C", header.C, is_default=header.settings.get("C") == "auto")
    settings = dict(header.settings)
    multiple = settings.get("C")
    if header.C is not None:
        settings.pop("C", None)
        if isinstance(multiple, str) and multiple != "auto":
            yield Fact("C, times the default", multiple.removesuffix("x"))
    plain = {name: value for name, value in header.details.items() if _is_plain(value)}
    yield from _facts(kind, settings, plain)
    for name, value in plain.items():
        if name not in settings:
            yield Fact(name.replace("_", " "), value)


def shown(value: Json) -> str:
    """The value as text; empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ",".join(shown(one) for one in value)
    return str(value)


def _facts(kind: type[Settings] | None, settings: JsonObject, used: JsonObject) -> Iterator[Fact]:
    """``settings`` under the names that ``kind`` declares, in its order, then the others; ``used`` has the values that
    training set."""
    declarations = {} if kind is None else declared(kind)
    defaults = {} if kind is None else kind().to_json()
    for name in [
        *(name for name in declarations if name in settings),
        *(name for name in settings if name not in declarations),
    ]:
        value = settings[name]
        if value is None or not _is_plain(value):
            continue
        label = declarations[name][1].label if name in declarations else ""
        yield Fact(
            label or name.replace("_", " "),
            value if isinstance(used.get(name), list) else used.get(name, value),
            is_default=name in defaults and value == defaults[name],
            has_label=bool(label) or kind is None,
        )


def _is_plain(value: object) -> bool:
    """True if the value fits in a line: a number, a text, or a list of them."""
    if isinstance(value, list):
        return all(_is_plain(one) and not isinstance(one, list) for one in value)
    return value is None or isinstance(value, bool | int | float | str)
