"""Data frames with words, dates and missing cells, as features: what the command line makes of a table's columns.

A frame of finite numbers is an array to scikit-learn, and is left to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from apsvm._support.types import Matrix
from apsvm.data.dataset import DataError
from apsvm.data.read_options import TableOptions
from apsvm.data.tables.cells import Cells, shown
from apsvm.estimators.following import logger
from apsvm.models.columns import Columns

#: What messages call the frame.
_SOURCE = "X"
#: What messages on a table advise that only the command line can do, and what stands there in Python.
_OF_THE_COMMAND = (
    (re.compile(r"--drop ('[^']*'|\S+), or --id-column if it names the rows"), r"leave it out of X"),
    (re.compile(r"--drop ('[^']*'|\S+)"), r"leave it out of X"),
    (re.compile(r" \(--[a-z-]+( \S+)?\)"), ""),
)


def is_frame(X: object) -> bool:
    """Whether it has columns with types, as pandas' and polars' data frames have. Raises ValueError for a lazy one."""
    if hasattr(X, "lazy") and not hasattr(X, "shape"):
        raise ValueError(f"expected a data frame with its rows, found {type(X).__name__}: collect() it")
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def has_types_of_numbers(frame: Any) -> bool:
    """Whether all its columns are of numbers or truth values, by their types."""
    return all(str(kind).lower().removeprefix("sparse[").startswith(_NUMBERS) for kind in frame.dtypes)


def of_numbers(frame: Any) -> bool:
    """Whether all its cells are numbers or truth values, and none is missing."""
    if not has_types_of_numbers(frame):
        return False
    if hasattr(frame, "isna"):
        return not bool(frame.isna().to_numpy().any())
    from pyarrow import compute, types

    floating = (column for column in _arrow(frame).columns if types.is_floating(column.type))
    return not (
        any(frame.null_count().row(0)) or any(compute.any(compute.is_nan(column)).as_py() for column in floating)
    )


def numbers_of(frame: Any) -> Matrix:
    """The cells (n, d) of a frame for an estimator whose fit had numbers alone. Raises ValueError for words."""
    with _as_python_says():
        cells = _cells(frame)
        for name in cells.names:
            cell = cells.column(name)
            if cell.words:
                row = int(np.argmax(cell.word_numbers >= 0))
                raise cell.fail(row, f"expected a number, as in fit, found {shown(cell.text_at(row))}")
    return cells.values


#: How the names of the types of numbers begin, in pandas and polars.
_NUMBERS = ("int", "uint", "float", "bool", "decimal", "double")


def learned(frame: Any) -> tuple[Matrix, Columns]:
    """The features (n, width), dense or CSR, of a frame, and what they are. Columns of the type of categories are such
    whatever their cells look like. Raises ValueError for columns that can be no features."""
    from apsvm.data.tables.features import features_of
    from apsvm.data.tables.learning import learn
    from apsvm.data.tables.parts import Parts

    named = zip(frame.columns, frame.dtypes, strict=True)
    categorical = tuple(str(name) for name, kind in named if str(kind).lower().startswith(("categor", "enum")))
    with _as_python_says():
        cells = _cells(frame)
        options = TableOptions(features=tuple(cells.names), categorical=categorical)
        columns, remarks = learn(cells, Parts(features=tuple(cells.names)), options)
        X, _ = features_of(cells, columns, for_training=True)
    for remark in remarks:
        logger.info("%s", _in_python(remark))
    return X, columns


def encoded(X: Any, columns: Columns) -> Matrix:
    """The features (n, columns.width) of a frame, as ``columns`` of the frame before it say. Raises ValueError for what
    is none, or lacks columns."""
    from apsvm.data.tables.features import features_of

    if not is_frame(X):
        raise ValueError(
            "the fit was of a data frame with words, dates or missing cells: expected one with the same columns, found "
            f"{type(X).__name__}"
        )
    names = [str(name) for name in X.columns]
    lacking = [column.name for column in columns.features if column.name not in names]
    if lacking:
        raise ValueError(f"X lacks columns that were there in fit: {', '.join(map(repr, lacking[:8]))}")
    with _as_python_says():
        rows, remarks = features_of(_cells(X), columns, for_training=False)
    for remark in remarks:
        logger.info("%s", _in_python(remark))
    return rows


@contextmanager
def _as_python_says() -> Iterator[None]:
    try:
        yield
    except DataError as error:
        raise ValueError(_in_python(str(error))) from None


def _in_python(text: str) -> str:
    """A message on a table, without what only the command line has."""
    for found, instead in _OF_THE_COMMAND:
        text = found.sub(instead, text)
    return text


def _cells(frame: Any) -> Cells:
    from apsvm.data.tables.arrow import cells_of_frame

    return cells_of_frame(_arrow(frame), _SOURCE)


def _arrow(frame: Any) -> Any:
    """The frame as a table of Arrow. Raises DataError."""
    import pyarrow

    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    arrays = []
    for at, name in enumerate(frame.columns):
        column = frame.iloc[:, at]
        if str(column.dtype) == "category" and str(column.cat.categories.dtype).startswith(("interval", "period")):
            column = column.cat.rename_categories(column.cat.categories.map(str))  # of pandas.cut
        try:
            arrays.append(pyarrow.Array.from_pandas(column))
        except UnicodeEncodeError:
            raise DataError(
                f"{_SOURCE}: column {name!r}: a word has half of a surrogate pair, which is no text"
            ) from None
        except (pyarrow.ArrowException, ValueError, TypeError, OverflowError) as error:
            values = _texts(column)
            if values is None:
                raise DataError(f"{_SOURCE}: column {name!r}: expected numbers, words or dates ({error})") from None
            arrays.append(pyarrow.array(values))
    return pyarrow.table(arrays, names=[str(name) for name in frame.columns])


def _texts(column: Any) -> list[str | None] | None:
    """Numbers and words of one column, as words; None where it has other things."""
    from apsvm.data.tables.cells import text_of

    values: list[str | None] = []
    for value, is_missing in zip(column.tolist(), column.isna().tolist(), strict=True):
        if is_missing:
            values.append(None)
        elif isinstance(value, bool | np.bool_):
            values.append(str(bool(value)).lower())
        elif isinstance(value, int | float | np.number):
            values.append(text_of(float(value)))
        elif isinstance(value, str):
            values.append(value)
        else:
            return None
    return values
