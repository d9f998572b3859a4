"""Feature maps, which stand in front of w: one file a map, one line here.

    x  →  map φ  →  scaling (``apsvm.data.features.scaling``)  →  w, and a constant feature last

A map is learned from the training rows alone, is kept in the model as arrays, and is applied block by block
(``apsvm.data.features.mapped``). Its parameter stands in its name: ``piecewise:4``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from apsvm._support import sparse as sp
from apsvm._support.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm._support.types import AnyArray, Matrix
    from apsvm.data.features.base import FeatureMap

#: Parameter in a map's name, behind the colon: a number, or two.
Parameter: TypeAlias = "int | tuple[int, int] | None"

#: The map that leaves features as they are.
LINEAR = "linear"

FEATURE_MAPS: Registry[FeatureMap] = Registry(
    "feature map",
    {
        LINEAR: "apsvm.data.features.linear:Linear",
        "logarithms": "apsvm.data.features.logarithms:Logarithms",
        "piecewise": "apsvm.data.features.piecewise:Piecewise",
        "piecewise:k": "apsvm.data.features.piecewise:Piecewise",
        "rules": "apsvm.data.features.rules:Rules",
        "rules:n": "apsvm.data.features.rules:Rules",
        "products": "apsvm.data.features.products:Products",
        "nystroem": "apsvm.data.features.nystroem:Nystroem",
        "nystroem:m": "apsvm.data.features.nystroem:Nystroem",
    },
)
"""The form of a name → its class."""


class FeatureMapError(ValueError):
    """A bad parameter in a name; rows from which a map cannot be learned; arrays that are not those of a map."""


class TrainingRows(NamedTuple):
    """Input from which a feature map is learned.

    Attributes
    ----------
    X : CSR or dense (n, d)
    selection : (m,) int64, m > 0, the rows of X that count
    targets : (K, m) float64, for maps that use them, or None
    rng : the source of random draws
    """

    X: Matrix
    selection: NDArray[np.int64]
    targets: NDArray[np.float64] | None
    rng: np.random.Generator


class MapName(NamedTuple):
    """A parsed map name.

    Attributes
    ----------
    kind : the class of the map
    parameter : the parameter in the name, or its default; None for a map without one
    """

    kind: type[FeatureMap]
    parameter: Parameter

    def __str__(self) -> str:
        return self.kind.stem if self.parameter is None else f"{self.kind.stem}:{self.parameter}"


def parsed(name: str) -> MapName:
    """The name of a map, in any case; ``str()`` of the result is the full name, ``piecewise:4`` for ``piecewise``.

    Raises
    ------
    UnknownNameError : (a ValueError) no such map; the message lists all, and the nearest
    FeatureMapError : (a ValueError) a bad parameter
    """
    form, text = FEATURE_MAPS.spelled(name)
    kind = FEATURE_MAPS[form]
    if text is None:
        return MapName(kind, kind.default_parameter)
    return MapName(kind, kind.read(text))


def learn_map(
    name: str,
    X: Matrix,
    selection: NDArray[np.int64] | None = None,
    *,
    targets: NDArray[np.float64] | None = None,
    seed: int = 0,
) -> FeatureMap:
    """The map ``name`` of the rows ``selection`` (m,) int64 of X, CSR or dense (n, d); all rows by default.

    ``targets`` (K, m) float64 are fitted by the boosting of ``rules``: 0 and 1 of classes, or gains. ``seed`` draws the
    landmarks of ``nystroem``, and the rows and features of ``rules``.

    Raises
    ------
    UnknownNameError, FeatureMapError : (ValueErrors) as ``parsed``; rows from which the map cannot be learned
    ValueError : X is no CSR matrix
    """
    import numpy as np

    if sp.issparse(X):
        sp.require_integers(X)
    kind, parameter = parsed(name)
    which = np.arange(X.shape[0], dtype=np.int64) if selection is None else selection
    if which.size == 0:
        raise FeatureMapError(f"{name}: there are no rows to learn it from")
    return kind.learn(TrainingRows(X, which, targets, np.random.default_rng(seed)), parameter)


def map_of_arrays(name: str, n_in: int, arrays: Mapping[str, AnyArray]) -> FeatureMap:
    """The map ``name`` of ``n_in`` features from the output of ``FeatureMap.arrays``. Raises UnknownNameError and
    FeatureMapError, both ValueErrors, if an array does not fit."""
    kind, parameter = parsed(name)
    if set(arrays) != set(kind.members):
        expected, found = (", ".join(sorted(names)) or "none" for names in (kind.members, arrays))
        raise FeatureMapError(f"expected the arrays {expected} of the feature map {name}, found {found}")
    return kind.of_arrays(n_in, parameter, arrays)
