"""The data folder: a data set as ``.npy`` files that are mapped into memory, and a JSON header with their SHA-256.

    header.json                              shape, source, columns of a table, SHA-256 of each file
    relevance.npy                            (n,) float64
    groups.npy, costs.npy, bags.npy          (n,) int64, float64, int64, if the rows have qid, cost, bag
    classes.npy, label_indptr.npy, label_indices.npy
                                             (k,) float64, (n + 1,) int64 and (m,) int32, if rows have several labels
    indptr.npy, indices.npy, values.npy      sparse rows: (n + 1,) and (nnz,) int32 | int64, (nnz,) float32 | float64
    X.npy                                    dense rows: (n, d) float32 | float64, C order

The row kernels trust their input. Opening a folder therefore checks types and shapes, row pointers that rise from 0 to
nnz, indices below d, labels and costs, and by default the SHA-256 of each file.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.lib import format as npy

from apsvm._support import sparse as sp
from apsvm._support.files import check_folder, digest_of_file, sync_folder, temporary_beside
from apsvm._support.types import Matrix
from apsvm.data.dataset import DataError, Dataset, LabelSets, TableRows
from apsvm.models.columns import MISSING_RULES, Columns
from apsvm.models.json import decoded, fields_of

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

__all__ = ["check_replaceable", "is_data_folder", "open_folder", "write_folder"]

HEADER = "header.json"
FORMAT = "apsvm data"
VERSION = 2
#: Rows are written dense from this share of stored entries: they are smaller then, and faster to multiply.
DENSE_FROM = 0.6
#: Dense items written at a time: the matrix need not fit in memory.
BLOCK = 1 << 22
_LONGEST_HEADER = 1 << 28
_SPARSE = {"indptr.npy", "indices.npy", "values.npy"}
_SETS = {"classes.npy", "label_indptr.npy", "label_indices.npy"}
_OPTIONAL = {"groups.npy", "costs.npy", "bags.npy"}
_FILES = {HEADER, "relevance.npy", "X.npy", *_SPARSE, *_SETS, *_OPTIONAL}
_TYPES = {
    "groups.npy": (np.int64,),
    "bags.npy": (np.int64,),
    "label_indptr.npy": (np.int64,),
    "label_indices.npy": (np.int32,),
    "indptr.npy": (np.int32, np.int64),
    "indices.npy": (np.int32, np.int64),
    "values.npy": (np.float64, np.float32),
    "X.npy": (np.float64, np.float32),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The file that a folder was made from: its base name, and its SHA-256 in hexadecimal."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """The content of header.json.

    Attributes
    ----------
    shape : rows and features
    zero_based : True if the source counts features from 0
    files : file name → SHA-256, hexadecimal
    columns : the columns of a table
    queries, bags : the names of the queries and bags, if they are words
    """

    format: str
    version: int
    shape: tuple[int, ...]
    zero_based: bool
    source: _Source
    files: Mapping[str, str]
    columns: Columns | None = None
    queries: tuple[str, ...] | None = None
    bags: tuple[str, ...] | None = None


def is_data_folder(path: str | os.PathLike[str]) -> bool:
    """True if ``path`` is a folder with the header of a data folder and no foreign file."""
    try:
        names = set(os.listdir(path))
        header = json.loads(_header_bytes(Path(path)))
    except (OSError, ValueError, RecursionError):
        return False
    return names <= _FILES and isinstance(header, dict) and header.get("format") == FORMAT


# ---------------------------------------------------------------------------------------------------------- opening


def open_folder(path: str | os.PathLike[str], *, check: bool = True) -> Dataset:
    """The data set in a folder of ``write_folder``: X is a csr_array or a dense (n, d) array, mapped read-only. The
    fingerprint is that of the file that the folder was made from.

    Parameters
    ----------
    check : bool
        Check the SHA-256 of each file, which reads every byte. The other checks take a pass over labels and
        indices.

    Raises
    ------
    DataError
        It is no data folder, or damaged; the message names the file.
    OSError
        It cannot be read.
    """
    folder = Path(path)
    header = _read_header(folder)
    arrays: dict[str, AnyArray] = {}
    for name, digest in header.files.items():
        arrays[name] = _mapped(folder / name, _TYPES.get(name, (np.float64,)), 2 if name == "X.npy" else 1)
        if check:
            _check_digest(folder / name, digest)
    n, d = header.shape

    def require(name: str, is_fine: bool | np.bool_, expected: str) -> None:
        if not is_fine:
            raise DataError(f"{folder / name}: damaged: expected {expected}")

    def require_pointers(name: str, end: int) -> None:
        ends = arrays[name]
        rises = ends.size == n + 1 and ends[0] == 0 and ends[-1] == end and bool((ends[1:] >= ends[:-1]).all())
        require(name, rises, f"{n + 1} row pointers that rise from 0 to {end}")

    for name, array in arrays.items():
        if name in ("relevance.npy", *_OPTIONAL):
            require(name, array.size == n, f"{n} entries, found {array.size}")
    relevance, costs = arrays["relevance.npy"], arrays.get("costs.npy")
    require("relevance.npy", np.isfinite(relevance).all(), "finite labels")
    if costs is not None:
        require("costs.npy", np.isfinite(costs).all() and (costs >= 0).all(), "finite costs of at least 0")
    sets = None
    if "classes.npy" in arrays:
        sets = LabelSets(*(arrays[f"{name}.npy"] for name in ("classes", "label_indptr", "label_indices")))
        labels = sets.classes
        increase = np.isfinite(labels).all() and (labels[1:] > labels[:-1]).all()
        require("classes.npy", increase, "finite labels that increase")
        require_pointers("label_indptr.npy", sets.indices.size)
        within = _all_below(sets.indices, labels.size)
        require("label_indices.npy", within, f"numbers of labels from 0 to {labels.size - 1}")
    X = arrays.get("X.npy")
    if X is not None:
        require("X.npy", X.shape == (n, d), f"shape {header.shape}, found {X.shape}")
    else:
        indptr, indices, values = (arrays[f"{name}.npy"] for name in ("indptr", "indices", "values"))
        require("indices.npy", indices.dtype == indptr.dtype, f"{indptr.dtype} as in indptr.npy")
        require("values.npy", values.size == indices.size, f"{indices.size} entries, found {values.size}")
        require_pointers("indptr.npy", indices.size)
        require("indices.npy", _all_below(indices, d), f"indices from 0 to {d - 1}")
        fits = indices.dtype == np.int64 or max(n, d) <= np.iinfo(np.int32).max
        require("indices.npy", fits, "int64 for this shape")
        X = sp.canonical_csr(values, indices, indptr, (n, d))
    columns, table = header.columns, None
    if columns is not None:
        require(HEADER, columns.width == d and columns.missing in MISSING_RULES, f"columns that become {d} features")
        n_words = len(columns.label_words)
        are_words = not n_words or np.isin(relevance, np.arange(n_words)).all()
        require("relevance.npy", are_words, f"labels from 0 to {n_words - 1}")
        for name, names in (("groups.npy", header.queries), ("bags.npy", header.bags)):
            if names:
                known = (arrays[name] >= 0).all() and (arrays[name] < len(names)).all()
                require(name, known, f"numbers from 0 to {len(names) - 1}")
        table = TableRows(columns, queries=header.queries or (), bags=header.bags or ())
    return Dataset(
        X=X,
        relevance=relevance,
        groups=arrays.get("groups.npy"),
        bags=arrays.get("bags.npy"),
        costs=costs,
        label_sets=sets,
        table=table,
        zero_based=header.zero_based,
        source=str(folder),  # without a trailing slash
        fingerprint=header.source.sha256,
    )


def _header_bytes(folder: Path) -> bytes:
    with (folder / HEADER).open("rb") as stream:
        return stream.read(_LONGEST_HEADER)


def _read_header(folder: Path) -> _Header:
    """The header, without a look at the other files. Raises DataError, OSError."""
    place = folder / HEADER
    try:
        content = _header_bytes(folder)
    except FileNotFoundError:
        problem = "neither a data file nor a folder made by apsvm convert"
        parts = sorted(path.name for path in folder.glob("*.parquet"))
        if parts:
            problem = f"a folder of Parquet files, {parts[0]} among them: name them by a pattern, '*.parquet'"
        raise IsADirectoryError(errno.EISDIR, problem, str(folder)) from None
    try:
        stated = json.loads(content)
        if not isinstance(stated, dict) or stated.get("format") != FORMAT:
            raise DataError(f"{place}: expected the header of a data folder (format {FORMAT!r})")
        if stated.get("version") != VERSION:
            version = stated.get("version")
            problem = f"expected version {VERSION} of the format, found {version!r}"
            raise DataError(f"{place}: {problem}: convert the data again with apsvm convert")
        header = decoded(_Header, stated)
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: damaged: {error}") from None
    shape = header.shape
    if len(shape) != 2 or not all(0 <= count < 1 << 62 for count in shape) or shape[0] == 0:
        raise DataError(f"{place}: damaged: expected the counts of rows and features, found {list(shape)}")
    names = set(header.files)
    needed = {"relevance.npy"} | ({"X.npy"} if "X.npy" in names else _SPARSE) | (_SETS if names & _SETS else set())
    needed |= set() if header.queries is None else {"groups.npy"}
    needed |= set() if header.bags is None else {"bags.npy"}
    if not needed <= names <= needed | _OPTIONAL:
        expected = ", ".join(sorted(needed))
        raise DataError(f"{place}: damaged: expected the files {expected}, found {', '.join(sorted(names))}")
    return header


def _mapped(path: Path, dtypes: tuple[type, ...], dimensions: int) -> AnyArray:
    """The array of a .npy file, mapped read-only. Raises DataError for another type or shape, OSError."""
    try:
        array: AnyArray = npy.open_memmap(path, mode="r")
    except FileNotFoundError:
        raise DataError(f"{path}: missing: the folder is damaged") from None
    except OSError:
        raise
    except Exception as error:  # numpy raises any exception for a damaged header
        raise DataError(f"{path}: damaged: not a .npy file that is read here ({error})") from None
    dtype, is_ordered = array.dtype, array.flags.c_contiguous
    if dtype not in dtypes or not dtype.isnative or array.ndim != dimensions or not is_ordered:
        expected = " or ".join(np.dtype(dtype).name for dtype in dtypes)
        order = "" if is_ordered else " in Fortran order"
        raise DataError(
            f"{path}: damaged: expected {expected} of {dimensions} dimensions in C order, found {dtype} of "
            f"shape {array.shape}{order}"
        )
    return np.asarray(array)


def _check_digest(path: Path, digest: str) -> None:
    found = digest_of_file(path)
    if found != digest:
        raise DataError(f"{path}: damaged: its sha256 is {found}, expected {digest}")


def _all_below(indices: AnyArray, limit: int) -> bool:
    """True if 0 <= index < limit for all indices. As unsigned, negative numbers are huge: one pass is enough."""
    return indices.size == 0 or int(indices.view(f"u{indices.itemsize}").max()) < limit


# ---------------------------------------------------------------------------------------------------------- writing


def write_folder(data: Dataset, path: str | os.PathLike[str], *, dense: bool | None = None) -> None:
    """Write the folder whole or not at all: beside its place, synced, then renamed. A data folder, or a link to one, is
    replaced; anything else is refused.

    Parameters
    ----------
    dense : bool, optional
        True to write dense rows; by default True if at least ``DENSE_FROM`` of the entries are stored.

    Raises
    ------
    OSError
        It cannot be written; what was there is untouched.
    """
    target = Path(os.path.abspath(path))
    check_replaceable(target)
    n, d = data.X.shape
    is_dense = not sp.issparse(data.X)
    if dense is None:
        dense = d > 0 and (is_dense or data.n_values >= DENSE_FROM * n * d)
    if dense and n * d * data.X.dtype.itemsize > shutil.disk_usage(target.parent).free:
        raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)} for {n} × {d} dense values", str(target))
    X = sp.csr_array(data.X) if is_dense and not dense else data.X
    temporary = Path(temporary_beside(target))
    temporary.mkdir()
    try:
        header = _Header(
            format=FORMAT,
            version=VERSION,
            shape=(n, d),
            zero_based=data.zero_based,
            source=_Source(name=os.path.basename(data.source), sha256=data.fingerprint),
            files=_write_arrays(temporary, data, X, dense),
            columns=None if data.table is None else data.table.columns,
            queries=None if data.table is None or data.groups is None else data.table.queries or None,
            bags=None if data.table is None or data.bags is None else data.table.bags or None,
        )
        with (temporary / HEADER).open("wb") as stream:
            stream.write(json.dumps(fields_of(header), indent=1).encode() + b"\n")
            _sync(stream)
        sync_folder(temporary)
        _give_place(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raises the OSError of ``write_folder`` for this place, before the work. Only a data folder with no other file in
    it is replaced."""
    if os.path.lexists(path) and not is_data_folder(path):
        raise FileExistsError(errno.EEXIST, "It exists and is no data folder", os.fspath(path))
    check_folder(path)


