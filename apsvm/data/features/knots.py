"""What maps with knots share: each feature's own, chosen by its values, kept as arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from apsvm.data.features import FeatureMapError, Parameter, TrainingRows
from apsvm.data.features.base import AdditiveMap, checked
from apsvm.data.features.columns import ColumnValues, column_values

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray


@dataclass(frozen=True, slots=True, eq=False)
class KnottedMap(AdditiveMap):
    """An additive map with knots.

    Attributes
    ----------
    knots : float64, ascending within a feature
    starts : (n_in + 1,) int64, those of feature j are ``knots[starts[j]:starts[j + 1]]``
    ranges : (3, n_in) float64, the lowest value, the mean and the highest of each feature in the training rows
    """

    members: ClassVar[tuple[str, ...]] = ("knots", "starts", "ranges")
    #: A feature has none, or at least this many.
    least_knots: ClassVar[int] = 1

    parameter: Parameter
    knots: NDArray[np.float64]
    starts: NDArray[np.int64]
    ranges: NDArray[np.float64]

    @staticmethod
    @abstractmethod
    def choose(values: ColumnValues, K: int) -> NDArray[np.float64]:
        """The knots of a feature of these values, ascending."""

    @property
    def n_in(self) -> int:
        return self.starts.size - 1

    @classmethod
    def learn(cls, rows: TrainingRows, parameter: Parameter) -> Self:
        assert isinstance(parameter, int)
        knots, ranges = [np.empty(0)], np.empty((3, rows.X.shape[1]))
        for j, values in enumerate(column_values(rows.X, rows.selection)):
            knots.append(cls.choose(values, parameter))
            ranges[:, j] = values.range()
        starts = np.cumsum([one.size for one in knots], dtype=np.int64)
        return cls(parameter, np.concatenate(knots), starts, ranges)

    def of_feature(self, j: int) -> NDArray[np.float64]:
        """The knots of feature j."""
        return self.knots[self.starts[j] : self.starts[j + 1]]

    def typical(self) -> NDArray[np.float64]:
        mean: NDArray[np.float64] = self.ranges[1]
        return mean

    def breaks(self, j: int) -> NDArray[np.float64]:
        return self.of_feature(j)

    def limits(self, j: int) -> tuple[float, float]:
        return float(self.ranges[0, j]), float(self.ranges[2, j])

    def arrays(self) -> dict[str, AnyArray]:
        return {"knots": self.knots, "starts": self.starts, "ranges": self.ranges}

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
        counts = np.diff(starts)
        if ((counts > 0) & (counts < cls.least_knots)).any():
            raise FeatureMapError(f"a feature has less than {cls.least_knots} knots")
        if (ranges[1:] < ranges[:-1]).any():
            raise FeatureMapError("the array ranges is not of lowest values, means and highest values")
        return cls(parameter, knots, starts, ranges)
