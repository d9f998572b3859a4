"""Features of cells, as ``Columns`` says: numbers with what stands for missing ones, words as features that are 1 or 0.

Where few of the features are numbers the rows are sparse; a table of numbers alone becomes its rows where it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike, NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.dataset import DataError
from apsvm.data.tables.cells import MEMORY, MISSING, TRUTH, Cell, Cells, Scratch, fail_not_numbers, shown, text_of
from apsvm.data.tables.dates import days_of, features_of_dates
from apsvm.data.tables.learning import counted
from apsvm.data.tables.written_numbers import DECIMAL, number_of
from apsvm.models.columns import EXAMPLES, Column, ColumnKind, Columns, DatePart

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: From this share of features that may be other than 0 on, rows are dense.
_DENSE_FROM = 0.5


@dataclass
class _Counts:
    """What is met on the way, by column."""

    missing: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    later: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Part:
    """A column of a table on its way.

    Attributes
    ----------
    column, at, first : what it is, where its cells stand, and the first of its features
    feature_of_word : of a category, for each word of the table, and one more that stands for all others, the feature
        it has, from 0; −1: none
    numbers, feature_of_number : of a category, the numbers among its words, ascending, and their features
    value_of_word : of dates the days, of numbers the number of each word of the table; NaN where it is none
    """

    column: Column
    at: int
    first: int
    feature_of_word: NDArray[np.int64]
    numbers: NDArray[np.float64]
    feature_of_number: NDArray[np.int64]
    value_of_word: NDArray[np.float64]

    @property
    def is_number(self) -> bool:
        return self.column.kind is ColumnKind.NUMBER

    @property
    def is_date(self) -> bool:
        return self.column.kind is ColumnKind.DATE

    @property
    def stored(self) -> int:
        """How many values a sparse row has of it, at the most."""
        return self.column.width if self.is_date else 1 + (self.is_number and self.column.missing)

    @property
    def missing_feature(self) -> int:
        """−1 where there is none."""
        return self.column.width - 1 if self.column.missing else -1

    @property
    def other_feature(self) -> int:
        return len(self.column.categories) if self.column.other else -1


def features_of(
    cells: Cells, columns: Columns, *, for_training: bool, dtype: DTypeLike = np.float64, scratch: Scratch = MEMORY
) -> tuple[Matrix, list[str]]:
    """The rows (n, columns.width) of the feature columns, dense or CSR, and remarks on them.
    ``cells`` is used up: it may become the rows.

    Parameters
    ----------
    known : whether the columns were learned from these cells, of whose missing ones everything has been said
    dtype : float64, or float32: rounded
    scratch : where rows are made that do not fit in the place of the cells

    Raises
    ------
    DataError : a cell is missing, or no number, where that is refused; a value overflows float32
    """
    parts = _parts(cells, columns)
    _refuse_other_styles(cells, parts)
    counts = _Counts()
    n, width = len(cells), columns.width
    stored = sum(part.stored for part in parts)
    if stored < _DENSE_FROM * width:
        rows = _sparse(cells, parts, width, counts, dtype, scratch)
    else:
        in_place = width <= cells.values.shape[1] and all(part.is_number and part.column.width == 1 for part in parts)
        in_place &= np.dtype(dtype) == np.float64 and cells.values.flags.c_contiguous
        flat = cells.values.ravel("K")
        rows = flat[: n * width].reshape(n, width) if in_place else scratch.empty((n, width), dtype)
        begin = 0
        for block in cells.blocks():
            # Of in-place rows those before ``end`` stand before the cells that are still to be read.
            values = _dense_block(block, begin, cells, parts, width, counts)
            rows[begin : begin + len(block)] = _rounded(values, dtype, cells)
            begin += len(block)
    return rows, [] if for_training else _remarks(counts, columns)


def _refuse_other_styles(cells: Cells, parts: Sequence[_Part]) -> None:
    """Raises DataError for numbers that were read with another decimal sign than those of their column in training."""
    for part in parts:
        style = part.column.style
        if not style or DECIMAL[style] == cells.decimal:
            continue
        cell = cells.column_at(part.at)
        numbers = np.flatnonzero(cell.bits < MISSING)
        if numbers.size:
            raise cell.fail(
                int(numbers[0]),
                f"its numbers had a decimal {style} in training, and this file is read without: what are its points "
                f"and commas? (--decimal {DECIMAL[style]})",
            )


def _rounded(values: NDArray[np.float64], dtype: DTypeLike, cells: Cells) -> AnyArray:
    with np.errstate(over="ignore", under="ignore"):
        result = values.astype(dtype, copy=False)
    if result.dtype != np.float64 and not np.isfinite(result).all():
        raise DataError(f"{cells.places.source}: a value overflows float32")
    return result


def _parts(cells: Cells, columns: Columns) -> list[_Part]:
    result, first = [], 0
    place = {name: at for at, name in enumerate(cells.names)}
    for column in columns.features:
        at = place[column.name]
        feature = {word: number for number, word in enumerate(column.categories)}
        other = len(column.categories) if column.other else -1
        of_word = [feature.get(word, other) for word in cells.words[at]]
        values = [_value(word, column) for word in cells.words[at]]
        numbers = sorted((_number(word), number) for word, number in feature.items() if _number(word) is not None)
        result.append(
            _Part(
                column, at, first,
                np.array([*of_word, other], dtype=np.int64),
                np.array([number for number, _ in numbers], dtype=np.float64),
                np.array([feature for _, feature in numbers], dtype=np.int64),
                np.array(values, dtype=np.float64),
            )
        )  # fmt: skip
        first += column.width
    return result


def _value(word: str, column: Column) -> float | None:
    """The days of a date, or the number that a word stands for in a column of numbers: true and false are 1 and 0
    whatever else it holds."""
    if column.kind is ColumnKind.DATE:
        return days_of(word, column.order)
    truth = TRUTH.get(word.lower())
    return truth if truth is not None or not column.style else number_of(word, column.style)


def _number(word: str) -> float | None:
    """The number whose text a word is."""
    try:
        number = float(word)
    except ValueError:
        return None
    return number if text_of(number) == word else None


def _dense_block(
    block: NDArray[np.float64], begin: int, cells: Cells, parts: Sequence[_Part], width: int, counts: _Counts
) -> NDArray[np.float64]:
    if all(part.is_number and part.column.width == 1 for part in parts):
        places = [part.at for part in parts]
        first, end = min(places, default=0), max(places, default=-1) + 1
        rows = block[:, first:end] if places == [*range(first, end)] else block[:, places]
        special = np.flatnonzero((rows.view(np.int64) >= MISSING).any(axis=0)).tolist()
        rows = rows.copy() if special else rows
        for j in special:
            rows[:, j], _ = _numbers(parts[j], rows[:, j], begin, cells, counts)
        return rows
    rows = np.zeros((len(block), width))
    for part in parts:
        if part.is_number:
            values, is_missing = _numbers(part, block[:, part.at], begin, cells, counts)
            rows[:, part.first] = values
            if part.column.missing:
                rows[:, part.first + part.missing_feature] = is_missing
        elif part.is_date:
            rows[:, part.first : part.first + part.column.width] = _dates(part, block[:, part.at], begin, cells, counts)
        else:
            feature = _categories(part, block[:, part.at], begin, cells, counts)
            has = np.flatnonzero(feature >= 0)
            rows[has, part.first + feature[has]] = 1.0
    return rows


def _sparse(
    cells: Cells, parts: Sequence[_Part], width: int, counts: _Counts, dtype: DTypeLike, scratch: Scratch
) -> sp.csr_array:
    """The same rows in CSR, with int32 indices where they fit."""
    stored = sum(part.stored for part in parts)
    most = len(cells) * stored
    index = np.int32 if max(width, most) < 2**31 else np.int64
    all_values, all_indices = scratch.empty((most,), dtype), scratch.empty((most,), index)
    row_sizes = []
    begin = end = 0
    for block in cells.blocks():
        values, indices = np.zeros((len(block), stored)), np.zeros((len(block), stored), dtype=index)
        at = 0
        for part in parts:
            if part.is_number:
                values[:, at], is_missing = _numbers(part, block[:, part.at], begin, cells, counts)
                indices[:, at] = part.first
                if part.column.missing:
                    at += 1
                    values[:, at], indices[:, at] = is_missing, part.first + part.missing_feature
            elif part.is_date:
                width_of_date = part.column.width
                values[:, at : at + width_of_date] = _dates(part, block[:, part.at], begin, cells, counts)
                indices[:, at : at + width_of_date] = part.first + np.arange(width_of_date)
                at += width_of_date - 1
            else:
                feature = _categories(part, block[:, part.at], begin, cells, counts)
                values[:, at] = feature >= 0
                indices[:, at] = part.first + np.maximum(feature, 0)
            at += 1
        is_stored = values != 0.0
        row_sizes.append(is_stored.sum(axis=1))
        first, end = end, end + int(row_sizes[-1].sum())
        all_values[first:end] = _rounded(values[is_stored], dtype, cells)
        all_indices[first:end] = indices[is_stored]
        begin += len(block)
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(row_sizes)))).astype(index)
    X = sp.csr_array((all_values[:end], all_indices[:end], indptr), shape=(len(cells), width))
    X.has_canonical_format = True
    return X


def _numbers(
    part: _Part, values: NDArray[np.float64], begin: int, cells: Cells, counts: _Counts
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Finite numbers, and which of them stand for missing cells; ``begin``: the first row."""
    cell = Cell(part.column.name, np.ascontiguousarray(values), cells.words[part.at], cells.places)
    is_special = cell.bits >= MISSING
    if not is_special.any():
        return cell.values, is_special
    of_word = np.append(part.value_of_word, np.nan)
    is_missing = cell.is_missing
    is_word = is_special & ~is_missing
    numbers = np.minimum(cell.word_numbers[is_word], len(cell.words))
    result = cell.values.copy()
    result[is_word] = of_word[numbers]
    is_wrong = is_word & np.isnan(result)
    if is_wrong.any():
        raise fail_not_numbers(*_in_file(cell, is_wrong, begin))
    if is_missing.any():
        result[is_missing] = _fill(part.column, cell, begin, counts)
    return result, is_missing


