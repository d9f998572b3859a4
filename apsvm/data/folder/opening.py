"""Opening a data folder: every member is mapped, and checked before anything is handed out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.dataset import DataError, Dataset, LabelSets, TableRows
from apsvm.data.folder.checks import all_below, all_finite, all_rise, rises_to
from apsvm.data.folder.checksums import verify_member
from apsvm.data.folder.header import LABELS, QUERIES, TABLE, FolderHeader, read_header
from apsvm.data.mapped_files import mapped
from apsvm.models.columns import MISSING_RULES, Columns
from apsvm.models.json import decoded

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray


def open_folder(path: str | os.PathLike[str], *, verify: bool = False) -> Dataset:
    """The data set in a folder written by ``write_folder``: X is a csr_array or a dense (n, d) array, mapped read-only.

    The fingerprint is that of the file the folder was made from.

    Parameters
    ----------
    verify : check all checksums and invariants, which reads every byte; without it the labels' checksums, those of
        members up to 256 MB and of some blocks of larger ones are

    Raises
    ------
    DataError : it is no such folder, or it is damaged; the message names the file
    OSError : it cannot be read
    """
    folder = Path(path)
    header = read_header(folder)
    arrays = {
        name: _mapped(folder / name, dtype, shape, header.members[name].size)
        for name, (dtype, shape) in header.arrays().items()
    }
    for name, member in header.members.items():
        verify_member(folder / name, member, whole=verify or name in LABELS)
    members = _Members(folder, header, arrays, verify)
    return Dataset(
        relevance=members.relevance(),
        groups=arrays.get("groups.npy"),
        bags=arrays.get("bags.npy"),
        costs=members.costs(),
        label_sets=members.label_sets(),
        X=members.rows(),
        table=members.table(),
        zero_based=header.zero_based,
        source=str(folder),  # without a trailing slash
        fingerprint=header.fingerprint,
        unknown_features=0,
    )


@dataclass(frozen=True, slots=True)
class _Members:
    """The mapped arrays of a folder; each method checks those it hands out and raises DataError.

    Attributes
    ----------
    arrays : file name → array
    verify : bool, whether what is wrong without being dangerous is looked for too
    """

    folder: Path
    header: FolderHeader
    arrays: Mapping[str, AnyArray]
    verify: bool

    def _require(self, name: str, is_fine: bool, expected: str) -> None:
        if not is_fine:
            raise DataError(f"{self.folder / name}: damaged: expected {expected}")

    def relevance(self) -> NDArray[np.float64]:
        relevance = self.arrays["relevance.npy"]
        self._require("relevance.npy", all_finite(relevance), "finite labels")
        return relevance

    def costs(self) -> NDArray[np.float64] | None:
        costs = self.arrays.get("costs.npy")
        if costs is not None:
            is_fine = all_finite(costs) and bool((costs >= 0).all())
            self._require("costs.npy", is_fine, "finite costs of at least 0")
        return costs

    def label_sets(self) -> LabelSets | None:
        if self.header.label_sets is None:
            return None
        k, m = self.header.label_sets
        classes, indptr = self.arrays["classes.npy"], self.arrays["label_indptr.npy"]
        indices = self.arrays["label_indices.npy"]
        increase = all_finite(classes) and bool((classes[1:] > classes[:-1]).all())
        self._require("classes.npy", increase, "finite labels that increase")
        self._require("label_indptr.npy", rises_to(indptr, m), f"row pointers that rise from 0 to {m}")
        self._require("label_indices.npy", all_below(indices, k), f"numbers of labels from 0 to {k - 1}")
        if self.verify:
            rise = all_rise(indptr, indices)
            self._require("label_indices.npy", rise, "numbers of labels that increase within each row")
        return LabelSets(classes, indptr, indices)

    def table(self) -> TableRows | None:
        """What became of the columns of the table that the folder was made from; None of anything else."""
        text = self.arrays.get(TABLE)
        if text is None:
            return None
        try:
            columns = decoded(Columns, json.loads(text.tobytes()))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.folder / TABLE}: damaged: {error}") from None
        fits = columns.width == self.header.d and columns.missing in MISSING_RULES
        self._require(TABLE, fits, f"columns that become {self.header.d} features")
        labels = self.arrays["relevance.npy"]
        known = not columns.label_words or bool(np.isin(labels, np.arange(len(columns.label_words))).all())
        self._require("relevance.npy", known, f"labels from 0 to {len(columns.label_words) - 1}")
        return TableRows(columns, queries=self._queries())

    def _queries(self) -> tuple[str, ...]:
        """What the queries are called; () where they are numbers."""
        text = self.arrays.get(QUERIES)
        if text is None:
            return ()
        try:
            names = json.loads(text.tobytes())
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.folder / QUERIES}: damaged: {error}") from None
        are_words = isinstance(names, list) and all(isinstance(name, str) for name in names)
        self._require(QUERIES, are_words, "a list of words")
        groups = self.arrays["groups.npy"]
        within = bool((groups >= 0).all() and (groups < len(names)).all())
        self._require("groups.npy", within, f"numbers of queries from 0 to {len(names) - 1}")
        return tuple(names)

    def rows(self) -> Matrix:
        return self._dense_rows() if self.header.layout == "dense" else self._sparse_rows()

    def _dense_rows(self) -> Matrix:
        X = self.arrays["X.npy"]
        if self.verify:
            self._require("X.npy", all_finite(X.reshape(-1)), "finite values")
        return X

    def _sparse_rows(self) -> Matrix:
        n, d, nnz = self.header.n, self.header.d, self.header.nnz
        indptr, indices, values = (self.arrays[name] for name in ("indptr.npy", "indices.npy", "values.npy"))
        self._require("indptr.npy", rises_to(indptr, nnz), f"row pointers that rise from 0 to {nnz}")
        self._require("indices.npy", all_below(indices, d), f"indices from 0 to {d - 1}")
        if self.verify:
            self._require("indices.npy", all_rise(indptr, indices), "indices that increase within each row")
            self._require("values.npy", all_finite(values), "finite values")
        X = sp.csr_array((values, indices, indptr), shape=(n, d))
        X.has_canonical_format = True
        return X


def _mapped(path: Path, dtype: np.dtype[np.generic], shape: tuple[int, ...], size: int) -> AnyArray:
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
            return mapped(stream, dtype, start, shape)
    except FileNotFoundError:
        raise DataError(f"{path}: missing: the folder is damaged") from None
