"""The cells of a table: numbers, words and missing cells in one matrix of 64 bits each.

A finite number is itself; a missing cell is the NaN of the bits ``MISSING``; word k of its column has the bits
``MISSING + 1 + k``. So a table of numbers is the matrix of its features already. ``apsvm._native`` writes it.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike, NDArray

from apsvm._support.shown import shortened
from apsvm.data.dataset import DataError

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray


@dataclass(frozen=True, slots=True)
class Scratch:
    """Where arrays are made: in a file in ``folder``; None: in memory. Raises OSError where the disk is full."""

    folder: str | os.PathLike[str] | None = None

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> AnyArray:
        """An array of this shape, to be written to."""
        if self.folder is None or 0 in shape:
            return np.empty(shape, dtype)
        with tempfile.TemporaryFile(dir=self.folder) as file:
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            if hasattr(os, "posix_fallocate"):  # a full disk is an error here, and no signal at a write to memory
                os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, dtype=dtype, mode="r+", shape=shape)

    def gathered(self, blocks: Iterable[NDArray[np.float64]], width: int) -> NDArray[np.float64]:
        """Blocks of rows (…, width) float64, one below the other, no more than one of them in memory."""
        with tempfile.TemporaryFile(dir=self.folder) as file:
            n = 0
            for block in blocks:
                file.write(np.ascontiguousarray(block).data)
                n += len(block)
            file.flush()
            if n * width == 0:
                return np.empty((n, width))
            return np.memmap(file, dtype=np.float64, mode="r+", shape=(n, width))


#: In memory.
MEMORY = Scratch()


MISSING = 0x7FF8_0000_0000_0000

#: Rows looked at at a time.
BLOCK = 1 << 14

#: What is read as a missing cell, in any case; the native parser has the same list.
MISSING_WORDS = (
    *("", "?", ".", "na", "n/a", "nan", "-nan", "null", "none", "nil", "<na>", "#n/a", "#na", "#n/a n/a"),
    *("1.#qnan", "-1.#qnan", "1.#ind", "-1.#ind"),
)
#: What is not read so, but may be meant as one.
_LIKE_MISSING = {"-", "--", "---", "–", "—", "..", "n.a.", "n.a", "missing", "unknown", "(null)", "\\n"}
#: Numbers whose commas or points are not decimal ones, but stand between thousands, and those that may be either.
_THOUSANDS = re.compile(
    r"[0-9]{1,3}(,[0-9]{3})+\.[0-9]*|[0-9]{1,3}(\.[0-9]{3})+,[0-9]*|[0-9]{1,3}((,[0-9]{3}){2,}|(\.[0-9]{3}){2,})"
)
_WITH_A_POINT = re.compile(r"[0-9]*\.[0-9]+[eE][+-]?[0-9]+")
_OF_THREE_DIGITS = re.compile(r"[1-9][0-9]{0,2},[0-9]{3}|[0-9]{1,3}")

#: Words that are numbers, in any case.
TRUTH = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, slots=True)
class Places:
    """Where rows stand, for messages.

    Attributes
    ----------
    source : the name of the file
    unit : what is counted: "line", of text, or "row"
    first : of row 0
    rows, numbers : (k,) int64: the rows, ascending, that do not follow the row before, and their lines
    """

    source: str
    unit: str = "row"
    first: int = 1
    rows: NDArray[np.int64] | None = None
    numbers: NDArray[np.int64] | None = None

    def number(self, row: int) -> int:
        """The line of a row, or its number from 1."""
        if self.rows is None or self.numbers is None or (at := int(np.searchsorted(self.rows, row, "right"))) == 0:
            return row + self.first
        return int(self.numbers[at - 1]) + row - int(self.rows[at - 1])

    def all(self, n: int) -> NDArray[np.int64]:
        """(n,) ``number`` of each row."""
        result = np.arange(n) + self.first
        if self.rows is not None and self.numbers is not None:
            shift = np.diff(self.numbers - self.rows - self.first, prepend=0)
            result += np.cumsum(np.bincount(self.rows, weights=shift, minlength=n)).astype(np.int64)
        return result

    def shown(self, row: int, column: str) -> str:
        """The beginning of a message on a cell."""
        at = f"{self.source}:{self.number(row)}" if self.unit == "line" else f"{self.source}: row {self.number(row)}"
        return f"{at}: column {column!r}"


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Rows of a table.

    Attributes
    ----------
    values : (n, k) float64, C-ordered of text and by column (Fortran's order) of Arrow, see the module
    names : the columns, k
    words : of each column its words, by number
    places : where the rows stand
    remarks : what the user should know of how cells were read
    decimal : what stands before the decimals of numbers in the file
    """

    values: NDArray[np.float64]
    names: Sequence[str]
    words: Sequence[Sequence[str]]
    places: Places
    remarks: tuple[str, ...] = ()
    decimal: str = "."

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def column(self, name: str) -> Cell:
        """The cells of a column, copied."""
        cell = self.column_at(self.names.index(name))
        return replace(cell, values=cell.values.copy())

    def column_at(self, at: int) -> Cell:
        """The cells of the column of this number, to be looked at: they may be those of the table itself."""
        name = self.names[at]
        return Cell(name, np.ascontiguousarray(self.values[:, at]), self.words[at], self.places)

    def blocks(self) -> Iterator[NDArray[np.float64]]:
        for begin in range(0, len(self), BLOCK):
            yield self.values[begin : begin + BLOCK]


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One column's cells (n,), and what they hold."""

    name: str
    values: NDArray[np.float64]
    words: Sequence[str]
    places: Places

    @property
    def bits(self) -> NDArray[np.int64]:
        return self.values.view(np.int64)

    @property
    def is_missing(self) -> NDArray[np.bool_]:
        """(n,)"""
        missing: NDArray[np.bool_] = self.bits == MISSING
        return missing

    @property
    def word_numbers(self) -> NDArray[np.int64]:
        """(n,) the number of each word; of what is no word a negative number."""
        return np.where(self.bits > MISSING, self.bits - (MISSING + 1), -1)

    @property
    def has_words_beyond(self) -> bool:
        """Whether there are more words than are told apart."""
        return int(self.word_numbers.max(initial=-1)) >= len(self.words)

    def text_at(self, row: int) -> str:
        """The cell of a row as text; … for a word beyond those told apart."""
        number = int(self.word_numbers[row])
        if number < 0:
            return text_of(float(self.values[row]))
        return self.words[number] if number < len(self.words) else "…"

    def with_truth(self) -> Cell:
        """The same with 1 and 0 for the words true and false, where there are no other words."""
        lower = [word.lower() for word in self.words]
        if not lower or not set(lower) <= set(TRUTH):
            return self
        numbers = self.word_numbers
        values = np.where(numbers >= 0, np.array([TRUTH[word] for word in lower])[numbers], self.values)
        return Cell(self.name, values, (), self.places)

    def fail(self, row: int, problem: str) -> DataError:
        """The error of a cell."""
        return DataError(f"{self.places.shown(row, self.name)}: {problem}")

    def texts(self) -> tuple[list[str], NDArray[np.int64]]:
        """The different texts, those of numbers too, and the number of each cell's among them, −1 where it is
        missing."""
        numbers = self.word_numbers
        is_number = self.bits < MISSING
        values, inverse = np.unique(self.values[is_number], return_inverse=True)
        numbers[is_number] = inverse + len(self.words)
        return [*self.words, *map(text_of, values.tolist())], numbers


