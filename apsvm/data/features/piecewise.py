"""Piecewise-linear features: a ranker on them is a sum of broken lines, one a feature (linear splines; Friedman's MARS,
Annals of Statistics 1991, with fixed knots).

    φ(x) = ( x_1 … x_d;  h(x_j, q) for each feature j and each of its knots q )

    h(x, q) = max(0, x − q) for q ≥ 0,   min(0, x − q) for q < 0

Both kinds are 0 at x = 0, so that sparse rows stay sparse. With the linear column and a constant they span the same
functions as max(0, x − q), since min(0, x − q) = (x − q) − max(0, x − q).

The knots of a feature are its quantiles 1/(K+1) … K/(K+1) over the training rows (values that occur). If more than one
of them is 0, the quantiles are those of its values other than 0. Knots are distinct and lie strictly between the
smallest and the largest value. A feature of two values has none. The layout of X does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.features import FeatureMapError, Parameter, TrainingRows
from apsvm.data.features.base import AdditiveMap, checked
from apsvm.data.features.columns import ColumnValues, column_values

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: Dense rows that are mapped at a time and stay in the cache.
_ROWS = 256
#: Number of knots that is accepted for any number of rows.
_ALWAYS = 100


@dataclass(frozen=True, slots=True, eq=False)
class Piecewise(AdditiveMap):
    """See the module.

    Attributes
    ----------
    knots : float64, ascending within a feature
    starts : (n_in + 1,) int64; the knots of feature j are ``knots[starts[j]:starts[j + 1]]``
    ranges : (3, n_in) float64, the lowest value, the mean and the highest of each feature in the training rows
    """

    stem: ClassVar[str] = "piecewise"
    default_parameter: ClassVar[Parameter] = 4
    members: ClassVar[tuple[str, ...]] = ("knots", "starts", "ranges")
    keeps_sparse: ClassVar[bool] = True

    parameter: Parameter
    knots: NDArray[np.float64]
    starts: NDArray[np.int64]
    ranges: NDArray[np.float64]

    @property
    def n_in(self) -> int:
        return self.starts.size - 1

    @property
    def n_out(self) -> int:
        return self.n_in + self.knots.size

    @classmethod
    def learn(cls, rows: TrainingRows, parameter: Parameter) -> Self:
        assert isinstance(parameter, int)
        n = rows.X.shape[0]
        if parameter > max(n, _ALWAYS):
            raise FeatureMapError(
                f"piecewise:{parameter}: more knots than the {n:,} rows; the default is {cls.default_parameter}"
            )
        knots, ranges = [np.empty(0)], np.empty((3, rows.X.shape[1]))
        for j, values in enumerate(column_values(rows.X, rows.selection)):
            knots.append(_knots(values, parameter))
            ranges[:, j] = values.range()
        starts = np.cumsum([one.size for one in knots], dtype=np.int64)
        return cls(parameter, np.concatenate(knots), starts, ranges)

    def apply(self, X: Matrix) -> Matrix:
        if sp.issparse(X):
            return sp.hstack([X, self._hinges_of_sparse(X)], format="csr")
        d, of_knot = self.n_in, self._feature_of_knot()
        knots = self.knots.astype(X.dtype)[:, None]
        low, high = (np.where(knots < 0, *bounds).astype(X.dtype) for bounds in ((-np.inf, 0.0), (0.0, np.inf)))
        out = np.empty((X.shape[0], self.n_out), dtype=X.dtype)
        for begin in range(0, X.shape[0], _ROWS):
            rows = X[begin : begin + _ROWS]
            # Feature by feature: numpy is many times faster along long lines than across short ones.
            hinges = rows.T[of_knot]
            hinges -= knots
            np.maximum(hinges, low, out=hinges)
            np.minimum(hinges, high, out=hinges)
            out[begin : begin + _ROWS, :d] = rows
            out[begin : begin + _ROWS, d:] = hinges.T
        return out

    def _feature_of_knot(self) -> NDArray[np.int64]:
        features: NDArray[np.int64] = np.repeat(np.arange(self.n_in, dtype=np.int64), np.diff(self.starts))
        return features

    def _hinges_of_sparse(self, X: Matrix) -> Matrix:
        """(k, number of knots) CSR, from each stored value and all knots of its feature."""
        counts = np.diff(self.starts)[X.indices]
        # For each pair of a stored value and a knot: the indices of both.
        value = np.repeat(np.arange(X.indices.size), counts)
        first = np.cumsum(counts) - counts
        knot = np.arange(value.size) - first[value] + self.starts[X.indices[value]]
        q = self.knots.astype(X.dtype)[knot]
        hinges = X.data[value] - q
        hinges = np.where(q < 0, np.minimum(hinges, 0), np.maximum(hinges, 0))
        # Both hinges of a stored 0 are 0.
        kept = hinges != 0
        upto = np.concatenate([[0], np.cumsum(kept)])
        of_value = upto[np.append(first, value.size)]
        return sp.csr_array(
            (hinges[kept], knot[kept].astype(X.indices.dtype), of_value[X.indptr].astype(X.indptr.dtype)),
            shape=(X.shape[0], self.knots.size),
        )

    def names(self, features: Sequence[str]) -> list[str]:
        hinges = [
            f"{features[j]} {'below' if q < 0 else 'above'} {q:.9g}"
            for j, q in zip(self._feature_of_knot().tolist(), self.knots.tolist(), strict=True)
        ]
        return [*features, *hinges]

    def sources(self) -> NDArray[np.int64]:
        sources: NDArray[np.int64] = np.concatenate([np.arange(self.n_in, dtype=np.int64), self._feature_of_knot()])
        return sources

    def typical(self) -> NDArray[np.float64]:
        mean: NDArray[np.float64] = self.ranges[1]
        return mean

    def breaks(self, j: int) -> NDArray[np.float64]:
        return self.knots[self.starts[j] : self.starts[j + 1]]

    def limits(self, j: int) -> tuple[float, float]:
        return float(self.ranges[0, j]), float(self.ranges[2, j])

    @classmethod
    def of_arrays(cls, n_in: int, parameter: Parameter, arrays: Mapping[str, AnyArray]) -> Self:
        knots = checked(arrays, "knots", np.float64, (None,))
        starts = checked(arrays, "starts", np.int64, (n_in + 1,))
        ranges = checked(arrays, "ranges", np.float64, (3, n_in))
        if starts[0] != 0 or starts[-1] != knots.size or (starts[1:] < starts[:-1]).any():
            raise FeatureMapError(f"the array starts does not divide the {knots.size} knots among the features")
        begins = np.zeros(knots.size, dtype=bool)
        begins[starts[:-1][starts[:-1] < knots.size]] = True
        if not ((knots[1:] > knots[:-1]) | begins[1:]).all():
            raise FeatureMapError("the knots of a feature do not ascend")
        if (ranges[1:] < ranges[:-1]).any():
            raise FeatureMapError("the array ranges is not of lowest values, means and highest values")
        return cls(parameter, knots, starts, ranges)


def _knots(values: ColumnValues, K: int) -> NDArray[np.float64]:
    """The knots of a feature with these values, ascending."""
    lowest, highest = values.in_order(np.array([0, values.n - 1]))
    knots = values.in_order(_ranks(K, values.n))
    if np.count_nonzero(knots == 0.0) > 1 and values.nonzero.size:
        knots = values.nonzero[_ranks(K, values.nonzero.size)]
    inside: NDArray[np.float64] = np.unique(knots[(lowest < knots) & (knots < highest)])
    return inside


def _ranks(K: int, n: int) -> NDArray[np.int64]:
    """Indices ⌈nk/(K+1)⌉ − 1 of the quantiles k/(K+1), k = 1..K, of n sorted values."""
    return -(-np.arange(1, K + 1, dtype=np.int64) * n // (K + 1)) - 1
