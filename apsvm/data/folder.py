"""The data folder: a data set as arrays on disk that are mapped into memory, opened in milliseconds.

    header.json                              what is here: layout, shape, types, source; size and sha256 of every member
    relevance.npy                            (n,) float64
    groups.npy, costs.npy                    (n,) int64 and (n,) float64, where the file had qid or cost
    classes.npy, label_indptr.npy, label_indices.npy
                                             (k,) float64, (n + 1,) int64 and (m,) int32, where rows have several labels
    indptr.npy, indices.npy, values.npy      layout csr: (n + 1,) and (nnz,) int32 | int64, (nnz,) float32 | float64
    X.npy                                    layout dense: (n, d) float32 | float64, C order; a zero is a zero

The row kernels trust their input, so nothing that is mapped may lead them outside an array. Every opening therefore
checks the header (and its own checksum), the size, type and shape of every member, that the row pointers rise from 0
to nnz (to m for the labels), that labels and costs are what they must be, and that every index is a column (a class):
O(n + nnz), a few milliseconds a hundred megabytes. `verify` also checks what is not dangerous but wrong: the checksum
of every member, that values are finite and that the indices of a row are sorted without duplicates.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import itertools
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from numpy.typing import DTypeLike

from apsvm.data.dataset import DataError, Dataset, LabelSets
from apsvm.types import JsonDict, JsonObject, Matrix

if TYPE_CHECKING:
    from apsvm.types import AnyArray

HEADER = "header.json"
_FORMAT = "apsvm data"
_VERSION = 1
_VERSION_OF_SETS = 2  # the same, with the members of label sets: what reads only version 1 must refuse it
_KEYS = {
    "format": str,
    "version": int,
    "layout": str,
    "shape": list,
    "nnz": int,
    "dtype": str,
    "index_dtype": str,
    "zero_based": bool,
    "source": dict,
    "members": dict,
    "sha256": str,
}
#: What version 2 has more: the numbers k and m.
_KEYS_OF_SETS = {**_KEYS, "label_sets": list}
_LONGEST_HEADER = 1 << 20
_ALWAYS = {"relevance.npy"}
_MAYBE = {"groups.npy", "costs.npy"}
_SETS = {"classes.npy", "label_indptr.npy", "label_indices.npy"}
_LAYOUTS = {"csr": {"indptr.npy", "indices.npy", "values.npy"}, "dense": {"X.npy"}}
_FILES = {HEADER, *_ALWAYS, *_MAYBE, *_SETS, *itertools.chain(*_LAYOUTS.values())}

#: From this share of stored entries on, rows are written dense: they are then smaller, and faster to multiply.
DENSE_FROM = 0.6
_BLOCK = 1 << 22  # items looked at at a time, so that no check needs memory of the size of the data


def is_data_folder(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is a folder with the header of a data folder and no file that does not belong into one."""
    folder = Path(path)
    try:
        names = set(os.listdir(folder))
        header = json.loads(_header_text(folder))
    except (OSError, ValueError, RecursionError):
        return False
    return names <= _FILES and isinstance(header, dict) and header.get("format") == _FORMAT


# ------------------------------------------------------------------------------------------------ opening


