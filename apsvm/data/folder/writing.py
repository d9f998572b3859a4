"""Writing a data folder: its members beside the place it is for, and then the place given to it in one step."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from apsvm._support import sparse as sp
from apsvm._support.places import settled
from apsvm._support.temporary import temporary_name
from apsvm._support.types import JsonDict, Matrix
from apsvm.data.dataset import Dataset
from apsvm.data.folder import checks
from apsvm.data.folder.checksums import Checksums
from apsvm.data.folder.header import (
    FORMAT,
    HEADER,
    QUERIES,
    TABLE,
    VERSION,
    VERSION_OF_BAGS,
    VERSION_OF_BLOCKS,
    VERSION_OF_SETS,
    VERSION_OF_TABLES,
    header_text,
    is_data_folder,
)
from apsvm.data.folder.replacing import clean, give_place, sync, sync_folder
from apsvm.models.json import fields_of

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: From this share of stored entries on, rows are written dense: they are then smaller, and faster to multiply.
DENSE_FROM = 0.6


def write_folder(data: Dataset, path: str | os.PathLike[str], *, dense: bool | None = None) -> None:
    """Writes the folder whole or not at all: beside its place, synced, then renamed.

    A data folder that stands there is replaced in one step; anything else is refused.

    Parameters
    ----------
    dense : whether rows are written dense; by default if at least ``DENSE_FROM`` of the entries are stored

    Raises
    ------
    OSError : it cannot be written; what was there is untouched
    """
    target = settled(path)  # replace what a link points at, not the link
    check_replaceable(target)
    n, d = data.X.shape
    is_dense = not sp.issparse(data.X)
    if dense is None:
        dense = d > 0 and (is_dense or data.n_values >= DENSE_FROM * n * d)
    if dense and n * d * data.X.dtype.itemsize > shutil.disk_usage(target.parent).free:
        raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)} for {n} × {d} dense values", str(target))
    X = sp.csr_array(data.X) if is_dense and not dense else data.X
    clean(target.parent)
    temporary = target.parent / temporary_name()
    temporary.mkdir()
    try:
        members = _write_members(temporary, data, X, dense)
        with (temporary / HEADER).open("wb") as stream:
            stream.write(header_text(_content(data, X, dense, members)).encode())
            sync(stream)
        sync_folder(temporary)
        give_place(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raises the OSError that ``write_folder`` would raise for this place, before the work is done that it would lose.

    Only a data folder without anything else in it is ever replaced.
    """
    target = settled(path)
    if os.path.lexists(target) and not is_data_folder(target):
        raise FileExistsError(errno.EEXIST, "It exists and is no data folder", str(target))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such directory", str(target.parent))
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target.parent))


def _write_members(folder: Path, data: Dataset, X: Matrix, dense: bool) -> JsonDict:
    """Writes every array; file name → size and sha256."""
    vectors: dict[str, AnyArray | None] = {
        "relevance.npy": data.relevance,
        "groups.npy": data.groups,
        "costs.npy": data.costs,
        "bags.npy": data.bags,
    }
    if data.label_sets is not None:
        vectors["classes.npy"] = data.label_sets.classes
        vectors["label_indptr.npy"] = data.label_sets.indptr
        vectors["label_indices.npy"] = data.label_sets.indices
    vectors |= _texts(data)
    if not dense:
        vectors |= {"indptr.npy": X.indptr, "indices.npy": X.indices, "values.npy": X.data}
    members: JsonDict = {
        name: _write_vector(folder / name, vector) for name, vector in vectors.items() if vector is not None
    }
    if dense:
        members["X.npy"] = _write_rows(folder / "X.npy", X)
    return members


def _texts(data: Dataset) -> dict[str, NDArray[np.uint8]]:
    """What there is to say of a table, as JSON: file name → its bytes."""
    if data.table is None:
        return {}
    texts: dict[str, object] = {TABLE: fields_of(data.table.columns)}
    if data.table.queries and data.groups is not None:
        texts[QUERIES] = list(data.table.queries)
    return {name: np.frombuffer(json.dumps(content).encode(), dtype=np.uint8) for name, content in texts.items()}


def _content(data: Dataset, X: Matrix, dense: bool, members: JsonDict) -> JsonDict:
    """What the header says, but for its checksum."""
    n, d = X.shape
    sets = data.label_sets
    version = VERSION if sets is None else VERSION_OF_SETS
    version = version if data.bags is None else VERSION_OF_BAGS
    version = VERSION_OF_BLOCKS if any("blocks" in member for member in members.values()) else version
    return {
        "format": FORMAT,
        "version": version if data.table is None else VERSION_OF_TABLES,
        **{Path(name).stem: text.size for name, text in _texts(data).items()},
        "layout": "dense" if dense else "csr",
        "shape": [n, d],
        "nnz": n * d if dense else int(X.nnz),
        "dtype": X.dtype.name,
        "index_dtype": "int64" if dense else X.indices.dtype.name,
        "zero_based": data.zero_based,
        "source": {"name": os.path.basename(data.source), "sha256": data.fingerprint},
        **({} if sets is None else {"label_sets": [sets.classes.size, sets.indices.size]}),
        "members": members,
    }


class _Hashing:
    """A stream that keeps the checksums of what goes through it."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.checksums = Checksums()

    def write(self, data: bytes | memoryview) -> None:
        self.stream.write(data)
        self.checksums.update(data)


@contextlib.contextmanager
def _npy_file(path: Path, dtype: DTypeLike, shape: tuple[int, ...], member: JsonDict) -> Iterator[_Hashing]:
    """A .npy file open behind its header; its size and checksums are put into ``member`` at the end."""
    with path.open("wb") as stream:
        out = _Hashing(stream)
        header = {"descr": npy.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(out, header)
        yield out
        sync(stream)
    member.update(out.checksums.member())


def _write_vector(path: Path, array: AnyArray) -> JsonDict:
    """Writes a vector; its size and sha256."""
    member: JsonDict = {}
    with _npy_file(path, array.dtype, array.shape, member) as out:
        for _, block in checks.blocks(array):
            out.write(np.ascontiguousarray(block).data)
    return member


def _write_rows(path: Path, X: Matrix) -> JsonDict:
    """Writes the rows of X, sparse or dense, as a dense matrix, some at a time."""
    member: JsonDict = {}
    n, d = X.shape
    step = max(1, checks.BLOCK // max(d, 1))
    with _npy_file(path, X.dtype, X.shape, member) as out:
        for start in range(0, n if d else 0, step):
            block = X[start : start + step]
            out.write(np.ascontiguousarray(block.toarray() if sp.issparse(block) else block).data)
    return member
