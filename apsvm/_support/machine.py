"""Cores and memory of the machine, and the versions of the packages installed on it."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from functools import cache
from typing import Any

#: Number of vectors as long as the weights that a short training holds at a time.
_VECTORS = 12


@cache
def installed(package: str) -> str:
    """The version of a package.

    It is read from the name of the folder ``package-version.dist-info``: importing ``importlib.metadata`` takes a tenth
    of the time of a small training.

    Raises
    ------
    importlib.metadata.PackageNotFoundError : it is not installed
    """
    # Installers may replace - and . in the package's name by _.
    folder_name = re.compile(rf"{re.sub('[-_.]+', '[-_.]+', package)}-(.+)\.dist-info", re.IGNORECASE)
    for folder in sys.path:
        with suppress(OSError):
            for match in map(folder_name.fullmatch, os.listdir(folder or ".")):
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
    """True if memory suffices to train this many weights. Weights, slopes and cutting planes are dense, so a stray
    column number of a billion would exhaust the memory."""
    return 8 * n_weights * _VECTORS <= memory()


def _memory_of_windows() -> int:
    """Bytes of memory, from GlobalMemoryStatusEx, which fills a structure of two 32-bit and seven 64-bit numbers."""
    import ctypes
    import struct

    answer = ctypes.create_string_buffer(struct.pack("<II7Q", 64, *[0] * 8), 64)
    library: Any = vars(ctypes)["windll"]  # exists on Windows only
    library.kernel32.GlobalMemoryStatusEx(answer)
    return int(struct.unpack("<II7Q", answer.raw)[2])
