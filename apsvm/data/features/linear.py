"""The identity map: φ(x) = x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from apsvm._support.types import Matrix
from apsvm.data.features import Parameter, TrainingRows
from apsvm.data.features.base import AdditiveMap

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray


@dataclass(frozen=True, slots=True)
class Linear(AdditiveMap):
    """φ(x) = x for ``width`` features."""

    stem: ClassVar[str] = "linear"
    keeps_sparse: ClassVar[bool] = True

    width: int
    parameter = None

    @property
    def n_in(self) -> int:
        return self.width

    @property
    def n_out(self) -> int:
        return self.width

    @classmethod
    def learn(cls, rows: TrainingRows, parameter: Parameter) -> Self:
        return cls(int(rows.X.shape[1]))

    def apply(self, X: Matrix) -> Matrix:
        return X

    def names(self, features: Sequence[str]) -> list[str]:
        return list(features)

    def sources(self) -> NDArray[np.int64]:
        return np.arange(self.width, dtype=np.int64)

    @classmethod
    def of_arrays(cls, n_in: int, parameter: Parameter, arrays: Mapping[str, AnyArray]) -> Self:
        return cls(n_in)
