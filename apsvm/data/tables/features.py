"""Makes features of a table's columns, as learned: numbers, with a value for missing ones; a feature of 1 and 0 for
each word; the age, season, weekday and hour of dates. The rows are sparse if few features are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike, NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.dataset import DataError
from apsvm.data.tables.cells import Cells, Table, shown
from apsvm.data.tables.dates import day_of, days_of, features_of_dates, has_zone
from apsvm.data.tables.learning import cells_missing, fail_of
from apsvm.data.tables.typed import ColumnError, Evidence, not_numbers, written_style
from apsvm.data.tables.written_numbers import DECIMAL, number_in
from apsvm.models.columns import EXAMPLES, Column, ColumnKind, Columns, DatePart

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: Rows are dense from this share of features that may differ from 0.
_DENSE_FROM = 0.5
#: Rows that are converted at a time.
BLOCK = 1 << 14


@dataclass
class Unusual:
    """Cells unlike those of training: missing ones by column, remarks, and ``details`` for ``-v``."""

    missing: dict[str, int] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)


def features_of(
    table: Table, columns: Columns, *, for_training: bool, dtype: DTypeLike = np.float64
) -> tuple[Matrix, list[str], list[str]]:
    """The features (n, columns.width), dense or CSR, remarks, and details for ``-v``.

    Parameters
    ----------
    for_training : True if the columns were learned from these cells; there are no remarks then
    dtype : float64, or float32: rounded

    Raises
    ------
    DataError : a cell is missing, or no number, where that is refused; a value overflows float32
    """
    unusual = Unusual()
    encoded = [encode(table.columns[column.name], column, unusual) for column in columns.features]
    make = _sparse if sum(map(_stored, columns.features)) < _DENSE_FROM * columns.width else _dense
    with np.errstate(over="ignore", under="ignore"):
        X = make(len(table), encoded, columns, dtype)
    if X.dtype != np.float64 and not np.isfinite(X.data if sp.issparse(X) else X).all():
        raise DataError(f"{table.places.source}: a value overflows float32")
    if for_training:
        return X, [], []
    if unusual.missing:
        unusual.remarks.insert(0, f"{cells_missing(unusual.missing)}: filled as in training")
    return X, unusual.remarks, unusual.details


def _stored(column: Column) -> int:
    """Largest number of values that a sparse row stores for this column."""
    return 1 if column.kind is ColumnKind.CATEGORY else column.width


def _dense(n: int, encoded: Sequence[AnyArray], columns: Columns, dtype: DTypeLike) -> AnyArray:
    X = np.empty((n, columns.width), dtype)
    for begin in range(0, n, BLOCK):
        rows, first = slice(begin, begin + BLOCK), 0
        for values, column in zip(encoded, columns.features, strict=True):
            of_column, some = X[rows, first : first + column.width], values[rows]
            of_column[:] = some if some.ndim == 2 else some[:, None] == np.arange(column.width)
            first += column.width
    return X


def _sparse(n: int, encoded: Sequence[AnyArray], columns: Columns, dtype: DTypeLike) -> sp.csr_array:
    """The same rows in CSR, with int32 indices where they fit."""
    most = sum(map(_stored, columns.features))
    index = np.int32 if max(columns.width, n * most) < 2**31 else np.int64
    data, indices, indptr = np.empty(n * most, dtype), np.empty(n * most, index), np.zeros(n + 1, index)
    for begin in range(0, n, BLOCK):
        end, first = min(n, begin + BLOCK), 0
        of_columns, of_features = [], []
        for values, column in zip(encoded, columns.features, strict=True):
            some = values[begin:end]
            if some.ndim == 2:
                of_columns.append(some)
                of_features.append(np.broadcast_to(first + np.arange(column.width, dtype=index), some.shape))
            else:
                of_columns.append(some[:, None] >= 0)
                of_features.append((first + np.maximum(some, 0))[:, None])
            first += column.width
        block, features = np.concatenate(of_columns, axis=1, dtype=np.float64), np.concatenate(of_features, axis=1)
        is_stored = block != 0.0
        indptr[begin + 1 : end + 1] = indptr[begin] + np.cumsum(is_stored.sum(axis=1))
        places = slice(indptr[begin], indptr[end])
        data[places], indices[places] = block[is_stored], features[is_stored]
    return sp.canonical_csr(data[: indptr[-1]], indices[: indptr[-1]], indptr, (n, columns.width))


def encode(cells: Cells, column: Column, unusual: Unusual) -> AnyArray:
    """The features (n, column.width) float64 of a column. For words (n,) int64: the index of the feature that is 1, or
    −1.

    Raises
    ------
    DataError : a cell is missing, or no number, where that is refused
    """
    if column.kind is ColumnKind.CATEGORY:
        return _categories(cells, column, unusual)
    is_missing = cells.is_missing
    if is_missing.any():
        if column.fill is None:
            row = int(np.argmax(is_missing))
            raise cells.fail(row, "the cell is missing, which the model was trained to refuse (--missing refuse)")
        unusual.missing[column.name] = int(np.count_nonzero(is_missing))
    if column.kind is ColumnKind.NUMBER:
        values = numbers_of(cells, column)[:, None]
        if is_missing.any():
            values = values.copy()
            values[is_missing] = column.fill
    else:
        values = features_of_dates(_days_of(cells, column, unusual), column.parts, column.newest)
        values[is_missing, 0] = column.fill
    return np.column_stack((values, is_missing)) if column.missing else values


def numbers_of(cells: Cells, column: Column) -> NDArray[np.float64]:
    """(n,) the numbers of a column, NaN where a cell is missing. Raises DataError for other cells."""
    is_number = ~np.isnan(cells.values)
    decimal = DECIMAL[column.style] if column.style else cells.decimal
    if cells.is_text and decimal != cells.decimal and is_number.any():
        raise cells.fail(
            int(np.argmax(is_number)),
            f"its numbers had a decimal {column.style} in training, and this file is read without: what are its points "
            f"and commas? (--decimal {decimal})",
        )
    if cells.is_plain:
        return cells.plain_numbers()
    of_text, style = cells.number_of.copy(), column.style
    if not style and not any("%" in word for word in cells.words):  # amounts, where training had plain numbers
        try:
            style = written_style(Evidence.of(cells, spelled=False))
        except ColumnError as error:
            raise DataError(f"{cells.places.source}: column {cells.name!r}{error}") from None
    of_text[np.isnan(of_text)] = [number_in(word, style) for word in cells.words]
    wrong = np.isnan(of_text)
    if wrong.any():
        raise fail_of(cells, not_numbers(cells.name, cells.counted(wrong), of_training=False))
    return np.append(of_text, np.nan)[cells.codes]


def _days_of(cells: Cells, column: Column, unusual: Unusual) -> NDArray[np.float64]:
    """(n,) the dates in days, NaN where a cell is missing. Raises DataError for other cells."""
    name, zoned = column.name, "tz=" in cells.stored
    if cells.is_plain:
        days = cells.values
        is_wrong = ~cells.is_missing & (cells.type != ("time" if column.order == "time" else "date"))
    else:
        texts = cells.texts
        of_text = np.array([days_of(text, column.order) for text in texts], dtype=np.float64)
        days = np.append(of_text, np.nan)[cells.codes]
        is_wrong = np.isnan(days) & ~cells.is_missing
        zoned = any(map(has_zone, texts))
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        example = EXAMPLES[column.order]
        raise cells.fail(row, f"expected a date such as {example}, found {shown(cells.text_at(row))}")
    if zoned != column.zoned and (zoned or DatePart.HOUR in column.parts):
        ours, theirs, taken = ("a", "did not", "converted to") if zoned else ("no", "did", "taken as")
        unusual.remarks.append(
            f"column {name!r}: its times name {ours} zone, and those of training {theirs}: they are {taken} UTC"
        )
    later = np.flatnonzero(days > column.newest)
    if later.size and DatePart.AGE in column.parts:
        dates = "1 date is" if later.size == 1 else f"{later.size:,} dates are"
        example = _example(cells.text_at(int(later[0])), later.size)
        newest = day_of(column.newest)
        advice = "; if age matters, add a column of the days from each date to the day of its list"
        most = advice if 2 * later.size > days.size else ""
        unusual.remarks.append(
            f"column {name!r}: {dates} after {newest}, the newest of training, and count as it ({example}){most}"
        )
    return days


def _categories(cells: Cells, column: Column, unusual: Unusual) -> NDArray[np.int64]:
    """(n,) the index of each cell's feature, −1 without one."""
    name = column.name
    place = {word: number for number, word in enumerate(column.categories)}
    other = len(column.categories) if column.other else -1
    words, n_of_word, of_text = cells.of_words()
    of_word = np.array([place.get(word, other) for word in words], dtype=np.int64)
    codes = cells.codes
    missing = column.width - 1 if column.missing else -1
    feature: NDArray[np.int64] = np.append(of_word[of_text], missing)[codes]
    n_missing = int(np.count_nonzero(codes < 0))
    if n_missing:
        unusual.missing[name] = n_missing
    rare = set(column.rare)
    unknown = {word: count for word, count in zip(words, n_of_word.tolist(), strict=True) if word not in place}
    new, again = ({word: n for word, n in unknown.items() if (word in rare) is known} for known in (False, True))
    if new:
        count = sum(new.values())
        verb = ("was", "were") if column.rare else ("has", "have")
        subject = f"1 word {verb[0]}" if count == 1 else f"the words of {count:,} cells {verb[1]}"
        sort = "not in training" if column.rare else "no feature in the model"
        what = "counts as an infrequent one" if column.other else "gives nothing to a score"
        example = _example(next(iter(new)), count)
        unusual.remarks.append(f"column {name!r}: {subject} {sort} ({example}): such a word {what}")
    if again:
        count = sum(again.values())
        subject = "1 cell has" if count == 1 else f"{count:,} cells have"
        unusual.details.append(
            f"column {name!r}: {subject} one of the infrequent words of training ({next(iter(again))!r}, …)"
        )
    return feature


def _example(word: str, count: int) -> str:
    return f"{word!r}{', …' if count > 1 else ''}"
