"""Reads saved matrices: .npz (scipy.sparse.save_npz) and .npy (a dense matrix). Labels and groups are in other files.
Nothing is unpickled.

Column j is feature j + 1, as in a svmlight file that counts from 1.
"""

from __future__ import annotations

import codecs
import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.files import digest_of_file, read_bytes
from apsvm.data.dataset import DataError, Dataset, LabelSets, parsing

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

NPY_MAGIC = b"\x93NUMPY"
NPZ_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")

_BLOCK = 1 << 22  # values in a block


def read_matrix(
    path: str | os.PathLike[str],
    labels: str | os.PathLike[str] | None,
    groups: str | os.PathLike[str] | None,
    *,
    unlabelled: bool,
) -> Dataset:
    """The matrix in a .npz or .npy file, recognised by its content: X is a canonical csr_array, or a dense C-ordered
    (n, d) array, mapped into memory where its layout allows. float32 stays, other real types become float64.

    Parameters
    ----------
    labels : a .npy file (n,), or text with a number a line. For rows of several labels or none: a .npy file (n, k) of
        0 and 1, −1 and 1, or bool, whose columns are the labels 0 .. k − 1
    groups : see ``read_groups``
    unlabelled : accept a matrix without labels; they are 0

    Raises
    ------
    DataError : bad content, or no labels
    OSError : a file cannot be read
    """
    name = os.fspath(path)
    if labels is None and not unlabelled:
        raise DataError(
            f"{name}: a .npz or .npy file has no labels of its own: name their file by --labels (labels=); "
            "a model is no data"
        )
    X = _dense(name) if _starts_with(name, NPY_MAGIC) else _sparse(name)
    if X.shape[0] == 0:
        raise DataError(f"{name}: expected at least one row, found none")
    relevance, sets = (np.zeros(X.shape[0]), None)
    if labels is not None:
        relevance, sets = _labels(os.fspath(labels), X.shape[0], name)
    return Dataset(
        X=X,
        relevance=relevance,
        groups=None if groups is None else read_groups(groups, X.shape[0], name),
        source=name,
        fingerprint=digest_of_file(name),
        label_sets=sets,
    )


def _starts_with(name: str, magic: bytes) -> bool:
    with open(name, "rb") as stream:
        return stream.read(len(magic)) == magic


def _load_npy(name: str, *, map_it: bool = False) -> AnyArray:
    with parsing(name, "a .npy file"):
        return np.asarray(np.load(name, mmap_mode="r" if map_it else None, allow_pickle=False))


def _dense(name: str) -> AnyArray:
    X = _load_npy(name, map_it=True)
    if X.ndim != 2:
        raise DataError(f"{name}: expected a matrix of two dimensions, found the shape {X.shape}")
    X = np.ascontiguousarray(_real(X, name))
    _refuse_not_finite(X.reshape(-1), name)
    return X


def _sparse(name: str) -> sp.csr_array:
    with open(name, "rb") as stream, parsing(name, "a .npz file of scipy.sparse.save_npz"):
        matrix = sp.load_npz(stream)
        layout = matrix.format
        if layout in ("csr", "csc"):
            matrix.check_format(full_check=True)  # conversion trusts the indices
    if layout not in ("csr", "csc", "coo"):
        raise DataError(f"{name}: expected a matrix of format csr, csc or coo, found {layout}")
    if matrix.ndim != 2:
        raise DataError(f"{name}: expected a matrix of two dimensions, found the shape {matrix.shape}")
    if layout == "coo" and not all(
        at.size == matrix.data.size and at.min(initial=0) >= 0 and at.max(initial=-1) < length
        for at, length in zip((matrix.row, matrix.col), matrix.shape, strict=True)
    ):
        raise DataError(f"{name}: an entry lies outside the matrix's shape {matrix.shape}")
    matrix.data = _real(matrix.data, name)
    X = sp.csr_array(matrix)
    X.sum_duplicates()  # sorts, too
    _refuse_not_finite(X.data, name)
    return sp.canonical_csr(X.data, X.indices, X.indptr, X.shape)


def _real(array: AnyArray, name: str) -> AnyArray:
    """The array in native float32 or float64. Raises DataError for other than real numbers."""
    if array.dtype.kind not in "fiub":
        raise DataError(f"{name}: expected real numbers, found the type {array.dtype}")
    return array.astype(np.float32 if array.dtype.newbyteorder("=") == np.float32 else np.float64, copy=False)


def _refuse_not_finite(values: AnyArray, name: str) -> None:
    for start in range(0, values.size, _BLOCK):
        if not np.isfinite(values[start : start + _BLOCK]).all():
            raise DataError(f"{name}: expected finite numbers, found nan, inf or one that overflows float64")


def _labels(name: str, n: int, data: str) -> tuple[NDArray[np.float64], LabelSets | None]:
    """``relevance`` and ``label_sets``. Raises DataError, OSError."""
    if _starts_with(name, NPY_MAGIC):
        array = _load_npy(name, map_it=True)
        # One column is a vector saved by mistake, no matrix of one label.
        if array.ndim == 2 and array.shape[1] != 1:
            return np.zeros(n), _label_matrix(array, name, n, data)
    return _one_a_row(name, np.dtype(np.float64), n, data), None


