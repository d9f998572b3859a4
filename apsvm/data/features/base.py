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

#: More columns than this are refused where a map has a choice of how many it makes.
MOST_COLUMNS = 100_000
#: Mapped rows that have to be dense may take this share of the machine's memory.
SHARE_OF_MEMORY = 0.25


class FeatureMap(ABC):
    """φ: rows of ``n_in`` features to rows of ``n_out`` columns, each row by itself.

    An instance is learned, and immutable. What a class declares decides where it is offered and how it is named.
    """

    #: The name without its parameter, and the parameter's default; None without a parameter.
    stem: ClassVar[str]
    default_parameter: ClassVar[Parameter] = None
    #: The names of its arrays.
    members: ClassVar[tuple[str, ...]] = ()
    #: Whether the map of a CSR matrix is one: whether 0 maps to 0.
    keeps_sparse: ClassVar[bool] = False
    #: True if the map of any matrix is CSR.
    makes_sparse: ClassVar[bool] = False
    #: True if it is learned from the rows' targets too.
    looks_at_targets: ClassVar[bool] = False
    #: True if its columns are of one scale, so that another would only do harm.
    of_one_scale: ClassVar[bool] = False

    #: That in its name.
    parameter: Parameter

    @property
    @abstractmethod
    def n_in(self) -> int:
        """Number of features."""

    @property
    @abstractmethod
    def n_out(self) -> int:
        """Number of columns made of them."""

    @property
    def name(self) -> str:
        """In full: ``piecewise:4``."""
        return str(MapName(type(self), self.parameter))

    @classmethod
    def read(cls, text: str) -> Parameter:
        """The parameter that a name has in words: here a whole number. Raises FeatureMapError."""
        if not (text.isascii() and text.isdecimal() and int(text[:9]) >= 1 and len(text) < 9):
            raise FeatureMapError(
                f"bad parameter in feature map '{cls.stem}:{text}': expected a whole number from 1 "
                f"on, as in {MapName(cls, cls.default_parameter)}"
            )
        return int(text)

    @classmethod
    @abstractmethod
    def learn(cls, rows: TrainingRows, parameter: Parameter) -> Self:
        """The map learned from these rows.

        Raises
        ------
        FeatureMapError : rows that it does not take
        """

    @abstractmethod
    def apply(self, X: Matrix) -> Matrix:
        """φ of a block of rows, (k, n_in) CSR (without repeated entries) or dense, float32 or float64: (k, n_out) of
        the same type, CSR if X is and the map ``keeps_sparse``, or if it ``makes_sparse``, else C-ordered and dense."""

    def values_of_row(self, stored: float) -> float:
        """About how many values a mapped row stores, of a row that stores ``stored``, where it is CSR: here half of a
        feature's columns for each."""
        return stored * (1.0 + self.n_out / max(1, self.n_in)) / 2.0

    @abstractmethod
    def names(self, features: Sequence[str]) -> list[str]:
        """Names (n_out,) of the columns, given the names ``features`` (n_in,) of the features."""

    def arrays(self) -> dict[str, AnyArray]:
        """Arrays that define the map, float64 or int64, by the names in ``members``; ``of_arrays`` makes an equal map
        of them."""
        return {name: getattr(self, name) for name in self.members}

    @classmethod
    @abstractmethod
    def of_arrays(cls, n_in: int, parameter: Parameter, arrays: Mapping[str, AnyArray]) -> Self:
        """The map with these arrays, which anybody may have written.

        Raises
        ------
        FeatureMapError : they are not those of a map of ``n_in`` features
        """

    def columns_mean_the_same(self, other: FeatureMap) -> bool:
        """True if weights of one map's columns can start training with the other (warm start). By default only equal
        maps qualify."""
        mine, theirs = self.arrays(), other.arrays()
        return (
            self.name == other.name
            and self.n_in == other.n_in
            and all(np.array_equal(mine[name], theirs[name]) for name in mine)
        )

    def parts(self) -> Parts | None:
        """The features that its columns are made of; None where each is made of all."""
        return None

    def typical(self) -> NDArray[np.float64]:
        """(n_in,) float64, the mean of the training rows; 0 where it is not known."""
        return np.zeros(self.n_in)

    def limits(self, j: int) -> tuple[float, float] | None:
        """The lowest and the highest value of feature j in the training rows, where they are known."""
        return None

    def breaks(self, j: int) -> NDArray[np.float64]:
        """Positions, ascending, at which a column made from feature j has a bend or a step."""
        return np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Features behind each column of a map. A ranker on the columns is a sum of functions, one for each set of
    features used together.

    Attributes
    ----------
    features : the features of each part, ascending, 0..n_in−1; feature j alone is part j
    of_column : (n_out,) int64, the part that a column belongs to
    weighs : (n_out, n_out) CSR, of columns that are sums of others, see ``weights``; None without such columns
    """

    features: Sequence[tuple[int, ...]]
    of_column: NDArray[np.int64]
    weighs: Matrix | None = None

    def weights(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights (n_out,) of the same ranker as by ``coef`` (n_out,), none for what is a sum of other columns."""
        return coef if self.weighs is None else np.asarray(self.weighs @ coef)


class AdditiveMap(FeatureMap):
    """A map each of whose columns is made of one feature: a ranker on it is a sum of curves, one a feature."""

    @abstractmethod
    def sources(self) -> NDArray[np.int64]:
        """(n_out,) int64, 0..n_in−1: the feature that each column is made of."""

    def parts(self) -> Parts:
        return Parts([(j,) for j in range(self.n_in)], self.sources())

    def columns_mean_the_same(self, other: FeatureMap) -> bool:
        """True if each feature has as many columns in both maps: then only the knots can differ."""
        return (
            self.name == other.name
            and isinstance(other, AdditiveMap)
            and np.array_equal(self.sources(), other.sources())
        )


def checked(
    arrays: Mapping[str, AnyArray], name: str, kind: type[np.generic], shape: tuple[int | None, ...]
) -> AnyArray:
    """The array ``name``, of that type and shape (None: any length), and finite. Raises FeatureMapError."""
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
    """Raises FeatureMapError where ``n_rows`` dense rows of ``n_out`` columns are too many."""
    if n_out > MOST_COLUMNS:
        raise FeatureMapError(f"feature map {name} makes {n_out:,} columns, more than {MOST_COLUMNS:,}: {advice}")
    needed, most = n_rows * n_out * itemsize, int(SHARE_OF_MEMORY * memory())
    if needed > most:
        raise FeatureMapError(
            f"feature map {name} makes {n_rows:,} rows of {n_out:,} dense columns, {needed / 2**30:.1f} GB, more than "
            f"a quarter of this machine's memory ({most / 2**30:.1f} GB): {advice}"
        )
