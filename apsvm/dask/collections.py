"""Collections of dask (arrays, data frames, lists of delayed parts) as rows on the workers, and columns of scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from apsvm._support.naming import named_as_parameters
from apsvm._support.types import Collection, Matrix, Part
from apsvm.dask.cluster import Cluster
from apsvm.dask.parts import frame_or_array
from apsvm.dask.reading import data_of
from apsvm.data.dataset import DataError

if TYPE_CHECKING:
    from distributed import Client

    from apsvm._support.types import AnyArray
    from apsvm.data.dataset import Dataset


def client_of(client: Client | None) -> Client:
    """``client``, or the current one if None. Raises ValueError without one."""
    from distributed import get_client

    if client is not None:
        return client
    try:
        return get_client()
    except ValueError:
        raise ValueError(
            "there is no dask client: make one, Client(address), or pass client=; without a cluster use the estimators "
            "of apsvm"
        ) from None


def is_collection(values: Collection) -> bool:
    """True if ``values`` is a dask collection or a list of delayed parts."""
    from dask.delayed import Delayed

    is_list = isinstance(values, list | tuple) and bool(values) and all(isinstance(part, Delayed) for part in values)
    return is_list or hasattr(values, "to_delayed")


def parts_of(name: str, values: Collection) -> list[Part]:
    """Delayed parts of a collection's rows, in order. Raises TypeError if ``values`` is not a collection."""
    if not is_collection(values):
        type_name = type(values).__name__
        raise TypeError(f"{name} is a dask array, a dask data frame or a list of delayed parts, found {type_name}")
    if isinstance(values, list | tuple):
        return list(values)
    if getattr(values, "ndim", 0) == 2 and hasattr(values, "numblocks") and values.numblocks[1] > 1:
        values = values.rechunk({1: -1})
    delayed = values.to_delayed()
    return list(delayed.ravel() if hasattr(delayed, "ravel") else delayed)


def rows_of(cluster: Cluster, X: Collection) -> Dataset:
    """Rows of X, with their features on the workers; for a data frame, with its learned columns.

    Raises
    ------
    TypeError : X is not a collection; ValueError : parts that are not features, or do not fit together
    """
    from apsvm.estimators.messages import logger

    loaded = cluster.compute(frame_or_array, parts_of("X", X))
    with named_as_parameters({}):
        data = data_of(cluster, loaded, "X")
    for remark in () if data.table is None else data.table.remarks:
        logger.info("%s", remark)
    return data


def column_of(cluster: Cluster, name: str, values: Collection) -> Any:
    """(n,) values of a column, gathered in this process. Values that are not a collection are returned unchanged."""
    if values is None or not is_collection(values):
        return values
    parts = cluster.gather(cluster.compute(_values, parts_of(name, values)))
    column = np.concatenate([part for part in parts if part.size] or parts[:1])
    column = column[:, 0] if column.ndim == 2 and column.shape[1] == 1 else column
    if column.ndim != 1:
        raise DataError(f"expected a value of {name} a row, found the shape {column.shape}")
    return column.astype(str) if column.dtype.kind == "O" else column


def _values(part: Part, number: int) -> AnyArray:
    return np.asarray(part)


def mapped(X: Collection, function: Callable[[Matrix], AnyArray], *, dtype: DTypeLike = np.float64) -> Collection:
    """A lazy column with a value of ``function`` for each row: a dask array, series or list, as X is. For rows in this
    process, computed at once."""
    import dask

    if hasattr(X, "map_blocks"):
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        return X.map_blocks(_of_rows, function, dtype, drop_axis=1, meta=np.empty(0, dtype=dtype))
    if hasattr(X, "map_partitions"):
        return X.map_partitions(_as_series, function, dtype, meta=("score", dtype))
    return list(map(dask.delayed(function), parts_of("X", X))) if is_collection(X) else function(X)


def _of_rows(X: Matrix, function: Callable[[Matrix], AnyArray], dtype: DTypeLike) -> AnyArray:
    return function(X) if X.shape[0] else np.empty(0, dtype=dtype)


def _as_series(frame: Part, function: Callable[[Matrix], AnyArray], dtype: DTypeLike) -> Part:
    import pandas as pd

    return pd.Series(_of_rows(frame, function, dtype), index=frame.index, name="score")