def text_of(number: float) -> str:
    """A number as a word: 1 of 1.0."""
    return repr(number + 0.0).removesuffix(".0")


def fail_not_numbers(cell: Cell, is_wrong: NDArray[np.bool_]) -> DataError:
    """The error of a column with cells that should be numbers and are words."""
    row = int(np.flatnonzero(is_wrong)[0])
    word = cell.words[cell.word_numbers[row]]
    count = int(np.count_nonzero(is_wrong))
    more = "" if count == 1 else f" ({count:,} such cells)"
    wrong_words = [cell.words[at] for at in np.unique(cell.word_numbers[is_wrong]).tolist()]
    hint = _hint_of_missing(word) or hint_of(word, wrong_words)
    finite = not is_meant_as_number(word) or math.isfinite(float(word))
    return cell.fail(row, f"expected a {'' if finite else 'finite '}number, found {shown(word)}{more}{hint}")


def is_meant_as_number(word: str) -> bool:
    """Whether a word is a way of writing infinity, a number beyond float64, or one with a point where commas are
    decimal."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def hint_of(word: str, column: Sequence[str] = ()) -> str:
    """What may be meant by a word where a number is expected; ``column``: all such words of its column."""
    plain = _without_sign(word)
    if plain.replace(",", "").replace(".", "").isdigit():
        return _hint_of_separators(plain, [*map(_without_sign, column)])
    if _WITH_A_POINT.fullmatch(plain):  # a number unless commas are decimal
        return "; are its points decimal ones? (--decimal .)"
    if plain and (plain[0] in "$€£" or plain[-1] in "%$€£"):
        return "; numbers have no signs of money or per cent here"
    return ""


def _without_sign(word: str) -> str:
    return word.replace(" ", "").lstrip("+-")


def _hint_of_separators(plain: str, column: Sequence[str]) -> str:
    """Of digits, commas and points: are the commas decimal ones, or do separators stand between the thousands?"""
    grouped = next((number for number in (plain, *column) if _THOUSANDS.fullmatch(number)), None)
    if grouped is not None:
        separator = "," if grouped.find(",") > -1 and "." not in grouped[: grouped.find(",")] else "."
        return f"; numbers have no separators of thousands here: write {grouped.replace(separator, '')}"
    if plain.count(",") != 1:
        return ""
    if all(_OF_THREE_DIGITS.fullmatch(number) for number in (plain, *column)):
        return "; is its comma a decimal one (--decimal ,), or one of thousands, which numbers do not have here?"
    return "; are its commas decimal ones? (--decimal ,)"


def _hint_of_missing(word: str) -> str:
    if word.strip().lower() not in _LIKE_MISSING:
        return ""
    return "; a missing cell is empty, or NA, N/A, NaN, null, None, nil, ? or ."


def shown(word: str) -> str:
    """A word in a message."""
    return repr(shortened(word, 40))
