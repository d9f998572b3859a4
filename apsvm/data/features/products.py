"""Products of pairs: a ranker on them is a polynomial of degree two.

    φ(x) = ( z_1 … z_d;  z_i z_j for i ≤ j ),     z_j = (x_j − mean_j) / deviation_j

The map standardises the features, since products of features far from 0 are nearly proportional to the features.
d + d(d+1)/2 columns, dense.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from apsvm._support.types import Matrix
from apsvm.data.features import FeatureMapError, Parameter, TrainingRows
from apsvm.data.features.base import FeatureMap, Parts, check_size, checked
from apsvm.data.features.standardised import standardisation, standardised

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray


@dataclass(frozen=True, slots=True, eq=False)
class Products(FeatureMap):
    """See the module; centre, deviation : (n_in,) float64."""

    stem: ClassVar[str] = "products"
    members: ClassVar[tuple[str, ...]] = ("centre", "deviation")

    centre: NDArray[np.float64]
    deviation: NDArray[np.float64]
    parameter = None

    @property
    def n_in(self) -> int:
        return self.centre.size

    @property
    def n_out(self) -> int:
        return _columns(self.n_in)

    @classmethod
    def learn(cls, rows: TrainingRows, parameter: Parameter) -> Self:
        X, selection, *_ = rows
        advice = f"it takes all pairs of {X.shape[1]:,} features; piecewise or nystroem make fewer"
        check_size(cls.stem, selection.size, _columns(X.shape[1]), X.dtype.itemsize, advice)
        return cls(*standardisation(X, selection))

    def apply(self, X: Matrix) -> Matrix:
        d = self.n_in
        z = standardised(X, self.centre, self.deviation)
        out = np.empty((X.shape[0], self.n_out), dtype=X.dtype)
        out[:, :d] = z
        at = d
        for i in range(d):
            np.multiply(z[:, i : i + 1], z[:, i:], out=out[:, at : at + d - i])
            at += d - i
        return out

    def names(self, features: Sequence[str]) -> list[str]:
        pairs = [
            f"{one}²" if i == j else f"{one}·{features[j]}"
            for i, one in enumerate(features)
            for j in range(i, len(features))
        ]
        return [*features, *pairs]

    def parts(self) -> Parts:
        d = self.n_in
        pairs = [(i, j) for i in range(d) for j in range(i + 1, d)]
        number = {pair: d + at for at, pair in enumerate(pairs)}
        products = [i if i == j else number[i, j] for i in range(d) for j in range(i, d)]
        return Parts([*((j,) for j in range(d)), *pairs], np.array([*range(d), *products], dtype=np.int64))

    def typical(self) -> NDArray[np.float64]:
        return self.centre

    @classmethod
    def of_arrays(cls, n_in: int, parameter: Parameter, arrays: Mapping[str, AnyArray]) -> Self:
        centre, deviation = (checked(arrays, name, np.float64, (n_in,)) for name in cls.members)
        if (deviation <= 0.0).any():
            raise FeatureMapError("a number of the array deviation is not above 0")
        return cls(centre, deviation)


def _columns(d: int) -> int:
    return d + d * (d + 1) // 2
