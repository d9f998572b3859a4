"""Reads a data set from svmlight text, a table with named columns, a data folder or a saved matrix. The content decides
the format, not the name."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from apsvm._support import sparse as sp
from apsvm._support.machine import thread_count
from apsvm._support.types import Matrix
from apsvm.data.bags import with_bags
from apsvm.data.dataset import DataError, Dataset
from apsvm.data.file_patterns import parts_of
from apsvm.data.matrices import read_bags, read_groups, read_matrix
from apsvm.data.read_options import ReadOptions
from apsvm.data.svmlight import read_svmlight
from apsvm.data.tables.kinds import Kind, recognised
from apsvm.models.columns import label_number

if TYPE_CHECKING:
    from apsvm.models.columns import ForModel


#: Part of the parser's message on an index 0 where features count from 1.
_COUNTS_FROM_0 = "(zero_based=True)"


def read_data(
    source: str | os.PathLike[str],
    options: ReadOptions | None = None,
    *,
    n_features: int | None = None,
    ignore_unknown: bool = False,
    unlabelled: bool = False,
    model: ForModel | None = None,
    dense: bool = False,
    **changes: Any,
) -> Dataset:
    """Read a svmlight file, a table (CSV, Parquet, Arrow), a folder of ``apsvm convert``, or a .npz or .npy matrix. A
    pattern, or a folder of Parquet files, names several files (``parts_of``), which are read one behind the other.

    Parameters
    ----------
    options : options of the reading. Values stored as float32 stay float32; a folder and a .npy matrix of labels may
        have rows of several labels anyway. If ``zero_based`` is None, a folder and a matrix know the first index, and
        text with an index 0 counts from 0, if it can be read again.
    n_features : number of features of the model. Values beyond it are unknown, in a dense matrix whole columns. A
        dense matrix with fewer columns becomes a csr_array of the mapped values.
    ignore_unknown : drop and count unknown values, which are refused otherwise
    unlabelled : accept rows without labels
    model : the features of the model, found by name in a table
    dense : see ``read_svmlight``
    changes : fields of ``options`` with other values

    Raises
    ------
    DataError, OSError, ValueError, TypeError : as ``read_svmlight``, ``read_tables``, ``open_folder``, ``read_matrix``
    """
    options = replace(options or ReadOptions(), **changes)
    if options.ignores_bags:
        options = replace(options, bag_label="own")
    elif unlabelled and options.bag_label == "same":  # unused labels need not agree
        options = replace(options, bag_label="any")
    reading = _Reading(os.fspath(source), options, n_features, ignore_unknown, unlabelled, model, dense)
    return replace(reading.data(), ignores_bags=options.ignores_bags)


@dataclass(frozen=True, slots=True)
class _Reading:
    """Arguments of ``read_data``."""

    source: str
    options: ReadOptions
    n_features: int | None
    ignore_unknown: bool
    unlabelled: bool
    model: ForModel | None
    dense: bool

    def data(self) -> Dataset:
        parts = parts_of(self.source)
        if parts != [self.source]:
            return self._several(parts)
        kind, content = recognised(self.source)
        self._check(kind)
        bags, rule = self.options.bags, self.options.bag_label
        if kind in (Kind.FOLDER, Kind.MATRIX):
            return _rounded(in_bags(self._with_width(self._stored(kind)), bags, rule), self.options.dtype)
        data = self._text(content) if kind is Kind.SVMLIGHT else self._tables([(content, kind)])
        return data if bags is None else in_bags(data, bags, rule)

    def _several(self, parts: Sequence[str]) -> Dataset:
        """The rows of several files, one behind the other."""
        for what in ("labels", "groups", "bags"):
            if getattr(self.options, what) is not None:
                raise DataError(f"{self.source}: a file of {what} belongs to one file, and these are {len(parts)}")
        kinds = {part: recognised(part)[0] for part in parts if os.path.isdir(part) or os.path.getsize(part)}
        if kinds and all(kind.is_table for kind in kinds.values()):
            return replace(self._tables(list(kinds.items())), source=self.source)
        from apsvm.data.joining import joined

        # Sparse rows, since each part of text is as wide as its highest feature.
        return joined([replace(self, source=part, dense=False).data() for part in kinds], self.source)

    def _check(self, kind: Kind) -> None:
        """Raises DataError for files of labels or groups of data with their own, and for options and models that need a
        table where there is none."""
        options, model, name = self.options, self.model, "<stdin>" if self.source == "-" else self.source
        if options.labels is not None and kind is not Kind.MATRIX:
            raise DataError(f"{name}: it has labels of its own; --labels (labels=) is for .npz and .npy matrices")
        if options.groups is not None and kind not in (Kind.MATRIX, Kind.SVMLIGHT):
            raise DataError(
                f"{name}: --groups (groups=) is for svmlight text and for .npz and .npy matrices; a table has a column "
                "(--qid-column)"
            )
        if options.table.named and not kind.is_table:
            option = options.table.named[0][0]
            raise DataError(f"{name}: {option} is for tables (CSV, Parquet, Arrow), and this is {kind.value}")
        columns = None if model is None or model.columns is None else model.columns.features
        if columns and kind is not Kind.FOLDER and not kind.is_table:
            first = ", ".join(column.name for column in columns[:3])
            raise DataError(
                f"{name}: the model finds its columns by their names ({first}, …), and {kind.value} has none: give it "
                "a table (CSV, Parquet, Arrow)"
            )

    def _stored(self, kind: Kind) -> Dataset:
        """The rows of a folder, with the model's named features, or of a matrix."""
        options, model = self.options, self.model
        if kind is Kind.MATRIX:
            data = read_matrix(self.source, options.labels, options.groups, unlabelled=self.unlabelled)
        else:
            from apsvm.data.folder import open_folder

            data = open_folder(self.source, check=options.check)
            if data.table is not None and model is not None and model.names is not None:
                data = _as_the_model_has_it(data, model)
        if options.zero_based not in (None, data.zero_based):
            expected, found = (0, 1) if options.zero_based else (1, 0)
            raise DataError(
                f"{data.source}: expected features that count from {expected}, found {kind.value} that counts them "
                f"from {found}"
            )
        return data

    def _text(self, content: str | os.PathLike[str] | BinaryIO) -> Dataset:
        options = self.options
        read = functools.partial(
            read_svmlight, content, dtype=options.dtype, max_features=options.max_features, n_features=self.n_features,
            ignore_unknown=self.ignore_unknown, sort_features=options.sort_features, multilabel=options.multilabel,
            bag_label=options.bag_label, dense=self.dense, threads=thread_count(options.threads),
        )  # fmt: skip
        try:
            data = read(zero_based=bool(options.zero_based))
        except DataError as error:
            if options.zero_based is not None or content is not self.source or _COUNTS_FROM_0 not in str(error):
                raise
            data = read(zero_based=True)
        if options.groups is None:
            return data
        if data.groups is not None:
            raise DataError(f"{data.source}: its rows have queries of their own (qid:): leave out --groups (groups=)")
        return replace(data, groups=read_groups(options.groups, len(data), data.source))

    def _tables(self, sources: Sequence[tuple[str | os.PathLike[str] | BinaryIO, Kind]]) -> Dataset:
        from apsvm.data.tables.reading import read_tables  # imports slow modules

        data = read_tables(sources, self.options, model=self.model, unlabelled=self.unlabelled)
        return data if self.model is not None else self._with_width(data)

    def _with_width(self, data: Dataset) -> Dataset:
        """The rows with ``n_features`` columns. Raises DataError for features unknown to the model, or beyond
        ``max_features``."""
        X, n_features, most = data.X, self.n_features, self.options.max_features
        n, width = X.shape
        if most is not None and width > most:
            raise DataError(
                f"{data.source}: feature {_feature(data, width - 1)} is beyond the limit of {most} features "
                "(--max-features, max_features=)"
            )
        if n_features is None or n_features == width:
            return data
        if n_features > width:
            return replace(data, X=sp.padded(X, n_features))
        is_sparse = sp.issparse(X)
        unknown = int(np.count_nonzero(X.indices >= n_features)) if is_sparse else n * (width - n_features)
        if unknown and not self.ignore_unknown:
            highest = int(X.indices.max()) if is_sparse else width - 1
            raise DataError(
                f"{data.source}: feature {_feature(data, highest)} is unknown (the model has {n_features} features); "
                "--ignore-unknown (ignore_unknown=True) drops such entries"
            )
        return replace(data, X=_narrowed(X, n_features), unknown_features=unknown)


