"""Features of data frames, made as the command line makes them of a table's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_array, check_X_y, validate_data

from apsvm._support.naming import named_as_parameters
from apsvm._support.types import Column, JsonDict, Matrix
from apsvm.data.dataset import DataError
from apsvm.data.read_options import TableOptions
from apsvm.estimators.messages import logger
from apsvm.models.columns import Columns

if TYPE_CHECKING:
    from apsvm.data.tables.cells import Table
    from apsvm.estimators.base import Estimator

#: scikit-learn's checks of X.
FEATURES: JsonDict = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
#: Python's messages for a value that is no number start with these.
_NO_NUMBER = ("could not convert string to float", "float() argument must be")
#: Name of the frame in messages.
_SOURCE = "X"


def validated(estimator: Estimator, X: Matrix, *y: Column, reset: bool = True, **options: object) -> Any:
    """``validate_data`` for features; a data frame is read as a table, whatever its cells."""
    if hasattr(X, "checked_for"):  # rows on the workers of a cluster
        return X.checked_for(estimator, *y, reset=reset)
    if getattr(getattr(X, "dtype", None), "kind", "") in ("m", "M"):
        raise ValueError("X is an array of dates, expected numbers: a data frame's dates become features")
    for values in y:
        if values is not None:
            _require_labels(values)
    of_frame, table = is_frame(X), estimator._table
    if reset:
        estimator._table = None
        is_table = of_frame and not is_sparse(X)
    else:
        is_table = table is not None and (of_frame or not table.is_of_numbers)
    if not is_table:
        try:
            return validate_data(estimator, X, *y, reset=reset, **options, **FEATURES)
        except (TypeError, ValueError) as error:
            if not str(error).startswith(_NO_NUMBER):
                raise
            advice = "an array holds numbers only; words and dates of a data frame become features"
            if any(np.asarray(values).dtype.kind in "OSU" for values in y):
                advice = "y holds numbers: turn words into grades, for example by y.map({'bad': 0, 'good': 1})"
            raise type(error)(f"{error}: {advice}") from None
    if of_frame:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    X, estimator._table = features_in(X, None if reset else table)
    named = {"estimator": estimator, **options, **FEATURES}
    return check_X_y(X, *y, **named) if y else check_array(X, **named)


def _require_labels(y: Column) -> None:
    """Raises ValueError if one of the labels (n,) is missing."""
    labels = np.asarray(y).ravel()
    missing = np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(labels.size, dtype=bool)
    if labels.dtype.kind == "O":
        markers = ("nan", "None", "<NA>", "NaT")
        missing = np.array([not isinstance(value, str) and str(value) in markers for value in labels.tolist()])
    if missing.any():
        row = int(missing.argmax())
        raise ValueError(f"Input y contains NaN, first in row {row}: leave out the rows without a label")


def is_frame(X: object) -> bool:
    """True for data frames, such as those of pandas and polars. Raises ValueError for a lazy one."""
    if hasattr(X, "lazy") and not hasattr(X, "shape"):
        raise ValueError(f"expected a data frame with its rows, found {type(X).__name__}: collect() it")
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def is_sparse(frame: Any) -> bool:
    """True if the frame's columns are sparse."""
    return any(str(kind).lower().startswith("sparse[") for kind in frame.dtypes)


def precision_of(frame: Any) -> type[np.floating[Any]]:
    """Type of the features of a frame: float32 if all its columns are, else float64."""
    return np.float32 if all(str(kind).lower() == "float32" for kind in frame.dtypes) else np.float64


def features_in(frame: Any, columns: Columns | None) -> tuple[Matrix, Columns]:
    """Features (n, width) of a frame, dense or CSR, and its ``columns``, which are learned if they are None. Columns of
    a categorical type are categories whatever their cells. Raises ValueError for anything but a frame, and for columns
    that cannot become features."""
    from apsvm.data.tables.features import features_of
    from apsvm.data.tables.learning import learn
    from apsvm.data.tables.roles import Parts

    if not is_frame(frame):
        raise ValueError(
            "the fit was of a data frame with words or dates: expected one with the same columns, found "
            f"{type(frame).__name__}"
        )
    remarks: list[str] = []
    with named_as_parameters({}):
        table, is_new = table_in(frame), columns is None
        if columns is None:
            names = tuple(table.columns)
            columns, remarks = learn(table, Parts(features=names), TableOptions(features=names))
        X, more, _ = features_of(table, columns, for_training=is_new, dtype=precision_of(frame))
    for remark in (*remarks, *more):
        logger.info("%s", remark)
    return X, columns


def table_in(frame: Any) -> Table:
    """The cells of a frame; those of object columns that Arrow cannot type are texts. Raises DataError."""
    import pyarrow

    from apsvm.data.tables.arrow import array_of_words, table_of_frame

    if hasattr(frame, "to_arrow"):
        return table_of_frame(frame.to_arrow(), [], _SOURCE)
    arrays, text = [], list[str]()
    for at, name in enumerate(frame.columns):
        column = frame.iloc[:, at]
        if str(column.dtype) == "category" and str(column.cat.categories.dtype).startswith(("interval", "period")):
            column = column.cat.rename_categories(column.cat.categories.map(str))  # of pandas.cut
        try:
            arrays.append(pyarrow.Array.from_pandas(column))
        except (pyarrow.ArrowException, ValueError, TypeError, OverflowError) as error:
            values = [None if missing else value for value, missing in zip(column, column.isna(), strict=True)]
            plain = (isinstance(value, str | bool | int | float | np.number | np.bool_ | None) for value in values)
            if isinstance(error, UnicodeEncodeError) or not all(plain):  # half of a surrogate pair is no text
                raise DataError(f"{_SOURCE}: column {name!r}: expected numbers, words or dates ({error})") from None
            arrays.append(array_of_words(values))
            text.append(str(name))
    return table_of_frame(pyarrow.table(arrays, names=[str(name) for name in frame.columns]), text, _SOURCE)
