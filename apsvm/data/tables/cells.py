"""A column of a table as it was read: numbers, words and missing cells.

Text is read with pyarrow's kernels: a column whose cells are all plain numbers is cast in one call; of another one its
distinct texts are looked at. What a column is meant to be is decided in ``typed.py``.
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

#: Texts that are read as a missing cell, in any case.
MISSING_WORDS = frozenset(
    (
        *("", "?", ".", "na", "n/a", "nan", "-nan", "null", "none", "nil", "<na>", "#n/a", "#na", "#n/a n/a"),
        *("1.#qnan", "-1.#qnan", "1.#ind", "-1.#ind"),
    )
)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
#: A number as it is usually written, whose last zeros may be left out.
_WITH_ZEROS = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]*?)0*")
#: Digits that a code of 16 or more may have: longer integers are numbers too large for 64 bits.
_LONGEST_CODE = 20
_BLANKS = " \t"
#: Rows among which the names of columns are looked for, where a title may stand above them.
_ROWS_OF_TITLES = 21
#: How many of a unit of durations are a second.
_A_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class FilePlaces(NamedTuple):
    """Locations of the rows of a file: its name; the unit in which it counts, "line" for text, else "row"; the number
    of its first row; the numbers of the rows that are read, from 0, None for all; and how many rows other files have
    before."""

    source: str
    unit: str = "row"
    first: int = 1
    kept: NDArray[np.int64] | None = None
    begin: int = 0


@dataclass(frozen=True, slots=True)
class Places:
    """Locations of rows, for messages; ``files``: in the order of their rows."""

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
        """The line of a row in its file, or its number there from 1."""
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
    array : as it was read, an Arrow ChunkedArray; of float64 where text was read as numbers
    is_text : True if the writer gave its cells no type, as in CSV
    decimal : the decimal mark of numbers in the file
    is_string : True if an array of dictionaries has the writer's type of text
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
        """Forgets the text of plain numbers, which are there as ``values``."""
        if self.type == "text" and self.codes is None:
            self.array = array_of_floats(self.values)

    @cached_property
    def stored(self) -> str:
        """The name of the type by its writer."""
        from pyarrow import types

        kind = self.array.type
        if types.is_dictionary(kind):
            return "string" if self.is_string else "dictionary"
        return shortened(str(kind))

    @cached_property
    def type(self) -> str:
        """Type given by the file's writer: text (no type), category, or what ``type_of`` says."""
        from pyarrow import types

        if self.is_text or types.is_null(self.array.type):
            return "text"
        if types.is_dictionary(self.array.type):
            return "string" if self.is_string else "category"
        return type_of(self.array.type)

    @cached_property
    def _plain(self) -> NDArray[np.float64] | None:
        """(n,) the numbers, and dates as days, of a column without other cells, NaN for a missing one; None of a column
        with other cells, or one that is typed as words."""
        import pyarrow
        from pyarrow import compute, types

        array, kind = self.array, self.array.type
        if types.is_null(kind):
            return np.full(len(self), np.nan)
        if self.type in ("date", "time"):
            unit = "us" if self.type == "time" or not hasattr(kind, "unit") else kind.unit
            whole = pyarrow.time64("us") if self.type == "time" else pyarrow.timestamp(unit, getattr(kind, "tz", None))
            counts = array.cast(whole).cast(pyarrow.int64()).cast(pyarrow.float64(), safe=False)
            array = compute.divide(counts, _A_SECOND[unit] * A_DAY)
        elif types.is_duration(kind):
            counts = array.cast(pyarrow.int64()).cast(pyarrow.float64(), safe=False)
            array = compute.divide(counts, _A_SECOND[kind.unit])
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
        """(n,) the numbers, and dates as days; NaN for all else."""
        return np.append(self.number_of, np.nan)[self._distinct[1]] if self._plain is None else self._plain

    @cached_property
    def are_codes(self) -> bool:
        """True if a column of text has plain integers that name something: all of one length and some with a zero in
        front, or all of 16 to 20 digits, which float64 would merge."""
        from pyarrow import compute, types

        if self.type != "text" or not types.is_string(self.array.type) or self._plain is None:
            return False
        values = self._plain[~np.isnan(self._plain)]
        if not values.size or (values != np.floor(values)).any() or values.min() < 0.0:
            return False
        lengths = compute.min_max(compute.binary_length(self.array))
        shortest, longest = lengths["min"].as_py(), lengths["max"].as_py()
        with_zeros = 1 < shortest == longest and values.min() < 10.0 ** (shortest - 1)
        if not with_zeros and not 15 < shortest <= longest <= _LONGEST_CODE:
            return False
        return bool(compute.all(compute.ascii_is_decimal(self.array)).as_py())

    @property
    def codes(self) -> NDArray[np.int32] | None:
        """(n,) which of ``texts`` a cell is, −1 where it is missing; None of numbers and dates alone."""
        return self._distinct[1] if self._plain is None else None

    @property
    def texts(self) -> list[str]:
        """The distinct texts of cells that are not missing, without blanks around them."""
        return self._distinct[0]

    @cached_property
    def _distinct(self) -> tuple[list[str], NDArray[np.int32]]:
        texts, codes = self.as_they_stand
        has_value = [*(text.lower() not in self.missing_words for text in texts), False]
        new = np.where(has_value, np.cumsum(has_value) - 1, -1).astype(np.int32)
        return list(compress(texts, has_value)), new[codes]

    @cached_property
    def as_they_stand(self) -> tuple[list[str], NDArray[np.int32]]:
        """The distinct texts, also of numbers and of what else means a missing cell, and of each cell which it is;
        −1 where it is empty."""
        import pyarrow
        from pyarrow import types

        encoded = self.array if types.is_dictionary(self.array.type) else self.array.dictionary_encode()
        if encoded.num_chunks == 0:
            return [], np.empty(0, dtype=np.int32)
        encoded = encoded.unify_dictionaries()
        # polars has indices without a sign.
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
        """(k,) the values of ``texts`` as numbers; NaN for other text."""
        texts = self.texts
        if self.decimal != ".":
            texts = [text.replace(".", " ").replace(self.decimal, ".") for text in texts]
        result = np.array([float(text) if _NUMBER.fullmatch(text) else np.nan for text in texts])
        return np.where(np.isfinite(result), result, np.nan)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(k,) how many cells have each of ``texts``."""
        codes = self._distinct[1]
        return np.bincount(codes[codes >= 0], minlength=len(self.texts)).astype(np.int64)

    @cached_property
    def is_missing(self) -> NDArray[np.bool_]:
        """(n,)"""
        codes = self.codes
        missing: NDArray[np.bool_] = np.isnan(self.values) if codes is None else codes < 0
        return missing

    @cached_property
    def words(self) -> list[str]:
        """Distinct texts that are no numbers."""
        return [] if self.codes is None else list(compress(self.texts, np.isnan(self.number_of)))

    def counted(self, chosen: NDArray[np.bool_]) -> dict[str, int]:
        """Some of ``texts``, (k,), and how many cells have each."""
        return dict(compress(zip(self.texts, self.counts.tolist(), strict=True), chosen))

    def with_none(self) -> Cells:
        """The same of which the word none is no missing cell, as labels may be."""
        return replace(self, missing_words=MISSING_WORDS - {"none"})

    def text_at(self, row: int) -> str:
        """The cell of a row as text."""
        texts, codes = self.as_they_stand
        return "" if codes[row] < 0 else texts[codes[row]]

    def fail(self, row: int, problem: str) -> DataError:
        """The error of a cell."""
        return DataError(f"{self.places.shown(row, self.name)}: {problem}")

    @property
    def word_codes(self) -> NDArray[np.int32]:
        """(n,) which of ``texts`` a cell is, also of numbers; −1 where it is missing."""
        return self._distinct[1]

    def of_words(self) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
        """Categories of the column: the different words, their counts, and the index of each text's word. 10 and 10.0
        are one word, 01234 and 1234 two."""
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
    """(n,) the values of an Arrow array of this type, ``null`` for a null. They are those of its buffer: pyarrow's own
    way to numpy imports pandas, which takes .4 s and 60 MB."""
    from pyarrow import compute

    filled = compute.fill_null(array, null) if array.null_count else array
    return np.frombuffer(filled.buffers()[1], dtype, len(filled), np.dtype(dtype).itemsize * filled.offset)


def floats_of(array: Any) -> NDArray[np.float64]:
    """(n,) the values of an Arrow array of float64, NaN for a null."""
    return values_of(array, np.float64, np.nan)


def array_of_floats(values: Any) -> Any:
    """The float64 numbers in a buffer as a chunked array; pyarrow's own way would import pandas here, too."""
    import pyarrow

    buffer = pyarrow.py_buffer(values)
    return pyarrow.chunked_array([pyarrow.Array.from_buffers(pyarrow.float64(), buffer.size // 8, [None, buffer])])


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The columns of a file that were read.

    Attributes
    ----------
    columns : by name
    places : the locations of the rows
    remarks : remarks for the user on how cells were read
    fingerprint : sha256 of the bytes of the file, or of the fingerprints of several
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
    """The rows of all tables; the columns are in the order of the first.

    Raises
    ------
    DataError : a column has a type in one table that it has not in another
    """
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
    """The arrays of a column in several tables as arrays of one type. Raises DataError."""
    import pyarrow
    from pyarrow import types

    if any(one.is_text for one in cells):
        whole = pyarrow.float64() if all(types.is_floating(one.array.type) for one in cells) else pyarrow.string()
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
    """A text as a word: a number without zeros behind its decimals."""
    found = _WITH_ZEROS.fullmatch(text)
    return text if found is None else found[1] + (found[2] if len(found[2]) > 1 else "")


def text_of(number: float) -> str:
    """A number as a word: 1 of 1.0."""
    return repr(number + 0.0).removesuffix(".0")


def shown(word: str) -> str:
    """A word in a message."""
    return repr(shortened(word, 40))


def quoted(name: str) -> str:
    """A name as one would type it in a shell."""
    return name if re.fullmatch(r"[\w.-]+", name) else f"'{name}'"


def leaving_out(name: str) -> str:
    """Advice that leaves the column out, in the caller's syntax (command or Python)."""
    return advice(f"--drop {quoted(name)}", "leave it out of X")


def refuse_title(are_filled: Sequence[Sequence[bool]], place: str, first: int) -> None:
    """Raises DataError where the first row, number ``first``, has one filled cell, and a row below it the names."""
    filled = [sum(row) for row in are_filled[:_ROWS_OF_TITLES]]
    most = max(filled)
    if filled[0] == 1 and most > 2:
        at = next(at for at, count in enumerate(filled) if count > most // 2)
        raise DataError(
            f"{place} {first} has one filled cell of {max(map(len, are_filled))}, {place.rpartition(' ')[2]} "
            f"{first + at} {filled[at]}: --skip-lines {first + at - 1} begins with the names there"
        )


def different_names(names: Sequence[str], source: str, hint: str = "") -> Sequence[str]:
    """The names, if no two columns have the same. Raises DataError."""
    twice = sorted(column for column, times in Counter(names).items() if times > 1)
    if twice:
        found = ", ".join(twice[:8])
        raise DataError(f"{source}: expected different names of columns, found more than once: {found}{hint}")
    return names
