"""Bags: rows (instances) that belong together, of which only the bag has a label: an image's windows, a recording's
segments, an account's payments.

A file says of each row which bag it is in, by a number. Rows of a bag share label, query and cost, need not stand
together, and are never parted: ``Bags`` is their order bag by bag, O(n) where they stand together already, else
O(n log n).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm._support.shown import printable
from apsvm.data.dataset import DataError, Dataset, LabelSets, shown_label

#: How a bag comes by its label: its rows share it; it is the highest of theirs (all of them where rows have several);
#: or a bag whose rows have different ones is known row by row, and each of these is a bag of its own; or labels are not
#: used, and rows keep their own.
BAG_LABELS = ("same", "any", "rows", "own")

#: What to do where rows of a bag have different labels.
_WAY_OUT = (
    "; --bag-label any gives a bag the highest label of its rows, rows makes each of them a bag, --bags ignore leaves "
    "bags out of account"
)
#: How a file says them, in messages.
HOW_SAID = "bag:INT in text, --bag-column of a table, or --bags FILE"

Integers: TypeAlias = NDArray[np.int64]
T = TypeVar("T", np.bool_, np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Bags:
    """n rows by bag.

    Attributes
    ----------
    ids : Integers
        (n_bags,) int64, in the order of each bag's first row.
    offsets : Integers
        (n_bags + 1,) int64, from 0 to n: where each bag begins among the rows in ``order``.
    order : Integers, optional
        (n,) int64, the rows bag by bag, those of a bag as they stood; None where all stand so already.
    labels : ndarray
        (n_bags,) float64, of each bag's first row.
    qid : Integers, optional
        (n_bags,) int64, likewise; None without queries.
    """

    ids: Integers
    offsets: Integers
    order: Integers | None
    labels: NDArray[np.float64]
    qid: Integers | None

    @classmethod
    def of_rows(cls, ids: Integers, labels: NDArray[np.float64], qid: Integers | None = None) -> Bags:
        """For rows with these bags ``ids`` (n,) int64, labels (n,) float64 and queries (n,) int64 or None; n > 0."""
        n = ids.size
        starts = np.concatenate(([0], np.flatnonzero(ids[1:] != ids[:-1]) + 1)).astype(np.int64, copy=False)
        distinct, first_run, bag_of_run = np.unique(ids[starts], return_index=True, return_inverse=True)
        order: Integers | None = None
        if distinct.size == starts.size:
            first, offsets = starts, np.append(starts, n)
        else:
            by_appearance = np.argsort(first_run)
            number = np.empty(distinct.size, dtype=np.int64)
            number[by_appearance] = np.arange(distinct.size)
            bag = np.repeat(number[bag_of_run], np.diff(starts, append=n))
            order = np.argsort(bag, kind="stable")
            first = starts[first_run[by_appearance]]
            offsets = np.concatenate(([0], np.cumsum(np.bincount(bag)))).astype(np.int64, copy=False)
        return cls(ids[first], offsets, order, labels[first], None if qid is None else qid[first])

    @property
    def n_bags(self) -> int:
        return self.ids.size

    def best(self, values: NDArray[T]) -> NDArray[T]:
        """The highest of ``values`` (n,), of the rows as they stand in the file, in each bag : (n_bags,); of (n, k)
        values column by column."""
        result: NDArray[T] = np.maximum.reduceat(
            values if self.order is None else values[self.order], self.offsets[:-1]
        )
        return result

    @property
    def first(self) -> Integers:
        """The first row of each bag : (n_bags,) int64."""
        starts = self.offsets[:-1]
        return starts if self.order is None else self.order[starts]

    @property
    def bag_of_row(self) -> Integers:
        """The number of each row's bag, from 0 : (n,) int64, for the rows as they stand in the file."""
        bag = np.repeat(np.arange(self.n_bags), np.diff(self.offsets))
        if self.order is None:
            return bag
        result = np.empty_like(bag)
        result[self.order] = bag
        return result


def deciding_rows(bags: Bags, scores: NDArray[np.float64]) -> Integers:
    """(n_bags,) int64: the row of each bag with the highest of the ``scores`` (n,), of equal ones the first; rows are
    counted as they stand in the file."""
    order, best = bags.order, np.empty(bags.n_bags, dtype=np.int64)
    in_order = np.ascontiguousarray(scores if order is None else scores[order])
    _kernels.best_of_bags(in_order, bags.offsets, best, 1)
    return best if order is None else order[best]


def bags_of(dataset: Dataset) -> Bags | None:
    """Bags of the rows; None without bags, or if they are ignored."""
    if dataset.bags is None or dataset.ignores_bags:
        return None
    return Bags.of_rows(dataset.bags, dataset.relevance, dataset.groups)


def rows_of_bags(dataset: Dataset, which: Integers) -> Integers:
    """The rows, ascending, of the bags ``which`` (m,) int64, numbered as ``Bags`` does; without bags, of the rows."""
    bags = bags_of(dataset)
    if bags is None:
        return which
    chosen = np.zeros(bags.n_bags, dtype=np.bool_)
    chosen[which] = True
    return np.flatnonzero(chosen[bags.bag_of_row])


