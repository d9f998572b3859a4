"""header.json of a data folder: the members there are, of which types and shapes, each with its size and sha256."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from apsvm._support.types import JsonDict, JsonObject
from apsvm.data.dataset import DataError

HEADER = "header.json"
FORMAT = "apsvm data"
VERSION = 1
VERSION_OF_SETS = 2  # the same, with the members of label sets: what reads only version 1 must refuse it
VERSION_OF_BAGS = 3  # the same, with the bags of the rows, and label sets or none
VERSION_OF_BLOCKS = 4  # any of these, with checksums of the blocks of large members
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
#: What version 2 has more, and version 3 may have: the numbers k and m.
_KEYS_OF_SETS = {**_KEYS, "label_sets": list}
_KEYS_OF_VERSION = {
    VERSION: (_KEYS,),
    VERSION_OF_SETS: (_KEYS_OF_SETS,),
    VERSION_OF_BAGS: (_KEYS, _KEYS_OF_SETS),
    VERSION_OF_BLOCKS: (_KEYS, _KEYS_OF_SETS),
}
_MEMBER_KEYS = {"size": int, "sha256": str}
#: Of a large member of version 4.
_MEMBER_KEYS_OF_BLOCKS = {**_MEMBER_KEYS, "blocks": str}
_SOURCE_KEYS = {"name": str, "sha256": str}
_LONGEST_HEADER = 1 << 24
_ALWAYS = {"relevance.npy"}
_MAYBE = {"groups.npy", "costs.npy"}
_BAGS = {"bags.npy"}
_SETS = {"classes.npy", "label_indptr.npy", "label_indices.npy"}
_LAYOUTS = {"csr": {"indptr.npy", "indices.npy", "values.npy"}, "dense": {"X.npy"}}
#: What the rows are, but for their features: small, and ruinous to get wrong.
LABELS = _ALWAYS | _MAYBE | _BAGS | _SETS
_FILES = {HEADER, *_ALWAYS, *_MAYBE, *_BAGS, *_SETS, *itertools.chain(*_LAYOUTS.values())}


#: Version 5 is any of the others, of a table: with the number of bytes of its ``Columns`` as JSON and, where words call
#: the queries, of the list of those, and bags or none.
VERSION_OF_TABLES = 5
TABLE = "columns.npy"
QUERIES = "queries.npy"
_KEYS_OF_VERSION[VERSION_OF_TABLES] = tuple(
    {**keys, "columns": int, **queries} for keys in (_KEYS, _KEYS_OF_SETS) for queries in ({}, {"queries": int})
)
_FILES |= {TABLE, QUERIES}


@dataclass(frozen=True, slots=True)
class Member:
    """What the header says of a file.

    Attributes
    ----------
    size : int, bytes
    sha256 : str, of all of them, hexadecimal
    blocks : the CRC-32 of each block of ``apsvm.data.folder.checksums.BLOCK`` bytes; None of a smaller file
    """

    size: int
    sha256: str
    blocks: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class FolderHeader:
    """What a data folder says of itself.

    Attributes
    ----------
    layout : "csr" or "dense"
    n, d : int, rows and columns
    nnz : int, values stored
    dtype : of the values, float32 or float64
    index_dtype : of indptr and indices, int32 or int64
    zero_based : bool, whether the file it was made from counts features from 0
    fingerprint : str, sha256 of that file, hexadecimal
    label_sets : the counts k of the classes and m of the rows' labels; None if each row has one label
    members : file name → its size and checksums
    columns : of a table the number of bytes of ``TABLE``; else None
    queries : of one whose queries are called by words that of ``QUERIES``; else None
    """

    layout: str
    n: int
    d: int
    nnz: int
    dtype: np.dtype[np.generic]
    index_dtype: np.dtype[np.generic]
    zero_based: bool
    fingerprint: str
    label_sets: tuple[int, int] | None
    members: Mapping[str, Member]
    columns: int | None = None
    queries: int | None = None

    def arrays(self) -> dict[str, tuple[np.dtype[np.generic], tuple[int, ...]]]:
        """Type and shape of every member."""
        double, n = np.dtype(np.float64), self.n
        every: dict[str, tuple[np.dtype[np.generic], tuple[int, ...]]] = {
            "relevance.npy": (double, (n,)),
            "groups.npy": (np.dtype(np.int64), (n,)),
            "costs.npy": (double, (n,)),
            "bags.npy": (np.dtype(np.int64), (n,)),
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
        if self.columns is not None:
            every[TABLE] = (np.dtype(np.uint8), (self.columns,))
        if self.queries is not None:
            every[QUERIES] = (np.dtype(np.uint8), (self.queries,))
        return {name: every[name] for name in self.members}


def is_data_folder(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is a folder with the header of a data folder and no file that does not belong into one."""
    folder = Path(path)
    try:
        names = set(os.listdir(folder))
        header = json.loads(_stored_text(folder))
    except (OSError, ValueError, RecursionError):
        return False
    return names <= _FILES and isinstance(header, dict) and header.get("format") == FORMAT