def in_bags(data: Dataset, path: str | os.PathLike[str] | None, rule: str) -> Dataset:
    """The data set with the bags of the file ``path``, or with its own, by the rule. Raises DataError, OSError."""
    if path is None:
        return with_bags(data, data.bags, rule)
    if data.bags is not None:
        raise DataError(f"{data.source}: it has bags of its own; --bags FILE (bags=) is for rows that say none")
    return with_bags(data, read_bags(path, len(data), data.source), rule, source=os.fspath(path))


def _as_the_model_has_it(data: Dataset, model: ForModel) -> Dataset:
    """The rows of a table's folder with the features of a model in its order, and with its numbers of labels. Raises
    DataError for a missing feature or an unknown label."""
    assert data.table is not None
    assert model.names is not None
    table = data.table
    columns, names = table.columns, table.columns.feature_names()
    if names != model.names:
        place = {name: at for at, name in enumerate(names)}
        lacking = next((name for name in model.names if name not in place), None)
        if lacking is not None:
            raise DataError(
                f"{data.source}: the model needs the feature {lacking!r}, which this folder lacks: apsvm convert "
                "--model MODEL makes one that has what the model needs"
            )
        data = replace(data, X=data.X[:, [place[name] for name in model.names]])
    if model.columns is None:
        return data
    theirs, ours = model.columns.label_words, columns.label_words
    relevance = data.relevance
    if theirs and ours and theirs != ours:
        try:
            relevance = np.array([label_number(word, theirs) for word in ours])[relevance.astype(np.int64)]
        except ValueError as error:
            raise DataError(f"{data.source}: {error}") from None
    table = replace(table, columns=replace(model.columns, label=columns.label))
    return replace(data, relevance=relevance, table=table)


