"""A data set of blocks of rows that are never in memory together. The arrays of each block are appended to files, from
which the whole is mapped."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from apsvm._support import sparse as sp
from apsvm._support.files import temporary_beside
from apsvm.data.dataset import DataError, Dataset, one_or_several

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

_BLOCK = 1 << 22  # items that are copied at a time


@contextmanager
def gathered(blocks: Iterable[Dataset], beside: Path, name: str) -> Iterator[Dataset]:
    """The rows of all blocks as one data set, mapped from files in a temporary folder in ``beside``. It takes the
    memory of a block, and of all label sets.

    Parameters
    ----------
    blocks : CSR rows of one type; X has the width of the widest. All blocks have queries, or none, and so with bags.
        Costs are 1 in a block without costs
    name : the data set's name in messages

    Raises
    ------
    DataError : no rows; queries or bags in some blocks only; as raised by ``blocks``
    OSError : a file cannot be written
    """
    folder = Path(temporary_beside(beside / "rows"))  # a name may have slashes
    folder.mkdir()
    files = _Files(folder)
    try:
        for block in blocks:
            files.add(block, name)
        if files.n == 0:
            raise DataError(f"{name}: expected at least one row, found none")
        yield files.dataset(name)
    finally:
        files.close()
        shutil.rmtree(folder, ignore_errors=True)


class _Vector:
    """A vector in a file, to which items are appended."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._path, self.dtype, self.size = path, np.dtype(dtype), 0
        self._stream = path.open("wb")

    def add(self, items: AnyArray) -> None:
        self._stream.write(np.ascontiguousarray(items, dtype=self.dtype).data)
        self.size += items.size

    def close(self) -> None:
        self._stream.close()

    def array(self) -> AnyArray:
        """All items, read-only. No more can be added."""
        self._stream.close()
        return np.asarray(np.memmap(self._path, self.dtype, "r")) if self.size else np.empty(0, self.dtype)


class _Files:
    """The vectors of a data set."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._vectors: dict[str, _Vector] = {}
        self._first: Dataset | None = None
        self._has_costs = False
        self.n = self._width = self._unknown = 0

    def add(self, block: Dataset, name: str) -> None:
        first, X, sets, n = self._first or block, block.X, block.label_sets, len(block)
        for what, mine, theirs in (("qid", block.groups, first.groups), ("bag", block.bags, first.bags)):
            if (mine is None) != (theirs is None):
                raise DataError(f"{block.source}: expected rows with {what}: as in all of {name}, or in none")
        if self._first is None:
            self._put("indptr", np.zeros(1, dtype=np.int64))
        ends = np.arange(1, n + 1) if sets is None else sets.indptr[1:]
        self._put("indptr", X.indptr[1:] + np.int64(self._size("values")))
        self._put("values", X.data)
        self._put("indices", X.indices)
        self._put("ends", ends + self._size("labels"))
        self._put("labels", block.relevance if sets is None else sets.classes[sets.indices])
        self._put("costs", np.ones(n) if block.costs is None else block.costs)
        for key, items in (("groups", block.groups), ("bags", block.bags)):
            if items is not None:
                self._put(key, items)
        self._first = first
        self._has_costs |= block.costs is not None
        self.n += n
        self._width = max(self._width, X.shape[1])
        self._unknown += block.unknown_features

    def close(self) -> None:
        """Closes all files, also on a full disk, where the rest of a buffer cannot be written."""
        for vector in self._vectors.values():
            with suppress(OSError):
                vector.close()

    def _size(self, name: str) -> int:
        return self._vectors[name].size if name in self._vectors else 0

    def _put(self, name: str, items: AnyArray) -> None:
        if name not in self._vectors:
            self._vectors[name] = _Vector(self._folder / f"{name}.npy", items.dtype)
        elif items.dtype.itemsize > self._vectors[name].dtype.itemsize:
            self._retype(name, items.dtype)
        self._vectors[name].add(items)

    def _retype(self, name: str, dtype: DTypeLike) -> None:
        """Changes the type of a vector."""
        before = self._vectors[name].array()
        after = self._vectors[name] = _Vector(self._folder / f"{name}-{np.dtype(dtype).name}.npy", dtype)
        for start in range(0, before.size, _BLOCK):
            after.add(before[start : start + _BLOCK])

    def dataset(self, name: str) -> Dataset:
        assert self._first is not None
        narrow = max(self.n, self._width, self._size("values")) <= np.iinfo(np.int32).max
        for key in ("indices", "indptr"):  # both have one type in scipy
            if self._vectors[key].dtype != (np.int32 if narrow else np.int64):
                self._retype(key, np.int32 if narrow else np.int64)
        arrays = {key: vector.array() for key, vector in self._vectors.items()}
        X = sp.canonical_csr(arrays["values"], arrays["indices"], arrays["indptr"], (self.n, self._width))
        relevance, sets = one_or_several(arrays["labels"], arrays["ends"])
        return Dataset(
            X=X,
            relevance=relevance,
            groups=arrays.get("groups"),
            costs=arrays["costs"] if self._has_costs else None,
            zero_based=self._first.zero_based,
            source=name,
            unknown_features=self._unknown,
            label_sets=sets,
            bags=arrays.get("bags"),
        )
