"""Contents of a data file: rows, relevance, and the optional groups, bags, costs and table columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.naming import advice, option
from apsvm._support.shown import shortened
from apsvm._support.types import Matrix
from apsvm.models.columns import Columns, label_number

_MOST_LABELS_SHOWN = 8
#: More different labels than this are the values of another column if they are fractions or mostly unique.
_MOST_LABELS = 20
#: Values in a block, and distinct values beyond which ``distinct`` sorts.
_BLOCK, _FEW = 1 << 16, 16


class DataError(ValueError):
    """Bad content of a data file. The message starts with ``source:line:column: ``, or ``source: `` without a place."""


class NoRowsError(DataError):
    """An empty file or a table without rows, which may be a part of a data set."""


@contextmanager
def parsing(name: str, what: str) -> Iterator[None]:
    """Turns every exception of a library on a damaged file into a DataError. The block has calls of libraries only,
    since an error of this package is no error of the file."""
    try:
        yield
    except Exception as error:
        why = shortened(" ".join(str(error).split()))  # some messages have several lines
        raise DataError(f"{name}: not {what} that is read here ({type(error).__name__}: {why})") from None


@dataclass(frozen=True, slots=True, eq=False)
class LabelSets:
    """Rows with any number of labels, or none.

    Attributes
    ----------
    classes : ndarray
        (k,) float64, increasing: the labels. A label may belong to no row.
    indptr, indices : NDArray[int64]
        (n + 1,) int64 and (m,) int32: the labels of row i are classes[indices[indptr[i]:indptr[i + 1]]],
        increasing.
    """

    classes: NDArray[np.float64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]

    @classmethod
    def from_rows(cls, labels: NDArray[np.float64], ends: NDArray[np.int64]) -> LabelSets:
        """The sets of rows with the labels ``labels`` (m,) float64, row after row. ``ends`` (n,) int64: the number of
        labels up to the end of each row."""
        classes, indices = np.unique(labels, return_inverse=True)
        indptr = np.concatenate(([0], ends)).astype(np.int64, copy=False)
        row = np.repeat(np.arange(ends.size), np.diff(indptr))
        return cls(classes, indptr, indices[np.lexsort((indices, row))].astype(np.int32))

    def have(self, label: float) -> NDArray[np.bool_]:
        """Mask (n,) bool of the rows that have this label."""
        rows = np.zeros(self.indptr.size - 1, dtype=np.bool_)
        at = np.searchsorted(self.classes, label)
        if at < self.classes.size and self.classes[at] == label:
            places = np.flatnonzero(self.indices == at)
            rows[np.searchsorted(self.indptr, places, side="right") - 1] = True
        return rows

    def of(self, rows: NDArray[np.int64]) -> LabelSets:
        """The sets of the rows ``rows`` (m,) int64, in that order, with the same ``classes``."""
        counts = np.diff(self.indptr)[rows]
        indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int64, copy=False)
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], counts)
        return LabelSets(self.classes, indptr, self.indices[places])

    def matrix(self) -> NDArray[np.bool_]:
        """(n, k) bool: row i has the label classes[j]."""
        result = np.zeros((self.indptr.size - 1, self.classes.size), dtype=np.bool_)
        result[np.repeat(np.arange(result.shape[0]), np.diff(self.indptr)), self.indices] = True
        return result


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """Metadata of a table and its rows, besides features and labels.

    Attributes
    ----------
    columns : Columns
        The columns of the table, and their features.
    keys : NDArray[object_], optional
        (n,) str, the names of the rows, or None.
    lines : NDArray[int64], optional
        (n,) int64, the lines of the rows in the text, counted from 1; None if unknown.
    remarks : tuple[str, ...]
        Remarks on the reading, a sentence each.
    details : tuple[str, ...]
        Further remarks, printed by ``-v`` only.
    queries, bags : tuple[str, ...]
        Names of the numbers in ``Dataset.groups`` and ``Dataset.bags``; () where the numbers are the names.
    """

    columns: Columns
    keys: NDArray[np.object_] | None = None
    lines: NDArray[np.int64] | None = None
    remarks: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    bags: tuple[str, ...] = ()

    def of(self, rows: NDArray[np.int64]) -> TableRows:
        """Metadata of the rows ``rows`` (m,) int64, in that order."""
        keys = None if self.keys is None else self.keys[rows]
        return replace(self, keys=keys, lines=None if self.lines is None else self.lines[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """The rows of one file.

    Attributes
    ----------
    X : csr_array or ndarray
        (n, d) float64 or float32, C-ordered where dense. The indices of a sparse one are int32 where they fit, else
        int64; sorted, without duplicates; explicit zeros are kept. From a data folder or a matrix file the arrays are
        mapped into memory, read-only. Column j is the file's feature j + 1, or j if ``zero_based``.
    relevance : ndarray
        (n,) float64, the labels as in the file; 0 in every row if ``label_sets`` has them.
    groups : ndarray, optional
        (n,) int64, the query of each row; None if the file has no qid.
    costs : ndarray, optional
        (n,) float64, 1 for a row without a cost; None if no row has one.
    zero_based : bool
        True if features are counted from 0.
    source : str
        The name used in messages.
    fingerprint : str
        SHA-256 of the bytes of the file as it is stored, hexadecimal: what ``sha256sum FILE`` prints. A data folder
        has the fingerprint of the file it was made from.
    unknown_features : int
        Number of entries dropped because the model does not know their feature.
    label_sets : LabelSets, optional
        The labels where a row may have several or none; None if each row has one.
    bags : ndarray, optional
        (n,) int64, the number of each row's bag (``apsvm.data.bags``); None if the rows are in none.
    ignores_bags : bool
        True if rows are ranked singly although they have bags; folds still keep a bag together.
    pool : tuple[str, ...], optional
        The pools (``apsvm.data.pooling``), if each row is a pooled bag.
    instances : int, optional
        Number of rows in the pooled bags.
    deciding : ndarray, optional
        (n,) int64, the index of each row in its source, if it decides for its bag.
    stands_for : ndarray, optional
        (n,) int64, the number of the bag that each row stands for, pooled or deciding.
    table : TableRows, optional
        The table, if the columns have names.
    """

    X: Matrix
    relevance: NDArray[np.float64]
    groups: NDArray[np.int64] | None = None
    costs: NDArray[np.float64] | None = None
    zero_based: bool = False
    source: str = ""
    fingerprint: str = ""
    unknown_features: int = 0
    label_sets: LabelSets | None = None
    bags: NDArray[np.int64] | None = None
    ignores_bags: bool = False
    pool: tuple[str, ...] | None = None
    instances: int | None = None
    deciding: NDArray[np.int64] | None = None
    stands_for: NDArray[np.int64] | None = None
    table: TableRows | None = None

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def unit(self) -> str:
        """Unit that is ranked: "bags" if rows are in bags or each row stands for a bag, else "rows"."""
        in_bags = self.bags is not None and not self.ignores_bags
        return "bags" if in_bags or self.stands_for is not None else "rows"

    @property
    def n_values(self) -> int:
        """Number of values in X: the stored ones if X is sparse, all if it is dense."""
        return int(self.X.nnz if sp.issparse(self.X) else self.X.size)

    def select(self, rows: NDArray[np.int64]) -> Dataset:
        """The rows ``rows`` (m,) int64, in that order, copied."""
        return replace(
            self,
            X=self.X[rows],
            relevance=self.relevance[rows],
            groups=None if self.groups is None else self.groups[rows],
            costs=None if self.costs is None else self.costs[rows],
            label_sets=None if self.label_sets is None else self.label_sets.of(rows),
            bags=None if self.bags is None else self.bags[rows],
            stands_for=None if self.stands_for is None else self.stands_for[rows],
            table=None if self.table is None else self.table.of(rows),
        )

    def classes(self, of: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Distinct labels, float64, ascending; with the mask ``of`` (n,), those of its rows."""
        sets = self.label_sets
        if sets is None:
            return distinct(self.relevance, of)
        if of is None:
            return sets.classes
        return sets.classes[np.unique(sets.indices[np.repeat(of, np.diff(sets.indptr))])]

    def label_value(self, label: float | str) -> float:
        """The number of a label that the user wrote: a number, or a word of a table. Raises DataError."""
        try:
            return label_number(label, () if self.table is None else self.table.columns.label_words)
        except ValueError as error:
            raise DataError(f"{self.source}: {error}") from None

    def shown_label(self, label: float) -> str:
        """A label as it stands in the file."""
        words = () if self.table is None else self.table.columns.label_words
        return words[int(label)] if words else shown_label(label)

    def bag_name(self, bag: int) -> str:
        """The name of a bag in the file."""
        return self.table.bags[bag] if self.table is not None and self.table.bags else str(bag)

    def query_name(self, query: int) -> str:
        """The name of a query in the file."""
        return self.table.queries[query] if self.table is not None and self.table.queries else str(query)

    def have(self, label: float) -> NDArray[np.bool_]:
        """Mask (n,) bool of the rows that have this label."""
        return self.relevance == label if self.label_sets is None else self.label_sets.have(label)

    def positives(self, positive_label: float | None = None, relevant_from: float | None = None) -> NDArray[np.bool_]:
        """Mask (n,) bool of the positive rows: those with `positive_label`, or with a label of at least
        `relevant_from`. Without both, labels are +1 and -1, or +1 and 0. Rows of several labels need `positive_label`.

        Raises DataError if the labels do not fit, or if there are no positive or no negative rows.
        """
        if self.label_sets is not None and positive_label is None:
            raise DataError(
                f"{self.source}: its rows have several labels or none: choose by {option('positive_label')} or "
                f"{each_class()}"
            )
        if relevant_from is not None:
            return self.both_classes(self.ordered_labels() >= relevant_from)
        labels = self.classes()
        if positive_label is None:
            if not (np.isin(labels, (-1, 1)).all() or np.isin(labels, (0, 1)).all()):
                self.ordered_labels()
                self._refuse_values(labels)
                highest: float = labels[-1].item()
                highest = int(highest) if highest.is_integer() and abs(highest) < 1e9 else highest
                ways = [option("positive_label", highest), option("relevant_from", highest)]
                if (labels.size > 2 or self.groups is not None) and labels[0] >= 0.0:
                    ways.append(f"{option('loss', 'ndcg')} (grades)")
                raise DataError(
                    f"{self.source}: expected two labels, 1 and -1 or 0, found {self._listed(labels)}: "
                    f"{', '.join(ways)} or {each_class()}"
                )
            positive_label = 1.0
        elif not np.isin(positive_label, labels):
            raise DataError(
                f"{self.source}: no row has the positive label {self.shown_label(positive_label)}: found "
                f"{self._listed(labels)}"
            )
        return self.both_classes(self.have(positive_label))

    def ordered_labels(self) -> NDArray[np.float64]:
        """(n,) the labels, which have an order. Raises DataError for more than two different words."""
        if self.table is not None and len(self.table.columns.label_words) > 2:
            labels = self.classes()
            self._refuse_values(labels)
            raise DataError(
                f"{self.source}: the labels are the words {self._listed(labels)}: choose by "
                f"{option('positive_label')} or {each_class()} (grades are numbers, 0 the lowest)"
            )
        return self.relevance

    def _refuse_values(self, labels: NDArray[np.float64]) -> None:
        """Raises DataError if the labels are mostly unique, or fractions, as amounts are."""
        are_words = self.table is not None and bool(self.table.columns.label_words)
        are_fractions = not are_words and bool((labels != np.floor(labels)).any())
        if labels.size <= _MOST_LABELS or not (are_fractions or 2 * labels.size > len(self)):
            return
        some = ", ".join(map(self.shown_label, labels[:3]))
        which = "are these the labels?"
        if self.table is not None:
            which = f"is {self.table.columns.label!r} the label?{advice(' (--label-column names another)')}"
        raise DataError(f"{self.source}: {labels.size:,} different labels, {some} …: {which}")

    def _listed(self, labels: NDArray[np.float64]) -> str:
        text = ", ".join(self.shown_label(label) for label in labels[:_MOST_LABELS_SHOWN])
        return f"{text}, ... ({labels.size} in all)" if labels.size > _MOST_LABELS_SHOWN else text

    def both_classes(self, positive: NDArray[np.bool_]) -> NDArray[np.bool_]:
        n_positive = int(np.count_nonzero(positive))
        n_negative = positive.size - n_positive
        if n_positive == 0 or n_negative == 0:
            missing = "positive" if n_positive == 0 else "negative"
            if self.table is not None and len(self.table.columns.label_words) == 1:
                label = self.table.columns.label_words[0]
                raise DataError(f"{self.source}: all rows have the label {label!r}; a ranking needs another one too")
            raise DataError(
                f"{self.source}: there are no {missing} rows ({n_positive} positive, {n_negative} negative); "
                f"a ranking needs both{self._hint_at_likes()}"
            )
        return positive

    def _hint_at_likes(self) -> str:
        """Advice for data that look like item lists of users: sparse whole numbers above 0 and one label."""
        X = self.X
        if self.label_sets is not None or not sp.issparse(X) or X.nnz == 0 or np.ptp(self.relevance) > 0.0:
            return ""
        if not (X.data > 0.0).all() or (X.data != np.floor(X.data)).any():
            return ""
        return (
            ". If each row is the list of what a user likes, --loss warp --rows-as-users (rows_as_users=) learns from "
            "such rows"
        )


