"""Type aliases for annotations. Importing this loads nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

#: (n, d) features, one row each: a scipy CSR matrix or array, or a dense array. scipy declares no types.
Matrix: TypeAlias = Any
#: (n,) labels, query ids or weights, as scikit-learn takes them: an array, a list, a column of a data frame.
Column: TypeAlias = Any
#: What dask declares no types for: an array or data frame over parts, a list of delayed parts; and one such part.
Collection: TypeAlias = Any
Part: TypeAlias = Any
#: A JSON object that has been read, or is to be written.
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
    #: (m,) numbers of rows, int32 or int64: the narrower one where there are fewer than 2³¹ rows.
    RowNumbers: TypeAlias = NDArray[np.signedinteger[Any]]
