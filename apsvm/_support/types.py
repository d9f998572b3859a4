"""Type aliases for annotations. Importing this loads nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

#: (n, d) features, one row each: a scipy CSR matrix or array, or a dense array. scipy declares no types.
Matrix: TypeAlias = Any
#: (n,) labels, query ids or weights, as scikit-learn takes them: an array, a list, a column of a data frame.
Column: TypeAlias = Any
#: A dask array or data frame, or a list of delayed parts; and one such part. dask declares no types.
Collection: TypeAlias = Any
Part: TypeAlias = Any
#: A JSON object, read or to write.
JsonObject: TypeAlias = Mapping[str, Any]
JsonDict: TypeAlias = dict[str, Any]
#: A seed as scikit-learn takes it.
Seed: TypeAlias = "int | np.random.RandomState | None"

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    #: An array of any type.
    AnyArray: TypeAlias = NDArray[Any]
    #: Arrays by name.
    Arrays: TypeAlias = Mapping[str, AnyArray]
    #: (m,) row numbers, int32 for fewer than 2³¹ rows, else int64.
    RowNumbers: TypeAlias = NDArray[np.signedinteger[Any]]
