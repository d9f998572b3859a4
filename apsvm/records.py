"""The timing log: JSON Lines, one record an oracle call and one an iteration, flushed line by line.

Every record has ``event``: ``start`` (what is trained), ``oracle``, ``iteration``, ``step`` (of the tight bound's
descent), ``end`` (why it stopped). Times are nanoseconds, wall clock (``*_wall_ns``) and CPU of the whole process
(``*_cpu_ns``). Where several classes are trained, a record says its ``class``; only the ``end`` is of all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol, TextIO

from apsvm.clock import Span


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
