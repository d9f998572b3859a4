"""A data set made of blocks of rows that are never in memory together: what a block holds is put behind that of the
blocks before it, into files, which the whole is then mapped from."""

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
    from apsvm._support.types import AnyArray, Matrix

_BLOCK = 1 << 22  # items that are copied at a time


@contextmanager
def gathered(blocks: Iterable[Dataset], beside: Path, name: str) -> Iterator[Dataset]:
    """The rows of all blocks as one data set, mapped from files in a temporary folder in ``beside``.

    Memory is that of a block; of label sets and bags all are held besides.

    Parameters
    ----------
    blocks : each with rows of any width, CSR or dense, of one type; X has as many columns as the widest. Queries, bags
        and label sets are in all of them or in none; costs are 1 in a block without costs
    name : the rows' name in messages

    Raises
    ------
    DataError : no rows; queries or bags in some blocks only; and whatever ``blocks`` raises
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
    """A vector in a file, that items are put behind."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._path, self.dtype, self.size = path, np.dtype(dtype), 0
        self._stream = path.open("wb")

    def add(self, items: AnyArray) -> None:
        self._stream.write(np.ascontiguousarray(items, dtype=self.dtype).data)
        self.size += items.size

    def close(self) -> None:
        self._stream.close()

    def array(self) -> AnyArray:
        """All of them, read-only; there will be no more."""
        self._stream.close()
        return self._mapped()

    def so_far(self) -> AnyArray:
        """Those there are, read-only."""
        self._stream.flush()
        return self._mapped()

    def _mapped(self) -> AnyArray:
        if self.size == 0:
            return np.empty(0, dtype=self.dtype)
        return np.asarray(np.memmap(self._path, dtype=self.dtype, mode="r"))


class _Files:
    """The vectors of a data set. As long as all blocks are dense and of one width, no indices are kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._vectors: dict[str, _Vector] = {}
        self._dense_width: int | None = None
        self._stored = 0  # values of the sparse rows
        self._first: Dataset | None = None
        self.n = self._width = self._unknown = 0

    def add(self, block: Dataset, name: str) -> None:
        first, n = self._first or block, block.relevance.size
        for what, mine, theirs in (("qid", block.groups, first.groups), ("bag", block.bags, first.bags)):
            if (mine is None) != (theirs is None):
                raise DataError(f"{block.source}: expected rows with {what}: as in all of {name}, or in none")
        self._add_rows(block.X)
        self._put("relevance", block.relevance)
        self._put("groups", block.groups)
        self._put("bags", block.bags)
        if block.costs is not None and "costs" not in self._vectors:
            self._vector("costs", np.float64).add(np.ones(self.n))
        if "costs" in self._vectors:
            self._put("costs", np.ones(n) if block.costs is None else block.costs)
        self._put_labels(block)
        self._first = first
        self.n += n
        self._unknown += block.unknown_features

    def close(self) -> None:
        """Also where the disk is full, and what is buffered cannot be written: it is not wanted any more."""
        for vector in self._vectors.values():
            with suppress(OSError):
                vector.close()

    def _vector(self, name: str, dtype: DTypeLike) -> _Vector:
        if name not in self._vectors:
            self._vectors[name] = _Vector(self._folder / f"{name}.npy", dtype)
        return self._vectors[name]

    def _put(self, name: str, items: AnyArray | None) -> None:
        if items is not None:
            self._vector(name, items.dtype).add(items)

    def _put_labels(self, block: Dataset) -> None:
        """The labels of each row and where they end, once there is a row of several or none."""
        sets, began = block.label_sets, "labels" in self._vectors
        if sets is None and not began:
            return
        labels, ends = self._vector("labels", np.float64), self._vector("label_ends", np.int64)
        if not began:
            labels.add(self._vectors["relevance"].so_far()[: self.n])
            ends.add(np.arange(1, self.n + 1))
        ends.add((np.arange(1, block.relevance.size + 1) if sets is None else sets.indptr[1:]) + labels.size)
        labels.add(block.relevance if sets is None else sets.classes[sets.indices])

    def _add_rows(self, X: Matrix) -> None:
        n, width = X.shape
        if self.n == 0 and not sp.issparse(X):
            self._dense_width = width
        if self._dense_width is not None and (sp.issparse(X) or width != self._dense_width):
            self._write_dense_indices()
        self._width = max(self._width, width)
        values = X.data if sp.issparse(X) else X.reshape(-1)
        self._vector("values", values.dtype).add(values)
        if self._dense_width is not None:
            return
        if not sp.issparse(X):
            self._add_dense_indices(n, width)
            return
        self._add_indices(X.indices)
        self._add_ends(X.indptr[1:].astype(np.int64))

    def _write_dense_indices(self) -> None:
        """Writes the column indices of the rows so far, which were dense."""
        width, self._dense_width = self._dense_width, None
        assert width is not None
        step = max(1, _BLOCK // max(1, width))
        for start in range(0, self.n, step):
            self._add_dense_indices(min(step, self.n - start), width)

    def _add_dense_indices(self, n: int, width: int) -> None:
        self._add_indices(np.tile(np.arange(width, dtype=np.int32), n))
        self._add_ends(np.arange(1, n + 1) * width)

    def _add_indices(self, indices: AnyArray) -> None:
        self._vector("indices", np.int32 if indices.dtype == np.int32 else np.int64)
        if indices.dtype.itemsize > self._vectors["indices"].dtype.itemsize:
            self._retype("indices", np.int64)
        self._vectors["indices"].add(indices)

    def _add_ends(self, ends: AnyArray) -> None:
        vector = self._vector("indptr", np.int64)
        if vector.size == 0:
            vector.add(np.zeros(1))
        vector.add(ends + self._stored)
        self._stored += int(ends[-1]) if ends.size else 0

    def _retype(self, name: str, dtype: DTypeLike) -> None:
        """Another type for the items of a vector."""
        before = self._vectors.pop(name).array()
        after = _Vector(self._folder / f"{name}-{np.dtype(dtype).name}.npy", dtype)
        for start in range(0, before.size, _BLOCK):
            after.add(before[start : start + _BLOCK])
        self._vectors[name] = after

    def dataset(self, name: str) -> Dataset:
        assert self._first is not None
        X = self._matrix()
        arrays = {name: vector.array() for name, vector in self._vectors.items()}
        relevance, sets = arrays["relevance"], None
        if "labels" in arrays:
            relevance, sets = one_or_several(arrays["labels"], arrays["label_ends"])
        return Dataset(
            X=X,
            relevance=relevance,
            groups=arrays.get("groups"),
            costs=arrays.get("costs"),
            zero_based=self._first.zero_based,
            source=name,
            fingerprint="",
            unknown_features=self._unknown,
            label_sets=sets,
            bags=arrays.get("bags"),
        )

    def _matrix(self) -> Matrix:
        values = self._vectors.pop("values").array()
        if self._dense_width is not None:
            return values.reshape(self.n, self._dense_width)
        narrow = max(self.n, self._width, values.size) <= np.iinfo(np.int32).max
        for name in ("indices", "indptr"):  # scipy wants both of one type
            if self._vectors[name].dtype != (np.int32 if narrow else np.int64):
                self._retype(name, np.int32 if narrow else np.int64)
        indices, indptr = (self._vectors.pop(name).array() for name in ("indices", "indptr"))
        X: Matrix = sp.csr_array((values, indices, indptr), shape=(self.n, self._width))
        X.has_canonical_format = True
        return X
