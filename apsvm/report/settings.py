"""Settings of a training, under the names that its trainer declares.

If the model's family of trainers is unknown to this version, settings keep their names from the file.
"""

from __future__ import annotations

from collections.abc import Iterator

from apsvm.models.header import Header, Json
from apsvm.trainers import TRAINERS
from apsvm.trainers.settings import declared


def settings_of(header: Header) -> Iterator[tuple[str, Json]]:
    """C, the settings that are not the trainer's defaults, and what the training itself settled."""
    kind = TRAINERS[header.family].Settings if header.family in TRAINERS else None
    declarations, defaults = ({}, {}) if kind is None else (declared(kind), kind().to_json())
    values = {**header.settings, **{name: one for name, one in header.details.items() if _is_plain(one)}}
    if header.C is not None:
        yield "C", header.C
        multiple = values.pop("C", None)
        if isinstance(multiple, str) and multiple != "auto":
            yield "C, times the default", multiple.removesuffix("x")
    for name in sorted(values, key=[*declarations, *values].index):
        value = values[name]
        if value is not None and _is_plain(value) and (name not in defaults or value != defaults[name]):
            label = declarations[name][1].label if name in declarations else ""
            yield label or name.replace("_", " "), value


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


def _is_plain(value: object) -> bool:
    """True if the value fits in a line: a number, a text, or a list of them."""
    if isinstance(value, list):
        return all(_is_plain(one) and not isinstance(one, list) for one in value)
    return value is None or isinstance(value, bool | int | float | str)
