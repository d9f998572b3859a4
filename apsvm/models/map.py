"""The feature map in a model's file: its arrays are the members ``map.NAME.npy``; the header has its name
(``features.map``) and the numbers of features (``width``) and columns (``columns``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from apsvm._support.errors import ModelError
from apsvm._support.types import JsonObject
from apsvm.data.features import LINEAR, map_of_arrays
from apsvm.data.features.joined import JOINT, Joined
from apsvm.models.header import Header
from apsvm.models.json import checked

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray
    from apsvm.data.features.base import FeatureMap

#: Prefix of the names of these members.
OF_THE_MAP = "map."


def arrays_of_map(feature_map: FeatureMap | None) -> dict[str, AnyArray]:
    """Arrays of a map by the names of their members, little-endian."""
    arrays = {} if feature_map is None else feature_map.arrays()
    return {
        OF_THE_MAP + name: array.astype(array.dtype.newbyteorder("<"), copy=False) for name, array in arrays.items()
    }


def map_in(content: JsonObject, width: int, header: Header, arrays: Mapping[str, AnyArray]) -> FeatureMap | None:
    """The feature map in the arrays of a file; None without a map. Raises ModelError."""
    name = header.features.map
    if width < 0 or width % header.features.columns_of_feature:
        raise ModelError(f"its header's 'width' is {width}")
    names, n_features = header.features.names, width // header.features.columns_of_feature
    if names is not None and len(names) != n_features:
        raise ModelError(f"its header names {len(names)} features, and it has {n_features}")
    of_map = {
        member.removeprefix(OF_THE_MAP): array for member, array in arrays.items() if member.startswith(OF_THE_MAP)
    }
    try:
        feature_map = (Joined.of_name if JOINT in name else map_of_arrays)(name, width, of_map)
    except ValueError as error:
        raise ModelError(f"its feature map {name!r}: {error}") from None
    if feature_map.name != name:
        raise ModelError(f"its feature map is called {name!r}, expected {feature_map.name!r}")
    if name == LINEAR:
        return None
    columns = checked(int, content.get("columns"), "columns")
    if columns != feature_map.n_out:
        raise ModelError(f"its feature map makes {feature_map.n_out} columns, its header says {columns}")
    return feature_map
