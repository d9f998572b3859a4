"""What the machine has: cores and memory."""

from __future__ import annotations

import os


def thread_count(asked: int) -> int:
    """What a number of threads means: 0 is one for each core that this process may use."""
    return asked or cores()


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
