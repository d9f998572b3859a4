"""Base class of feature maps. A map is one file: it learns, transforms a block of rows, and is stored as arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from apsvm._support.machine import memory
from apsvm._support.types import Matrix
from apsvm.data.features import FeatureMapError, MapName, Parameter, TrainingRows

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: Most columns of a map whose number of columns can be chosen.
MOST_COLUMNS = 100_000
#: Share of the machine's memory for mapped rows that must be dense.
SHARE_OF_MEMORY = 0.25


class FeatureMap(ABC):
    """φ: maps rows of ``n_in`` features to rows of ``n_out`` columns, each row by itself. An instance is learned, and
    immutable. The class variables decide its name and where it is offered."""

    #: The name without the parameter, and the default of the parameter; None without one.
    stem: ClassVar[str]
    default_parameter: ClassVar[Parameter] = None
    #: The names of its arrays.
    members: ClassVar[tuple[str, ...]] = ()
    #: True if the map of a CSR matrix is CSR: 0 maps to 0.
    keeps_sparse: ClassVar[bool] = False
    #: True if the map of any matrix is CSR.
    makes_sparse: ClassVar[bool] = False
    #: True if targets are used in learning.
    looks_at_targets: ClassVar[bool] = False
    #: True if the columns have one scale, and scaling them would do harm.
    of_one_scale: ClassVar[bool] = False

    #: The parameter in the name.
    parameter: Parameter

    @property
    @abstractmethod
    def n_in(self) -> int:
        """Number of features."""

    @property
    @abstractmethod
    def n_out(self) -> int:
        """Number of columns."""

    @property
    def name(self) -> str:
        """The full name: ``piecewise:4``."""
        return str(MapName(type(self), self.parameter))

    @classmethod
    def read(cls, text: str) -> Parameter:
        """The parameter from its text, here a whole number. Raises FeatureMapError."""
        if not (text.isascii() and text.isdecimal() and int(text[:9]) >= 1 and len(text) < 9):
            raise FeatureMapError(
                f"bad parameter in feature map '{cls.stem}:{text}': expected a whole number from 1 "
                f"on, as in {MapName(cls, cls.default_parameter)}"
            )
        return int(text)

    @classmethod
    @abstractmethod
    def learn(cls, rows: TrainingRows, parameter: Parameter) -> Self:
        """The map learned from these rows. Raises FeatureMapError for rows that do not fit."""

    @abstractmethod
    def apply(self, X: Matrix) -> Matrix:
        """φ of a block of rows, (k, n_in) CSR without repeated entries, or dense, float32 or float64: (k, n_out) of the
        same type. The result is CSR if X is and the map ``keeps_sparse``, or if it ``makes_sparse``; else C-ordered."""

    def values_of_row(self, stored: float) -> float:
        """The approximate number of values in a mapped CSR row, from a row with ``stored`` values. By default half of
        the columns of each stored feature."""
        return stored * (1.0 + self.n_out / max(1, self.n_in)) / 2.0

    @abstractmethod
    def names(self, features: Sequence[str]) -> list[str]:
        """The names (n_out,) of the columns, from the names ``features`` (n_in,)."""

    def arrays(self) -> dict[str, AnyArray]:
        """The arrays that define the map, float64 or int64, by the names in ``members``. ``of_arrays`` is the
        inverse."""
        return {name: getattr(self, name) for name in self.members}

    @classmethod
    @abstractmethod
    def of_arrays(cls, n_in: int, parameter: Parameter, arrays: Mapping[str, AnyArray]) -> Self:
        """The map with these arrays, from an untrusted file. Raises FeatureMapError if they are not those of a map of
        ``n_in`` features."""

    def parts(self) -> Parts | None:
        """The features behind each column; None if every column uses all."""
        return None

    def typical(self) -> NDArray[np.float64]:
        """(n_in,) float64, the mean of the training rows, or 0 if unknown."""
        return np.zeros(self.n_in)

    def limits(self, j: int) -> tuple[float, float] | None:
        """The lowest and the highest value of feature j in the training rows, if known."""
        return None

    def breaks(self, j: int) -> NDArray[np.float64]:
        """The values of feature j, ascending, at which a column has a bend or a step."""
        return np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Features behind each column of a map. A ranker on the columns is a sum of functions, one for each set of
    features used together.

    Attributes
    ----------
    features : the features of each part, ascending, 0..n_in−1; feature j alone is part j
    of_column : (n_out,) int64, the part of each column
    weighs : (n_out, n_out) CSR, if some columns are sums of others; see ``weights``
    """

    features: Sequence[tuple[int, ...]]
    of_column: NDArray[np.int64]
    weighs: Matrix | None = None

    def weights(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights (n_out,) of the same ranker as ``coef`` (n_out,), with 0 for columns that are sums of others."""
        return coef if self.weighs is None else np.asarray(self.weighs @ coef)


class AdditiveMap(FeatureMap):
    """A map whose columns are made of one feature each. A ranker on it is a sum of curves, one for each feature."""

    @abstractmethod
    def sources(self) -> NDArray[np.int64]:
        """(n_out,) int64, 0..n_in−1: the feature of each column."""

    def parts(self) -> Parts:
        return Parts([(j,) for j in range(self.n_in)], self.sources())


def checked(
    arrays: Mapping[str, AnyArray], name: str, kind: type[np.generic], shape: tuple[int | None, ...]
) -> AnyArray:
    """The array ``name``, if it is finite and has this type and shape (None: any length). Raises FeatureMapError."""
    array = arrays[name]
    wanted = np.dtype(kind).newbyteorder("<")
    fits = len(array.shape) == len(shape) and all(
        expected in (None, length) for expected, length in zip(shape, array.shape, strict=True)
    )
    if array.dtype != wanted or not fits:
        text = ", ".join("any" if length is None else str(length) for length in shape)
        raise FeatureMapError(
            f"expected the array {name} of {np.dtype(kind)} and shape ({text}), found {array.dtype} of {array.shape}"
        )
    if not np.isfinite(array).all():
        raise FeatureMapError(f"a number of the array {name} is not finite")
    return np.ascontiguousarray(array, dtype=kind)


def check_size(name: str, n_rows: int, n_out: int, itemsize: int, advice: str) -> None:
    """Raises FeatureMapError if ``n_rows`` dense rows of ``n_out`` columns are too large."""
    if n_out > MOST_COLUMNS:
        raise FeatureMapError(f"feature map {name} makes {n_out:,} columns, more than {MOST_COLUMNS:,}: {advice}")
    needed, most = n_rows * n_out * itemsize, int(SHARE_OF_MEMORY * memory())
    if needed > most:
        raise FeatureMapError(
            f"feature map {name} makes {n_rows:,} rows of {n_out:,} dense columns, {needed / 2**30:.1f} GB, more than "
            f"a quarter of this machine's memory ({most / 2**30:.1f} GB): {advice}"
        )
