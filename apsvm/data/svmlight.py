"""Reads svmlight files, plain or compressed, from a path, a stream or standard input, in one pass.

    label [qid:INT] [cost:NUM] [bag:INT] index:value index:value ... [# comment]

With `multilabel` a row may have several labels, ``1,4``, or none, as in the files of LIBSVM and scikit-learn. An empty
line is no row.

Bytes are read in blocks, hashed, decompressed (``apsvm.data.text``) and passed to the native parser, which builds the
CSR arrays: the text is never held whole, and the matrix is never copied. With several threads the next block is read
while the parser works.
"""

from __future__ import annotations

import hashlib
import itertools
import operator
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from apsvm._native import _kernels
from apsvm._support import sparse as sp
from apsvm._support.machine import thread_count
from apsvm.data.bags import with_bags
from apsvm.data.dataset import DataError, Dataset, one_or_several
from apsvm.data.features.mapped import DENSE_IF, dense_pays_for
from apsvm.data.read_options import ReadOptions
from apsvm.data.text import blocks_of, decompressed, opened_binary, text_blocks

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray, Matrix

#: Bytes in a block for one thread, which stay in its cache.
_BLOCK = 1 << 19
#: Bytes in a block for each of several threads, and the most threads that enlarge a block.
_BLOCK_OF_SEVERAL, _MOST_BLOCKS = 1 << 20, 16
#: Rows that become dense at a time.
_ROWS = 1 << 14

#: The name of a row in a comment.
_DOCID = re.compile(rb"#[^#]*?\bdocid\s*=\s*(\S+)", re.IGNORECASE)


def read_svmlight(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    zero_based: bool = False,
    dtype: DTypeLike = np.float64,
    max_features: int | None = None,
    n_features: int | None = None,
    ignore_unknown: bool = False,
    sort_features: bool = False,
    multilabel: bool = False,
    bag_label: str = "same",
    dense: bool = False,
    threads: int = 1,
) -> Dataset:
    """Read a svmlight file, plain or compressed by gzip, bzip2 or xz.

    Parameters
    ----------
    source : str or path-like or BinaryIO
        A path, a binary stream, or "-" for standard input.
    zero_based : bool
        True if the file counts features from 0.
    dtype : DTypeLike
        Float64 or float32, of the values; float32 ones are the float64 ones rounded.
    max_features : int, optional
        The most columns allowed.
    n_features : int, optional
        The number of columns of a model's matrix; by default the highest feature of the file.
    ignore_unknown : bool
        Drop (and count) the entries beyond `n_features`.
    sort_features : bool
        Accept features in any order within a row.
    multilabel : bool
        Accept rows of several labels and of none. If all rows have one label, this changes nothing.
    bag_label : str
        Rule for the label of a bag: "same", its rows share it; "any", the highest of its rows, or all of them
        where rows have several; "own", rows keep their labels.
    dense : bool
        Return a dense array instead of a csr_array, if it takes hardly more bytes.
    threads : int
        Most threads of the parser. Neither results nor errors depend on it.

    Raises
    ------
    DataError
        Bad content, with its line and column.
    OSError
        The source cannot be read.
    ValueError, TypeError
        A bad parameter.
    """
    n_known, n_allowed = _column_count("n_features", n_features), _column_count("max_features", max_features)
    if -1 < n_allowed < n_known:
        raise ValueError(f"n_features={n_features} is beyond max_features={max_features}")
    if ignore_unknown and n_features is None:
        raise ValueError("ignore_unknown needs n_features: without it no feature is unknown")
    if (threads := operator.index(threads)) < 1:
        raise ValueError(f"expected at least one thread, found {threads}")
    parser = _kernels.SvmlightParser(
        zero_based=zero_based,
        float32=_is_float32(np.dtype(dtype)),
        n_features=n_known,
        max_features=n_allowed,
        ignore_unknown=ignore_unknown,
        sort_features=sort_features,
        multilabel=multilabel,
        fill_if=DENSE_IF if dense else 0.0,
        threads=threads,
    )
    digest = hashlib.sha256()
    ((name, content),) = _parsed_blocks(source, parser, threads, digest, dense=dense, of_bytes=None)
    if content.relevance.size == 0:
        raise DataError(f"{name}: expected at least one row, found none")
    dataset = content.dataset(
        name, digest.hexdigest(), n_features, zero_based=bool(zero_based), multilabel=multilabel, dense=dense
    )
    return with_bags(dataset, content.bags, bag_label, content.row_lines)


