"""The features, and the logarithms of those with a long tail: amounts, counts, durations, prices.

    φ(x) = ( x;  f_k(x_{j_k}) − f_k(0) for k = 1..K ),     f(x) = sign(z) log(1 + |z|),     z = (x − origin) / unit

A feature has a logarithm if its skewness is beyond ``SKEWNESS`` and it has more than ``FEW_VALUES`` values. ``origin``
is 0 if 0 lies within the range of the values, else the end of the range opposite the tail. ``unit`` is the median of
|x − origin| over the rows that are not at the origin, negative if the tail leads to lower values. f(0) is subtracted so
that sparse rows stay sparse. At most ``MOST_ROWS`` rows are used: O(n log n) a feature.
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

#: Skewness of an exponential distribution. A column of few values holds marks or small counts.
SKEWNESS, FEW_VALUES = 2.0, 10
#: Most rows to learn from, evenly spaced.
MOST_ROWS = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Logarithms(AdditiveMap):
    """See the module.

    Attributes
    ----------
    width : number of features
    tailed : (K,) int64, ascending, the features that have a logarithm
    origins, units : (K,) float64, one for each of these features
    """

    stem: ClassVar[str] = "logarithms"
    members: ClassVar[tuple[str, ...]] = ("tailed", "origins", "units")
    keeps_sparse: ClassVar[bool] = True

    width: int
    tailed: NDArray[np.int64]
    origins: NDArray[np.float64]
    units: NDArray[np.float64]
    parameter = None

    @property
    def n_in(self) -> int:
        return self.width

    @property
    def n_out(self) -> int:
        return self.width + self.tailed.size

    @classmethod
    def learn(cls, rows: TrainingRows, parameter: Parameter) -> Self:
        selection = rows.selection[:: -(-rows.selection.size // MOST_ROWS)]
        tails = [(j, *tail) for j, values in enumerate(column_values(rows.X, selection)) if (tail := _tail(values))]
        tailed, origins, units = zip(*tails, strict=True) if tails else ((), (), ())
        return cls(int(rows.X.shape[1]), np.array(tailed, dtype=np.int64), np.array(origins), np.array(units))

    def apply(self, X: Matrix) -> Matrix:
        if sp.issparse(X):
            columns = sp.csc_array(X[:, self.tailed])
            of_value = np.repeat(np.arange(self.tailed.size), np.diff(columns.indptr))
            columns.data = self._logarithms(columns.data, of_value).astype(X.dtype)
            return sp.hstack([X, columns], format="csr")
        every = np.arange(self.tailed.size)
        return np.hstack([X, self._logarithms(X[:, self.tailed], every).astype(X.dtype, copy=False)])

    def _logarithms(self, values: AnyArray, of_value: NDArray[np.int64]) -> NDArray[np.float64]:
        """f − f(0) of ``values``; ``of_value`` has their indices in ``tailed``."""
        origins, units = self.origins[of_value], self.units[of_value]
        result: NDArray[np.float64] = _signed((values - origins) / units) - _signed(-origins / units)
        return result

    def names(self, features: Sequence[str]) -> list[str]:
        return [*features, *(f"{features[j]}, log scale" for j in self.tailed.tolist())]

    def sources(self) -> NDArray[np.int64]:
        return np.concatenate([np.arange(self.width, dtype=np.int64), self.tailed])

    @classmethod
    def of_arrays(cls, n_in: int, parameter: Parameter, arrays: Mapping[str, AnyArray]) -> Self:
        tailed = checked(arrays, "tailed", np.int64, (None,))
        origins, units = (checked(arrays, name, np.float64, (tailed.size,)) for name in ("origins", "units"))
        if (tailed < 0).any() or (tailed >= n_in).any() or (np.diff(tailed) <= 0).any():
            raise FeatureMapError(f"the array tailed does not name some of the {n_in} features, ascending")
        if (units == 0.0).any():
            raise FeatureMapError("a number of the array units is 0")
        return cls(n_in, tailed, origins, units)


def has_long_tails(X: Matrix) -> bool:
    """True if a feature of X (n, d), of at least one row, has a long tail."""
    some = X[:: -(-X.shape[0] // MOST_ROWS)]
    return any(_tail(values) is not None for values in column_values(some, np.arange(some.shape[0])))


def _signed(z: AnyArray) -> NDArray[np.float64]:
    """sign(z) log(1 + |z|)."""
    result: NDArray[np.float64] = np.copysign(np.log1p(np.abs(z)), z)
    return result


def _tail(values: ColumnValues) -> tuple[float, float] | None:
    """The origin and unit of a feature with these values; None if it has no long tail."""
    lowest, highest = values.in_order(np.array([0, values.n - 1])).tolist()
    if np.unique(values.nonzero).size + (values.nonzero.size < values.n) <= FEW_VALUES:
        return None
    size = max(abs(lowest), abs(highest))  # third moments of huge values overflow
    scaled = values.nonzero / size
    mean = scaled.sum() / values.n
    zeros = values.n - scaled.size
    second, third = ((((scaled - mean) ** k).sum() + zeros * (-mean) ** k) / values.n for k in (2, 3))
    skewness = third / second**1.5 if second > 0.0 else 0.0
    if not abs(skewness) > SKEWNESS:
        return None
    origin = 0.0 if lowest <= 0.0 <= highest else lowest if skewness > 0.0 else highest
    distances = np.abs(values.nonzero - origin)
    unit = float(np.median(distances[distances > 0.0]))
    return origin, unit if skewness > 0.0 else -unit
