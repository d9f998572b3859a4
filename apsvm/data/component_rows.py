"""Rows with several weight vectors, of which the best counts: score(x) = max over h of w_h·x + b_h.

Each row is a bag of H copies of itself, copy h in block h of a long vector of weights (w_1, b_1, …, w_H, b_H):

    instance i·H + h  =  (0, …, 0, x_i, B, 0, …, 0),       its score  =  w_h·x_i + b_h·B

so that the training of bags serves these rows. No copy is made: a pass over the instances is one over the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.data.moments import Moments
from apsvm.data.row_operator import RowOperator

if TYPE_CHECKING:
    from apsvm._support.types import RowNumbers


class ComponentRows:
    """The n·H instances of n rows (``ScoredRows``).

    Parameters
    ----------
    rows : n rows with a constant feature of value B, their last one (``RowOperator.with_bias``)
    components : H, at least 1
    """

    def __init__(self, rows: RowOperator, components: int) -> None:
        self.rows = rows
        self.components = components

    @property
    def threads(self) -> int:
        return self.rows.threads

    def __len__(self) -> int:
        return len(self.rows) * self.components

    @property
    def dimension(self) -> int:
        return self.components * self.rows.dimension

    @property
    def features(self) -> int:
        """Number of weights, the constant features of the blocks included."""
        return self.dimension

    @property
    def offsets(self) -> NDArray[np.int64]:
        """(n + 1,) int64: row i is the bag of the instances from offsets[i] to offsets[i + 1] − 1."""
        return np.arange(0, len(self) + 1, self.components, dtype=np.int64)

    def scores(self, w: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        if out is None:
            out = np.empty(len(self))
        self.rows.scores_of_all(w.reshape(self.components, -1), out.reshape(-1, self.components))
        return out

    def combine(self, c: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.rows.combine_all(c.reshape(-1, self.components)).ravel()

    def moments(self, groups: NDArray[np.int64] | None = None) -> Moments:
        """The moments of the rows, block by block, the constant feature included."""
        of_rows = self.rows.moments(None if groups is None else groups[:: self.components])
        constant = np.zeros(self.rows.dimension - self.rows.features)
        mean, variance = (np.tile(np.concatenate([of_row, constant]), self.components) for of_row in of_rows)
        return Moments(mean, variance)

    def select(self, which: RowNumbers) -> ComponentRows:
        """The instances ``which`` (k,) int32 or int64, all H of a row side by side. Raises ValueError for other
        ones."""
        of_row = which.reshape(-1, self.components) if which.size % self.components == 0 else which[:, None]
        if not np.array_equal(of_row, of_row[:, :1] // self.components * self.components + np.arange(self.components)):
            raise ValueError(f"expected all {self.components} instances of each row side by side")
        return ComponentRows(self.rows.select(of_row[:, 0] // self.components), self.components)


def scores_of_weights(rows: RowOperator, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) float64: the scores of the rows by weights (dimension,), or by the best of H components (H, features + 1),
    whose last entry is the constant b_h."""
    if w.ndim == 1:
        return rows.scores(w)
    W = np.zeros((len(w), rows.dimension))
    W[:, : rows.features] = w[:, :-1]
    scores = rows.scores_of_all(W)
    scores += w[:, -1]
    best: NDArray[np.float64] = scores.max(axis=1)
    return best
