"""The rows of a data set as a training's weights see them: mapped, scaled, with the constant feature; and a model's
weights as they were in training.

Reading, feature maps and the learning of a scaling are the package's own; the products with w and the slopes are
NumPy's and SciPy's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.features.mapped import MappedMatrix
from apsvm.data.features.scaling import NO_SCALING, Scaling, learn_scaling
from apsvm.data.moments import column_moments, row_norms
from apsvm.models.base import Ranker
from apsvm.models.linear import LinearRanker
from apsvm.verification.plain import Array

#: Values of a block of rows.
BLOCK = 1 << 22


@dataclass(frozen=True)
class PlainRows:
    """φ(x) / s, less the mean, with a constant feature, of n rows.

    Attributes
    ----------
    matrix : (n, d) CSR or dense, mapped when it is looked at
    scaling : of the mapped columns
    bias : the constant feature's value; None: there is none
    components : H, how many blocks of weights there are; scores are then of n·H instances, row by row
    """

    matrix: Matrix | MappedMatrix
    scaling: Scaling
    bias: float | None
    components: int = 1

    @property
    def count(self) -> int:
        """n."""
        return int(self.matrix.shape[0])

    @property
    def columns(self) -> int:
        """d."""
        return int(self.matrix.shape[1])

    def scores(self, w: Array) -> Array:
        """(n·H,) float64, for w (H·dimension,)."""
        W = w.reshape(self.components, -1)
        coef = W[:, : self.columns]
        if self.scaling.divisors is not None:
            coef = coef / self.scaling.divisors
        result = np.empty((self.count, self.components))
        for place in self._blocks():
            result[place] = self._block(place) @ coef.T
        if self.scaling.centre is not None:
            result -= coef @ self.scaling.centre
        if self.bias is not None:
            result += self.bias * W[:, -1]
        return result.ravel()

    def combine(self, slopes: Array) -> Array:
        """(H·dimension,) float64, for slopes (n·H,)."""
        by_component = slopes.reshape(self.count, self.components)
        result = np.zeros((self.components, self.columns))
        for place in self._blocks():
            result += (self._block(place).T @ by_component[place]).T
        sums = by_component.sum(axis=0)
        if self.scaling.centre is not None:
            result -= np.outer(sums, self.scaling.centre)
        if self.scaling.divisors is not None:
            result /= self.scaling.divisors
        if self.bias is not None:
            result = np.column_stack([result, self.bias * sums])
        return result.ravel()

    def _blocks(self) -> list[slice]:
        stored = getattr(self.matrix, "nnz", self.count * self.columns)
        step = max(1, int(BLOCK * self.count // max(1, stored)))
        return [slice(begin, min(begin + step, self.count)) for begin in range(0, self.count, step)]

    def _block(self, place: slice) -> Matrix:
        """Those rows, divided by their length where they are to be."""
        block = self.matrix[place].astype(np.float64)
        if not self.scaling.unit_rows:
            return block
        norms = np.sqrt(np.asarray(block.multiply(block).sum(axis=1) if sp.issparse(block) else (block**2).sum(axis=1)))
        lengths = np.where(norms > 0.0, norms, 1.0).ravel()
        return sp.diags_array(1.0 / lengths) @ block if sp.issparse(block) else block / lengths[:, None]


def rows_as_trained(X: Matrix, ranker: Ranker) -> PlainRows:
    """The rows of X (n, width) as the training of ``ranker`` on them had them."""
    features = ranker.header.features
    matrix: Matrix | MappedMatrix = X.tocsr() if sp.issparse(X) else X
    if ranker.feature_map is not None:
        matrix = MappedMatrix(X, ranker.feature_map)
    scaling = NO_SCALING if features.scale == "none" else learn_scaling(features.scale, matrix)
    rows = PlainRows(matrix, scaling, features.bias)
    if ranker.components == 1:
        return rows
    bias = _size_of_features(matrix, scaling) if features.bias is None else features.bias
    return PlainRows(matrix, scaling, bias, ranker.components)


def weights_as_trained(rows: PlainRows, ranker: Ranker) -> Array:
    """w (H·dimension,) of which the model is: its weights are for rows as they are in the file, those of a training for
    scaled ones, and a constant is a weight of the constant feature."""
    blocks = []
    for part in ranker.linear_parts():
        w, moved = rows.scaling.scaled_weights(part.coef)
        constant = part.intercept + moved
        blocks.append(w if rows.bias is None else np.append(w, constant / rows.bias if rows.bias else 0.0))
    return np.concatenate(blocks)


def with_common_constant(rows: PlainRows, w: Array, mean: float) -> Array:
    """The weights, those of the constant feature moved alike, to this mean: so are all scores."""
    blocks = w.reshape(rows.components, -1).copy()
    blocks[:, -1] += mean - blocks[:, -1].mean()
    return blocks.ravel()


def constant_of_scaling(rows: PlainRows, ranker: LinearRanker) -> float:
    """The constant of a model whose training had no constant feature."""
    return 0.0 if rows.scaling.centre is None else -float(rows.scaling.centre @ ranker.coef)


def _size_of_features(matrix: Matrix | MappedMatrix, scaling: Scaling) -> float:
    """The geometric mean of the columns' deviations: the constant feature of components, where none is named."""
    norms = row_norms(matrix) if scaling.unit_rows else None
    factors = None if norms is None else 1.0 / np.where(norms > 0.0, norms, 1.0)
    _, variance = column_moments(matrix, factors=factors)
    if scaling.divisors is not None:
        variance = variance / scaling.divisors**2
    varying = variance[(variance > 0.0) & np.isfinite(variance)]
    return float(np.exp(0.5 * np.log(varying).mean())) if varying.size else 1.0
