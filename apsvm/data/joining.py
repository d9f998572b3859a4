"""Joins parts of a data set: columns are matched by name, rows stand one behind the other."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.dataset import DataError, Dataset, one_or_several
from apsvm.data.tables.roles import listed, require_names
from apsvm.models.columns import Columns

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray


def in_columns_of(part: Dataset, columns: Columns | None, source: str) -> Dataset:
    """The part with its features in the order of ``columns``, those of the part ``source``; None if that is no table.
    Raises DataError for different columns."""
    own = None if part.table is None else part.table.columns
    if own == columns:
        return part
    if own is None or columns is None:
        named, unnamed = (part.source, source) if columns is None else (source, part.source)
        raise DataError(f"{part.source}: the columns of {named} have names, and those of {unnamed} have none")
    require_names(own.names(), part.source, columns.names(), source)
    of_name = {column.name: column for column in own.features}
    for column in columns.features:
        if of_name.get(column.name) != column:
            raise DataError(
                f"{part.source}: column {column.name!r} does not hold what it holds in {source} (numbers, the same "
                "words, or dates that end on the same one): one machine learns the features of such parts, from all "
                "rows (apsvm convert)"
            )
    if own.label_words != columns.label_words:
        found, expected = (listed(words) or "numbers" for words in (own.label_words, columns.label_words))
        raise DataError(
            f"{part.source}: column {own.label!r}: expected the labels of {source}, {expected}, found {found}: words "
            "are the same in every part, in one order (--positive-label)"
        )
    assert part.table is not None
    place = {name: at for at, name in enumerate(own.feature_names())}
    X = part.X[:, [place[name] for name in columns.feature_names()]]
    if sp.issparse(X):
        X.sort_indices()
    else:
        X = np.ascontiguousarray(X)
    return replace(part, X=X, table=replace(part.table, columns=columns))


def joined(parts: Sequence[Dataset], source: str) -> Dataset:
    """The rows of all parts, one behind the other, without keys. Raises DataError for parts that do not fit, or without
    rows."""
    filled = [part for part in parts if part.X.shape[0]]
    if not filled:
        raise DataError(f"{source}: there are no rows")
    first = filled[0]
    columns = None if first.table is None else first.table.columns
    filled = [in_columns_of(part, columns, first.source) for part in filled]
    for what, values in (
        ("some have qid and some have none", {part.groups is None for part in filled}),
        ("some count features from 0 and some from 1 (--zero-based)", {part.zero_based for part in filled}),
    ):
        if len(values) > 1:
            raise DataError(f"{source}: of the parts, {what}")
    in_bags = next((part for part in filled if part.bags is not None), None)
    if in_bags is not None:
        raise DataError(f"{in_bags.source}: rows in bags are read from one file, and {source} is several")
    groups, queries = _queries(filled)
    width = max(part.X.shape[1] for part in filled)
    X = stacked([widened(part.X, width, part.source) for part in filled], width)
    if sp.issparse(X) and X.nnz == X.shape[0] * X.shape[1]:
        X = X.toarray()
    relevance, label_sets = one_or_several(*_labels(filled))
    digests = "".join(f"{part.fingerprint}\n" for part in parts)
    return Dataset(
        X=X,
        relevance=relevance,
        groups=groups,
        costs=_costs(filled),
        zero_based=first.zero_based,
        source=source,
        fingerprint=hashlib.sha256(digests.encode()).hexdigest(),
        unknown_features=sum(part.unknown_features for part in filled),
        label_sets=label_sets,
        table=None if first.table is None else replace(first.table, keys=None, lines=None, queries=queries),
    )


def _queries(parts: Sequence[Dataset]) -> tuple[AnyArray | None, tuple[str, ...]]:
    """The query of each row, and the names of the queries; () if they are integers in all parts."""
    groups = [part.groups for part in parts if part.groups is not None]
    if not groups:
        return None, ()
    if not any(part.table is not None and part.table.queries for part in parts):
        return np.concatenate(groups), ()
    numbers: dict[str, int] = {}
    renumbered = []
    for part, of_part in zip(parts, groups, strict=True):
        queries, number = np.unique(of_part, return_inverse=True)
        new = [numbers.setdefault(part.query_name(query), len(numbers)) for query in queries.tolist()]
        renumbered.append(np.array(new, dtype=np.int64)[number])
    return np.concatenate(renumbered), tuple(numbers)


def _labels(parts: Sequence[Dataset]) -> tuple[AnyArray, AnyArray]:
    """The labels of all rows, one after the other, and their number up to the end of each row."""
    labels, counts = [], []
    for part in parts:
        sets = part.label_sets
        labels.append(part.relevance if sets is None else sets.classes[sets.indices])
        counts.append(np.full(part.X.shape[0], 1) if sets is None else np.diff(sets.indptr))
    return np.concatenate(labels), np.cumsum(np.concatenate(counts))


def _costs(parts: Sequence[Dataset]) -> AnyArray | None:
    if all(part.costs is None for part in parts):
        return None
    return np.concatenate([np.ones(part.X.shape[0]) if part.costs is None else part.costs for part in parts])


def widened(X: Matrix, width: int, source: str) -> Matrix:
    """The rows with columns of zeros behind. Raises DataError for an array with fewer columns, unless it is a folder of
    ``apsvm convert``, whose text may lack the last features."""
    if X.shape[1] == width:
        return X
    if not sp.issparse(X):
        if os.path.isdir(source):
            return np.pad(X, ((0, 0), (0, width - X.shape[1])))
        raise DataError(f"{source}: it has {X.shape[1]} columns, other parts have {width}")
    return sp.padded(X, width)


def stacked(matrices: Sequence[Matrix], width: int) -> Matrix:
    """The rows of all matrices: dense if all with rows are dense, else CSR."""
    filled = [matrix for matrix in matrices if matrix.shape[0]]
    if not filled:
        return np.empty((0, width))
    if len(filled) == 1:
        return filled[0]
    if any(sp.issparse(matrix) for matrix in filled):
        return sp.csr_array(sp.vstack([sp.csr_array(matrix) for matrix in filled]))
    return np.concatenate(filled)