def read_header(folder: Path) -> FolderHeader:
    """The header of a folder, checked in itself. Raises DataError, OSError."""
    content = _read_content(folder)
    _check_counts(folder, content)
    _check_members(folder, content)
    n, d = content["shape"]
    set_counts = content.get("label_sets")
    return FolderHeader(
        layout=content["layout"],
        n=n,
        d=d,
        nnz=content["nnz"],
        dtype=np.dtype(content["dtype"]),
        index_dtype=np.dtype(content["index_dtype"]),
        zero_based=content["zero_based"],
        fingerprint=content["source"]["sha256"],
        label_sets=None if set_counts is None else (set_counts[0], set_counts[1]),
        members={name: _member(folder, name, member) for name, member in content["members"].items()},
        columns=content.get("columns"),
        queries=content.get("queries"),
    )


def _member(folder: Path, name: str, content: JsonObject) -> Member:
    """Raises DataError where checksums of blocks are no such."""
    blocks = content.get("blocks")
    if blocks is None:
        return Member(content["size"], content["sha256"])
    digits = [blocks[at : at + 8] for at in range(0, len(blocks), 8)]
    try:
        return Member(content["size"], content["sha256"], tuple(int(of_block, 16) for of_block in digits))
    except ValueError:
        raise _error(folder, f"damaged: expected checksums of the blocks of {name}") from None


def header_text(content: JsonObject) -> str:
    """The header as it is written: ``content`` and its own checksum."""
    return json.dumps({**content, "sha256": checksum(content)}, indent=1) + "\n"


def checksum(content: JsonObject) -> str:
    """The sha256, hexadecimal, that a header of this content states."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _stored_text(folder: Path) -> bytes:
    with (folder / HEADER).open("rb") as stream:
        return stream.read(_LONGEST_HEADER)


def _error(folder: Path, problem: str) -> DataError:
    return DataError(f"{folder / HEADER}: {problem}")


def _types(content: JsonObject) -> dict[str, type]:
    return {key: type(value) for key, value in content.items()}


def _read_content(folder: Path) -> JsonDict:
    """The header's JSON, of a version that is read here, with its keys, each of its type, and the checksum it states.

    Raises DataError, OSError.
    """
    try:
        content = json.loads(_stored_text(folder))
    except FileNotFoundError:
        what = "neither a data file nor a folder made by apsvm convert"
        raise IsADirectoryError(errno.EISDIR, what, str(folder)) from None
    except (ValueError, RecursionError):
        raise _error(folder, "damaged: expected a JSON object") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _error(folder, f"expected the header of a data folder (format {FORMAT!r})")
    version = content.get("version")
    if type(version) is not int or version not in _KEYS_OF_VERSION:
        problem = f"found {version!r}: it was written by another apsvm"
        raise _error(folder, f"expected version {VERSION} to {VERSION_OF_TABLES}, {problem}")
    if _types(content) not in _KEYS_OF_VERSION[version]:
        keys = ", ".join(_KEYS_OF_VERSION[version][0])
        raise _error(folder, f"damaged: expected the keys {keys}, each of its type")
    if content.pop("sha256") != checksum(content):
        raise _error(folder, "damaged: its content does not have the sha256 it states")
    return content


def _check_counts(folder: Path, content: JsonObject) -> None:
    """Raises DataError unless the counts are counts, and the types can hold them."""
    counts, set_counts = [*content["shape"], content["nnz"]], content.get("label_sets")
    if set_counts is not None and (len(set_counts) != 2 or not all(type(count) is int for count in set_counts)):
        raise _error(folder, "damaged: expected the counts of the classes and of the rows' labels")
    if len(counts) != 3 or not all(type(count) is int and 0 <= count < 1 << 62 for count in counts) or counts[0] < 1:
        raise _error(folder, "damaged: expected a shape of two counts, with at least one row")
    if content["layout"] not in _LAYOUTS:
        raise _error(folder, f"damaged: expected a layout of {', '.join(_LAYOUTS)}, found {content['layout']!r}")
    if content["dtype"] not in ("float32", "float64") or content["index_dtype"] not in ("int32", "int64"):
        raise _error(folder, "damaged: expected values of float32 or float64 and indices of int32 or int64")
    if content["index_dtype"] == "int32" and max(counts) > np.iinfo(np.int32).max and content["layout"] == "csr":
        raise _error(folder, "damaged: int32 indices cannot count this shape")


def _check_members(folder: Path, content: JsonObject) -> None:
    """Raises DataError unless the members that this layout needs are listed, each with size and sha256."""
    members = content["members"]
    needed = _ALWAYS | _LAYOUTS[content["layout"]] | (_SETS if "label_sets" in content else set())
    needed |= _BAGS if content["version"] == VERSION_OF_BAGS else set()
    needed |= {TABLE} if "columns" in content else set()
    needed |= {QUERIES, "groups.npy"} if "queries" in content else set()
    with_blocks = content["version"] in (VERSION_OF_BLOCKS, VERSION_OF_TABLES)
    if not needed <= set(members) <= needed | _MAYBE | (_BAGS if with_blocks else set()):
        found = ", ".join(sorted(members))
        raise _error(folder, f"damaged: expected the members {', '.join(sorted(needed))}, found {found}")
    keys = [_MEMBER_KEYS, *([_MEMBER_KEYS_OF_BLOCKS] if with_blocks else [])]
    if not all(isinstance(member, dict) and _types(member) in keys for member in members.values()):
        raise _error(folder, "damaged: expected a size and a sha256 for every member")
    if _types(content["source"]) != _SOURCE_KEYS:
        raise _error(folder, "damaged: expected the source's name and sha256")