@dataclass(frozen=True, slots=True)
class _Header:
    layout: str
    n: int
    d: int
    nnz: int
    dtype: np.dtype[Any]
    index_dtype: np.dtype[Any]
    zero_based: bool
    fingerprint: str
    label_sets: tuple[int, int] | None  # k and m
    members: Mapping[str, tuple[int, str]]  # size and sha256

    def arrays(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Type and shape of every member."""
        double, n = np.dtype(np.float64), self.n
        every = {
            "relevance.npy": (double, (n,)),
            "groups.npy": (np.dtype(np.int64), (n,)),
            "costs.npy": (double, (n,)),
            "indptr.npy": (self.index_dtype, (n + 1,)),
            "indices.npy": (self.index_dtype, (self.nnz,)),
            "values.npy": (self.dtype, (self.nnz,)),
            "X.npy": (self.dtype, (n, self.d)),
        }
        if self.label_sets is not None:
            k, m = self.label_sets
            every["classes.npy"] = (double, (k,))
            every["label_indptr.npy"] = (np.dtype(np.int64), (n + 1,))
            every["label_indices.npy"] = (np.dtype(np.int32), (m,))
        return {name: every[name] for name in self.members}


def open_folder(path: str | os.PathLike[str], *, verify: bool = False) -> Dataset:
    """The data set in a folder written by ``write_folder``: X is a csr_array or a dense (n, d) array, mapped read-only.

    The fingerprint is that of the file the folder was made from.

    Parameters
    ----------
    verify : check all checksums and invariants, which reads every byte

    Raises
    ------
    DataError : it is no such folder, or it is damaged; the message names the file
    OSError : it cannot be read
    """
    folder = Path(path)
    header = _read_header(folder)
    arrays = {
        name: _mapped(folder / name, dtype, shape, header.members[name][0])
        for name, (dtype, shape) in header.arrays().items()
    }
    if verify:
        for name, (_, expected) in header.members.items():
            with (folder / name).open("rb") as stream:
                result = hashlib.file_digest(stream, "sha256").hexdigest()
            if result != expected:
                raise DataError(f"{folder / name}: damaged: its sha256 is {result}, expected {expected}")

    def check(name: str, is_fine: bool, expected: str) -> None:
        if not is_fine:
            raise DataError(f"{folder / name}: damaged: expected {expected}")

    relevance, groups, costs = arrays["relevance.npy"], arrays.get("groups.npy"), arrays.get("costs.npy")
    check("relevance.npy", _all_finite(relevance), "finite labels")
    if costs is not None:
        check("costs.npy", _all_finite(costs) and bool((costs >= 0).all()), "finite costs of at least 0")
    sets = None
    if header.label_sets is not None:
        k, m = header.label_sets
        sets = LabelSets(arrays["classes.npy"], arrays["label_indptr.npy"], arrays["label_indices.npy"])
        distinct = _all_finite(sets.classes) and bool((sets.classes[1:] > sets.classes[:-1]).all())
        check("classes.npy", distinct, "finite labels that increase")
        check("label_indptr.npy", _rises_to(sets.indptr, m), f"row pointers that rise from 0 to {m}")
        check("label_indices.npy", _all_below(sets.indices, k), f"numbers of labels from 0 to {k - 1}")
        if verify:
            rise = _all_rise(sets.indptr, sets.indices)
            check("label_indices.npy", rise, "numbers of labels that increase within each row")
    if header.layout == "dense":
        X: Matrix = arrays["X.npy"]
        if verify:
            check("X.npy", _all_finite(X.reshape(-1)), "finite values")
    else:
        indptr, indices, values = arrays["indptr.npy"], arrays["indices.npy"], arrays["values.npy"]
        check("indptr.npy", _rises_to(indptr, header.nnz), f"row pointers that rise from 0 to {header.nnz}")
        check("indices.npy", _all_below(indices, header.d), f"indices from 0 to {header.d - 1}")
        if verify:
            check("indices.npy", _all_rise(indptr, indices), "indices that increase within each row")
            check("values.npy", _all_finite(values), "finite values")
        X = sp.csr_array((values, indices, indptr), shape=(header.n, header.d))
        X.has_canonical_format = True
    return Dataset(
        X=X,
        relevance=relevance,
        groups=groups,
        costs=costs,
        zero_based=header.zero_based,
        source=str(folder),  # without a trailing slash
        fingerprint=header.fingerprint,
        unknown_features=0,
        label_sets=sets,
    )


def _header_text(folder: Path) -> bytes:
    with (folder / HEADER).open("rb") as stream:
        return stream.read(_LONGEST_HEADER)


def _read_header(folder: Path) -> _Header:
    """Raises DataError, OSError."""
    name = folder / HEADER

    def fail(problem: str) -> NoReturn:
        raise DataError(f"{name}: {problem}")

    try:
        content = json.loads(_header_text(folder))
    except FileNotFoundError:
        what = "neither a data file nor a folder made by apsvm convert"
        raise IsADirectoryError(errno.EISDIR, what, str(folder)) from None
    except (ValueError, RecursionError):
        fail("damaged: expected a JSON object")
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        fail(f"expected the header of a data folder (format {_FORMAT!r})")
    if content.get("version") not in (_VERSION, _VERSION_OF_SETS):
        result = f"found {content.get('version')!r}: it was written by another apsvm"
        fail(f"expected version {_VERSION} or {_VERSION_OF_SETS}, {result}")
    keys = _KEYS_OF_SETS if content["version"] == _VERSION_OF_SETS else _KEYS
    if {key: type(value) for key, value in content.items()} != keys:
        fail("damaged: expected the keys " + ", ".join(keys) + ", each of its type")
    if content.pop("sha256") != _checksum(content):
        fail("damaged: its content does not have the sha256 it states")

    shape, members, source = content["shape"], content["members"], content["source"]
    counts, set_counts = [*shape, content["nnz"]], content.get("label_sets")
    if set_counts is not None and (len(set_counts) != 2 or not all(type(count) is int for count in set_counts)):
        fail("damaged: expected the counts of the classes and of the rows' labels")
    if len(counts) != 3 or not all(type(count) is int and 0 <= count < 1 << 62 for count in counts) or shape[0] < 1:
        fail("damaged: expected a shape of two counts, with at least one row")
    if content["layout"] not in _LAYOUTS:
        fail(f"damaged: expected a layout of {', '.join(_LAYOUTS)}, found {content['layout']!r}")
    if content["dtype"] not in ("float32", "float64") or content["index_dtype"] not in ("int32", "int64"):
        fail("damaged: expected values of float32 or float64 and indices of int32 or int64")
    if content["index_dtype"] == "int32" and max(counts) > np.iinfo(np.int32).max and content["layout"] == "csr":
        fail("damaged: int32 indices cannot count this shape")
    needed = _ALWAYS | _LAYOUTS[content["layout"]] | (set() if set_counts is None else _SETS)
    if not needed <= set(members) <= needed | _MAYBE:
        fail(f"damaged: expected the members {', '.join(sorted(needed))}, found {', '.join(sorted(members))}")
    for member in members.values():
        if not isinstance(member, dict) or {key: type(value) for key, value in member.items()} != _MEMBER_KEYS:
            fail("damaged: expected a size and a sha256 for every member")
    if {key: type(value) for key, value in source.items()} != {"name": str, "sha256": str}:
        fail("damaged: expected the source's name and sha256")
    return _Header(
        layout=content["layout"],
        n=shape[0],
        d=shape[1],
        nnz=content["nnz"],
        dtype=np.dtype(content["dtype"]),
        index_dtype=np.dtype(content["index_dtype"]),
        zero_based=content["zero_based"],
        fingerprint=source["sha256"],
        label_sets=None if set_counts is None else (set_counts[0], set_counts[1]),
        members={name: (member["size"], member["sha256"]) for name, member in members.items()},
    )


_MEMBER_KEYS = {"size": int, "sha256": str}


def _checksum(content: JsonObject) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _mapped(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], size: int) -> AnyArray:
    """The array of a .npy file, read-only. Raises DataError if it is not of this type, shape and size, OSError."""
    try:
        with path.open("rb") as stream:
            result = os.fstat(stream.fileno()).st_size
            if result != size:
                raise DataError(f"{path}: damaged: expected {size} bytes, found {result}")
            try:
                version = npy.read_magic(stream)
                read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
                found_shape, is_fortran, found_dtype = read_header(stream)
            except Exception as error:  # numpy promises no set of them for a damaged header
                raise DataError(f"{path}: damaged: not a .npy file that is read here ({error})") from None
            if (found_shape, found_dtype) != (shape, dtype) or (is_fortran and len(shape) > 1):
                raise DataError(
                    f"{path}: damaged: expected {dtype} of shape {shape} in C order, "
                    f"found {found_dtype} of shape {found_shape}{' in Fortran order' if is_fortran else ''}"
                )
            start = stream.tell()
            n_items = int(np.prod(shape, dtype=object))
            if start + n_items * dtype.itemsize != size:
                raise DataError(f"{path}: damaged: expected {start + n_items * dtype.itemsize} bytes, found {size}")
            if n_items == 0:  # nothing to map
                return np.empty(shape, dtype)
            return np.asarray(np.memmap(stream, dtype=dtype, mode="r", offset=start, shape=shape))
    except FileNotFoundError:
        raise DataError(f"{path}: missing: the folder is damaged") from None


def _blocks(array: AnyArray, overlap: int = 0) -> Iterator[tuple[int, AnyArray]]:
    for start in range(0, array.size, _BLOCK):
        yield start, array[start : start + _BLOCK + overlap]


def _all_finite(array: AnyArray) -> bool:
    return all(bool(np.isfinite(block).all()) for _, block in _blocks(array))


def _all_below(indices: AnyArray, limit: int) -> bool:
    """Whether 0 <= index < limit for all: one pass, as a negative number is a huge unsigned one."""
    return indices.size == 0 or int(indices.view(f"u{indices.itemsize}").max()) < limit


def _rises_to(indptr: AnyArray, end: int) -> bool:
    """Whether these are row pointers: 0 at first, never falling, ``end`` at last."""
    return indptr[0] == 0 and indptr[-1] == end and bool((indptr[1:] >= indptr[:-1]).all())


def _all_rise(indptr: AnyArray, indices: AnyArray) -> bool:
    """Whether the indices increase within each row."""
    for start, block in _blocks(indices, overlap=1):
        falls = np.flatnonzero(block[1:] <= block[:-1]) + start + 1  # allowed where a row starts
        if not (indptr[np.minimum(np.searchsorted(indptr, falls), indptr.size - 1)] == falls).all():
            return False
    return True


# ------------------------------------------------------------------------------------------------ writing


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
    target = Path(path).resolve()  # replace what a link points at, not the link
    check_replaceable(target)
    n, d = data.X.shape
    is_dense = not sp.issparse(data.X)
    if dense is None:
        dense = d > 0 and (is_dense or data.n_values >= DENSE_FROM * n * d)
    dtype = data.X.dtype
    if dense and n * d * dtype.itemsize > shutil.disk_usage(target.parent).free:
        raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)} for {n} × {d} dense values", str(target))
    temporary = target.parent / f".{target.name}.{secrets.token_hex(6)}"
    temporary.mkdir()
    try:
        X = data.X if dense or not is_dense else sp.csr_array(data.X)
        members = {"relevance.npy": _write(temporary / "relevance.npy", data.relevance)}
        if data.groups is not None:
            members["groups.npy"] = _write(temporary / "groups.npy", data.groups)
        if data.costs is not None:
            members["costs.npy"] = _write(temporary / "costs.npy", data.costs)
        sets = data.label_sets
        if sets is not None:
            members["classes.npy"] = _write(temporary / "classes.npy", sets.classes)
            members["label_indptr.npy"] = _write(temporary / "label_indptr.npy", sets.indptr)
            members["label_indices.npy"] = _write(temporary / "label_indices.npy", sets.indices)
        if dense:
            members["X.npy"] = _write_rows(temporary / "X.npy", X)
        else:
            members["indptr.npy"] = _write(temporary / "indptr.npy", X.indptr)
            members["indices.npy"] = _write(temporary / "indices.npy", X.indices)
            members["values.npy"] = _write(temporary / "values.npy", X.data)
        content = {
            "format": _FORMAT,
            "version": _VERSION if sets is None else _VERSION_OF_SETS,
            "layout": "dense" if dense else "csr",
            "shape": [n, d],
            "nnz": n * d if dense else int(X.nnz),
            "dtype": dtype.name,
            "index_dtype": "int64" if dense else X.indices.dtype.name,
            "zero_based": data.zero_based,
            "source": {"name": os.path.basename(data.source), "sha256": data.fingerprint},
            **({} if sets is None else {"label_sets": [sets.classes.size, sets.indices.size]}),
            "members": members,
        }
        text = json.dumps({**content, "sha256": _checksum(content)}, indent=1) + "\n"
        with (temporary / HEADER).open("wb") as stream:
            stream.write(text.encode())
            _sync(stream)
        _sync_folder(temporary)
        _put(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raises the OSError that ``write_folder`` would raise for this place, before the work is done that it would lose.

    Only a data folder without anything else in it is ever replaced.
    """
    target = Path(path).resolve()
    if os.path.lexists(target) and not is_data_folder(target):
        raise FileExistsError(errno.EEXIST, "It exists and is no data folder", str(target))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such directory", str(target.parent))
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target.parent))


