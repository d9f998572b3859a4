"""Rows in parts on the workers, as a ``RowOperator``. The driver holds weights, scores and slopes, 8 bytes a row each.

    scores   each worker sends X·w of its parts          combine   each gets the slopes of its rows and sends Xᵀc

Only the driver knows a selection of rows: it reorders scores and slopes. Scores equal those of one machine to the last
bit; sums over several parts differ by rounding.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support.machine import memory
from apsvm._support.types import Column, Matrix
from apsvm.dask.cluster import Cluster, Parts
from apsvm.data.features.base import SHARE_OF_MEMORY
from apsvm.data.features.mapped import DENSE_IF, MappedMatrix
from apsvm.data.features.scaling import NO_SCALING, Scaling
from apsvm.data.joining import stacked
from apsvm.data.moments import Moments, largest_magnitudes
from apsvm.data.rows import Rows

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray, RowNumbers
    from apsvm.data.features.base import FeatureMap
    from apsvm.models.base import Model
    from apsvm.models.columns import Columns

#: Relative difference of the parts' means up to which a column counts as constant.
SAME_MEAN = 1e-10


class How(NamedTuple):
    """Settings of ``Rows`` on workers; ``share``: fraction of a machine's memory for the mapped rows of a part."""

    bias: float | None = None
    threads: int = 1
    feature_map: FeatureMap | None = None
    scaling: Scaling = NO_SCALING
    share: float = SHARE_OF_MEMORY


# On the workers.


class PartOfRows:
    """The rows of one part, as the weights see them."""

    def __init__(self, X: Matrix, how: How) -> None:
        self.X, self.how = X, how

    def __reduce__(self) -> tuple[Any, ...]:
        return PartOfRows, (self.X, self.how)

    def __sizeof__(self) -> int:
        """Bytes besides the matrix, which dask counts itself."""
        return object.__sizeof__(self) + (0 if self.how.feature_map is None else 8 * self.rows.n_values)

    @cached_property
    def rows(self) -> Rows:
        how = self.how
        rows = Rows(self.X, bias=how.bias, threads=how.threads, feature_map=how.feature_map, scaling=how.scaling)
        return rows.with_memory(how.share * memory()).for_many_passes()


def _scores(part: PartOfRows, W: NDArray[np.float64]) -> NDArray[np.float64]:
    return part.rows.scores_of_all(W)


def _combined(part: PartOfRows, C: NDArray[np.float64]) -> NDArray[np.float64]:
    return part.rows.combine_all(C)


class _PartOfMoments(NamedTuple):
    """Moments of n rows; for the k queries cut across parts, numbers of rows (k,) and mean features (k, d) here."""

    n: int
    moments: Moments
    counts: NDArray[np.int64]
    means: NDArray[np.float64]


def _moments(
    part: PartOfRows, which: NDArray[np.int64] | None, groups: NDArray[np.int64] | None, cut: NDArray[np.int64]
) -> _PartOfMoments:
    rows = part.rows if which is None else part.rows.select(which)
    moments, d = rows.moments(groups), rows.features
    counts, means = np.zeros(cut.size, dtype=np.int64), np.zeros((cut.size, d))
    for at, query in enumerate(cut.tolist()):
        members = np.flatnonzero(groups == query)
        counts[at] = members.size
        if members.size:
            means[at] = rows.select(members).moments().mean
    return _PartOfMoments(len(rows), moments, counts, means)


def _largest(part: PartOfRows, which: NDArray[np.int64] | None) -> NDArray[np.float64]:
    X = part.X if part.how.feature_map is None else MappedMatrix(part.X, part.how.feature_map)
    return largest_magnitudes(X, which)


def _scored_by(X: Matrix, model: Model) -> AnyArray:
    return model.score(X)


# On the driver.