def is_text(source: str | os.PathLike[str]) -> bool:
    """True if the source is a file of svmlight text. Raises OSError."""
    return os.path.isfile(source) and recognised(source)[0] is Kind.SVMLIGHT


def _feature(data: Dataset, column: int) -> int:
    """The number of a column in the file."""
    return column + (not data.zero_based)


def _narrowed(X: Matrix, n_features: int) -> Matrix:
    """The first columns of X."""
    if not sp.issparse(X):
        return np.ascontiguousarray(X[:, :n_features])
    shape, is_within = (X.shape[0], n_features), X.indices < n_features
    if is_within.all():
        return sp.canonical_csr(X.data, X.indices, X.indptr, shape)
    ends = np.append(0, np.cumsum(is_within))[X.indptr]
    return sp.canonical_csr(X.data[is_within], X.indices[is_within], ends, shape)


def _rounded(data: Dataset, dtype: DTypeLike) -> Dataset:
    """The rows, in float32 if the dtype is float32. Raises DataError if a value overflows."""
    if np.dtype(dtype) != np.float32 or data.X.dtype == np.float32:
        return data
    with np.errstate(over="ignore", under="ignore"):
        X = data.X.astype(np.float32)
    values = X.data if sp.issparse(X) else X
    if not np.isfinite(values).all():
        raise DataError(f"{data.source}: a value overflows float32")
    if sp.issparse(X):
        X.has_canonical_format = True
    return replace(data, X=X)
