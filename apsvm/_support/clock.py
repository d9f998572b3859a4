"""Wall and CPU time of the parts of an iteration, in nanoseconds.

Reading the CPU time of a process takes microseconds, in some containers longer than the oracle call that is timed. So
CPU times are 0 until ``count_cpu_time`` is called.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter_ns

_cpu_time_ns: Callable[[], int] | None = None


def count_cpu_time() -> None:
    """Makes spans count CPU time from now on."""
    global _cpu_time_ns
    _cpu_time_ns = time.process_time_ns


@dataclass(slots=True)
class Span:
    """Wall time of a part and, if counted, CPU time of the process (all threads), in nanoseconds; ``with`` adds to
    it."""

    wall_ns: int = 0
    cpu_ns: int = 0

    def __add__(self, other: Span) -> Span:
        return Span(self.wall_ns + other.wall_ns, self.cpu_ns + other.cpu_ns)

    def __enter__(self) -> None:
        self.wall_ns -= perf_counter_ns()
        if _cpu_time_ns is not None:
            self.cpu_ns -= _cpu_time_ns()

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.wall_ns += perf_counter_ns()
        if _cpu_time_ns is not None:
            self.cpu_ns += _cpu_time_ns()


class Spans(dict[str, Span]):
    """Spans by part name: ``with spans["qp"]`` adds to that part."""

    def __missing__(self, part: str) -> Span:
        span = self[part] = Span()
        return span

    def add(self, others: Mapping[str, Span]) -> None:
        """Adds the spans of other work."""
        for part, span in others.items():
            self[part] += span