@dataclass(frozen=True, eq=False)
class PartedMatrix:
    """A matrix (n, d) whose rows lie in parts on the workers, dense or sparse. Indexing by rows gathers them in this
    process.

    Attributes
    ----------
    cluster : Cluster
        The workers.
    parts : Sequence[Future]
        The parts, on the workers.
    sizes : NDArray[int64]
        (parts,) int64, rows of each part, at least one.
    width : int
        Number of columns, d.
    size : int
        Number of stored values.
    stores_zeros : bool
        True if the parts are dense.
    names, columns : tuple[str, ...], Columns, optional
        Names of a data frame's columns, and the columns learned from them.
    """

    cluster: Cluster
    parts: Parts
    sizes: NDArray[np.int64]
    width: int
    size: int
    stores_zeros: bool
    names: tuple[str, ...] | None = None
    columns: Columns | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.sizes.sum()), self.width

    @property
    def sparse(self) -> bool:
        """True if the rows would take far more bytes as dense ones."""
        n, d = self.shape
        return not self.stores_zeros and n * d * 8 > DENSE_IF * self.size * 12  # bytes a dense or sparse value

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """(parts + 1,) int64: the first row of each part, and n."""
        return np.concatenate(([0], np.cumsum(self.sizes)))

    def __getitem__(self, rows: RowNumbers | slice) -> Matrix:
        """The rows, in that order, in this process."""
        rows = np.arange(*rows.indices(self.shape[0])) if isinstance(rows, slice) else np.asarray(rows)
        numbers, place = np.unique(rows, return_inverse=True)
        cuts = np.searchsorted(numbers, self.starts)
        touched = np.flatnonzero(np.diff(cuts)).tolist()
        which = [numbers[cuts[part] : cuts[part + 1]] - self.starts[part] for part in touched]
        parts = self.cluster.ask(operator.getitem, [self.parts[part] for part in touched], each=[which])
        taken = stacked(parts, self.width)
        return taken if np.array_equal(place, np.arange(rows.size)) else taken[place]

    def scored_by(self, model: Model) -> AnyArray:
        """Scores of the rows by a model, (n,) or (n, k)."""
        result: AnyArray = np.concatenate(self.cluster.ask(_scored_by, self.parts, model))
        return result

    def checked_for(self, estimator: Any, *y: Column, reset: bool = True) -> Any:
        """The rows and y (n,), checked for an estimator. With ``reset`` the estimator records their columns.

        Raises
        ------
        ValueError : wrong number of rows, or other columns than in ``fit``
        """
        from sklearn.utils.validation import _check_feature_names

        if reset:
            estimator._table = self.columns
            estimator.n_features_in_ = self.width if self.names is None else len(self.names)
        _check_feature_names(estimator, self._named(), reset=reset)
        return (self, *(checked_column(values, self.shape[0]) for values in y)) if y else self

    def _named(self) -> Any:
        """An object with the names of the columns that scikit-learn can read."""
        if self.names is None:
            return np.empty((0, self.width))
        import pandas as pd

        return pd.DataFrame(columns=list(self.names))


def checked_column(y: Column, n: int) -> AnyArray:
    """``y`` as an array (n,). Raises ValueError."""
    from sklearn.utils.validation import assert_all_finite, column_or_1d

    values: AnyArray = column_or_1d(np.asarray(y))
    if values.size != n:
        raise ValueError(f"X has {n} rows and y {values.size}")
    assert_all_finite(values, input_name="y")
    return values


