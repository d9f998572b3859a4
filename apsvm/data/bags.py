"""Bags: groups of rows (instances) with one label, such as the windows of an image, the segments of a recording, the
payments of an account.

A file gives each row the number of its bag. The rows of a bag share label, query and cost, and stay together in every
selection. They may stand anywhere in the file. ``Bags`` holds their order: O(n) if they stand together, otherwise
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

#: Rules for the label of a bag. same: its rows share it. any: the highest of its rows, or all of them where rows have
#: several. own: rows keep their labels.
BAG_LABELS = ("same", "any", "own")

#: Advice where the rows of a bag have different labels.
_WAY_OUT = "; --bag-label any gives a bag the highest label of its rows, --bags ignore trains on single rows"
#: Sources of bags, in messages.
HOW_SAID = "bag:INT in text, --bag-column of a table, or --bags FILE"

Integers: TypeAlias = NDArray[np.int64]
T = TypeVar("T", np.bool_, np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Bags:
    """The order of n rows, bag by bag.

    Attributes
    ----------
    ids : Integers
        (n_bags,) int64, in the order of each bag's first row.
    offsets : Integers
        (n_bags + 1,) int64, from 0 to n: the begin of each bag in ``order``.
    order : Integers, optional
        (n,) int64, the rows bag by bag, within a bag in the order of the file; None if the file has this order.
    labels : ndarray
        (n_bags,) float64, the label of each bag's first row.
    qid : Integers, optional
        (n_bags,) int64, the query of each bag's first row; None without queries.
    """

    ids: Integers
    offsets: Integers
    order: Integers | None
    labels: NDArray[np.float64]
    qid: Integers | None

    @classmethod
    def of_rows(cls, ids: Integers, labels: NDArray[np.float64], qid: Integers | None = None) -> Bags:
        """The order of n > 0 rows with the bags ``ids`` (n,) int64, labels (n,) float64, and queries (n,) int64 or
        None."""
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
        """(n_bags,) the highest in each bag of ``values`` (n,), in the order of the file; of (n, k) values, by
        column."""
        result: NDArray[T] = np.maximum.reduceat(
            values if self.order is None else values[self.order], self.offsets[:-1]
        )
        return result

    @property
    def first(self) -> Integers:
        """(n_bags,) int64, the first row of each bag."""
        starts = self.offsets[:-1]
        return starts if self.order is None else self.order[starts]

    @property
    def bag_of_row(self) -> Integers:
        """(n,) int64, the index of each row's bag, in the order of the file."""
        bag = np.repeat(np.arange(self.n_bags), np.diff(self.offsets))
        if self.order is None:
            return bag
        result = np.empty_like(bag)
        result[self.order] = bag
        return result


def deciding_rows(bags: Bags, scores: NDArray[np.float64]) -> Integers:
    """(n_bags,) int64: the row of each bag with the highest of the ``scores`` (n,), of equal ones the first, in the
    order of the file."""
    order, best = bags.order, np.empty(bags.n_bags, dtype=np.int64)
    in_order = np.ascontiguousarray(scores if order is None else scores[order])
    _kernels.best_of_bags(in_order, bags.offsets, best, 1)
    return best if order is None else order[best]


def bags_of(dataset: Dataset) -> Bags | None:
    """The bags of the rows; None if there are none or they are ignored."""
    if dataset.bags is None or dataset.ignores_bags:
        return None
    return Bags.of_rows(dataset.bags, dataset.relevance, dataset.groups)


def rows_of_bags(dataset: Dataset, which: Integers) -> Integers:
    """The rows of the bags ``which`` (m,) int64, indices in ``Bags``, ascending; ``which`` itself without bags."""
    bags = bags_of(dataset)
    if bags is None:
        return which
    chosen = np.zeros(bags.n_bags, dtype=np.bool_)
    chosen[which] = True
    return np.flatnonzero(chosen[bags.bag_of_row])


def rows_of_runs(offsets: Integers, which: Integers) -> tuple[Integers, Integers]:
    """The rows of the runs ``which`` (k,) int64, one after the other, and their boundaries (k + 1,). Run i has the rows
    from offsets[i] to offsets[i + 1]."""
    sizes = np.diff(offsets)[which]
    ends = np.cumsum(sizes)
    rows = np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(offsets[which] - (ends - sizes), sizes)
    return rows, np.concatenate([[0], ends])


def with_bags(
    dataset: Dataset, ids: Integers | None, rule: str, lines: Integers | None = None, source: str = ""
) -> Dataset:
    """The data set with the bags ``ids`` (n,) int64, each with one label, query and cost.

    Parameters
    ----------
    rule : str
        One of ``BAG_LABELS``.
    lines : Integers, optional
        (n,) int64, the line of each row, for messages; by default they count rows.
    source : str
        The file with the bags, if it is not the file of the rows.

    Raises
    ------
    DataError
        Two rows of a bag differ; the message names both.
    """
    if rule not in BAG_LABELS:
        raise ValueError(f"expected a rule for the labels of bags of {', '.join(BAG_LABELS)}, found {rule!r}")
    if ids is None or rule == "own":
        return replace(dataset, bags=ids)
    bags = Bags.of_rows(ids, dataset.relevance, dataset.groups)
    bag = bags.bag_of_row
    first = bags.first[bag]
    dataset = replace(dataset, bags=ids)
    compared: list[tuple[NDArray[np.bool_], Callable[[int], str], str]] = []
    if (groups := dataset.groups) is not None:
        compared.append((groups != groups[first], lambda row: f"qid {dataset.query_name(int(groups[row]))}", ""))
    if (costs := dataset.costs) is not None:
        compared.append((costs != costs[first], lambda row: f"cost {costs[row]:g}", ""))
    if rule == "same":
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
    if rule == "same":
        return dataset
    if dataset.label_sets is not None:
        return replace(dataset, label_sets=_united(dataset.label_sets, bags, bag))
    return replace(dataset, relevance=bags.best(dataset.relevance)[bag])


def _labels_of(dataset: Dataset, row: int) -> str:
    sets = dataset.label_sets
    if sets is None:
        return f"label {dataset.shown_label(dataset.relevance[row])}"
    labels = sets.classes[sets.indices[sets.indptr[row] : sets.indptr[row + 1]]].tolist()
    return f"labels {','.join(map(shown_label, labels))}" if labels else "no label"


def _labels_differ(dataset: Dataset, first: Integers) -> NDArray[np.bool_]:
    """Mask (n,) of the rows whose labels differ from the labels of the rows ``first`` (n,) int64."""
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
    """The sets in which every row has all labels of its bag."""
    k = max(sets.classes.size, 1)
    of_label = np.repeat(bag, np.diff(sets.indptr))
    both = np.unique(of_label * k + sets.indices)
    ends = np.searchsorted(both, np.arange(bags.n_bags + 1) * k)
    return LabelSets(sets.classes, ends.astype(np.int64, copy=False), (both % k).astype(np.int32)).of(bag)
