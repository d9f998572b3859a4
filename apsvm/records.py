"""The timing log: JSON Lines, one record an oracle call and one an iteration, flushed line by line.

Every record has ``event``: ``start`` (what is trained), ``oracle``, ``iteration`` (of other solvers also
``evaluation``, ``epoch``), ``step`` and ``round`` (of the tight bound's descent), ``end`` (why it stopped, a model's).
With ``--run-dir`` the first record is ``run``: the command's options and its data. Times are nanoseconds, wall clock
(``*_wall_ns``) and CPU of the whole process (``*_cpu_ns``), or ``seconds``. Where several classes are trained, a record
says its ``class``; only the ``end`` is of all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

from apsvm.clock import Span
from apsvm.files import read_bytes

Record = Mapping[str, Any]


class LogError(ValueError):
    """A file that is not such a log; the message names it, and the line."""


class Log(Protocol):
    """Takes records; ``fields`` must be JSON values."""

    def write(self, event: str, **fields: Any) -> None: ...


class NoLog:
    """Keeps nothing."""

    def write(self, event: str, **fields: Any) -> None:
        pass


class JsonLinesLog:
    """Writes each record as one line of JSON to ``stream`` and flushes it, so that a run can be followed and a run
    that dies has lost nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, event: str, **fields: Any) -> None:
        # NaN and infinity are not JSON: a record that holds one is a bug, not a line.
        self._stream.write(json.dumps({"event": event, **fields}, allow_nan=False) + "\n")
        self._stream.flush()


def span_fields(spans: Mapping[str, Span]) -> dict[str, int]:
    """``{"scores_wall_ns": …, "scores_cpu_ns": …, …}`` for a record."""
    fields: dict[str, int] = {}
    for part, span in spans.items():
        fields[f"{part}_wall_ns"] = span.wall_ns
        fields[f"{part}_cpu_ns"] = span.cpu_ns
    return fields


@dataclass(frozen=True, slots=True)
class ReadLog:
    """records : in order; cut_off : whether the last line was not whole, as a run leaves it that was killed"""

    records: list[Record]
    cut_off: bool


def read_log(path: str | os.PathLike[str]) -> ReadLog:
    """The records of a log; ``-`` is standard input.

    Raises
    ------
    LogError : no records, or a line before the last that is none
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
        except ValueError:  # neither JSON nor, cut in the middle of a letter, UTF-8
            if number == len(lines) and records:
                return ReadLog(records, cut_off=True)
            record = None
        if not isinstance(record, dict) or not isinstance(record.get("event"), str):
            raise LogError(f"{name}:{number}: not a log of apsvm train: expected a JSON object with an event")
        records.append(record)
    if not records:
        raise LogError(f"{name}: an empty log: expected a JSON object a line")
    return ReadLog(records, cut_off=False)
