"""Wall and CPU time of the parts of an iteration, in nanoseconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Span:
    """How long one part took: wall clock and CPU time of the whole process (all threads), nanoseconds."""

    wall_ns: int = 0
    cpu_ns: int = 0

    def __add__(self, other: Span) -> Span:
        return Span(self.wall_ns + other.wall_ns, self.cpu_ns + other.cpu_ns)


@dataclass(slots=True)
class Spans:
    """Spans by part name; timing a name again adds to it."""

    parts: dict[str, Span] = field(default_factory=dict)

    @contextmanager
    def time(self, part: str) -> Iterator[None]:
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        try:
            yield
        finally:
            span = Span(time.perf_counter_ns() - wall, time.process_time_ns() - cpu)
            self.parts[part] = self.parts.get(part, Span()) + span