def _fill(column: Column, cell: Cell, begin: int, counts: _Counts) -> float:
    """What stands for the missing cells, which are counted. Raises DataError where they are refused."""
    rows = np.flatnonzero(cell.is_missing)
    if column.fill is None:
        problem = "the cell is missing, which the model was trained to refuse (--missing refuse)"
        raise cell.fail(begin + int(rows[0]), problem)
    counts.missing[column.name] = counts.missing.get(column.name, 0) + rows.size
    return column.fill


def _dates(part: _Part, values: NDArray[np.float64], begin: int, cells: Cells, counts: _Counts) -> NDArray[np.float64]:
    """The features of dates (n, width); ``begin``: the first row."""
    column = part.column
    cell = Cell(column.name, np.ascontiguousarray(values), cells.words[part.at], cells.places)
    is_missing, numbers = cell.is_missing, cell.word_numbers
    is_date = (numbers >= 0) & (numbers < len(cell.words))
    days = np.full(values.size, np.nan)
    days[is_date] = part.value_of_word[numbers[is_date]]
    wrong = np.flatnonzero(np.isnan(days) & ~is_missing)
    if wrong.size:
        row = int(wrong[0])
        raise cell.fail(
            begin + row, f"expected a date such as {EXAMPLES[column.order]}, found {shown(cell.text_at(row))}"
        )
    later = np.flatnonzero(days > column.newest)
    if later.size and DatePart.AGE in column.parts:
        counts.later[column.name] = counts.later.get(column.name, 0) + later.size
        counts.examples.setdefault(column.name, cell.text_at(int(later[0])))
    features = features_of_dates(days, column.parts, column.newest)
    if is_missing.any():
        features[is_missing, 0] = _fill(column, cell, begin, counts)
    return features if not column.missing else np.column_stack([features, is_missing])