#: Bytes of text in a block of rows.
BYTES_OF_ROWS = 1 << 24


class TextBlocks:
    """The rows of several svmlight files, one file behind the other, in blocks for ``apsvm.data.on_disk.gathered``,
    which never holds all rows.

    Parameters
    ----------
    sources : Sequence[str or path-like]
        Paths, or "-".
    options : ReadOptions
        Options of the reading. Rows keep their labels, whatever their bags.

    Attributes
    ----------
    fingerprint
        After the last block: the SHA-256 of the bytes of all files.
    row_lines
        (n,) int64, after the last block: the line of each row in its file, if rows have bags.
    """

    def __init__(self, sources: Sequence[str | os.PathLike[str]], options: ReadOptions) -> None:
        self._sources = sources
        self._multilabel, self._zero_based = options.multilabel, bool(options.zero_based)
        self._threads = thread_count(options.threads)
        self._parser = partial(
            _kernels.SvmlightParser,
            zero_based=self._zero_based,
            float32=_is_float32(np.dtype(options.dtype)),
            max_features=_column_count("max_features", options.max_features),
            sort_features=options.sort_features,
            multilabel=self._multilabel,
            threads=self._threads,
        )
        self._lines: list[NDArray[np.int64]] = []
        self.fingerprint = ""

    @property
    def name(self) -> str:
        """The name in messages: the file, or the number of files."""
        if len(self._sources) > 1:
            return f"{len(self._sources)} files from {os.fspath(self._sources[0])}"
        return "<stdin>" if self._sources[0] == "-" else os.fspath(self._sources[0])

    @property
    def row_lines(self) -> NDArray[np.int64]:
        return np.concatenate(self._lines)

    def __iter__(self) -> Iterator[Dataset]:
        """Raises DataError, OSError."""
        digest = hashlib.sha256()
        for source in self._sources:
            yield from self._of_file(source, digest)
        self.fingerprint = digest.hexdigest()

    def _of_file(self, source: str | os.PathLike[str], digest: hashlib._Hash) -> Iterator[Dataset]:
        n = 0
        parsed = _parsed_blocks(source, self._parser(), self._threads, digest, dense=False, of_bytes=BYTES_OF_ROWS)
        for name, content in parsed:
            n += content.relevance.size
            if content.relevance.size > 0:
                self._lines.append(content.row_lines)
                rows = content.dataset(name, zero_based=self._zero_based, multilabel=self._multilabel)
                yield replace(rows, bags=content.bags)
        if n == 0:
            raise DataError(f"{name}: expected at least one row, found none")


class _Parsed(NamedTuple):
    """Output of the parser. ``ends`` has the ends of the rows' labels, if a row may have several. ``row_lines`` has the
    line of each row, counted from 1, if rows have bags. ``indices`` is None if the values are a dense matrix."""

    indptr: AnyArray
    indices: AnyArray | None
    values: AnyArray
    relevance: NDArray[np.float64]
    groups: NDArray[np.int64] | None
    costs: NDArray[np.float64] | None
    n_columns: int
    unknown_features: int
    labels: NDArray[np.float64]
    ends: NDArray[np.int64]
    bags: NDArray[np.int64] | None
    row_lines: NDArray[np.int64]

    def dataset(
        self,
        name: str,
        fingerprint: str = "",
        n_features: int | None = None,
        *,
        zero_based: bool,
        multilabel: bool,
        dense: bool = False,
    ) -> Dataset:
        """The rows, without their bags."""
        relevance, sets = one_or_several(self.labels, self.ends) if multilabel else (self.relevance, None)
        return Dataset(
            X=self.matrix(n_features, dense=dense),
            relevance=relevance,
            groups=self.groups,
            costs=self.costs,
            zero_based=zero_based,
            source=name,
            fingerprint=fingerprint,
            unknown_features=self.unknown_features,
            label_sets=sets,
        )

    def matrix(self, n_features: int | None, *, dense: bool) -> Matrix:
        """The rows with ``n_features`` columns, or as many as the file has (None).

        ``dense`` asks for a dense array where that takes hardly more bytes: training would make one anyway, and
        scipy.sparse need not be imported.
        """
        shape, indices = (self.relevance.size, self.n_columns), self.indices
        if indices is None:
            X: Matrix = self.values.reshape(shape)
        elif dense and n_features in (None, self.n_columns) and dense_pays_for(shape, self.values, indices):
            return self._filled(shape, indices)
        else:
            X = sp.canonical_csr(self.values, indices, self.indptr, shape)
        return X if n_features in (None, self.n_columns) else sp.padded(X, operator.index(n_features))

    def _filled(self, shape: tuple[int, int], indices: AnyArray) -> AnyArray:
        X = np.zeros(shape, dtype=self.values.dtype)
        for first in range(0, shape[0], _ROWS):
            ends = self.indptr[first : first + _ROWS + 1]
            which, stored = np.arange(first, first + ends.size - 1), slice(ends[0], ends[-1])
            X[np.repeat(which, np.diff(ends)), indices[stored]] = self.values[stored]
        return X


