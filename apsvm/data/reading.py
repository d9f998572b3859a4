"""Reading a data set from whatever holds it, told by content and never by name: svmlight text, plain or compressed;
a table with named columns; a data folder; a saved matrix."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from apsvm._support import sparse as sp
from apsvm._support.types import JsonDict, Matrix
from apsvm.data.bags import with_bags
from apsvm.data.dataset import DataError, Dataset
from apsvm.data.matrices import read_bags, read_groups, read_matrix
from apsvm.data.parts import parts_of
from apsvm.data.read_options import UNSAID, TableOptions
from apsvm.data.svmlight import read_svmlight
from apsvm.data.tables.kinds import Kind, recognised

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray
    from apsvm.models.columns import ForModel


#: Of the parser's message on an index 0 where features count from 1.
_COUNTS_FROM_0 = "(zero_based=True)"


def _several(source: str, parts: Sequence[str], options: JsonDict) -> Dataset:
    """``read_data`` of several files, one behind the other."""
    for what in ("labels", "groups", "bags"):
        if options[what] is not None:
            raise DataError(f"{source}: a file of {what} belongs to one file, and these are {len(parts)}")
    kinds = {part: recognised(part)[0] for part in parts if os.path.isdir(part) or os.path.getsize(part)}
    if not kinds or not all(kind.is_table for kind in kinds.values()):
        from apsvm.data.joining import joined

        # As sparse rows: of text each part is as wide as its highest feature.
        return joined([read_data(part, **{**options, "dense": False}) for part in kinds], source)
    from apsvm.data.tables.reading import read_tables

    taken = {name: options[name] for name in ("model", "unlabelled", "bag_label", "dtype")}
    data = replace(read_tables(list(kinds.items()), options["table"], **taken), source=source)
    if options["model"] is not None:
        return data
    return _with_width(data, options["n_features"], options["max_features"], options["ignore_unknown"])


def read_data(
    source: str | os.PathLike[str],
    *,
    zero_based: bool = False,
    any_base: bool = True,
    dtype: DTypeLike = np.float64,
    max_features: int | None = None,
    n_features: int | None = None,
    ignore_unknown: bool = False,
    sort_features: bool = False,
    multilabel: bool = False,
    threads: int = 1,
    labels: str | os.PathLike[str] | None = None,
    groups: str | os.PathLike[str] | None = None,
    unlabelled: bool = False,
    bags: str | os.PathLike[str] | None = None,
    bag_label: str = "same",
    check: bool = True,
    table: TableOptions = UNSAID,
    model: ForModel | None = None,
    dense: bool = False,
) -> Dataset:
    """Read a svmlight file, a table (CSV, Parquet, Arrow), a folder of ``apsvm convert``, or a .npz or .npy matrix; or
    several, which ``source`` names by a pattern or a folder of Parquet files (``parts_of``), one behind the other.

    The parameters are those of ``read_svmlight``, and mean the same for all:

    Parameters
    ----------
    any_base : True if features may count from elsewhere than `zero_based` says: those of a folder or matrix, which
        knows; and those of text from 0 where a row has an index 0, if it can be read again
    dtype : float32 rounds what is stored as float64; what is stored as float32 stays so
    n_features : every value stored beyond them counts as unknown; in a dense matrix those are whole columns.
        A dense matrix of fewer columns becomes a csr_array, whose values are still the mapped ones.
    multilabel : a folder and a .npy matrix of labels have rows of several labels anyway
    labels, groups, unlabelled : for a matrix only; see ``read_matrix``
    bags : a file with the bag of each row, for rows that say none themselves; see ``read_bags``
    check : see ``open_folder``
    table : options of a table; see ``TableOptions``
    model : the features of the model that the rows are for; only tables have names to find them by

    Raises
    ------
    DataError, OSError, ValueError, TypeError : as ``read_svmlight``, ``read_tables``, ``open_folder``, ``read_matrix``
    """
    options = dict(locals())
    parts = parts_of(os.fspath(options.pop("source")))
    if parts != [os.fspath(source)]:
        return _several(os.fspath(source), parts, options)
    kind, content = recognised(source)
    _check_options(source, kind, table, model, has_labels=labels is not None, has_groups=groups is not None)
    if kind in (Kind.FOLDER, Kind.MATRIX):
        data = _stored(source, kind, model, labels, groups, multilabel, unlabelled, check)
        if not any_base:
            _require_base(data, kind, zero_based)
        return _rounded(in_bags(_with_width(data, n_features, max_features, ignore_unknown), bags, bag_label), dtype)
    if kind is Kind.SVMLIGHT:
        text = functools.partial(
            read_svmlight, content, dtype=dtype, max_features=max_features, n_features=n_features,
            ignore_unknown=ignore_unknown, sort_features=sort_features, multilabel=multilabel, bag_label=bag_label,
            dense=dense, threads=threads,
        )  # fmt: skip
        try:
            data = text(zero_based=zero_based)
        except DataError as error:
            if not any_base or content is not source or _COUNTS_FROM_0 not in str(error):
                raise
            data = text(zero_based=True)
        data = data if groups is None else _in_groups(data, groups)
    else:
        from apsvm.data.tables.reading import read_tables  # svmlight text does not need it

        sources = [(content, kind)]
        data = read_tables(sources, table, model=model, unlabelled=unlabelled, bag_label=bag_label, dtype=dtype)
        data = data if model is not None else _with_width(data, n_features, max_features, ignore_unknown)
    return data if bags is None else in_bags(data, bags, bag_label)


def _stored(
    source: str | os.PathLike[str],
    kind: Kind,
    model: ForModel | None,
    labels: str | os.PathLike[str] | None,
    groups: str | os.PathLike[str] | None,
    multilabel: bool,
    unlabelled: bool,
    check: bool,
) -> Dataset:
    """The rows of a folder, as the model has its features where they have names, or those of a matrix."""
    if kind is Kind.MATRIX:
        return read_matrix(source, labels, groups, multilabel=multilabel, unlabelled=unlabelled)
    from apsvm.data.folder import open_folder  # text has no use for it

    data = open_folder(source, check=check)
    if data.table is not None and model is not None and model.names is not None:
        return _as_the_model_has_it(data, model)
    return data


def in_bags(data: Dataset, path: str | os.PathLike[str] | None, rule: str) -> Dataset:
    """The data set with the bags of the file ``path``, or with its own, held to the rule. Raises DataError, OSError."""
    if path is None:
        return with_bags(data, data.bags, rule)
    if data.bags is not None:
        raise DataError(f"{data.source}: it has bags of its own; --bags FILE (bags=) is for rows that say none")
    n = data.X.shape[0]
    ids, line_a_row = read_bags(path, n, data.source)
    return with_bags(data, ids, rule, np.arange(1, n + 1) if line_a_row else None, os.fspath(path))


def _in_groups(data: Dataset, groups: str | os.PathLike[str]) -> Dataset:
    """Rows of text in the groups of a file. Raises DataError where the text has some."""
    if data.groups is not None:
        raise DataError(f"{data.source}: its rows have queries of their own (qid:): leave out --groups (groups=)")
    return replace(data, groups=read_groups(groups, len(data), data.source))


def _check_options(
    source: str | os.PathLike[str],
    kind: Kind,
    options: TableOptions,
    model: ForModel | None,
    *,
    has_labels: bool,
    has_groups: bool,
) -> None:
    """Raises DataError for files of labels or groups where there is no matrix, and for what is said of a table, or
    wanted of one, where there is none."""
    if has_labels and kind is not Kind.MATRIX:
        raise DataError(
            f"{os.fspath(source)}: it has labels of its own; --labels (labels=) is for .npz and .npy matrices"
        )
    if has_groups and kind not in (Kind.MATRIX, Kind.SVMLIGHT):
        raise DataError(
            f"{os.fspath(source)}: --groups (groups=) is for svmlight text and for .npz and .npy matrices; a table "
            "has a column (--qid-column)"
        )
    name = "<stdin>" if source == "-" else os.fspath(source)
    if options != UNSAID and not kind.is_table and options.named:
        option = options.named[0][0]
        raise DataError(f"{name}: {option} is for tables (CSV, Parquet, Arrow), and this is {kind.value}")
    if model is None or model.columns is None or not model.columns.features:
        return
    if kind is not Kind.FOLDER and not kind.is_table:
        first = ", ".join(column.name for column in model.columns.features[:3])
        raise DataError(
            f"{name}: the model finds its columns by their names ({first}, …), and {kind.value} has none: give it a "
            "table (CSV, Parquet, Arrow)"
        )


def _as_the_model_has_it(data: Dataset, model: ForModel) -> Dataset:
    """The rows of a table's folder with the features of a model in its order, and labels as it counts them.

    Raises
    ------
    DataError : a feature is lacking, or a label that the model knows nothing of is there
    """
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
            relevance = np.array([model.columns.label_value(word) for word in ours])[relevance.astype(np.int64)]
        except ValueError as error:
            raise DataError(f"{data.source}: {error}") from None
    table = replace(table, columns=replace(model.columns, label=columns.label))
    return replace(data, relevance=relevance, table=table)


def is_text(source: str | os.PathLike[str]) -> bool:
    """True if ``read_data`` would read the file as svmlight text, and it can be read again. Raises OSError."""
    return os.path.isfile(source) and recognised(source)[0] is Kind.SVMLIGHT


def _require_base(data: Dataset, kind: Kind, zero_based: bool) -> None:
    """Raises DataError if the features count from elsewhere."""
    if zero_based != data.zero_based:
        expected, found = (0, 1) if zero_based else (1, 0)
        raise DataError(
            f"{data.source}: expected features that count from {expected}, found {kind.value} that counts them from "
            f"{found}"
        )


def _feature(data: Dataset, column: int) -> int:
    """Number of the column in the file."""
    return column + (not data.zero_based)


def _with_width(data: Dataset, n_features: int | None, max_features: int | None, ignore_unknown: bool) -> Dataset:
    """The rows as a model of ``n_features`` sees them. Raises DataError if it does not know all of theirs, or if they
    are more than ``max_features``."""
    X = data.X
    n, width = X.shape
    if max_features is not None and width > max_features:
        raise DataError(
            f"{data.source}: feature {_feature(data, width - 1)} is beyond the limit of {max_features} features "
            "(--max-features, max_features=)"
        )
    if n_features is None or n_features == width:
        return data
    if n_features > width:
        return replace(data, X=_padded(X, n_features))
    is_sparse = sp.issparse(X)
    unknown = int(np.count_nonzero(X.indices >= n_features)) if is_sparse else n * (width - n_features)
    if unknown and not ignore_unknown:
        highest = int(X.indices.max()) if is_sparse else width - 1
        raise DataError(
            f"{data.source}: feature {_feature(data, highest)} is unknown (the model has {n_features} features); "
            "--ignore-unknown (ignore_unknown=True) drops such entries"
        )
    return replace(data, X=_narrowed(X, n_features), unknown_features=unknown)


def _narrowed(X: Matrix, n_features: int) -> Matrix:
    """The first columns of X."""
    if not sp.issparse(X):
        return np.ascontiguousarray(X[:, :n_features])
    shape, is_within = (X.shape[0], n_features), X.indices < n_features
    if is_within.all():
        return _csr(X.data, X.indices, X.indptr, shape)
    ends = np.concatenate(([0], np.cumsum(is_within)))[X.indptr].astype(X.indptr.dtype)
    return _csr(X.data[is_within], X.indices[is_within], ends, shape)


def _padded(X: Matrix, n_features: int) -> sp.csr_array:
    """X with columns of zeros behind its own; they take no memory, as a model may be much wider than the data."""
    n, width = X.shape
    if sp.issparse(X):
        indptr, indices, values = X.indptr, X.indices, X.data
    else:
        values = X.reshape(-1)
        index = np.int32 if max(values.size, n_features) <= np.iinfo(np.int32).max else np.int64
        indices = np.tile(np.arange(width, dtype=index), n)
        indptr = np.arange(n + 1, dtype=index) * index(width)
    if n_features > np.iinfo(np.int32).max:
        indices, indptr = indices.astype(np.int64, copy=False), indptr.astype(np.int64, copy=False)
    return _csr(values, indices, indptr, (n, n_features))


def _csr(values: AnyArray, indices: AnyArray, indptr: AnyArray, shape: tuple[int, int]) -> sp.csr_array:
    X = sp.csr_array((values, indices, indptr), shape=shape)
    X.has_canonical_format = True
    return X


def _rounded(data: Dataset, dtype: DTypeLike) -> Dataset:
    """The rows in float32, if that is requested; else as they are. Raises DataError where a value overflows."""
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
