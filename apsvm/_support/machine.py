"""Cores and memory of the machine, and the versions of the packages installed on it."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

#: Vectors of the weights' length that a short training has at a time.
_VECTORS = 12


@cache
def installed(package: str) -> str:
    """The version of a package.

    It stands in the name of the folder ``package-version.dist-info``; importing ``importlib.metadata``, which brings a
    parser of e-mails with it, takes a tenth of a small training's time.

    Raises
    ------
    importlib.metadata.PackageNotFoundError : it is not installed
    """
    # An installer may write _ where the package's name has - or a dot.
    named = re.compile(rf"{re.sub('[-_.]+', '[-_.]+', package)}-(.+)\.dist-info", re.IGNORECASE)
    for folder in sys.path:
        with suppress(OSError):
            for match in map(named.fullmatch, os.listdir(folder or ".")):
                if match is not None:
                    return match[1]
    from importlib.metadata import version

    return version(package)


def thread_count(threads: int) -> int:
    """Number of threads to use; for 0, one for each core that this process may use."""
    return threads or cores()


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> int:
    """Bytes of memory that this machine has."""
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return _memory_of_windows()


def can_train(n_weights: int) -> bool:
    """True if memory suffices to train this many weights. Weights, slopes and each cutting plane are dense: a stray
    column of a billion would take the machine down instead of the run."""
    return 8 * n_weights * _VECTORS <= memory()


def _memory_of_windows() -> int:
    """Bytes of memory, from GlobalMemoryStatusEx, which fills a structure of two 32-bit and seven 64-bit numbers."""
    import ctypes
    import struct

    answer = ctypes.create_string_buffer(struct.pack("<II7Q", 64, *[0] * 8), 64)
    library: Any = vars(ctypes)["windll"]  # of Windows alone, as the types say too
    library.kernel32.GlobalMemoryStatusEx(answer)
    return int(struct.unpack("<II7Q", answer.raw)[2])


def largest_cache() -> int:
    """Bytes of the first core's largest cache, which others may share; 0 where the system does not say."""
    sizes = [0]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        try:
            sizes.append(1024 * int(path.read_text(encoding="ascii").strip().removesuffix("K")))
        except (OSError, ValueError):
            continue
    return max(sizes)
