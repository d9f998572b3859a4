"""What is checked of mapped arrays, a block at a time, so that no check needs memory of the size of the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: Items looked at, or written, at a time.
BLOCK = 1 << 22


def blocks(array: AnyArray, overlap: int = 0) -> Iterator[tuple[int, AnyArray]]:
    """The start and the items of each block of a vector, with ``overlap`` items of the next."""
    for start in range(0, array.size, BLOCK):
        yield start, array[start : start + BLOCK + overlap]


def all_finite(array: AnyArray) -> bool:
    """Whether no item of a vector is NaN or infinite."""
    return all(bool(np.isfinite(block).all()) for _, block in blocks(array))


def all_below(indices: AnyArray, limit: int) -> bool:
    """Whether 0 <= index < limit for all: one pass, as a negative number is a huge unsigned one."""
    return indices.size == 0 or int(indices.view(f"u{indices.itemsize}").max()) < limit


def rises_to(indptr: AnyArray, end: int) -> bool:
    """Whether these are row pointers: 0 at first, never falling, ``end`` at last."""
    return indptr[0] == 0 and indptr[-1] == end and bool((indptr[1:] >= indptr[:-1]).all())


def all_rise(indptr: AnyArray, indices: AnyArray) -> bool:
    """Whether the indices increase within each row."""
    for start, block in blocks(indices, overlap=1):
        falls = np.flatnonzero(block[1:] <= block[:-1]) + start + 1  # allowed where a row starts
        if not (indptr[np.minimum(np.searchsorted(indptr, falls), indptr.size - 1)] == falls).all():
            return False
    return True
