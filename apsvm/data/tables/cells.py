"""The cells of a table's column: numbers, words and missing cells.

pyarrow casts a column of plain numbers in one call. Of other columns only the distinct texts are examined.
``typed.py`` decides the type of a column.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support.naming import advice
from apsvm._support.shown import shortened
from apsvm.data.dataset import DataError
from apsvm.data.tables.dates import A_DAY

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: Texts that are missing cells, in lower case.
MISSING_WORDS = frozenset(
    (
        *("", "?", ".", "na", "n/a", "nan", "-nan", "null", "none", "nil", "<na>", "#n/a", "#na", "#n/a n/a"),
        *("1.#qnan", "-1.#qnan", "1.#ind", "-1.#ind"),
    )
)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
#: A number in its usual spelling, in which the zeros behind decimals do not count.
_WITH_ZEROS = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]*?)0*")
#: Digits of the longest code. Longer integers are numbers beyond 64 bits.
_LONGEST_CODE = 20
_BLANKS = " \t"
#: Rows in which the names of columns may stand below a title.
_ROWS_OF_TITLES = 21
#: Durations: the number of each unit in a second.
_A_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class FilePlaces(NamedTuple):
    """Locations of the rows of a file.

    Attributes
    ----------
    source : the file's name
    unit : "line" in text, else "row"
    first : the number of the first row
    kept : the rows that are read, counted from 0; None for all
    begin : the number of rows in the files before
    """

    source: str
    unit: str = "row"
    first: int = 1
    kept: NDArray[np.int64] | None = None
    begin: int = 0


@dataclass(frozen=True, slots=True)
class Places:
    """Locations of rows, for messages. ``files`` are in the order of their rows."""

    files: tuple[FilePlaces, ...]

    @classmethod
    def of(cls, source: str, unit: str = "row", first: int = 1) -> Places:
        """The places in one file."""
        return cls((FilePlaces(source, unit, first),))

    @property
    def source(self) -> str:
        return " and ".join(file.source for file in self.files)

    @property
    def unit(self) -> str:
        return self.files[0].unit if len(self.files) == 1 else "row"

    def number(self, row: int) -> int:
        """The line of a row in its file, or its number there, counted from 1."""
        file = self._file(row)
        place = row - file.begin
        return file.first + (place if file.kept is None else int(file.kept[place]))

    def shown(self, row: int, column: str) -> str:
        """The beginning of a message on a cell."""
        file = self._file(row)
        return f"{file.source}{':' if file.unit == 'line' else ': row '}{self.number(row)}: column {column!r}"

    def lines(self, n: int) -> NDArray[np.int64] | None:
        """(n,) the line of each row; None where lines are not known."""
        kept = self.files[0].kept
        return (np.arange(n) if kept is None else kept) + self.files[0].first if self.unit == "line" else None

    def _file(self, row: int) -> FilePlaces:
        return next(file for file in reversed(self.files) if file.begin <= row)


@dataclass(eq=False)
class Cells:
    """One column's cells.

    Attributes
    ----------
    name : the column's name
    places : the locations of the rows
    array : the cells as read, an Arrow ChunkedArray; of float64 if text was read as numbers
    is_text : True if the file gives the column no type, as a CSV does
    decimal : the decimal mark of numbers in the file
    is_string : True if a dictionary array stands for a column that is typed as text
    missing_words : texts that stand for a missing cell, in lower case
    """

    name: str
    places: Places
    array: Any
    is_text: bool = False
    decimal: str = "."
    is_string: bool = False
    missing_words: frozenset[str] = MISSING_WORDS

    def __len__(self) -> int:
        return len(self.array)

    def let_go(self) -> None:
        """Replaces the text of plain numbers by their ``values``."""
        if self.type == "text" and self.is_plain:
            import pyarrow

            buffers = [None, pyarrow.py_buffer(self.values)]  # pyarrow's own way from numpy imports pandas
            self.array = pyarrow.chunked_array([pyarrow.Array.from_buffers(pyarrow.float64(), len(self), buffers)])

    @cached_property
    def stored(self) -> str:
        """The name of the type in the file."""
        from pyarrow import types

        kind = self.array.type
        if types.is_dictionary(kind):
            return "string" if self.is_string else "dictionary"
        return shortened(str(kind))

    @cached_property
    def type(self) -> str:
        """Type in the file: "text" if the file has none, "category", or a result of ``type_of``."""
        from pyarrow import types

        if self.is_text or types.is_null(self.array.type):
            return "text"
        if types.is_dictionary(self.array.type):
            return "string" if self.is_string else "category"
        return type_of(self.array.type)

    @cached_property
    def _plain(self) -> NDArray[np.float64] | None:
        """(n,) the numbers, or dates as days, and NaN for missing cells; None if the column has other cells or is typed
        as words."""
        import pyarrow
        from pyarrow import compute, types

        array, kind = self.array, self.array.type
        if types.is_null(kind):
            return np.full(len(self), np.nan)
        if types.is_date(kind):
            array = array.cast(pyarrow.date32()).cast(pyarrow.int32())
        elif hasattr(kind, "unit"):  # times, timestamps and durations
            counts = array.cast(pyarrow.int32() if types.is_time32(kind) else pyarrow.int64())
            seconds = _A_SECOND[kind.unit] * (1.0 if types.is_duration(kind) else A_DAY)
            array = compute.divide(counts.cast(pyarrow.float64(), safe=False), seconds)
        elif self.type not in ("number", "truth", "text") or (types.is_string(kind) and self.decimal != "."):
            return None
        try:
            values = [floats_of(chunk.cast(pyarrow.float64(), safe=False)) for chunk in array.chunks]
        except pyarrow.ArrowInvalid:
            return None
        result = values[0] if len(values) == 1 else np.concatenate([np.empty(0), *values])
        return None if types.is_string(kind) and np.isinf(result).any() else result

    @property
    def values(self) -> NDArray[np.float64]:
        """(n,) the numbers, or dates as days; NaN for all other cells."""
        return np.append(self.number_of, np.nan)[self.codes] if self._plain is None else self._plain

    @cached_property
    def are_codes(self) -> bool:
        """True if the integers of a column of text are names: all have one length and some a leading zero, or all have
        16 to 20 digits, which float64 would merge."""
        from pyarrow import compute, types

        if self.type != "text" or not types.is_string(self.array.type) or self._plain is None:
            return False
        values = self._plain[~np.isnan(self._plain)]
        if not values.size or (values != np.floor(values)).any() or values.min() < 0.0:
            return False
        lengths = compute.min_max(compute.binary_length(self.array))
        shortest, longest = lengths["min"].as_py(), lengths["max"].as_py()
        with_zeros = 1 < shortest == longest and values.min() < float(f"1e{shortest - 1}")
        if not with_zeros and not 15 < shortest <= longest <= _LONGEST_CODE:
            return False
        return bool(compute.all(compute.ascii_is_decimal(self.array)).as_py())

    @property
    def is_plain(self) -> bool:
        """True if all cells are plain numbers, dates or missing."""
        return self._plain is not None

    @property
    def codes(self) -> NDArray[np.int32]:
        """(n,) the index in ``texts`` of each cell, −1 for a missing one."""
        return self._distinct[1]

    @property
    def texts(self) -> list[str]:
        """The distinct texts of cells with a value, without blanks around them."""
        return self._distinct[0]

    @cached_property
    def _distinct(self) -> tuple[list[str], NDArray[np.int32]]:
        texts, codes = self.as_they_stand
        has_value = [*(text.lower() not in self.missing_words for text in texts), False]
        new = np.where(has_value, np.cumsum(has_value) - 1, -1).astype(np.int32)
        return list(compress(texts, has_value)), new[codes]

    @cached_property
    def as_they_stand(self) -> tuple[list[str], NDArray[np.int32]]:
        """The distinct texts, words for missing cells included, and the index (n,) of each cell's text, −1 if empty."""
        import pyarrow
        from pyarrow import types

        # pyarrow cannot encode these, nor unify dictionaries that have a null.
        array = self.array
        if types.is_null(array.type) or types.is_decimal(array.type):
            array = array.cast(pyarrow.string())
        elif types.is_dictionary(array.type) and any(chunk.dictionary.null_count for chunk in array.chunks):
            array = pyarrow.chunked_array([chunk.dictionary_decode() for chunk in array.chunks])
        encoded = array if types.is_dictionary(array.type) else array.dictionary_encode()
        if encoded.num_chunks == 0:
            return [], np.empty(0, dtype=np.int32)
        encoded = encoded.unify_dictionaries()
        # The indices of polars are unsigned.
        indices = [values_of(chunk.indices.cast(pyarrow.int32()), np.int32, -1) for chunk in encoded.chunks]
        of_cell, dictionary = np.concatenate(indices), encoded.chunk(0).dictionary
        if types.is_floating(dictionary.type):
            values = ["" if value is None or value != value else text_of(value) for value in dictionary.to_pylist()]
        else:
            values = [text or "" for text in dictionary.cast(pyarrow.string()).to_pylist()]
        is_used = np.bincount(of_cell[of_cell >= 0], minlength=len(values)) > 0
        place: dict[str, int] = {}
        trimmed = [text.strip(_BLANKS) if used else "" for text, used in zip(values, is_used.tolist(), strict=True)]
        of_value = [place.setdefault(text, len(place)) if text else -1 for text in trimmed]
        return list(place), np.array([*of_value, -1], dtype=np.int32)[of_cell]

    @cached_property
    def number_of(self) -> NDArray[np.float64]:
        """(k,) the numbers that ``texts`` spell; NaN for words."""
        texts = self.texts
        if self.decimal != ".":
            texts = [text.replace(".", " ").replace(self.decimal, ".") for text in texts]
        result = np.array([float(text) if _NUMBER.fullmatch(text) else np.nan for text in texts])
        return np.where(np.isfinite(result), result, np.nan)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(k,) the number of cells with each of ``texts``."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts)).astype(np.int64)

    @cached_property
    def is_missing(self) -> NDArray[np.bool_]:
        """(n,) True for a missing cell."""
        missing: NDArray[np.bool_] = np.isnan(self.values) if self.is_plain else self.codes < 0
        return missing

    @cached_property
    def words(self) -> list[str]:
        """The distinct texts that are no numbers."""
        return [] if self.is_plain else list(compress(self.texts, np.isnan(self.number_of)))

    def counted(self, chosen: NDArray[np.bool_]) -> dict[str, int]:
        """The ``chosen`` (k,) of ``texts``, each with the number of its cells."""
        return dict(compress(zip(self.texts, self.counts.tolist(), strict=True), chosen))

    def with_none(self) -> Cells:
        """The same cells, in which "none" is a word, as in a column of labels."""
        return replace(self, missing_words=MISSING_WORDS - {"none"})

    def text_at(self, row: int) -> str:
        """The cell of a row as text."""
        texts, codes = self.as_they_stand
        return "" if codes[row] < 0 else texts[codes[row]]

    def fail(self, row: int, problem: str) -> DataError:
        """The error of a cell."""
        return DataError(f"{self.places.shown(row, self.name)}: {problem}")

    def plain_numbers(self) -> NDArray[np.float64]:
        """The ``values`` of a plain column. Raises DataError for dates, times and infinite numbers."""
        are_dates = self.type in ("date", "time")
        rows = np.flatnonzero(~self.is_missing if are_dates else np.isinf(self.values))
        if rows.size:
            number = "number" if are_dates else "finite number"
            raise self.fail(int(rows[0]), f"expected a {number}, found {shown(self.text_at(int(rows[0])))}")
        return self.values

    def of_words(self) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
        """The distinct words, their counts, and the index of each text's word. 10 and 10.0 are one word, 01234 and 1234
        are two."""
        words = [word_of(text) for text in self.texts]
        place: dict[str, int] = {}
        of_text = np.array([place.setdefault(word, len(place)) for word in words], dtype=np.int64)
        return list(place), np.bincount(of_text, self.counts, len(place)).astype(np.int64), of_text