def _write_arrays(folder: Path, data: Dataset, X: Matrix, dense: bool) -> dict[str, str]:
    """Writes every array. Returns file name → SHA-256."""
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
    if not dense:
        vectors |= {"indptr.npy": X.indptr, "indices.npy": X.indices, "values.npy": X.data}
    written = []
    for name, vector in vectors.items():
        if vector is not None:
            with (folder / name).open("wb") as stream:
                np.save(stream, vector, allow_pickle=False)
                _sync(stream)
            written.append(name)
    if dense:
        n, d = X.shape
        step = max(1, BLOCK // max(d, 1))
        with (folder / "X.npy").open("wb") as stream:
            layout = {"descr": npy.dtype_to_descr(X.dtype), "fortran_order": False, "shape": X.shape}
            npy.write_array_header_1_0(stream, layout)
            for start in range(0, n if d else 0, step):
                block = X[start : start + step]
                stream.write(np.ascontiguousarray(block.toarray() if sp.issparse(block) else block).data)
            _sync(stream)
        written.append("X.npy")
    return {name: digest_of_file(folder / name) for name in written}


def _sync(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _give_place(temporary: Path, target: Path) -> None:
    """Renames the temporary folder to the target. A folder of that name is renamed first and removed afterwards: for a
    moment the name is free, but both folders are whole."""
    old = None
    if os.path.lexists(target):
        old = Path(temporary_beside(target))
        target.rename(old)
    try:
        temporary.rename(target)
    except BaseException:
        if old is not None:
            old.rename(target)
        raise
    try:
        sync_folder(target.parent)
    finally:
        if old is not None and old.is_symlink():
            old.unlink()
        elif old is not None:
            shutil.rmtree(old, ignore_errors=True)
