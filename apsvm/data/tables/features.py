"""Features of the columns of a table, as ``Columns`` says: numbers with what stands for missing ones, words as features
that are 1 or 0, what is said of dates. Where few of the features are numbers the rows are sparse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike, NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.dataset import DataError
from apsvm.data.tables.cells import Cells, Table, shown
from apsvm.data.tables.dates import day_of, days_of, features_of_dates, has_zone
from apsvm.data.tables.learning import counted, fail_of
from apsvm.data.tables.typed import not_numbers
from apsvm.data.tables.written_numbers import DECIMAL, number_in
from apsvm.models.columns import EXAMPLES, Column, ColumnKind, Columns, DatePart

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: From this share of features that may be other than 0 on, rows are dense.
_DENSE_FROM = 0.5
#: Rows made at a time.
BLOCK = 1 << 14


@dataclass
class Unusual:
    """Cells that training had not: missing ones by column, and sentences on others; ``details``: those for ``-v``."""

    missing: dict[str, int] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A column on its way.

    Attributes
    ----------
    column, first : the column, and the index of its first feature
    values : (n,) the number of each row, its days, or the feature that is 1 in it, from 0; −1: none
    missing : (n,) which of them stand for missing cells, where these have a feature; else None
    """

    column: Column
    first: int
    values: AnyArray
    missing: NDArray[np.bool_] | None

    def block(self, begin: int, end: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The values (rows, stored) of some rows, and their features (rows, stored)."""
        column, values = self.column, self.values[begin:end]
        if column.kind is ColumnKind.CATEGORY:
            has = values[:, None] >= 0
            return has.astype(np.float64), self.first + np.maximum(values[:, None], 0).astype(np.int64)
        if column.kind is ColumnKind.NUMBER:
            of_column = values[:, None]
        else:
            of_column = features_of_dates(values, column.parts, column.newest)
            is_missing = np.isnan(values)
            if is_missing.any():
                of_column[is_missing, 0] = column.fill
        if self.missing is not None:
            of_column = np.column_stack([of_column, self.missing[begin:end]])
        return of_column, np.broadcast_to(self.first + np.arange(of_column.shape[1]), of_column.shape)


def features_of(
    table: Table, columns: Columns, *, for_training: bool, dtype: DTypeLike = np.float64
) -> tuple[Matrix, list[str], list[str]]:
    """The rows (n, columns.width) of the feature columns, dense or CSR, remarks on them, and details.

    Parameters
    ----------
    for_training : True if the columns were learned from these cells, of which everything has been said
    dtype : float64, or float32: rounded

    Raises
    ------
    DataError : a cell is missing, or no number, where that is refused; a value overflows float32
    """
    unusual, n, width = Unusual(), len(table), columns.width
    rows = _as_read(table, columns) if dtype == np.float64 else None
    if rows is None:
        make = _sparse if sum(map(_stored, columns.features)) < _DENSE_FROM * width else _dense
        rows = make(n, _encoded(table, columns, unusual), width, dtype, table.places.source)
    if for_training:
        return rows, [], []
    if unusual.missing:
        total = sum(unusual.missing.values())
        cells = "1 cell is" if total == 1 else f"{total:,} cells are"
        unusual.remarks.insert(0, f"{cells} missing ({counted(unusual.missing)}): filled as in training")
    return rows, unusual.remarks, unusual.details


def _as_read(table: Table, columns: Columns) -> AnyArray | None:
    """The rows as text was read, where all columns are numbers and no cell is missing."""
    if table.numbers is None or not columns.is_of_numbers:
        return None
    names, rows = table.numbers
    if names != tuple(column.name for column in columns.features):
        return None
    unusual = Unusual()
    for _ in _encoded(table, columns, unusual):  # which refuses what is none
        pass
    return None if unusual.missing else rows


def _stored(column: Column) -> int:
    """Largest number of values that a sparse row stores for this column."""
    if column.kind is ColumnKind.DATE:
        return column.width
    return 1 + (column.missing and column.kind is ColumnKind.NUMBER)


def _encoded(table: Table, columns: Columns, unusual: Unusual) -> Iterator[_Encoded]:
    first = 0
    for column in columns.features:
        values, missing = encode(table.columns[column.name], column, unusual)
        yield _Encoded(column, first, values, missing if column.missing else None)
        first += column.width


def _dense(n: int, parts: Iterable[_Encoded], width: int, dtype: DTypeLike, source: str) -> AnyArray:
    """The rows, column by column, so that there is no other copy of all of them."""
    rows = np.empty((n, width), dtype)
    for part in parts:
        for begin in range(0, n, BLOCK):
            of_column, features = part.block(begin, begin + BLOCK)
            block = rows[begin : begin + BLOCK, part.first : part.first + part.column.width]
            if part.column.kind is ColumnKind.CATEGORY:
                block[:] = 0.0
                has = np.flatnonzero(of_column)
                block[has, features[has, 0] - part.first] = 1.0
            else:
                block[:] = _rounded(of_column, dtype, source)
    return rows


def _sparse(n: int, parts: Iterable[_Encoded], width: int, dtype: DTypeLike, source: str) -> sp.csr_array:
    """The same rows in CSR, with int32 indices where they fit."""
    parts = list(parts)
    most = n * sum(_stored(part.column) for part in parts)
    index = np.int32 if max(width, most) < 2**31 else np.int64
    all_values, all_indices = np.empty(most, dtype), np.empty(most, index)
    ends, end = np.zeros(n + 1, dtype=index), 0
    for begin in range(0, n, BLOCK):
        stop = min(n, begin + BLOCK)
        of_columns, of_features = zip(*(part.block(begin, stop) for part in parts), strict=True)
        values, features = np.concatenate(of_columns, axis=1), np.concatenate(of_features, axis=1)
        is_stored = values != 0.0
        ends[begin + 1 : stop + 1] = end + np.cumsum(is_stored.sum(axis=1))
        first, end = end, int(ends[stop])
        all_values[first:end] = _rounded(values[is_stored], dtype, source)
        all_indices[first:end] = features[is_stored]
    X = sp.csr_array((all_values[:end], all_indices[:end], ends), shape=(n, width))
    X.has_canonical_format = True
    return X


def _rounded(values: NDArray[np.float64], dtype: DTypeLike, source: str) -> AnyArray:
    with np.errstate(over="ignore", under="ignore"):
        result = values.astype(dtype, copy=False)
    if result.dtype != np.float64 and not np.isfinite(result).all():
        raise DataError(f"{source}: a value overflows float32")
    return result


def encode(cells: Cells, column: Column, unusual: Unusual) -> tuple[AnyArray, NDArray[np.bool_] | None]:
    """Encode a column's cells as ``_Encoded.values``, and return the mask of missing cells, if any.

    Raises
    ------
    DataError : a cell is missing, or no number, where that is refused
    """
    if column.kind is ColumnKind.CATEGORY:
        return _categories(cells, column, unusual), None
    values, is_missing = _numbers(cells, column) if column.kind is ColumnKind.NUMBER else _dates(cells, column, unusual)
    if is_missing.any():
        if column.fill is None:
            row = int(np.argmax(is_missing))
            raise cells.fail(row, "the cell is missing, which the model was trained to refuse (--missing refuse)")
        unusual.missing[column.name] = int(np.count_nonzero(is_missing))
        if column.kind is ColumnKind.NUMBER:
            values = np.where(is_missing, column.fill, values)
    return values, is_missing


def _numbers(cells: Cells, column: Column) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    values, is_missing = cells.values, cells.is_missing
    _refuse_other_style(cells, column)
    if cells.type in ("date", "time"):
        row = int(np.argmax(~is_missing))
        raise cells.fail(row, f"expected a number, found {shown(cells.text_at(row))}")
    if cells.codes is None:
        infinite = np.isinf(values)
        if infinite.any():
            row = int(np.argmax(infinite))
            raise cells.fail(row, f"expected a finite number, found '{values[row]:g}'")
        return values, is_missing
    of_text = cells.number_of.copy()
    is_word, words = np.isnan(of_text), cells.words
    of_text[is_word] = np.array([number_in(word, column.style) for word in words], dtype=np.float64)
    wrong = np.isnan(of_text)
    if wrong.any():
        raise fail_of(cells, not_numbers(cells.name, cells.counted(wrong), of_training=False))
    return np.append(of_text, np.nan)[cells.codes], is_missing


def _refuse_other_style(cells: Cells, column: Column) -> None:
    """Raises DataError for numbers that were read with another decimal sign than those of their column in training."""
    if not column.style or DECIMAL[column.style] == cells.decimal:
        return
    is_number = ~np.isnan(cells.values)
    if cells.is_text and is_number.any():
        raise cells.fail(
            int(np.argmax(is_number)),
            f"its numbers had a decimal {column.style} in training, and this file is read without: what are its points "
            f"and commas? (--decimal {DECIMAL[column.style]})",
        )


def _dates(cells: Cells, column: Column, unusual: Unusual) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    name, codes = column.name, cells.codes
    zoned = "tz=" in cells.stored
    if codes is None:
        days = cells.values
        is_wrong = ~cells.is_missing & (cells.type != ("time" if column.order == "time" else "date"))
    else:
        texts = cells.texts.to_pylist()
        of_text = np.array([days_of(text, column.order) for text in texts], dtype=np.float64)
        days = np.append(of_text, np.nan)[codes]
        is_wrong = np.isnan(days) & ~cells.is_missing
        zoned = any(map(has_zone, texts))
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        example = EXAMPLES[column.order]
        raise cells.fail(row, f"expected a date such as {example}, found {shown(cells.text_at(row))}")
    if column.zoned and not zoned and DatePart.HOUR in column.parts:
        unusual.remarks.append(
            f"column {name!r}: its times name no zone, and those of training did: they are taken as UTC"
        )
    later = np.flatnonzero(days > column.newest)
    if later.size and DatePart.AGE in column.parts:
        dates = "1 date is" if later.size == 1 else f"{later.size:,} dates are"
        example = _example(cells.text_at(int(later[0])), later.size)
        newest = day_of(column.newest)
        unusual.remarks.append(
            f"column {name!r}: {dates} after {newest}, the newest of training, and count as it ({example})"
        )
    return days, cells.is_missing


def _categories(cells: Cells, column: Column, unusual: Unusual) -> NDArray[np.int64]:
    """Index of each cell's feature; −1 without one."""
    name = column.name
    place = {word: number for number, word in enumerate(column.categories)}
    other = len(column.categories) if column.other else -1
    words, n_of_word, of_text = cells.of_words()
    of_word = np.array([place.get(word, other) for word in words], dtype=np.int64)
    codes = cells.word_codes
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
