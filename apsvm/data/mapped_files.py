"""Files that arrays are mapped from, as they were when they were opened.

Rows that are mapped are read long after they were opened. A file that was cut off meanwhile would end the process by a
signal (SIGBUS), one that was written to would change the data under a training: so before a pass over the
rows looks first (``MappedFile.check``), which takes microseconds. A file that was replaced as a whole, as ``apsvm
convert`` does, is no danger: what is mapped is still the old one.

A file that is cut off in the midst of a pass is a signal all the same. A process that is a command says so
(``end_with_words``) and ends with a sentence and an exit code; a library does not do that.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np

from apsvm._native import _kernels
from apsvm.data.dataset import DataError

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray, Matrix


@dataclass(frozen=True, slots=True)
class MappedFile:
    """A file, and what it was when it was mapped.

    Attributes
    ----------
    path : str
    device, inode : int, which file it is
    size : int, bytes
    changed : int, when it was last written to, in nanoseconds
    """

    path: str
    device: int
    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, path: str, status: os.stat_result) -> MappedFile:
        return cls(path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    def check(self) -> None:
        """Raises DataError if the file is not what it was."""
        try:
            now = MappedFile.of(self.path, os.stat(self.path))
        except OSError:  # no longer there: what is mapped still is
            return
        if (now.device, now.inode) != (self.device, self.inode) or now == self:
            return
        if now.size < self.size:
            raise DataError(f"{self.path}: cut off while it was in use: {now.size} bytes are left of {self.size}")
        raise DataError(f"{self.path}: changed while it was in use")


class MappedArray(np.memmap):
    """A mapped array that knows its file; what is made of it need not."""

    file: MappedFile | None = None


def end_with_words(words: Callable[[str], str], exit_code: int) -> None:
    """From now on this process ends with ``exit_code`` where a file that it maps is cut off in the midst of a pass, and
    with ``words`` of the file's path, a line without its end, on standard error."""
    global _last_words
    _last_words = lambda path: (words(path).encode() + b"\n", exit_code)  # noqa: E731


#: What ``end_with_words`` was told; None: a signal ends the process.
_last_words: Callable[[str], tuple[bytes, int]] | None = None


def mapped(stream: IO[bytes], dtype: np.dtype[np.generic], offset: int, shape: tuple[int, ...]) -> AnyArray:
    """The array of this type and shape in an open file, from ``offset`` on, read-only."""
    array = MappedArray(stream, dtype=dtype, mode="r", offset=offset, shape=shape)
    return _watched(array, MappedFile.of(stream.name, os.fstat(stream.fileno())))


def mapped_npy(path: str) -> AnyArray:
    """The array of a .npy file, read-only. Raises OSError, and ValueError as ``numpy.load``."""
    status = os.stat(path)
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return _watched(array.view(MappedArray), MappedFile.of(path, status))


def _watched(array: MappedArray, file: MappedFile) -> AnyArray:
    array.file = file
    plain = np.asarray(array)
    if _last_words is not None and plain.nbytes:
        content = plain.T if plain.flags.f_contiguous else plain
        words, exit_code = _last_words(file.path)
        number = _kernels.guard_mapping(content.reshape(-1).view(np.uint8), words, exit_code)
        weakref.finalize(array, _kernels.forget_mapping, number)
    return plain


def files_of(X: Matrix) -> list[MappedFile]:
    """The files that the arrays of X, CSR or dense, are mapped from, as far as they were opened by ``mapped``."""
    arrays = [getattr(X, name) for name in ("indptr", "indices", "data") if hasattr(X, "indptr")] or [X]
    found: dict[str, MappedFile] = {}
    for array in arrays:
        while array is not None:
            if isinstance(array, MappedArray) and array.file is not None:
                found[array.file.path] = array.file
            array = getattr(array, "base", None)
    return list(found.values())