class DistributedRows:
    """The ``RowOperator`` of a ``PartedMatrix``; see the module."""

    def __init__(
        self, matrix: PartedMatrix, how: How, *, threads: int = 1, selection: NDArray[np.int64] | None = None
    ) -> None:
        cluster, n_parts = matrix.cluster, len(matrix.parts)
        how = how._replace(
            threads=max(1, cluster.threads // n_parts), share=SHARE_OF_MEMORY * cluster.machines / n_parts
        )
        self.threads = threads
        self._matrix, self._how, self._selection = matrix, how, selection
        self._parts = cluster.submit(PartOfRows, matrix.parts, [how] * n_parts)
        self._known_moments: list[Moments] = []

    def __len__(self) -> int:
        return self._matrix.shape[0] if self._selection is None else self._selection.size

    @property
    def features(self) -> int:
        return self._matrix.width if self._how.feature_map is None else self._how.feature_map.n_out

    @property
    def dimension(self) -> int:
        return self.features + (self._how.bias is not None)

    @property
    def n_values(self) -> int:
        n, d = self._matrix.shape
        return round(self._matrix.size * self.features / max(1, d) * len(self) / max(1, n))

    def select(self, which: RowNumbers) -> DistributedRows:
        rows = copy.copy(self)
        for derived in ("_covers_all", "_repeats", "_touched"):
            rows.__dict__.pop(derived, None)
        rows._selection = np.asarray(which) if self._selection is None else self._selection[which]
        rows._known_moments = []
        return rows

    def with_bias(self, bias: float) -> DistributedRows:
        if self._how.bias is not None:
            return self
        how = self._how._replace(bias=bias)
        return DistributedRows(self._matrix, how, threads=self.threads, selection=self._selection)

    def with_threads(self, threads: int) -> DistributedRows:
        """The same rows, using at most ``threads`` threads on the driver."""
        rows = copy.copy(self)
        rows.threads = threads
        return rows

    def for_many_passes(self) -> DistributedRows:
        """The same rows, stored by the workers for fast passes."""
        return self

    def copied(self) -> Rows:
        """The selected rows, gathered in this process."""
        n, how = self._matrix.shape[0], self._how
        X = self._matrix[np.arange(n) if self._selection is None else self._selection]
        return Rows(X, bias=how.bias, threads=self.threads, feature_map=how.feature_map, scaling=how.scaling)

    def means(self, which: NDArray[np.int64], offsets: NDArray[np.int64]) -> Rows:
        return self.select(which).copied().means(np.arange(which.size), offsets)

    def scores(self, w: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        of_all = self.scores_of_all(w[None], None if out is None else out[:, None])
        return of_all[:, 0]

    def scores_of_all(self, W: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        matrix = self._matrix
        results = matrix.cluster.ask(_scores, [self._parts[part] for part in self._touched], W)
        if self._selection is None:
            return np.concatenate(results, out=out)
        whole = np.empty((matrix.shape[0], len(W)))
        for part, result in zip(self._touched, results, strict=True):
            whole[matrix.starts[part] : matrix.starts[part + 1]] = result
        return np.take(whole, self._selection, axis=0, out=out, mode="clip")

    def combine(self, c: NDArray[np.float64]) -> NDArray[np.float64]:
        combined: NDArray[np.float64] = self.combine_all(c[:, None])[0]
        return combined

    def combine_all(self, C: NDArray[np.float64]) -> NDArray[np.float64]:
        whole = self._put_back(C)
        if not self._touched.size:
            return np.zeros((C.shape[1], self.dimension))
        slopes = self._of_parts(whole)
        results = self._matrix.cluster.ask(_combined, [self._parts[part] for part in self._touched], each=[slopes])
        combined: NDArray[np.float64] = np.sum(results, axis=0)
        return combined

    def moments(self, groups: NDArray[np.int64] | None = None) -> Moments:
        if groups is not None:
            return self._moments(groups)
        if not self._known_moments:
            self._known_moments.append(self._moments(None))
        return self._known_moments[0]

    def largest(self) -> NDArray[np.float64]:
        """(features,): max |x_ij| of each column of the rows as mapped."""
        touched = self._touched
        parts = [self._parts[part] for part in touched]
        result: NDArray[np.float64] = np.max(self._matrix.cluster.ask(_largest, parts, each=[self._places()]), axis=0)
        return result

    def _moments(self, groups: NDArray[np.int64] | None) -> Moments:
        n_touched, cut = self._touched.size, np.empty(0, dtype=np.int64)
        of_parts: Sequence[NDArray[np.int64] | None] = [None] * n_touched
        if groups is not None:
            order = None if self._selection is None else np.argsort(self._selection, kind="stable")
            groups = groups if order is None else groups[order]
            numbers = np.arange(len(self)) if order is None or self._selection is None else self._selection[order]
            ends = np.searchsorted(numbers, self._matrix.starts)
            of_parts = [groups[ends[part] : ends[part + 1]] for part in self._touched]
            queries, counts = np.unique(np.concatenate([np.unique(part) for part in of_parts if part is not None]),
                                      return_counts=True)  # fmt: skip
            cut = queries[counts > 1]
        parts = [self._parts[part] for part in self._touched]
        places = self._places()
        of_each_part = self._matrix.cluster.ask(_moments, parts, each=[places, of_parts, [cut] * n_touched])
        return pooled_moments(of_each_part, within_queries=groups is not None)

    @cached_property
    def _covers_all(self) -> bool:
        """True if each row is selected once."""
        n, selection = self._matrix.shape[0], self._selection
        return selection is None or (selection.size == n and not self._repeats)

    @cached_property
    def _repeats(self) -> bool:
        """True if a row is selected more than once."""
        assert self._selection is not None
        return bool(np.bincount(self._selection, minlength=1).max() > 1)

    @cached_property
    def _touched(self) -> NDArray[np.int64]:
        """The parts with selected rows, ascending."""
        starts, n_parts = self._matrix.starts, len(self._matrix.parts)
        if self._selection is None or self._selection.size >= self._matrix.shape[0]:
            return np.arange(n_parts)
        part = np.searchsorted(starts[1:], self._selection, side="right")
        return np.flatnonzero(np.bincount(part, minlength=n_parts))

    def _places(self) -> list[NDArray[np.int64] | None]:
        """For each touched part, the positions of its selected rows, ascending; None if all rows are selected once."""
        if self._covers_all:
            return [None] * self._touched.size
        assert self._selection is not None
        numbers, starts = np.sort(self._selection), self._matrix.starts
        cuts = np.searchsorted(numbers, starts)
        return [numbers[cuts[part] : cuts[part + 1]] - starts[part] for part in self._touched]

    def _put_back(self, C: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, k) of all rows, by part, from C (m, k) of the selected rows: repeats are summed, other rows get 0."""
        selection, n = self._selection, self._matrix.shape[0]
        if selection is None:
            return C
        if self._repeats:
            return np.stack([np.bincount(selection, column, n) for column in C.T], axis=1)
        whole = (np.empty if selection.size == n else np.zeros)((n, C.shape[1]))
        whole[selection] = C
        return whole

    def _of_parts(self, whole: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        starts = self._matrix.starts
        return [whole[starts[part] : starts[part + 1]] for part in self._touched]


def pooled_moments(parts: Sequence[_PartOfMoments], *, within_queries: bool) -> Moments:
    """Moments of all rows from those of parts (Chan, Golub, LeVeque 1983). Variances within queries add up, except
    those of queries cut across parts."""
    n = sum(part.n for part in parts)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.sum([part.n / n * part.moments.mean for part in parts], axis=0)
        variance = np.zeros_like(mean)
        for part in parts:
            between = 0.0 if within_queries else (part.moments.mean - mean) ** 2
            variance += part.n / n * (part.moments.variance + between)
        counts = np.stack([part.counts for part in parts])  # (parts, queries cut)
        for query in range(counts.shape[1]):
            means = np.stack([part.means[query] for part in parts])
            of_query = counts[:, query, None] / counts[:, query].sum()
            around = means - (of_query * means).sum(axis=0)
            variance += counts[:, query].sum() / n * (of_query * around**2).sum(axis=0)
        variance[(variance <= SAME_MEAN**2 * (variance + mean**2)) & np.isfinite(variance)] = 0.0
    return Moments(mean, variance)
