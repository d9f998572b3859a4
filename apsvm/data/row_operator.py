"""Rows as a linear operator, whatever it is made of: scores X·w and combinations Xᵀc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from apsvm._support.types import RowNumbers
    from apsvm.data.lockstep import RowKernels
    from apsvm.data.moments import Moments


class ScoredRows(Protocol):
    """Rows as a risk needs them: as what weights become scores by, and slopes gradients."""

    @property
    def threads(self) -> int:
        """At most this many threads, here and in what is made for these rows."""

    def __len__(self) -> int:
        """Number of rows, m."""

    @property
    def dimension(self) -> int:
        """Number of weights: the features as mapped, and the bias, last, if there is one."""

    @property
    def features(self) -> int:
        """Number of features as mapped, without the bias."""

    def scores(self, w: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """w·x of every row: (m,) float64, for w (dimension,) float64; written to ``out`` if given."""

    def combine(self, c: NDArray[np.float64]) -> NDArray[np.float64]:
        """Xᵀc: (dimension,) float64, for c (m,) float64."""

    def moments(self, groups: NDArray[np.int64] | None = None) -> Moments:
        """Mean and variance of the features; ``groups``: (m,) int64, the rows' queries, within which they are
        computed."""

    def select(self, which: RowNumbers) -> ScoredRows:
        """The rows ``which`` (k,) int32 or int64, in that order."""


class RowOperator(ScoredRows, Protocol):
    """Rows, wherever they are, with whatever map and constant feature stands between them and w."""

    @property
    def n_values(self) -> int:
        """About how many feature values a pass over the rows touches."""

    def scores_of_all(self, W: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """``scores`` of each w in W (k, dimension): (m, k) float64, in one pass; written to ``out`` if given."""

    def combine_all(self, C: NDArray[np.float64]) -> NDArray[np.float64]:
        """``combine`` of each column of C (m, k): (k, dimension) float64, in one pass."""

    def select(self, which: RowNumbers) -> RowOperator:
        """The rows ``which`` (k,) int32 or int64, in that order."""

    def means(self, which: NDArray[np.int64], offsets: NDArray[np.int64]) -> RowOperator:
        """For each run of the rows ``which`` (k,) int64 their mean: row i of the (r + 1,) int64 boundaries ``offsets``
        is that of which[offsets[i]:offsets[i + 1]]."""

    def for_many_passes(self) -> RowOperator:
        """The same rows, stored as passes over them go fastest."""

    def copied(self) -> RowOperator:
        """The same rows, as a copy of their own in order, for many passes over a part."""

    def with_bias(self, bias: float) -> RowOperator:
        """The same rows with a constant feature of this value, unless they have one."""

    def with_threads(self, threads: int) -> RowOperator:
        """The same rows, for kernels of at most ``threads`` threads."""

    @property
    def bytes_shared(self) -> int:
        """Bytes that a pass reads and another pass could share: those of the matrix; 0 without one."""

    def with_kernels(self, kernels: RowKernels) -> RowOperator:
        """The same rows, whose passes these kernels do."""
