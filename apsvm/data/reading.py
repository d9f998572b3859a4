"""Reading a data set from whatever holds it, told by content and never by name: svmlight text, plain or compressed;
a table with named columns; a data folder; a saved matrix."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from apsvm import sparse as sp
from apsvm.data.bags import Places, with_bags
from apsvm.data.dataset import DataError, Dataset
from apsvm.data.features.mapped import dense_pays
from apsvm.data.matrices import read_bags, read_matrix
from apsvm.data.read_options import UNSAID, TableOptions
from apsvm.data.svmlight import read_svmlight
from apsvm.data.tables.recognising import Kind, recognised
from apsvm.types import Matrix

if TYPE_CHECKING:
    from apsvm.data.tables.reading import ForModel, Source
    from apsvm.types import AnyArray


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
    table: TableOptions = UNSAID,
    model: ForModel | None = None,
    dense: bool = False,
) -> Dataset:
    """Read a svmlight file, a table (CSV, Parquet, Arrow), a folder written by ``apsvm convert``, or a .npz or .npy
    matrix.

    The parameters are those of ``read_svmlight``, and mean the same for all:

    Parameters
    ----------
    any_base : whether a folder or matrix, which knows where its features count from, may differ from `zero_based`
    dtype : float32 rounds what is stored as float64; what is stored as float32 stays so
    n_features : every value stored beyond them counts as unknown; in a dense matrix those are whole columns.
        A dense matrix of fewer columns becomes a csr_array, whose values are still the mapped ones.
    multilabel : a folder and a .npy matrix of labels have rows of several labels anyway
    labels, groups, unlabelled : for a matrix only; see ``read_matrix``
    bags : a file with the bag of each row, for rows that say none themselves; see ``read_bags``
    table : of a table; see ``TableOptions``
    model : the features of the model that the rows are for; only tables have names to find them by

    Raises
    ------
    DataError, OSError, ValueError, TypeError : as ``read_svmlight``, ``read_table``, ``open_folder``, ``read_matrix``
    """
    kind, content = recognised(source)
    if kind is not Kind.MATRIX and (labels is not None or groups is not None):
        raise _has_labels(source)
    if kind.is_table:
        data = _table(content, kind, table, model, unlabelled=unlabelled, bag_label=bag_label)
        if model is None:
            data = _with_width(data, n_features, max_features, ignore_unknown)
        data = data if bags is None else in_bags(data, bags, bag_label)
        return _as_float32(data) if np.dtype(dtype) == np.float32 else data
    _check_no_table(source, kind, table, model)
    if kind is Kind.SVMLIGHT:
        data = read_svmlight(
            content,
            zero_based=zero_based,
            dtype=dtype,
            max_features=max_features,
            n_features=n_features,
            ignore_unknown=ignore_unknown,
            sort_features=sort_features,
            multilabel=multilabel,
            bag_label=bag_label,
            dense=dense,
            threads=threads,
        )
        return data if bags is None else in_bags(data, bags, bag_label)
    if kind is Kind.FOLDER:
        data = _opened(source)
    else:
        data = read_matrix(source, labels, groups, multilabel=multilabel, unlabelled=unlabelled)
    if not any_base:
        _require_base(data, kind, zero_based)
    data = in_bags(_with_width(data, n_features, max_features, ignore_unknown), bags, bag_label)
    return _as_float32(data) if np.dtype(dtype) == np.float32 else data


def in_bags(data: Dataset, path: str | os.PathLike[str] | None, rule: str) -> Dataset:
    """The data set with the bags of the file ``path``, or with its own, held to the rule. Raises DataError, OSError."""
    if path is None:
        return with_bags(data, data.bags, Places(data.source), rule)
    if data.bags is not None:
        raise DataError(f"{data.source}: it has bags of its own; --bags FILE (bags=) is for rows that say none")
    n = data.X.shape[0]
    ids, line_a_row = read_bags(path, n, data.source)
    places = Places(os.fspath(path), np.arange(1, n + 1) if line_a_row else None)
    return with_bags(data, ids, places, rule)


def _has_labels(source: str | os.PathLike[str]) -> DataError:
    """What a file is refused by that is given labels or groups and has its own."""
    return DataError(
        f"{os.fspath(source)}: it has labels and groups of its own; --labels and --groups (labels=, groups=) "
        "are for .npz and .npy matrices"
    )


def _table(
    source: Source, kind: Kind, options: TableOptions, model: ForModel | None, *, unlabelled: bool, bag_label: str
) -> Dataset:
    from apsvm.data.tables.reading import read_table  # whoever reads svmlight text has no use for it

    return read_table(source, kind, options, model=model, unlabelled=unlabelled, bag_label=bag_label)


def _check_no_table(source: str | os.PathLike[str], kind: Kind, options: TableOptions, model: ForModel | None) -> None:
    """Raises DataError for what is said of a table, or wanted of one, where there is none."""
    name = "<stdin>" if source == "-" else os.fspath(source)
    said = {
        "--label-column": options.label,
        "--qid-column": options.qid,
        "--bag-column": options.bag,
        "--cost-column": options.cost,
        "--id-column": options.id,
        "--drop": options.drop,
        "--features-from": options.features,
    }
    option = next((option for option, value in said.items() if value), None)
    if option is not None:
        raise DataError(f"{name}: {option} is for tables (CSV, Parquet, Arrow), and this is {kind.what}")
    if model is not None and model.columns is not None and model.columns.features and kind is not Kind.FOLDER:
        first = ", ".join(column.name for column in model.columns.features[:3])
        raise DataError(
            f"{name}: the model finds its columns by their names ({first}, …), and {kind.what} has none: give it a "
            "table (CSV, Parquet, Arrow)"
        )


def is_text(source: str | os.PathLike[str]) -> bool:
    """Whether ``read_data`` would read it as svmlight text that can be read again. Raises OSError."""
    return os.path.isfile(source) and recognised(source)[0] is Kind.SVMLIGHT


def _opened(source: str | os.PathLike[str]) -> Dataset:
    from apsvm.data.folder import open_folder  # whoever reads text has no use for six modules

    return open_folder(source)


def as_passes_want_it(data: Dataset) -> Dataset:
    """The rows as a dense array where that takes hardly more bytes than the csr_array, which is then let go."""
    X = data.X
    return replace(data, X=X.toarray()) if sp.issparse(X) and dense_pays(X) else data


def _require_base(data: Dataset, kind: Kind, zero_based: bool) -> None:
    """Raises DataError if the features count from elsewhere."""
    if zero_based != data.zero_based:
        expected, found = (0, 1) if zero_based else (1, 0)
        raise DataError(
            f"{data.source}: expected features that count from {expected}, found a {kind.value} that counts them from "
            f"{found}"
        )


def _feature(data: Dataset, column: int) -> int:
    """What the file calls this column."""
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
    shape, known = (X.shape[0], n_features), X.indices < n_features
    if known.all():
        return _csr(X.data, X.indices, X.indptr, shape)
    ends = np.concatenate(([0], np.cumsum(known)))[X.indptr].astype(X.indptr.dtype)
    return _csr(X.data[known], X.indices[known], ends, shape)


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


def _as_float32(data: Dataset) -> Dataset:
    if data.X.dtype == np.float32:
        return data
    with np.errstate(over="ignore", under="ignore"):
        X = data.X.astype(np.float32)
    values = X.data if sp.issparse(X) else X
    if not np.isfinite(values).all():
        raise DataError(f"{data.source}: a value overflows float32")
    if sp.issparse(X):
        X.has_canonical_format = True
    return replace(data, X=X)
