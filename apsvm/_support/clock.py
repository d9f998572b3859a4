"""Wall and CPU time of the parts of an iteration, in nanoseconds.

Reading the CPU time of a process asks the kernel, for microseconds, in some containers for much longer: more than the
oracle call that is timed. It is read only once it is kept (``count_cpu_time``), and is 0 until then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

_cpu_time_ns: Callable[[], int] = int


def count_cpu_time() -> None:
    """From now on spans hold CPU times."""
    global _cpu_time_ns
    _cpu_time_ns = time.process_time_ns


class _Waited(threading.local):
    ns = 0


_waited = _Waited()


def wall_time_ns() -> int:
    """The wall clock of this thread, which stands still while it waits for other trainings (``data.lockstep``)."""
    return time.perf_counter_ns() - _waited.ns


def add_waiting(ns: int) -> None:
    """This thread has waited for others."""
    _waited.ns += ns


@dataclass(slots=True)
class Span:
    """How long one part took: wall clock, and if it is counted CPU time of the whole process (all threads), in
    nanoseconds. It is never changed; frozen ones take thrice as long to make, and every iteration makes twenty."""

    wall_ns: int = 0
    cpu_ns: int = 0

    def __add__(self, other: Span) -> Span:
        return Span(self.wall_ns + other.wall_ns, self.cpu_ns + other.cpu_ns)


def add_spans(total: dict[str, Span], more: Mapping[str, Span]) -> None:
    """Adds to each part of ``total`` what ``more`` has of it."""
    for part, span in more.items():
        total[part] = total.get(part, Span()) + span


@dataclass(slots=True)
class Spans:
    """Spans by part name; timing a name again adds to it."""

    parts: dict[str, Span] = field(default_factory=dict)

    def time(self, part: str) -> Timing:
        """Times what is done while the result is entered (``with``)."""
        return Timing(self.parts, part)


class Timed:
    """A context; ``span`` is the time that was spent in it. A class of its own: of a hundred rows, a generator's
    context manager takes as long as what is timed."""

    __slots__ = ("_cpu", "_wall", "span")

    def __enter__(self) -> Self:
        self._wall, self._cpu = wall_time_ns(), _cpu_time_ns()
        return self

    def __exit__(self, *error: object) -> None:
        self.span = Span(wall_time_ns() - self._wall, _cpu_time_ns() - self._cpu)


class Timing(Timed):
    """A context that adds the time spent in it to a part."""

    __slots__ = ("_part", "_parts")

    def __init__(self, parts: dict[str, Span], part: str) -> None:
        self._parts, self._part = parts, part

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        before = self._parts.get(self._part)
        self._parts[self._part] = self.span if before is None else before + self.span