def _in_file(cell: Cell, is_wrong: NDArray[np.bool_], begin: int) -> tuple[Cell, NDArray[np.bool_]]:
    """The same cells with those before them, which are not looked at."""
    before = np.zeros(begin)
    return (
        Cell(cell.name, np.concatenate((before, cell.values)), cell.words, cell.places),
        np.concatenate((before.astype(np.bool_), is_wrong)),
    )


def _categories(
    part: _Part, values: NDArray[np.float64], begin: int, cells: Cells, counts: _Counts
) -> NDArray[np.int64]:
    """The feature of each cell, −1 where it has none; ``begin``: the first row."""
    name, words = part.column.name, cells.words[part.at]
    cell = Cell(name, np.ascontiguousarray(values), words, cells.places)
    is_missing, numbers = cell.is_missing, cell.word_numbers
    is_word = numbers >= 0
    is_number = ~is_missing & ~is_word
    feature = np.full(values.size, part.missing_feature, dtype=np.int64)
    feature[is_word] = part.feature_of_word[np.minimum(numbers[is_word], len(words))]
    if is_number.any():
        feature[is_number] = part.other_feature
        if part.numbers.size:
            at = np.minimum(np.searchsorted(part.numbers, cell.values[is_number]), part.numbers.size - 1)
            is_known = part.numbers[at] == cell.values[is_number]
            feature[is_number] = np.where(is_known, part.feature_of_number[at], part.other_feature)
    n_missing = int(np.count_nonzero(is_missing))
    if n_missing:
        counts.missing[name] = counts.missing.get(name, 0) + n_missing
    is_unknown = ~is_missing & (feature == part.other_feature)
    n_unknown = int(np.count_nonzero(is_unknown))
    if n_unknown:
        counts.unknown[name] = counts.unknown.get(name, 0) + n_unknown
        row = int(np.flatnonzero(is_unknown)[0])
        counts.examples.setdefault(name, cell.text_at(row))
    return feature


def _remarks(counts: _Counts, columns: Columns) -> list[str]:
    remarks = []
    if counts.missing:
        total = sum(counts.missing.values())
        cells = "1 cell is" if total == 1 else f"{total:,} cells are"
        remarks.append(f"{cells} missing ({counted(counts.missing)}): filled as in training")
    with_other = {column.name for column in columns.features if column.other}
    for name, count in counts.unknown.items():
        words = "1 word has" if count == 1 else f"the words of {count:,} cells have"
        what = "counts as an infrequent one" if name in with_other else "gives nothing to a score"
        example = f"{counts.examples[name]!r}{', …' if count > 1 else ''}"
        remarks.append(f"column {name!r}: {words} no feature in the model ({example}): such a word {what}")
    for name, count in counts.later.items():
        dates = "1 date is" if count == 1 else f"{count:,} dates are"
        example = f"{counts.examples[name]!r}{', …' if count > 1 else ''}"
        remarks.append(f"column {name!r}: {dates} after the newest of training ({example})")
    return remarks