def each_class() -> str:
    """The way to train a ranker for each class, as the user writes it. It names the command: cv has no such option."""
    return advice("apsvm train --one-vs-rest", option("one_vs_rest"))


def several_queries(groups: NDArray[np.int64] | None) -> TypeGuard[NDArray[np.int64]]:
    """True if the rows, of the queries ``groups`` (n,), are more than one list."""
    return groups is not None and bool((groups != groups[:1]).any())


def distinct(values: NDArray[np.float64], of: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """``np.unique`` of ``values`` (n,), or of the values in the mask ``of``; a few distinct values need no sort."""
    numbers: list[float] = []
    for start in range(0, values.size, _BLOCK):
        block = values[start : start + _BLOCK]
        rest = block if of is None else block[of[start : start + _BLOCK]]
        for value in numbers:
            rest = rest[rest != value]
        while rest.size:
            numbers.append(rest[0])
            if len(numbers) > _FEW:
                return np.unique(values if of is None else values[of])
            rest = rest[rest != rest[0]]
    return np.sort(np.array(numbers, dtype=values.dtype))


def one_or_several(
    labels: NDArray[np.float64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.float64], LabelSets | None]:
    """``relevance`` and ``label_sets`` of rows with these labels (``LabelSets.from_rows``)."""
    if labels.size == ends.size and (ends == np.arange(1, ends.size + 1)).all():
        return labels, None
    return np.zeros(ends.size), LabelSets.from_rows(labels, ends)


def shown_label(label: float) -> str:
    """The shortest text of `label`: 1 for 1.0, 0 for -0."""
    return repr(float(label) + 0.0).removesuffix(".0")
