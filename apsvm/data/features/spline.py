"""Cubic B-splines of each feature: a ranker on them is a sum of smooth curves, one a feature (Eilers and Marx 1996).

    φ(x) = ( B_1(x_j) … B_{m+2}(x_j) for each feature j ),     m base knots, distinct quantiles 0, 1/(K−1) … 1

The arithmetic is that of scikit-learn's ``SplineTransformer(n_knots=K, knots="quantile", extrapolation="linear")``: the
base knots are continued on either side by three more at the outermost distance, and beyond the base knots every curve
goes on as a straight line. A feature of less than three distinct quantiles, one of two values for example, has its
linear column alone.

B-splines of 0 are not 0: mapped rows are dense.
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
from apsvm.data.features.base import check_size
from apsvm.data.features.columns import ColumnValues
from apsvm.data.features.knots import KnottedMap

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

DEGREE = 3


@dataclass(frozen=True, slots=True, eq=False)
class Spline(KnottedMap):
    """See the module."""

    stem: ClassVar[str] = "spline"
    default_parameter: ClassVar[Parameter] = 5
    least_parameter: ClassVar[int] = 3
    least_knots: ClassVar[int] = 3

    @property
    def n_out(self) -> int:
        return int(self._widths().sum())

    def _widths(self) -> NDArray[np.int64]:
        """(n_in,) the number of each feature's columns."""
        knots = np.diff(self.starts)
        return np.where(knots == 0, 1, knots + DEGREE - 1)

    @staticmethod
    def choose(values: ColumnValues, K: int) -> NDArray[np.float64]:
        """The distinct quantiles 0, 1/(K−1) … 1, between neighbouring values by their distance; none if these are less
        than three, or of less than three values."""
        place = np.linspace(0.0, values.n - 1.0, K)
        lower, upper = (values.in_order(rank(place).astype(np.int64)) for rank in (np.floor, np.ceil))
        with np.errstate(over="ignore", invalid="ignore"):
            knots = np.unique(lower + (upper - lower) * (place - np.floor(place)))
            several = min(knots.size, np.unique([lower, upper]).size) >= 3
            usable = several and bool(np.isfinite(_extended(knots)).all())
        return knots if usable else np.empty(0)

    @classmethod
    def learn(cls, rows: TrainingRows, parameter: Parameter) -> Self:
        learned = super(Spline, cls).learn(rows, parameter)
        if sp.issparse(rows.X):
            advice = "splines of 0 are not 0, so that sparse rows become dense; piecewise keeps them sparse"
            check_size(learned.name, rows.selection.size, learned.n_out, rows.X.dtype.itemsize, advice)
        return learned

    def apply(self, X: Matrix) -> Matrix:
        dense = X.toarray() if sp.issparse(X) else X
        out = np.empty((X.shape[0], self.n_out), dtype=X.dtype)
        upto = np.cumsum(self._widths())
        for j, (end, width) in enumerate(zip(upto.tolist(), self._widths().tolist(), strict=True)):
            base, x = self.of_feature(j), dense[:, j]
            out[:, end - width : end] = x[:, None] if base.size == 0 else _splines(x.astype(np.float64), base)
        return out

    def names(self, features: Sequence[str]) -> list[str]:
        widths = self._widths().tolist()
        return [
            name if width == 1 else f"{name} spline {number}"
            for name, width in zip(features, widths, strict=True)
            for number in range(width)
        ]

    @classmethod
    def of_arrays(cls, n_in: int, parameter: Parameter, arrays: Mapping[str, AnyArray]) -> Self:
        result = super(Spline, cls).of_arrays(n_in, parameter, arrays)
        curved = np.flatnonzero(np.diff(result.starts)).tolist()
        with np.errstate(over="ignore", invalid="ignore"):
            for j in curved:
                if not np.isfinite(_extended(result.of_feature(j))).all():
                    raise FeatureMapError("knots of a feature lie farther from each other than float64 reaches")
        return result

    def sources(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.n_in, dtype=np.int64), self._widths())


def _extended(base: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m + 6,) all knots of the base knots (m,)."""
    beside = np.arange(1, DEGREE + 1)
    before, after = base[0] - beside[::-1] * (base[1] - base[0]), base[-1] + beside * (base[-1] - base[-2])
    return np.concatenate([before, base, after])


def _splines(x: NDArray[np.float64], base: NDArray[np.float64]) -> NDArray[np.float64]:
    """The B-splines (n, m + 2) at x (n,)."""
    from scipy.interpolate import BSpline

    curves = BSpline(_extended(base), np.eye(base.size + DEGREE - 1), DEGREE)
    inside = np.clip(x, base[0], base[-1])
    values: NDArray[np.float64] = curves(inside)
    slopes = curves.derivative()(base[[0, -1]])
    for beyond, slope in ((x < base[0], slopes[0]), (x > base[-1], slopes[1])):
        values[beyond] += (x - inside)[beyond, None] * slope
    return values