def _parsed_blocks(
    source: str | os.PathLike[str] | BinaryIO,
    parser: _kernels.SvmlightParser,
    threads: int,
    digest: hashlib._Hash,
    *,
    dense: bool,
    of_bytes: int | None,
) -> Iterator[tuple[str, _Parsed]]:
    """The name in messages, and the content in blocks of about ``of_bytes`` bytes; None: in one. ``digest`` receives
    the stored bytes. Raises DataError, OSError."""
    size = _BLOCK if threads == 1 else _BLOCK_OF_SEVERAL * min(threads, _MOST_BLOCKS)
    name, opened = opened_binary(source)
    fed = 0
    with opened as stream:
        try:
            try:
                for block in decompressed(blocks_of(stream, size, digest.update), size, name):
                    parser.feed(block)
                    fed += len(block)
                    if of_bytes is not None and fed >= of_bytes:
                        fed = 0
                        yield name, _Parsed(*parser.take(dense))
            except Exception:
                parser.wait()  # an error of the text before comes first
                raise
            content = _Parsed(*parser.finish(dense))
        except _kernels.SvmlightError as error:
            line, column, message = error.args
            raise DataError(f"{name}:{line}:{column}: {message}") from None
    yield name, content


def docids(source: str | os.PathLike[str]) -> list[str] | None:
    """Names of the rows in the comments of a svmlight file, as in LETOR (``# docid = GX029``); None if a row has none.
    Raises DataError, OSError."""
    result = []
    for _, line in _lines_of_rows(source):
        match = _DOCID.search(line)
        if match is None:
            return None
        result.append(match[1].decode("utf-8", "backslashreplace"))
    return result


def line_numbers(source: str | os.PathLike[str]) -> NDArray[np.int64]:
    """(n,) int64, the line of each row of a svmlight file, counted from 1. Raises DataError, OSError."""
    return np.fromiter((number for number, _ in _lines_of_rows(source)), np.int64)


def _lines_of_rows(source: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """The lines that are rows, and their numbers, counted from 1. Empty lines and comments are no rows."""
    number, rest = 0, b""
    with text_blocks(source) as (_, blocks):
        for block in itertools.chain(blocks, (b"\n",)):
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                number += 1
                if line.lstrip(b" \t\r")[:1] not in (b"", b"#"):
                    yield number, line


def _is_float32(dtype: np.dtype[np.generic]) -> bool:
    """True for float32, False for float64. Raises ValueError for other types."""
    if dtype not in (np.float64, np.float32):
        raise ValueError(f"expected dtype float64 or float32, found {dtype}")
    return dtype == np.float32


def _column_count(name: str, count: int | None) -> int:
    """`count` for the parser, −1 for None. Raises ValueError, TypeError."""
    if count is None:
        return -1
    number = operator.index(count)
    if not 0 <= number < 1 << 63:
        raise ValueError(f"expected {name} of 0 to 2^63 - 1, found {number}")
    return number
