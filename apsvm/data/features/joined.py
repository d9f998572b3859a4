"""Several maps of the same features side by side, for the average of rankers on each of them.

φ(x) = ( φ_1(x);  φ_2(x); … )
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.features import FeatureMapError, Parameter, TrainingRows, map_of_arrays
from apsvm.data.features.base import FeatureMap, Parts

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray


#: Separator of the names of joined maps.
JOINT = "+"


@dataclass(frozen=True, slots=True, eq=False)
class Joined(FeatureMap):
    """See the module. The name is the names of ``maps`` with ``+`` between them. The array ``knots`` of the first map
    is the array ``0.knots``."""

    maps: tuple[FeatureMap, ...]
    parameter = None

    @property
    def name(self) -> str:
        return JOINT.join(one.name for one in self.maps)

    @property
    def n_in(self) -> int:
        return self.maps[0].n_in

    @property
    def n_out(self) -> int:
        return sum(one.n_out for one in self.maps)

    def slices(self) -> list[slice]:
        """The columns of each map."""
        ends = np.cumsum([0, *(one.n_out for one in self.maps)]).tolist()
        return [slice(begin, end) for begin, end in pairwise(ends)]

    @classmethod
    def learn(cls, rows: TrainingRows, parameter: Parameter) -> Self:
        raise FeatureMapError("maps are joined, and not learned together")

    def apply(self, X: Matrix) -> Matrix:
        parts = [one.apply(X) for one in self.maps]
        if any(sp.issparse(part) for part in parts):
            return sp.hstack([sp.csr_array(part) for part in parts], format="csr")
        return np.hstack(parts)

    def values_of_row(self, stored: float) -> float:
        return sum(one.values_of_row(stored) for one in self.maps)

    def names(self, features: Sequence[str]) -> list[str]:
        return [name for one in self.maps for name in one.names(features)]

    def parts(self) -> Parts | None:
        each = [one.parts() for one in self.maps]
        if not any(each):
            return None
        numbers: dict[tuple[int, ...], int] = {(j,): j for j in range(self.n_in)}
        of_column, weighs = [], []
        for one, parts in zip(self.maps, each, strict=True):
            # A map without parts is one part, of all features.
            parts = parts or Parts([tuple(range(self.n_in))], np.zeros(one.n_out, dtype=np.int64))
            here = np.array([numbers.setdefault(features, len(numbers)) for features in parts.features])
            of_column.append(here[parts.of_column])
            weighs.append(sp.eye_array(one.n_out) if parts.weighs is None else parts.weighs)
        return Parts(list(numbers), np.concatenate(of_column), sp.block_diag(weighs, format="csr"))

    def _knowing(self) -> FeatureMap:
        """The first map that knows the training rows, else the first map."""
        return next((one for one in self.maps if self.n_in and one.limits(0) is not None), self.maps[0])

    def typical(self) -> NDArray[np.float64]:
        return self._knowing().typical()

    def limits(self, j: int) -> tuple[float, float] | None:
        return self._knowing().limits(j)

    def breaks(self, j: int) -> NDArray[np.float64]:
        return np.unique(np.concatenate([one.breaks(j) for one in self.maps]))

    def arrays(self) -> dict[str, AnyArray]:
        return {f"{at}.{name}": array for at, one in enumerate(self.maps) for name, array in one.arrays().items()}

    @classmethod
    def of_arrays(cls, n_in: int, parameter: Parameter, arrays: Mapping[str, AnyArray]) -> Self:
        raise FeatureMapError("maps that are joined are made by their names")

    @classmethod
    def of_name(cls, name: str, n_in: int, arrays: Mapping[str, AnyArray]) -> Self:
        """Rebuilds the map ``name`` from the output of ``arrays``. Raises as ``map_of_arrays``."""
        names = name.split(JOINT)
        of_map: list[dict[str, AnyArray]] = [{} for _ in names]
        for member, array in arrays.items():
            at, dot, name = member.partition(".")
            if not (dot and at.isascii() and at.isdecimal() and len(at) < 4 and int(at) < len(names)):
                raise FeatureMapError(f"there is no map that the array {member} is of: there are {len(names)}")
            of_map[int(at)][name] = array
        return cls(tuple(map_of_arrays(name, n_in, own) for name, own in zip(names, of_map, strict=True)))
