"""The timing log, JSON Lines: a record for each oracle call and each iteration. docs/log.md lists all fields.

Events with fields that are read again are in ``_FIELDS``. A trainer may write other events with any fields. Each line
is flushed. With several classes, every record except ``end`` has its ``class``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TextIO, TypeGuard

from apsvm._support.clock import Span, count_cpu_time
from apsvm._support.files import read_bytes
from apsvm._support.shown import shortened
from apsvm._support.types import JsonObject

Record = JsonObject


class LogError(ValueError):
    """The file is not a log; the message names the file and the line."""


class Log(Protocol):
    """Destination of records; ``fields`` must be JSON values."""

    def write(self, event: str, **fields: object) -> None: ...


class NoLog:
    """Discards all records."""

    def write(self, event: str, **fields: object) -> None:
        pass


class JsonLinesLog:
    """Writes each record as one line of JSON to ``stream`` and flushes it: a killed run loses no records."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        count_cpu_time()

    def write(self, event: str, **fields: object) -> None:
        # NaN and infinity are not JSON: a record with one is a bug, and raises ValueError.
        self._stream.write(json.dumps({"event": event, **fields}, allow_nan=False) + "\n")
        self._stream.flush()


def _is_number(value: object) -> TypeGuard[float]:
    # NaN, infinity and integers beyond float64 are not between the bounds; true is an int to Python.
    largest = sys.float_info.max
    return isinstance(value, int | float) and not isinstance(value, bool) and -largest <= value <= largest


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _are_ranks(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(map(_is_count, pair)) for pair in value
    )


_NUMBER, _POSITIVE, _TEXT, _OBJECT = "a finite number", "a finite number above 0", "text", "an object"
_COUNT, _SIZE = "a whole number, 0 or more", "a whole number, 1 or more"
_PARTS, _RANKS = "an object of seconds", "pairs of a rank and a count"
_OR_NULL, _OR_LIST = " or null", " or a list of them"

#: Kinds of fields, by their names in messages, and the test of a value.
_KINDS: Mapping[str, Callable[[object], bool]] = {
    _NUMBER: _is_number,
    _POSITIVE: lambda value: _is_number(value) and value > 0,
    _COUNT: _is_count,
    _SIZE: lambda value: _is_count(value) and value > 0,
    _TEXT: lambda value: isinstance(value, str),
    _OBJECT: lambda value: isinstance(value, dict),
    _PARTS: lambda value: isinstance(value, dict) and all(map(_is_number, value.values())),
    _RANKS: _are_ranks,
}


def _fits(kind: str, value: object) -> bool:
    single = kind.removesuffix(_OR_NULL).removesuffix(_OR_LIST)
    if kind.endswith(_OR_LIST) and isinstance(value, list):
        return all(map(_KINDS[single], value))
    return (kind.endswith(_OR_NULL) and value is None) or _KINDS[single](value)


#: Kinds of the fields that are read again, by event; "?": may be missing.
_FIELDS: Mapping[str, Mapping[str, str]] = {
    "run": {
        **dict.fromkeys(("data?", "began?", "machine?"), _TEXT),
        **dict.fromkeys(("options?", "reading?", "versions?"), _OBJECT),
        **dict.fromkeys(("rows?", "features?", "values?"), _COUNT),
        "seconds?": _NUMBER,
    },
    "start": {"C?": _POSITIVE + _OR_LIST, "epsilon?": _NUMBER, "loss?": _TEXT},
    "oracle": {
        **dict.fromkeys(("oracle", "stage?", "start?"), _TEXT),
        # If all grades are above 0, every row is a positive.
        "n_pos": _SIZE,
        "n_neg": _COUNT,
        **dict.fromkeys(("oracle_wall_ns", "iteration?", "step?"), _COUNT),
        "C?": _POSITIVE,
        "ranks?": _RANKS + _OR_NULL,
    },
    "iteration": {
        "iteration": _COUNT,
        **dict.fromkeys(("seconds", "primal?", "dual?", "gap?"), _NUMBER),
        "C?": _POSITIVE,
        "stage?": _TEXT,
        **dict.fromkeys(("value?", "gradient_norm?"), _NUMBER + _OR_NULL),
    },
    "step": {"step": _COUNT, "start": _TEXT, "C": _POSITIVE, "objective": _NUMBER, "seconds": _NUMBER},
    "round": {"round": _SIZE, "C": _POSITIVE, **dict.fromkeys(("objective", "dual", "gap", "seconds"), _NUMBER)},
    "epoch": {"epoch": _COUNT, "loss": _NUMBER, "seconds": _NUMBER, "validation": _NUMBER + _OR_NULL},
    "end": {"model?": _TEXT, "C?": _POSITIVE, "asked?": _NUMBER, "seconds?": _PARTS},
}


def _misfit(record: Record) -> str | None:
    """Description of the first field of a record that is missing or invalid; None if all are valid."""
    event = record["event"]
    fields = {**_FIELDS.get(event, {}), "class?": _NUMBER}
    fields |= {f"{name}?": _COUNT for name in record if name.endswith("_wall_ns")}
    for key, kind in fields.items():
        name = key.removesuffix("?")
        if name not in record:
            if name == key:
                return f"expected {name!r} in a record of {event!r}"
        elif not _fits(kind, record[name]):
            return f"expected {kind} as {name!r} of {event!r}, found {shortened(repr(record[name]))}"
    return None


def span_fields(spans: Mapping[str, Span]) -> dict[str, int]:
    """``{"scores_wall_ns": …, "scores_cpu_ns": …, …}`` for a record."""
    fields: dict[str, int] = {}
    for part, span in spans.items():
        fields[f"{part}_wall_ns"] = span.wall_ns
        fields[f"{part}_cpu_ns"] = span.cpu_ns
    return fields


@dataclass(frozen=True, slots=True)
class ReadLog:
    """records : in order; cut_off : True if the last line is incomplete, as after a killed run"""

    records: list[Record]
    cut_off: bool


def read_log(path: str | os.PathLike[str]) -> ReadLog:
    """The records of a log; ``-`` is standard input.

    Raises
    ------
    LogError : no records; a line that is not a record; a record without a field of its event
    OSError : it cannot be read
    """
    name = "<stdin>" if os.fspath(path) == "-" else os.fspath(path)
    lines = read_bytes(path).split(b"\n")
    records: list[Record] = []
    for number, line in enumerate(lines, 1):
        if number == len(lines) and not line:
            break
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # not JSON, or cut inside a character of UTF-8
            if number == len(lines) and records:
                return ReadLog(records, cut_off=True)
            record = None
        if not isinstance(record, dict) or not isinstance(record.get("event"), str):
            raise LogError(f"{name}:{number}: not a log of apsvm train: expected a JSON object with an event")
        misfit = _misfit(record)
        if misfit is not None:
            raise LogError(f"{name}:{number}: not as apsvm train writes it: {misfit}")
        records.append(record)
    if not records:
        raise LogError(f"{name}: an empty log: expected a JSON object per line")
    return ReadLog(records, cut_off=False)
