"""Arrays that may be larger than memory: in a file without a name, which goes when nobody has the array any more, even
if the process is killed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike, NDArray

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray


@dataclass(frozen=True, slots=True)
class Scratch:
    """Where arrays are made: in a file in ``folder``; None: in memory. Raises OSError where the disk is full."""

    folder: str | os.PathLike[str] | None = None

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> AnyArray:
        """An array of this shape, to be written to."""
        if self.folder is None or 0 in shape:
            return np.empty(shape, dtype)
        with tempfile.TemporaryFile(dir=self.folder) as file:
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            if hasattr(os, "posix_fallocate"):  # a full disk is an error here, and no signal at a write to memory
                os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, dtype=dtype, mode="r+", shape=shape)

    def gathered(self, blocks: Iterable[NDArray[np.float64]], width: int) -> NDArray[np.float64]:
        """Blocks of rows (…, width) float64, one below the other, no more than one of them in memory."""
        with tempfile.TemporaryFile(dir=self.folder) as file:
            n = 0
            for block in blocks:
                file.write(np.ascontiguousarray(block).data)
                n += len(block)
            file.flush()
            if n * width == 0:
                return np.empty((n, width))
            return np.memmap(file, dtype=np.float64, mode="r+", shape=(n, width))


#: In memory.
MEMORY = Scratch()