def _one_a_row(name: str, dtype: np.dtype[np.generic], n: int, data: str) -> AnyArray:
    """``_numbers``, one for each of the n rows of ``data``. Raises DataError, OSError."""
    vector = _numbers(name, dtype)
    if vector.size != n:
        raise DataError(f"{name}: expected {n} numbers, one for each row of {data}, found {vector.size}")
    return vector


def _label_matrix(array: AnyArray, name: str, n: int, data: str) -> LabelSets:
    """The labels of an indicator matrix. Raises DataError."""
    if array.dtype.kind not in "fiub":
        raise DataError(f"{name}: expected a matrix of labels, of 0 and 1, found the type {array.dtype}")
    if array.shape[0] != n:
        raise DataError(f"{name}: expected {n} rows of labels, one for each row of {data}, found {array.shape[0]}")
    has = np.asarray(array == 1)
    for other in (0, -1):
        if (has | (array == other)).all():
            break
    else:
        row, column = np.argwhere(~(has | (array == 0)))[0]
        raise DataError(
            f"{name}: expected a matrix of labels, of 0 and 1 or of -1 and 1, found {array[row, column]} "
            f"in row {row}, column {column}, counted from 0"
        )
    ends = np.cumsum(has.sum(axis=1))
    classes = np.arange(array.shape[1], dtype=np.float64)
    return LabelSets(classes, np.concatenate(([0], ends)).astype(np.int64), np.nonzero(has)[1].astype(np.int32))


def read_groups(path: str | os.PathLike[str] | Sequence[str], n: int, data: str) -> NDArray[np.int64]:
    """(n,) the group of each row of ``data``, from one or more files: .npy files, or text with an integer a line. They
    hold an integer for each row, or the sizes of the groups in the order of the rows, as LightGBM and XGBoost do.

    Raises
    ------
    DataError : bad content
    OSError : the file cannot be read
    """
    names = [os.fspath(path)] if isinstance(path, str | os.PathLike) else list(path)
    name = " and ".join(names)
    numbers: NDArray[np.int64] = np.concatenate([_numbers(one, np.dtype(np.int64)) for one in names])
    if numbers.size == n:
        return numbers
    if numbers.size == 0 or not 0 < numbers.min() <= numbers.max() <= n or numbers.sum() != n:
        raise DataError(
            f"{name}: expected {n} integers, the group of each row of {data}, or the sizes of the groups, which add up "
            f"to {n}; found {numbers.size} with the sum {numbers.sum()}"
        )
    return np.repeat(np.arange(1, numbers.size + 1), numbers)


def read_bags(path: str | os.PathLike[str], n: int, data: str) -> NDArray[np.int64]:
    """(n,) the bag of each row of ``data``: a .npy file, or text with an integer a line. Raises DataError, OSError."""
    return _one_a_row(os.fspath(path), np.dtype(np.int64), n, data)


def read_scores(path: str) -> NDArray[np.float64]:
    """(n,) float64 from a .npy file, or text with a finite number a line; "-" is standard input. Raises DataError,
    OSError."""
    return _numbers(path, np.dtype(np.float64))


def _numbers(name: str, dtype: np.dtype[np.generic]) -> AnyArray:
    """The numbers of a .npy file, or of text with one a line: finite float64 or int64. Raises DataError, OSError."""
    what = "finite numbers" if dtype.kind == "f" else "integers"
    if name != "-" and _starts_with(name, NPY_MAGIC):
        array = _load_npy(name)
        if array.ndim != 1 or array.dtype.kind not in ("fiub" if dtype.kind == "f" else "iu"):
            raise DataError(f"{name}: expected a vector of {what}, found {array.dtype} of shape {array.shape}")
        vector = array.astype(dtype)
        if dtype.kind == "f" and not np.isfinite(vector).all():
            raise DataError(f"{name}: expected finite numbers, found nan or inf")
        if dtype.kind == "i" and array.dtype.kind == "u" and (vector < 0).any():
            raise DataError(f"{name}: a number does not fit in 64 bits")
    else:
        shown = "<stdin>" if name == "-" else name
        lines = read_bytes(name).removeprefix(codecs.BOM_UTF8).removesuffix(b"\n").split(b"\n")
        numbers = [_number(line, dtype, f"{shown}:{at}") for at, line in enumerate(lines, start=1)]
        vector = np.array(numbers, dtype)
    return vector


def _number(line: bytes, dtype: np.dtype[np.generic], place: str) -> float | int:
    try:
        number = float(line) if dtype.kind == "f" else int(line)
        if b"_" not in line and (math.isfinite(number) if dtype.kind == "f" else -(2**63) <= number < 2**63):
            return number
    except ValueError:
        pass
    text = line[:40].decode("utf-8", "backslashreplace").strip()
    kind = "one finite number" if dtype.kind == "f" else "one integer of 64 bits"
    raise DataError(f"{place}: expected {kind}, found {text!r}")
