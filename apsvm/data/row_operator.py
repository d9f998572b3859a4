"""Rows as a linear operator: scores X·w and combinations Xᵀc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from apsvm._support.types import RowNumbers
    from apsvm.data.moments import Moments


class ScoredRows(Protocol):
    """Rows as a risk needs them: they turn weights into scores, and slopes into gradients."""

    @property
    def threads(self) -> int:
        """The most threads of a pass, and of work on these rows."""

    def __len__(self) -> int:
        """Number of rows, m."""

    @property
    def dimension(self) -> int:
        """Number of weights: the features as mapped, and last the bias if there is one."""

    @property
    def features(self) -> int:
        """Number of features as mapped, without the bias."""

    def scores(self, w: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """w·x of every row: (m,) float64, for w (dimension,) float64; written to ``out`` if given."""

    def combine(self, c: NDArray[np.float64]) -> NDArray[np.float64]:
        """Xᵀc: (dimension,) float64, for c (m,) float64."""

    def moments(self, groups: NDArray[np.int64] | None = None) -> Moments:
        """Mean and variance of the features, within the queries ``groups`` (m,) int64 if given."""

    def select(self, which: RowNumbers) -> ScoredRows:
        """The rows at the positions ``which`` (k,) int32 or int64, in that order."""


class RowOperator(ScoredRows, Protocol):
    """Rows in memory or on a cluster, with a map, a scaling and a constant feature between them and w."""

    @property
    def n_values(self) -> int:
        """The approximate number of feature values in a pass over the rows."""

    def scores_of_all(self, W: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """``scores`` of each w in W (k, dimension), to the same bits, in one pass: (m, k) float64, written to ``out``
        if given, C-contiguous."""

    def combine_all(self, C: NDArray[np.float64]) -> NDArray[np.float64]:
        """``combine`` of each column of C (m, k), C-contiguous, in one pass: (k, dimension) float64."""

    def select(self, which: RowNumbers) -> RowOperator: ...

    def means(self, which: NDArray[np.int64], offsets: NDArray[np.int64]) -> RowOperator:
        """Means of runs of rows, mapped and scaled: row i is the mean of the rows which[offsets[i]:offsets[i + 1]], for
        ``which`` (k,) int64 and ``offsets`` (r + 1,) int64. One pass over the rows."""

    def for_many_passes(self) -> RowOperator:
        """The same rows, in the layout whose passes are fastest."""

    def copied(self) -> RowOperator:
        """The same rows, copied into their order, for many passes over a selection."""

    def with_bias(self, bias: float) -> RowOperator:
        """The same rows with a constant feature of this value, unless they have one."""

    def with_threads(self, threads: int) -> RowOperator:
        """The same rows, with at most ``threads`` threads in a pass."""
