"""Rows of a data set as the weights see them in training: mapped, scaled, with the constant feature; and a model's
weights as they were in training.

Reading, feature maps and scalings are the package's own; products with weights and slopes are NumPy's and SciPy's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.features.mapped import MappedMatrix
from apsvm.data.features.scaling import NO_SCALING, Scaling, learn_scaling
from apsvm.data.moments import column_moments, row_norms
from apsvm.models.base import Ranker
from apsvm.verification.exact import dot, float64_error, products, total
from apsvm.verification.plain import Array

#: Values in a block of rows, and in one whose products are summed without rounding.
BLOCK, EXACT_BLOCK = 1 << 22, 1 << 18
#: Rows wider than this get no ``directions``.
MOST_DIRECTIONS = 128


@dataclass(frozen=True)
class PlainRows:
    """φ(x) / s, centred, with a constant feature, of n rows.

    Attributes
    ----------
    matrix : (n, d) CSR or dense, mapped on access
    scaling : the scaling of the mapped columns
    bias : the constant feature's value; None without one
    components : H, number of blocks of weights; scores are of n·H instances, row by row
    origin : (d,) float64, subtracted from every row for level-free losses, to keep sums small
    """

    matrix: Matrix | MappedMatrix
    scaling: Scaling
    bias: float | None
    components: int = 1
    origin: Array | None = None

    @property
    def count(self) -> int:
        """Number of instances, n·H."""
        return int(self.matrix.shape[0]) * self.components

    @property
    def columns(self) -> int:
        """Number of mapped columns, d."""
        return int(self.matrix.shape[1])

    def around_their_mean(self) -> PlainRows:
        """The rows minus their mean, for a level-free loss. Rows of components stay unchanged: they have constants."""
        if self.components > 1 or self.scaling.centre is not None:
            return self
        mean = column_moments(self.matrix, factors=_factors(self.matrix, self.scaling)).mean
        return replace(self, origin=np.where(np.isfinite(mean), mean, 0.0))

    def scores(self, w: Array) -> Array:
        """(n·H,) float64, for w (H·dimension,)."""
        coef, constants = self._raw(w)
        result = np.empty((self.matrix.shape[0], self.components))
        for place in self._blocks(BLOCK):
            block, centre = self._centred(place)
            result[place] = block @ coef.T - coef @ centre
        if self.bias is not None:
            result += self.bias * constants
        return result.ravel()

    def combine(self, slopes: Array) -> Array:
        """(H·dimension,) float64, for slopes (n·H,)."""
        by_component = slopes.reshape(-1, self.components)
        result = np.zeros((self.components, self.columns))
        for place in self._blocks(BLOCK):
            block, centre = self._centred(place)
            result += (block.T @ by_component[place]).T - np.outer(by_component[place].sum(axis=0), centre)
        return self._as_weights(result, by_component.sum(axis=0))

    def exact_scores(self, w: Array, level: float) -> Array:
        """(n·H,) float64: ``scores`` less ``level``, each rounded once from a sum of twice as many digits. Weights are
        divided by s in float64."""
        coef, constants = self._raw(w)
        result = np.empty((self.matrix.shape[0], self.components))
        for h in range(self.components):
            moved = [-level, *dot(-self._centre, coef[h]), *dot(self.bias or 0.0, constants[h])]
            for place in self._blocks(EXACT_BLOCK):
                result[place, h] = _exact_sums(self._block(place), coef[h], moved)
        return result.ravel()

    def exact_combine(self, slopes: Array) -> Array:
        """(H·dimension,) float64: ``combine``, to a few roundings of each result."""
        by_component = slopes.reshape(-1, self.components)
        sums = [dot(1.0, by_component[:, h]) for h in range(self.components)]
        result = np.empty((self.components, self.columns))
        for h, sum_of_slopes in enumerate(sums):
            terms = [
                [part for addend in sum_of_slopes for part in dot(-centre, addend)] for centre in self._centre.tolist()
            ]
            for place in self._blocks(EXACT_BLOCK):
                block = self._block(place).T
                block = block.tocsr() if sp.issparse(block) else block
                high = _exact_sums(block, by_component[place, h], [])
                low = _exact_sums(block, by_component[place, h], [], high)
                for column, parts in enumerate(zip(high.tolist(), low.tolist(), strict=True)):
                    terms[column].extend(parts)
            result[h] = [total(parts) for parts in terms]
        return self._as_weights(result, np.array([sum(parts) for parts in sums]))

    def sizes(self, w: Array) -> Array:
        """(n·H,) float64: summed magnitudes of the terms of ``scores``, rows not centred."""
        coef, constants = self._raw(w)
        largest = np.abs(coef) @ np.abs(self._centre)
        if self.bias is not None:
            largest += self.bias * np.abs(constants)
        result = np.empty((self.matrix.shape[0], self.components))
        for place in self._blocks(BLOCK):
            result[place] = abs(self._block(place)) @ np.abs(coef).T + largest
        return result.ravel()

    def combined_sizes(self, slopes: Array) -> Array:
        """(H·dimension,) float64: summed magnitudes of the terms of ``combine``, for slopes ≥ 0."""
        by_component = slopes.reshape(-1, self.components)
        result = np.zeros((self.components, self.columns))
        for place in self._blocks(BLOCK):
            block, centre = self._centred(place)
            result += (abs(block).T @ by_component[place]).T
            result += np.outer(by_component[place].sum(axis=0), np.abs(centre))
        return self._as_weights(result, by_component.sum(axis=0))

    def constant(self, coef: Array) -> tuple[float, float]:
        """Constant that centring adds to the scores of weights (d,) on raw rows, and the magnitude of its terms."""
        return -float(self._centre @ coef), float(np.abs(self._centre) @ np.abs(coef))

    def directions(self) -> Array | None:
        """(H·dimension, k) float64: orthogonal directions that span all differences of scores; scores have mean square
        1 in each. None if rows are too wide."""
        dimension = self.columns + (self.bias is not None)
        if dimension * self.components > MOST_DIRECTIONS:
            return None
        triangle = np.empty((0, dimension))
        for place in self._blocks(BLOCK):
            block = self._block(place)
            block = (block.toarray() if sp.issparse(block) else block) - self._centre
            if self.scaling.divisors is not None:
                block = block / self.scaling.divisors
            if self.bias is not None:
                block = np.column_stack([block, np.full(len(block), self.bias)])
            triangle = np.asarray(np.linalg.qr(np.vstack([triangle, block]), mode="r"))
        if not np.isfinite(triangle).all():
            return np.empty((dimension * self.components, 0))
        _, deviations, directions = np.linalg.svd(triangle, full_matrices=False)
        # Squares of the others are 0 or infinite.
        some = (deviations > 1e-15 * deviations.max(initial=0.0)) & (deviations > 1e-153) & (deviations < 1e153)
        scaled = directions[some].T / deviations[some] * np.sqrt(self.matrix.shape[0])
        return np.kron(np.eye(self.components), scaled)

    @property
    def rounding_of_divisors(self) -> float:
        """Relative rounding error of a divisor. Deviations can come from squares about 0 a hundred times as large
        (``data.moments``)."""
        return 100.0 * float64_error(self.count) if self.scaling.name == "standard" else float64_error(1)

    @property
    def _centre(self) -> Array:
        """(d,): subtracted from every row."""
        centre = self.origin if self.scaling.centre is None else self.scaling.centre
        return np.zeros(self.columns) if centre is None else centre

    def _raw(self, w: Array) -> tuple[Array, Array]:
        """Weights (H, d) for rows not divided by s, and weights (H,) of the constant feature."""
        W = w.reshape(self.components, -1)
        coef = W[:, : self.columns]
        constants = np.zeros(self.components) if self.bias is None else W[:, -1]
        return coef if self.scaling.divisors is None else coef / self.scaling.divisors, constants

    def _as_weights(self, result: Array, sums: Array) -> Array:
        """Slopes of the weights, from sums over rows not divided by s, (H, d), and sums of slopes (H,)."""
        if self.scaling.divisors is not None:
            result = result / self.scaling.divisors
        if self.bias is not None:
            result = np.column_stack([result, self.bias * sums])
        return result.ravel()

    def _blocks(self, values: int) -> list[slice]:
        """Slices of rows with about ``values`` stored values each."""
        rows = int(self.matrix.shape[0])
        stored = getattr(self.matrix, "nnz", rows * self.columns)
        step = max(1, int(values * rows // max(1, stored)))
        return [slice(begin, min(begin + step, rows)) for begin in range(0, rows, step)]

    def _centred(self, place: slice) -> tuple[Matrix, Array]:
        """Rows, and the centre still to be subtracted from each: all of it for sparse rows, 0 for dense ones."""
        block = self._block(place)
        return (block, self._centre) if sp.issparse(block) else (block - self._centre, np.zeros(self.columns))

    def _block(self, place: slice) -> Matrix:
        """Rows at ``place``, divided by their lengths if the scaling has unit rows."""
        block = self.matrix[place].astype(np.float64)
        if not self.scaling.unit_rows:
            return block
        norms = np.sqrt(np.asarray(block.multiply(block).sum(axis=1) if sp.issparse(block) else (block**2).sum(axis=1)))
        lengths = np.where(norms > 0.0, norms, 1.0).ravel()
        return sp.diags_array(1.0 / lengths) @ block if sp.issparse(block) else block / lengths[:, None]


def _exact_sums(block: Matrix, weights: Array, moved: list[float], less: Array | None = None) -> Array:
    """block·weights + Σ moved − less, (rows,), each rounded once."""
    if sp.issparse(block):
        p, e = (part.tolist() for part in products(block.data, weights[block.indices]))
        bounds = zip(block.indptr[:-1].tolist(), block.indptr[1:].tolist(), strict=True)
        rows = ([*p[begin:end], *e[begin:end]] for begin, end in bounds)
    else:
        rows = iter(np.hstack(products(block, weights)).tolist())
    first = np.zeros(block.shape[0]) if less is None else -less
    sums = (total([*terms, *moved, first_term]) for terms, first_term in zip(rows, first.tolist(), strict=True))
    return np.fromiter(sums, dtype=np.float64, count=block.shape[0])


def rows_as_trained(X: Matrix, ranker: Ranker) -> PlainRows:
    """Rows of X (n, width) as in the training of ``ranker``."""
    features = ranker.header.features
    matrix: Matrix | MappedMatrix = X.tocsr() if sp.issparse(X) else X
    if ranker.feature_map is not None:
        matrix = MappedMatrix(X, ranker.feature_map)
    scaling = NO_SCALING if features.scale == "none" else learn_scaling(features.scale, matrix)
    bias = features.bias or None
    if ranker.components > 1 and bias is None:
        bias = _size_of_features(matrix, scaling)
    return PlainRows(matrix, scaling, bias, ranker.components)


def weights_as_trained(rows: PlainRows, ranker: Ranker) -> Array:
    """Weights w (H·dimension,) of the ranker in training: for scaled rows, with the constant as a weight of the
    constant feature."""
    blocks = []
    for part in ranker.linear_parts():
        w, moved = rows.scaling.scaled_weights(part.coef)
        constant = part.intercept + moved
        blocks.append(w if rows.bias is None else np.append(w, constant / rows.bias))
    return np.concatenate(blocks)


def with_common_constant(rows: PlainRows, w: Array, mean: float) -> Array:
    """The weights, with those of the constant feature shifted alike to this mean; all scores shift alike."""
    blocks = w.reshape(rows.components, -1).copy()
    blocks[:, -1] += mean - blocks[:, -1].mean()
    return blocks.ravel()


def _size_of_features(matrix: Matrix | MappedMatrix, scaling: Scaling) -> float:
    """Geometric mean of the columns' deviations: the default constant feature of components."""
    _, variance = column_moments(matrix, factors=_factors(matrix, scaling))
    if scaling.divisors is not None:
        variance = variance / scaling.divisors**2
    varying = variance[(variance > 0.0) & np.isfinite(variance)]
    return float(np.exp(0.5 * np.log(varying).mean())) if varying.size else 1.0


def _factors(matrix: Matrix | MappedMatrix, scaling: Scaling) -> Array | None:
    """Factors (n,) of the rows; None if they are not scaled."""
    if not scaling.unit_rows:
        return None
    norms = row_norms(matrix)
    return 1.0 / np.where(norms > 0.0, norms, 1.0)
