"""Content of a model's file (``_support.container``): the header, fields and arrays of the kind, and the feature map.

The map's arrays are the members ``map.NAME.npy``. The header has its name (``features.map``) and the numbers of
features (``width``) and mapped columns (``columns``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from apsvm._support.errors import ModelError, require
from apsvm._support.types import JsonDict, JsonObject
from apsvm.data.features import LINEAR, map_of_arrays
from apsvm.data.features.joined import JOINT, Joined
from apsvm.models.header import Header
from apsvm.models.json import checked

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray, Arrays
    from apsvm.data.features.base import FeatureMap

#: Prefix of the names of a map's members.
OF_THE_MAP = "map."


@dataclass(frozen=True, slots=True)
class Content:
    """Content of a file for ``Model.of_content``, which takes every field and array. All methods raise ModelError."""

    header: Header
    fields: JsonDict  #: fields of the kind that are not taken yet
    arrays: dict[str, AnyArray]  #: arrays of the kind that are not taken yet, by name
    feature_map: FeatureMap | None  #: None for the identity
    columns: int  #: number of mapped columns
    dtype: str  #: type of the arrays

    def field(self, name: str, kind: Any) -> Any:
        """The field of this name, as the type of an annotation."""
        return checked(kind, self.fields.pop(name, None), name)

    def array(self, name: str, *shape: int) -> AnyArray:
        """The finite array of this name and shape, in the machine's byte order."""
        array = self.arrays.pop(name, None)
        if array is None:
            raise ModelError(f"expected the members {name}.npy …, found {', '.join(self.arrays) or 'none'}")
        native = np.dtype(self.dtype).newbyteorder("=")
        fits = array.dtype == self.dtype and array.shape == shape
        require(fits, f"{name} of {native} and shape {shape}, found {array.dtype} of {array.shape}")
        if not np.isfinite(array).all():
            raise ModelError(f"a number in {name} is not finite")
        return np.ascontiguousarray(array, dtype=native)

    def of_classes(self, classes: Sequence[JsonObject], shared: Header) -> Iterator[Content]:
        """Content for each class: the fields in which it differs from ``shared``, and its part of every array."""
        fields, arrays = dict(self.fields), dict(self.arrays)
        for name, array in arrays.items():
            require(array.shape[:1] == (len(classes),), f"{name} of shape ({len(classes)}, …), found {array.shape}")
        self.fields.clear()
        self.arrays.clear()
        for at, one in enumerate(classes):
            header, own = _divided(one)
            own_arrays = {name: array[at] for name, array in arrays.items()}
            yield replace(self, header=Header.from_json(header, shared), fields={**fields, **own}, arrays=own_arrays)

    def require_all_taken(self) -> None:
        """Raises ModelError for fields or arrays that are not the kind's."""
        for name in self.fields:
            raise ModelError(f"{name!r} is not known to this version of apsvm")
        require(not self.arrays, f"the model's members only, found {', '.join(self.arrays)} too")


def content_of(content: JsonObject, arrays: Arrays, dtype: str) -> Content:
    """Content of a file with this JSON and these arrays. Raises ModelError."""
    of_header, fields = _divided(content)
    fields.pop("kind", None)
    header = Header.from_json(of_header)
    of_map = {name.removeprefix(OF_THE_MAP): array for name, array in arrays.items() if name.startswith(OF_THE_MAP)}
    others = {name: array for name, array in arrays.items() if not name.startswith(OF_THE_MAP)}
    result = Content(header, fields, others, None, checked(int, fields.pop("width", None), "width"), dtype)
    features, width = header.features, result.columns
    n_features, rest = divmod(width, features.columns_of_feature)
    require(n_features >= 0 == rest, f"a multiple ≥ 0 of {features.columns_of_feature} in 'width', found {width}")
    require(features.names is None or len(features.names) == n_features, f"{n_features} 'features.names'")
    try:
        learned = (Joined.of_name if JOINT in features.map else map_of_arrays)(features.map, width, of_map)
    except ValueError as error:
        raise ModelError(f"its feature map {features.map!r}: {error}") from None
    require(learned.name == features.map, f"{learned.name!r} in 'features.map', found {features.map!r}")
    if learned.name == LINEAR:
        return result
    columns = result.field("columns", int)
    require(columns == learned.n_out, f"{learned.n_out} in 'columns', found {columns}")
    return replace(result, feature_map=learned, columns=columns)


def _divided(content: JsonObject) -> tuple[JsonDict, JsonDict]:
    """Fields of the header, and the others."""
    own = {"schema", *Header.__dataclass_fields__}
    of_header = {name: value for name, value in content.items() if name in own}
    return of_header, {name: value for name, value in content.items() if name not in own}
