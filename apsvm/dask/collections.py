"""What users hand over, dask arrays, data frames or lists of delayed parts, as parts of rows; and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from apsvm._support.types import Collection, Matrix, Part
from apsvm.dask.sources import as_matrix, names_of
from apsvm.data.dataset import DataError

if TYPE_CHECKING:
    from distributed import Client

    from apsvm._support.types import AnyArray
    from apsvm.models.base import Ranker


def client_of(client: Client | None) -> Client:
    """The client given, or the current one. Raises ValueError where there is none."""
    from distributed import get_client

    if client is not None:
        return client
    try:
        return get_client()
    except ValueError:
        raise ValueError(
            "there is no dask client: make one, Client(address), or pass client=; without a cluster the estimators of "
            "apsvm itself do the same"
        ) from None


def parts_of(name: str, values: Collection) -> list[Part]:
    """The parts of rows of a collection, delayed, in order. Raises TypeError for what is none."""
    import dask.array as da
    from dask.delayed import Delayed

    if isinstance(values, da.Array):
        if values.ndim == 2 and values.numblocks[1] > 1:
            values = values.rechunk({1: -1})
        return list(values.to_delayed().ravel())
    if hasattr(values, "to_delayed"):
        return list(values.to_delayed())
    if isinstance(values, list | tuple) and values and all(isinstance(part, Delayed) for part in values):
        return list(values)
    raise TypeError(
        f"{name} is a dask array, a dask data frame or a list of delayed parts, found {type(values).__name__}"
    )


def columns_of_parts(
    X: Collection, y: Collection, **columns: Collection
) -> tuple[list[Part], list[Part], dict[str, list[Part] | None]]:
    """The parts of X, of y and of each column, which go together; columns that are None stay so.

    Raises
    ------
    TypeError : no collection; ValueError : numbers of parts that differ
    """
    import dask.array as da

    rows = parts_of("X", X)

    def beside(name: str, column: Collection) -> list[Part]:
        if isinstance(column, da.Array) and isinstance(X, da.Array):
            column = _cut_as(X, column)
        parts = parts_of(name, column)
        if len(parts) != len(rows):
            raise ValueError(f"X has {len(rows)} parts and {name} {len(parts)}: cut both alike")
        return parts

    others = {name: None if column is None else beside(name, column) for name, column in columns.items()}
    return rows, beside("y", y), others


def _cut_as(X: Collection, column: Collection) -> Collection:
    """The column in parts of as many rows as those of X; as it is where these numbers are not known."""
    n, n_column = X.shape[0], column.shape[0]
    if np.isnan([n, n_column]).any():
        return column
    if n != n_column:
        raise ValueError(f"X has {n} rows, the columns beside it {n_column}")
    return column.rechunk({0: X.chunks[0]})


def computed(
    client: Client,
    X: Sequence[Part],
    *columns: Sequence[Part] | None,
    copies: bool,
    expected: Sequence[str] | None = None,
) -> list[tuple[Part, ...]]:
    """Futures of the parts, each a tuple of what stands side by side: the columns of ``ArrayPart``, its number, the
    names that the columns of X have in the first part, which are held to those ``expected``, and ``copies``."""
    rows = client.compute(list(X))
    beside = [None if column is None else client.compute(list(column)) for column in columns]
    with client.as_current():
        names = client.submit(_names_checked, rows[0], expected).result()
    return [
        (of_rows, *(None if column is None else column[part] for column in beside), part, names, copies)
        for part, of_rows in enumerate(rows)
    ]


def require_names(estimator: object, X: Matrix) -> None:
    """scikit-learn's rule: the names of X's columns, if any, are those of the fit, in the same order. ``estimator``
    has ``feature_names_in_``, perhaps. Raises ValueError, and warns where one of the two has no names."""
    from sklearn.utils.validation import _check_feature_names

    _check_feature_names(estimator, X, reset=False)


def _names_checked(X: Matrix, expected: Sequence[str] | None) -> tuple[str, ...] | None:
    """What the columns of a part are called; ``require_names`` where something is expected of them."""
    names = names_of(X)
    if names is not None and expected is not None:
        require_names(SimpleNamespace(feature_names_in_=np.array(expected, dtype=object)), X)
    return names


def distinct(client: Client, parts: Sequence[Part]) -> AnyArray:
    """The distinct values of a column, ascending."""
    import dask

    unique = dask.delayed(_unique)
    found = client.gather(client.compute([unique(part) for part in parts]))
    return np.unique(np.concatenate(found))


def _unique(part: Part) -> AnyArray:
    return np.unique(_labels(part))


def _labels(part: Part) -> AnyArray:
    """Its values; what stands in objects is text."""
    values = np.asarray(part)
    return values.astype(str) if values.dtype.kind == "O" else values


def coded(parts: Sequence[Part], positive: object, negative: object) -> list[Part]:
    """Each part with 1 for the positive value and 0 for the negative one. Another value is an error of the part."""
    import dask

    code = dask.delayed(_coded)
    return [code(part, positive, negative) for part in parts]


def _coded(part: Part, positive: object, negative: object) -> AnyArray:
    values = _labels(part)
    values = values.reshape(values.shape[0])
    is_positive: AnyArray = values == positive
    other = ~is_positive & (values != negative)
    if other.any():
        raise DataError(f"expected labels {negative!r} and {positive!r}, found {values[other][0].item()!r}")
    return is_positive.astype(np.float64)


def mapped(
    X: Collection, function: Callable[..., object], *arguments: object, dtype: DTypeLike = np.float64
) -> Collection:
    """A column of X's rows: a dask array of a dask array, a series of a data frame, a list of a list."""
    import dask
    import dask.array as da

    if isinstance(X, da.Array):
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        return X.map_blocks(function, *arguments, drop_axis=1, meta=np.empty(0, dtype=dtype))
    if hasattr(X, "map_partitions"):
        return X.map_partitions(_as_series, function, *arguments, meta=("score", dtype))
    if not isinstance(X, list | tuple) and not hasattr(X, "to_delayed"):
        return function(X, *arguments)  # rows of this process
    delayed = dask.delayed(function)
    return [delayed(part, *arguments) for part in parts_of("X", X)]


def _as_series(frame: Part, function: Callable[..., object], *arguments: object) -> Part:
    import pandas as pd

    return pd.Series(function(frame, *arguments), index=frame.index, name="score")


def scores_of_part(X: Matrix, model: Ranker, sign: float) -> AnyArray:
    """What a model gives the rows of a part, times ``sign``."""
    _names_checked(X, model.header.features.names)
    scores: AnyArray = sign * model.score(as_matrix(X, "X"), threads=1)
    return scores


def classes_of_part(X: Matrix, model: Ranker, sign: float, classes: AnyArray) -> AnyArray:
    """The class of each row: the second of ``classes`` where the score is above 0."""
    chosen: AnyArray = classes[(scores_of_part(X, model, sign) > 0.0).astype(np.intp)]
    return chosen