class _Hashing:
    """A stream that hashes and counts what goes through it."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, data: Any) -> None:
        self.stream.write(data)
        self.digest.update(data)
        self.size += memoryview(data).nbytes


@contextlib.contextmanager
def _npy_file(path: Path, dtype: DTypeLike, shape: tuple[int, ...], member: JsonDict) -> Iterator[_Hashing]:
    """A .npy file open behind its header; its size and sha256 are put into ``member`` at the end."""
    with path.open("wb") as stream:
        out = _Hashing(stream)
        header = {"descr": npy.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(out, header)
        yield out
        _sync(stream)
    member.update(size=out.size, sha256=out.digest.hexdigest())


def _write(path: Path, array: AnyArray) -> JsonDict:
    """Writes a vector; its size and sha256."""
    member: JsonDict = {}
    with _npy_file(path, array.dtype, array.shape, member) as out:
        for _, block in _blocks(array):
            out.write(np.ascontiguousarray(block).data)
    return member


def _write_rows(path: Path, X: Matrix) -> JsonDict:
    """Writes the rows of X, sparse or dense, as a dense matrix, some at a time."""
    member: JsonDict = {}
    n, d = X.shape
    step = max(1, _BLOCK // max(d, 1))
    with _npy_file(path, X.dtype, X.shape, member) as out:
        for start in range(0, n if d else 0, step):
            block = X[start : start + step]
            out.write(np.ascontiguousarray(block.toarray() if sp.issparse(block) else block).data)
    return member


def _sync(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _put(temporary: Path, target: Path) -> None:
    """Gives the temporary folder its name. What has that name goes once it is replaced, and not before."""
    if not target.exists():
        temporary.rename(target)
        _sync_folder(target.parent)
        return
    if _exchange(temporary, target):
        old = temporary
    else:  # a file system that cannot swap two names: for a moment neither has it, but both folders are whole
        old = target.parent / f".{target.name}.{secrets.token_hex(6)}.old"
        target.rename(old)
        try:
            temporary.rename(target)
        except BaseException:
            old.rename(target)
            raise
    _sync_folder(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def _exchange(a: Path, b: Path) -> bool:
    """Swaps two names in one step (renameat2 of Linux); False where that is not to be had. Raises OSError."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    at_cwd, exchange = -100, 2
    if rename(at_cwd, os.fsencode(a), at_cwd, os.fsencode(b), exchange) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(b))