_TYPES = (
    ("number", ("integer", "floating", "decimal", "duration")),
    ("truth", ("boolean",)),
    ("date", ("date", "timestamp")),
    ("time", ("time",)),
    ("string", ("string", "large_string", "string_view")),
)


def type_of(kind: Any) -> str:
    """Name of an Arrow type: number, truth, string, date or time; "" for types that are not read."""
    from pyarrow import types

    for name, holds in _TYPES:
        if any(getattr(types, f"is_{one}")(kind) for one in holds):
            return name
    return ""


def values_of(array: Any, dtype: type[np.generic], null: float) -> AnyArray:
    """(n,) the values in the buffer of an Arrow array of this type, ``null`` for a null. pyarrow's own way to numpy
    imports pandas, which takes .4 s and 60 MB."""
    from pyarrow import compute

    filled = compute.fill_null(array, null) if array.null_count else array
    return np.frombuffer(filled.buffers()[1], dtype, len(filled), np.dtype(dtype).itemsize * filled.offset)


def floats_of(array: Any) -> NDArray[np.float64]:
    """(n,) the values of an Arrow array of float64, NaN for a null."""
    return values_of(array, np.float64, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns of one file or several.

    Attributes
    ----------
    columns : by name
    places : the locations of the rows
    remarks : remarks on how cells were read
    fingerprint : SHA-256 of the file, or of the fingerprints of several
    """

    columns: dict[str, Cells]
    places: Places
    remarks: tuple[str, ...] = ()
    fingerprint: str = ""

    def __len__(self) -> int:
        return 0 if not self.columns else len(next(iter(self.columns.values())))

    def labelled(self, name: str) -> Table:
        """The rows of one file with a value in the column ``name``. Raises DataError if there are none."""
        import pyarrow

        is_missing = self.columns[name].with_none().is_missing
        if not is_missing.any():
            return self
        if is_missing.all():
            raise DataError(f"{self.places.source}: column {name!r} has no value in any row")
        places = Places((self.places.files[0]._replace(kept=np.flatnonzero(~is_missing)),))
        remark = f"rows without a value in column {name!r} are left out: {np.count_nonzero(is_missing):,}"
        has = pyarrow.array((~is_missing).tolist())
        columns = {
            column: replace(cells, places=places, array=cells.array.filter(has))
            for column, cells in self.columns.items()
        }
        return replace(self, columns=columns, places=places, remarks=(*self.remarks, remark))


def behind_another(tables: Sequence[Table]) -> Table:
    """The rows of all tables, with the columns in the order of the first. Raises DataError for a column whose type
    differs between tables."""
    import pyarrow

    begins = np.cumsum([0, *map(len, tables[:-1])]).tolist()
    places = Places(
        tuple(table.places.files[0]._replace(begin=begin) for table, begin in zip(tables, begins, strict=True))
    )
    columns = {}
    for name in tables[0].columns:
        cells = [table.columns[name] for table in tables]
        chunks = [chunk for one in _alike(cells) for chunk in one.chunks]
        decimal = "," if any(one.decimal == "," for one in cells) else "."
        is_text = any(one.is_text for one in cells)
        is_strings = any(one.type == "string" for one in cells)
        columns[name] = Cells(name, places, pyarrow.chunked_array(chunks), is_text, decimal, is_strings)
    remarks = tuple(f"{table.places.source}: {remark}" for table in tables for remark in table.remarks)
    fingerprint = hashlib.sha256("".join(table.fingerprint for table in tables).encode()).hexdigest()
    return Table(columns, places, remarks, fingerprint)


def _alike(cells: Sequence[Cells]) -> list[Any]:
    """The arrays of a column in several tables, cast to one type. Raises DataError."""
    import pyarrow
    from pyarrow import types

    if any(one.is_text for one in cells):
        with_points = [one for one in cells if types.is_floating(one.array.type)]
        with_commas = [one for one in cells if one.decimal == ","]
        if with_points and with_commas:
            raise DataError(
                f"{with_points[0].places.source}: column {cells[0].name!r} has decimal points, and "
                f"{with_commas[0].places.source} decimal commas: write both alike"
            )
        whole = pyarrow.float64() if len(with_points) == len(cells) else pyarrow.string()
        return [one.array.cast(whole) for one in cells]
    typed = [one for one in cells if not types.is_null(one.array.type)] or list(cells)
    if len({one.array.type for one in typed}) == 1:
        return [one.array.cast(typed[0].array.type) for one in cells]
    kinds = [{"truth": "number", "category": "string"}.get(one.type, one.type) for one in typed]
    other = next((at for at, kind in enumerate(kinds) if kind != kinds[0]), None)
    if other is not None:
        raise DataError(
            f"{typed[other].places.source}: column {cells[0].name!r} has the type {typed[other].stored}, and in "
            f"{typed[0].places.source} {typed[0].stored}: write both alike, or {leaving_out(cells[0].name)}"
        )
    whole = {"string": pyarrow.string(), "date": pyarrow.timestamp("us"), "time": pyarrow.time64("us")}.get(kinds[0])
    if whole is None:
        is_integer = all(types.is_integer(one.array.type) for one in typed)
        whole = pyarrow.int64() if is_integer else pyarrow.float64()
    return [one.array.cast(whole, safe=False) for one in cells]


def word_of(text: str) -> str:
    """The word of a text: a number loses the zeros behind its decimals."""
    found = _WITH_ZEROS.fullmatch(text)
    return text if found is None else found[1] + (found[2] if len(found[2]) > 1 else "")


def text_of(number: float) -> str:
    """The word of a number: 1.0 is "1"."""
    return repr(number + 0.0).removesuffix(".0")


def shown(word: str) -> str:
    """A word in a message."""
    return repr(shortened(word, 40))


def quoted(name: str) -> str:
    """A name as it is typed in a shell."""
    return name if re.fullmatch(r"[\w.-]+", name) else f"'{name}'"


def leaving_out(name: str) -> str:
    """Advice to leave the column out, in the syntax of the command or of Python."""
    return advice(f"--drop {quoted(name)}", "leave it out of X")


def refuse_title(are_filled: Sequence[Sequence[bool]], place: str, first: int) -> None:
    """Raises DataError if the first row, number ``first``, is a title: one cell is filled, and more than two below."""
    filled = [sum(row) for row in are_filled[:_ROWS_OF_TITLES]]
    most = max(filled)
    if filled[0] == 1 and most > 2:
        at = next(at for at, count in enumerate(filled) if count > most // 2)
        raise DataError(
            f"{place} {first} has one filled cell of {max(map(len, are_filled))}, {place.rpartition(' ')[2]} "
            f"{first + at} {filled[at]}: --skip-lines {first + at - 1} begins with the names there"
        )


def different_names(names: Sequence[str], source: str, hint: str = "") -> Sequence[str]:
    """The names. Raises DataError if two columns have the same."""
    twice = sorted(column for column, times in Counter(names).items() if times > 1)
    if twice:
        found = ", ".join(twice[:8])
        raise DataError(f"{source}: expected different names of columns, found more than once: {found}{hint}")
    return names