def rows_of_runs(offsets: Integers, which: Integers) -> tuple[Integers, Integers]:
    """The rows of the runs ``which`` (k,) int64 of rows that begin at ``offsets`` (runs + 1,), one run after the other,
    and the (k + 1,) boundaries of these."""
    sizes = np.diff(offsets)[which]
    ends = np.cumsum(sizes)
    rows = np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(offsets[which] - (ends - sizes), sizes)
    return rows, np.concatenate([[0], ends])


def with_bags(
    dataset: Dataset, ids: Integers | None, rule: str, lines: Integers | None = None, source: str = ""
) -> Dataset:
    """The data set with the bags ``ids`` (n,) int64, each of one label, query and cost.

    Parameters
    ----------
    rule : str
        One of ``BAG_LABELS``.
    lines : Integers, optional
        (n,) int64, the line of each row where its bag is said; by default rows are counted.
    source : str
        The file that says them, if it is another one than that of the rows.

    Raises
    ------
    DataError
        Two rows of a bag are at odds; the message names both.
    """
    if rule not in BAG_LABELS:
        raise ValueError(f"expected a rule for the labels of bags of {', '.join(BAG_LABELS)}, found {rule!r}")
    if ids is None or rule == "own":
        return replace(dataset, bags=ids)
    if rule == "rows":
        dataset, ids = _parted(dataset, ids)
    bags = Bags.of_rows(ids, dataset.relevance, dataset.groups)
    bag = bags.bag_of_row
    first = bags.first[bag]
    dataset = replace(dataset, bags=ids)
    compared: list[tuple[NDArray[np.bool_], Callable[[int], str], str]] = []
    if (groups := dataset.groups) is not None:
        compared.append((groups != groups[first], lambda row: f"qid {dataset.query_name(int(groups[row]))}", ""))
    if (costs := dataset.costs) is not None:
        compared.append((costs != costs[first], lambda row: f"cost {costs[row]:g}", ""))
    if rule in ("same", "rows"):
        compared.append((_labels_differ(dataset, first), lambda row: _labels_of(dataset, row), _WAY_OUT))
    for differs, value, way_out in compared:
        if differs.any():
            row, other = int(differs.argmax()), int(first[differs.argmax()])
            unit, at = ("row", np.arange(1, ids.size + 1)) if lines is None else ("line", lines)
            place = f"{source or dataset.source}{': row ' if lines is None else ':'}{at[row]}"
            name = printable(dataset.bag_name(int(ids[row])))
            raise DataError(
                f"{place}: bag {name} has {value(row)} here and {value(other)} in {unit} {at[other]}{way_out}"
            )
    if rule in ("same", "rows"):
        return dataset
    if dataset.label_sets is not None:
        return replace(dataset, label_sets=_united(dataset.label_sets, bags, bag))
    return replace(dataset, relevance=bags.best(dataset.relevance)[bag])


def _parted(dataset: Dataset, ids: Integers) -> tuple[Dataset, Integers]:
    """The bags with each row of those whose rows have different labels as a bag of its own, of a new number; where bags
    have names it keeps that of the old one."""
    bags = Bags.of_rows(ids, dataset.relevance)
    bag = bags.bag_of_row
    differs = _labels_differ(dataset, bags.first[bag])
    mixed = np.zeros(bags.n_bags, dtype=np.bool_)
    mixed[bag[differs]] = True
    alone = np.flatnonzero(mixed[bag])
    result = ids.copy()
    table = dataset.table
    if table is not None and table.bags:
        result[alone] = np.arange(len(table.bags), len(table.bags) + alone.size)
        names = (*table.bags, *(table.bags[bag] for bag in ids[alone].tolist()))
        return replace(dataset, table=replace(table, bags=names)), result
    result[alone] = np.setdiff1d(np.arange(ids.size + alone.size), ids)[: alone.size]
    return dataset, result


def _labels_of(dataset: Dataset, row: int) -> str:
    sets = dataset.label_sets
    if sets is None:
        return f"label {dataset.shown_label(dataset.relevance[row])}"
    labels = sets.classes[sets.indices[sets.indptr[row] : sets.indptr[row + 1]]].tolist()
    return f"labels {','.join(map(shown_label, labels))}" if labels else "no label"


def _labels_differ(dataset: Dataset, first: Integers) -> NDArray[np.bool_]:
    """Mask (n,) of the rows whose labels differ from those of the rows ``first`` (n,) int64."""
    sets = dataset.label_sets
    values = dataset.relevance if sets is None else np.diff(sets.indptr)
    differs: NDArray[np.bool_] = values != values[first]
    if sets is None:
        return differs
    counts = np.diff(sets.indptr)
    rows = np.flatnonzero(~differs)
    unequal = sets.of(rows).indices != sets.of(first[rows]).indices
    differs[np.repeat(rows, counts[rows])[unequal]] = True
    return differs


def _united(sets: LabelSets, bags: Bags, bag: Integers) -> LabelSets:
    """Every row with all labels of its bag."""
    k = max(sets.classes.size, 1)
    of_label = np.repeat(bag, np.diff(sets.indptr))
    both = np.unique(of_label * k + sets.indices)
    ends = np.searchsorted(both, np.arange(bags.n_bags + 1) * k)
    return LabelSets(sets.classes, ends.astype(np.int64, copy=False), (both % k).astype(np.int32)).of(bag)
