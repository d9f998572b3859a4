"""The rows of a shard, joined from its parts, and the score vectors over them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm.dask.sources import Source, on_worker
from apsvm.data.dataset import DataError, Dataset
from apsvm.data.features.mapped import MappedMatrix
from apsvm.data.features.scaling import NO_SCALING, Scaling
from apsvm.data.joining import in_columns_of, stacked, widened
from apsvm.data.labels import Target
from apsvm.data.moments import Moments, largest_magnitudes
from apsvm.data.rows import Rows
from apsvm.models.columns import Columns

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray, Matrix
    from apsvm.dask.messages import Programme, Reply
    from apsvm.data.features.base import FeatureMap

#: Labels that a shard tells apart at most: a target that is a measurement has one a row.
MOST_LABELS = 100_000
#: Entries of a vector that are worked at while they are in the cache.
BLOCK = 1 << 15


class About(NamedTuple):
    """What a shard says of its rows.

    Attributes
    ----------
    rows, features, n_values : int
    labels, label_counts : the distinct labels, ascending, and how many rows have each
    has_qid : bool, of its rows; None where it has no rows
    zero_based : whether features count from 0 in its rows; None where it has none
    fingerprints : SHA-256 of each part, in order
    unknown_features : int
    first : the part of its first rows
    columns : of that, if it is a table
    remarks : on how its tables were read
    """

    rows: int
    features: int
    n_values: int
    labels: NDArray[np.float64]
    label_counts: NDArray[np.int64]
    has_qid: bool | None
    zero_based: bool | None
    fingerprints: tuple[str, ...]
    unknown_features: int
    first: str
    columns: Columns | None
    remarks: tuple[str, ...]


class ShardRows:
    """What all shards can do. Nothing is read before ``read``.

    Parameters
    ----------
    sources : its parts, in order
    threads : of the kernels
    worker : what messages call this worker
    """

    def __init__(self, sources: Sequence[Source], threads: int, worker: str) -> None:
        self._threads = threads
        self._worker = worker
        self._sources = list(sources)
        self._parts: list[Dataset] = []
        self._vectors: dict[int, NDArray[np.float64]] = {}
        self._feature_map: FeatureMap | None = None

    def call(self, programme: Programme, method: str, *arguments: object) -> tuple[Reply, float]:
        """What ``method`` returns, once the operations of the programme are done, and the seconds that took."""
        began = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore"):
            for operation, *operands in programme:
                getattr(self, f"do_{operation}")(*operands)
            result = getattr(self, method)(*arguments)
        return result, time.perf_counter() - began

    def ping(self) -> None:
        """It is there."""

    def read(self) -> None:
        """Reads its parts. Raises DataError and OSError, which name the part, perhaps the line, and the worker."""
        self._parts = [self._part(source) for source in self._sources]

    def _part(self, source: Source) -> Dataset:
        with on_worker(self._worker, source.name):
            part = source.read(self._threads)
            if part.label_sets is not None:
                raise DataError(f"{source.name}: rows of several labels are not trained on a cluster")
            if part.bags is not None:
                raise DataError(f"{source.name}: rows in bags are not trained on a cluster; --bags ignore")
        return part

    # What the rows are.

    def about(self) -> About:
        filled = [part for part in self._parts if part.X.shape[0]]
        labels, counts = np.unique(self._joined([part.relevance for part in self._parts]), return_counts=True)
        if labels.size > MOST_LABELS:
            raise DataError(
                f"{self._parts[0].source}: its part of the rows has {labels.size:,} different labels, "
                f"{MOST_LABELS:,} at most are told apart on a cluster: make classes or grades of them first"
            )
        lacking = [part for part in filled if part.groups is None]
        if 0 < len(lacking) < len(filled):
            raise DataError(f"{lacking[0].source}: it has no qid, and other parts have")
        bases = {part.zero_based for part in filled}
        if len(bases) > 1:
            raise DataError(f"{self._parts[0].source}: of the parts, some count features from 0 and some from 1")
        return About(
            rows=sum(part.X.shape[0] for part in self._parts),
            features=max((part.X.shape[1] for part in self._parts), default=0),
            n_values=sum(part.n_values for part in self._parts),
            labels=labels,
            label_counts=counts,
            has_qid=any(part.groups is not None for part in filled) if filled else None,
            zero_based=bases.pop() if bases else None,
            fingerprints=tuple(part.fingerprint for part in self._parts),
            unknown_features=sum(part.unknown_features for part in self._parts),
            first=filled[0].source if filled else "",
            columns=filled[0].table.columns if filled and filled[0].table is not None else None,
            remarks=tuple(line for part in filled if part.table is not None for line in part.table.remarks),
        )

    def queries(self) -> NDArray[np.int64]:
        """The ids of its queries, ascending."""
        return np.unique(self._joined([part.groups for part in self._parts if part.groups is not None], np.int64))

    def bytes_of_queries(self, ids: NDArray[np.int64]) -> int:
        """About how many bytes their rows take."""
        return sum(
            int(np.isin(part.groups, ids).sum()) * (24 + 12 * part.n_values // max(part.X.shape[0], 1))
            for part in self._parts
            if part.groups is not None
        )

    def rows_of_queries(self, ids: NDArray[np.int64]) -> list[Dataset]:
        """The rows of each of the queries, perhaps of several parts one behind the other; as they were read."""
        found = [
            part.select(np.flatnonzero(part.groups == query))
            for query in ids.tolist()
            for part in self._parts
            if part.groups is not None and (part.groups == query).any()
        ]
        return [replace(rows, X=rows.X if sp.issparse(rows.X) else np.array(rows.X)) for rows in found]

    def exchange_queries(self, leaving: NDArray[np.int64], arriving: Sequence[Dataset]) -> None:
        """Lets the rows of some queries go, and takes in those of others, behind its own."""
        for number, part in enumerate(self._parts):
            if part.groups is not None and (leaves := np.isin(part.groups, leaving)).any():
                self._parts[number] = part.select(np.flatnonzero(~leaves))
        self._parts += arriving

    def join_parts(self, width: int, columns: Columns | None, first: str) -> None:
        """One matrix of all parts, ``width`` columns wide, which are those of the part ``first``; the parts are let go.
        A second time, after another shard was lost, there is nothing to do.

        Raises
        ------
        DataError : a part has other columns
        """
        if not self._parts:
            return
        filled = [in_columns_of(part, columns, first) for part in self._parts if part.X.shape[0]]
        self._X = stacked([widened(part.X, width, part.source) for part in filled], width)
        self._labels = self._joined([part.relevance for part in self._parts])
        groups = [part.groups for part in self._parts if part.groups is not None and part.groups.size]
        self._groups = self._joined(groups, np.int64) if groups else None
        costs = [np.ones(part.X.shape[0]) if part.costs is None else part.costs for part in self._parts]
        self._costs = self._joined(costs) if any(part.costs is not None for part in self._parts) else None
        self._parts = []

    def _joined(self, columns: Sequence[AnyArray], dtype: type[np.generic] = np.float64) -> AnyArray:
        return np.concatenate([np.empty(0, dtype=dtype), *columns]).astype(dtype, copy=False)

    def queries_joined(self) -> NDArray[np.int64]:
        """The ids of its queries, at most two of them, once the parts are joined."""
        return np.empty(0, dtype=np.int64) if self._groups is None else np.unique(self._groups)[:2]

    def total_cost(self) -> float:
        """Of its rows."""
        return 0.0 if self._costs is None else float(self._costs.sum())

    def scale_costs(self, factor: float) -> None:
        """So that those of all rows have the mean that one machine gives them."""
        self._costs = None if self._costs is None else self._costs * factor

    def weights_of_queries(self) -> dict[int, float]:
        """The cost that all rows of a query have, by query. Raises DataError where they differ."""
        if self._groups is None or self._costs is None:
            return {}
        queries, first, number = np.unique(self._groups, return_index=True, return_inverse=True)
        weights = self._costs[first]
        differs = np.flatnonzero(self._costs != weights[number])
        if differs.size:
            row = int(differs[0])
            raise DataError(
                "with qid, sample_weight is the weight of the row's query and must be the same for all its rows: found "
                f"{weights[number[row]]:g} and {self._costs[row]:g} in query {self._groups[row]}"
            )
        return dict(zip(queries.tolist(), weights.tolist(), strict=True))

    def labels_of_rows(self) -> NDArray[np.float64]:
        """(n,)"""
        return self._labels

    def rows_as_read(self, which: NDArray[np.int64]) -> Matrix:
        """Some of its rows (k,), neither mapped nor scaled."""
        return self._X[which]

    def map_features(self, feature_map: FeatureMap) -> None:
        """From now on rows are mapped before they are scaled."""
        self._feature_map = feature_map

    def largest(self) -> NDArray[np.float64]:
        """(d,) max |x_ij| of each column that is scaled."""
        return largest_magnitudes(self._X if self._feature_map is None else MappedMatrix(self._X, self._feature_map))

    def scale_rows(self, scaling: Scaling = NO_SCALING, bias: float | None = None) -> None:
        """The rows as w sees them."""
        rows = Rows(self._X, bias=bias, threads=self._threads, feature_map=self._feature_map, scaling=scaling)
        self._all_rows = rows.for_many_passes()
        self._rows = self._all_rows

    def moments(self, within_queries: bool = False) -> tuple[int, Moments]:
        """Of the rows as w sees them, and how many they are."""
        n, d = len(self._all_rows), self._all_rows.features
        if n == 0:
            return 0, Moments(np.zeros(d), np.zeros(d))
        return n, self._all_rows.moments(self._groups if within_queries else None)

    def understand(self, labels: NDArray[np.float64], target: Target) -> tuple[int, int]:
        """The labels (k,) ascending mean what ``target`` says of k rows that have them; the shard's numbers of relevant
        rows and others."""
        which = np.searchsorted(labels, self._labels)
        self._target = target.of(which)
        n_pos = int(self._target.relevant.sum())
        return n_pos, self._labels.size - n_pos

    def extremes(self, w: NDArray[np.float64]) -> tuple[float, float]:
        """The lowest and the highest score of its rows."""
        scores = self._rows.scores(w)
        return float(scores.min(initial=np.inf)), float(scores.max(initial=-np.inf))

    def _order(self, order: NDArray[np.int64]) -> None:
        """The rows that count, positives first where there are classes."""
        self._rows, self._order_of_rows = self._all_rows.select(order), order
        self._vectors.clear()

    # Score vectors.

    def _vector(self, number: int) -> NDArray[np.float64]:
        present = self._vectors.get(number)
        if present is None:
            present = self._vectors[number] = np.zeros(len(self._rows))
        return present

    def do_forget(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._vectors.pop(number, None)

    def do_scores(self, w: NDArray[np.float64], out: int) -> None:
        self._rows.scores(w, self._vector(out))

    def do_add(self, x: int, t: float, y: int, out: int) -> None:
        """``out`` may be any of the operands."""
        one, other, to = self._vector(x), self._vector(y), self._vector(out)
        for start in range(0, to.size, BLOCK):  # so that t·y is never a whole vector
            block = slice(start, start + BLOCK)
            np.add(one[block], t * other[block], out=to[block])

    def do_subtract(self, x: int, y: int, out: int) -> None:
        np.subtract(self._vector(x), self._vector(y), out=self._vector(out))

    def do_scale(self, t: float, x: int, out: int) -> None:
        np.multiply(self._vector(x), t, out=self._vector(out))

    def do_absolute(self, x: int, out: int) -> None:
        np.abs(self._vector(x), out=self._vector(out))

    def dot(self, x: int, y: int) -> float:
        return product(self._vector(x), self._vector(y))

    def combine(self, slopes: int) -> NDArray[np.float64]:
        """Xᵀc : (dimension,) float64."""
        return self._rows.combine(self._vector(slopes))


def product(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """x·y, the same to the last bit whatever the number of BLAS threads."""
    return float(np.einsum("i,i->", x, y))
