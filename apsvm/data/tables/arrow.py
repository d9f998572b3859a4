"""Parquet, Arrow (Feather) and JSON lines as cells, by pyarrow. Texts are read as the cells of CSV are.

CSV is read by ``separated``: pyarrow takes 1.3 to 2 times as long for it, and three times the memory (1e6 × 20 numbers
of 190 MB: 1.2 s and 235 MB here; 1.5 s with two threads, 2.6 with one, and 640 MB by pyarrow)."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm._support.files import digest_of_file
from apsvm.data.dataset import DataError, NoRowsError
from apsvm.data.tables.cells import MEMORY, MISSING, Cells, Places, Scratch
from apsvm.data.tables.parts import listed, quoted
from apsvm.data.tables.recognising import Kind, is_json
from apsvm.data.tables.separated import CELLS, SKIPPED, TEXT, Choice, decoded, not_utf8
from apsvm.data.text import text_blocks

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

_ROWS = 1 << 16
#: Bytes of each column of Parquet that are read at a time.
_BUFFER = 1 << 18
#: Below it a float64 is every integer.
_EXACT = float(1 << 53)


def cells_of_arrow(
    source: str | os.PathLike[str] | BinaryIO,
    kind: Kind,
    choose: Callable[[str], Choice],
    *,
    encoding: str,
    scratch: Scratch,
) -> tuple[Cells, str, str]:
    """The cells of the columns that are chosen, the name of the file for messages, and the sha256 of its bytes.

    ``encoding`` is that of JSON lines.

    Raises
    ------
    DataError : bad content
    OSError : the source cannot be read
    """
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else source.name
    if isinstance(source, str | os.PathLike):
        import pyarrow

        # pyarrow reads its own file without copies
        with pyarrow.OSFile(os.fsencode(source)) as stream:
            cells = _cells(stream, kind, name, choose(name), encoding, scratch)
            pyarrow.default_memory_pool().release_unused()  # else half the size of the rows is kept for other files
            return cells, name, digest_of_file(source)
    content = source.read()
    cells = _cells(io.BytesIO(content), kind, name, choose(name), encoding, scratch)
    return cells, name, hashlib.sha256(content).hexdigest()


def _cells(stream: BinaryIO, kind: Kind, name: str, choose: Choice, encoding: str, scratch: Scratch) -> Cells:
    with _parsing(name, kind):
        is_json = kind is Kind.JSON_LINES
        names, n, batches = _opened_json(stream, name, encoding) if is_json else _opened(stream, kind)
    twice = sorted(column for column, times in Counter(names).items() if times > 1)
    if twice:
        raise DataError(f"{name}: expected different names of columns, found more than once: {listed(twice)}")
    return _gathered(names, n, batches, Places(name, "line" if is_json else "row"), kind, choose(names), scratch)


def cells_of_frame(table: Any, source: str) -> Cells:
    """The cells of all columns of an Arrow table; ``source``: what it is called in messages. Raises DataError."""
    names, n, batches = _batches_of(table)
    return _gathered(names, n, batches, Places(source), Kind.ARROW, [CELLS] * len(names), MEMORY)


def _gathered(
    names: Sequence[str],
    n: int,
    batches: Callable[[list[str]], Iterator[Any]],
    places: Places,
    kind: Kind,
    letters: Sequence[str],
    scratch: Scratch,
) -> Cells:
    """The cells of the columns that are not skipped, by the ``letters`` of all."""
    name = places.source
    kept = [(at, column) for at, (column, letter) in enumerate(zip(names, letters, strict=True)) if letter != SKIPPED]
    columns = [_Words(name, column, letters[at]) for at, column in kept]
    if n == 0:
        raise NoRowsError(f"{name}: expected at least one row, found none")
    values = scratch.empty((len(kept), n)).T
    begin = 0
    with _parsing(name, kind):
        for batch in batches([column for _, column in kept]):
            for at, column in enumerate(columns):
                values[begin : begin + len(batch), at] = column.cells(batch.column(column.name))
            begin += len(batch)
    return Cells(values, [column for _, column in kept], [column.words for column in columns], places)


def _opened(stream: BinaryIO, kind: Kind) -> tuple[list[str], int, Callable[[list[str]], Iterator[Any]]]:
    """The names of the columns, the number of rows, and the batches of some of the columns."""
    if kind is Kind.PARQUET:
        import pyarrow.parquet as parquet

        file = parquet.ParquetFile(stream, pre_buffer=False, buffer_size=_BUFFER)
        names = list(file.schema_arrow.names)
        return names, file.metadata.num_rows, lambda kept: file.iter_batches(_ROWS, columns=kept)
    from pyarrow import feather, ipc

    magic = stream.read(6)
    stream.seek(0)
    if magic.startswith(b"\xff\xff\xff\xff"):
        table = ipc.open_stream(stream).read_all()
    elif magic.startswith(b"ARROW1"):
        table = ipc.open_file(stream).read_all()
    else:
        table = feather.read_table(stream)
    return _batches_of(table)


def _batches_of(table: Any) -> tuple[list[str], int, Callable[[list[str]], Iterator[Any]]]:
    return list(table.column_names), table.num_rows, lambda kept: iter(table.select(kept).to_batches(_ROWS))


def _opened_json(
    stream: BinaryIO, name: str, encoding: str
) -> tuple[list[str], int, Callable[[list[str]], Iterator[Any]]]:
    """The same for JSON lines, plain or compressed: one object a line, whose names are the columns."""
    import pyarrow
    from pyarrow import json as arrow_json

    with text_blocks(stream) as (_, blocks):
        content = b"".join(decoded(blocks, name, encoding)).rstrip()
    try:
        table = arrow_json.read_json(io.BytesIO(content))
        table.validate(full=True)  # that texts are UTF-8
        if all(map(_is_exact, table.columns)) and table.num_rows == content.count(b"\n") + 1:
            return _batches_of(table)
    except (pyarrow.ArrowException, UnicodeError):
        pass  # a column of numbers and words, or a line that is none: pyarrow does not say where
    columns, n = _columns_of_json(content, name)

    def batches(kept: list[str]) -> Iterator[Any]:
        table = pyarrow.table({column: _of_one_type(columns[column], column, name) for column in kept})
        return iter(table.to_batches(_ROWS))

    return list(columns), n, batches


def _columns_of_json(content: bytes, name: str) -> tuple[dict[str, list[Any]], int]:
    """The columns of JSON lines, line by line, and the number of lines. Raises DataError where one is no object."""
    columns: dict[str, list[Any]] = {}
    lines = content.split(b"\n")
    for number, line in enumerate(lines):
        try:
            row = json.loads(line.decode(), parse_int=_integer)
            if b"\\u" in line:  # half of a surrogate pair is no text
                json.dumps(row, ensure_ascii=False).encode()
        except UnicodeDecodeError as error:
            raise DataError(f"{name}:{number + 1}: {not_utf8(line[error.start])}") from None
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            found = line.decode()[:40].strip()
            whole = "; a document over all lines is not read" if number == 0 and is_json(content) else ""
            raise DataError(f"{name}:{number + 1}: expected a JSON object a line, found {found!r}{whole}")
        for key, value in row.items():
            columns.setdefault(key, [None] * number).append(value)
        for values in columns.values():
            values.extend([None] * (number + 1 - len(values)))
    return columns, len(lines)


def _is_exact(column: Any) -> bool:
    """Whether the type that pyarrow derived keeps what the text says: not dates, nor integers beyond 64 bits."""
    import pyarrow
    from pyarrow import compute

    if pyarrow.types.is_floating(column.type):
        largest = compute.max(compute.abs(column)).as_py()
        return largest is None or largest < _EXACT
    return not (pyarrow.types.is_nested(column.type) or pyarrow.types.is_temporal(column.type))


def _integer(digits: str) -> int | str:
    """Text where it may be beyond 64 bits: a name of a row keeps its digits, and a number is read as that of CSV."""
    return int(digits) if len(digits) < 19 else digits


def _of_one_type(values: list[Any], column: str, source: str) -> list[float | str | None]:
    """A column of JSON lines; numbers and words of one become words. Raises DataError for a list or an object."""
    types = {type(value) for value in values if value is not None}
    if not types <= {bool, int, float, str}:
        at = next(at for at, value in enumerate(values) if isinstance(value, list | dict))
        found = "a list" if isinstance(values[at], list) else "an object"
        raise DataError(
            f"{source}:{at + 1}: column {column!r}: expected a number or a word, found {found}, "
            f"or --drop {quoted(column)}"
        )
    if len(types) <= 1:
        return values
    if types == {int, float} and all(value is None or abs(value) < _EXACT for value in values):
        return [None if value is None else float(value) for value in values]
    return [value if value is None or isinstance(value, str) else _word_of(value) for value in values]


def _word_of(value: bool | float) -> str:
    """A number or truth value as CSV would have it."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXACT
    return str(int(value)) if is_whole else str(value).lower()


@contextmanager
def _parsing(name: str, kind: Kind) -> Iterator[None]:
    """Turns what pyarrow raises for a damaged file into a DataError."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:  # KeyError: a type newer than pyarrow
        if isinstance(error, DataError | MemoryError):
            raise
        why = " ".join(str(error).split())  # some of them have more than a line
        raise DataError(f"{name}: not {kind.what} that is read here ({type(error).__name__}: {why})") from None


#: How many of a unit of durations are a second.
_A_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class _Words:
    """A column on its way: its words, as they appear."""

    def __init__(self, source: str, name: str, letter: str) -> None:
        self.name, self._source, self._letter = name, source, letter
        self.words: list[str] = []
        self._numbers: dict[str, int] = {}

    def cells(self, array: Any) -> NDArray[np.float64]:
        """The cells (n,) of an Arrow array."""
        import pyarrow
        from pyarrow import compute, types

        kind = array.type
        if types.is_dictionary(kind):
            array = array.cast(kind.value_type)
            kind = array.type
        if types.is_null(kind):
            return _all_missing(len(array))
        if types.is_duration(kind):  # in seconds, whatever the unit
            array = compute.divide(array.cast(pyarrow.int64()).cast(pyarrow.float64()), _A_SECOND[kind.unit])
            kind = array.type
        is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        if is_number and self._letter != TEXT:
            return self._numbers_of(array)
        is_date = types.is_date(kind) or types.is_timestamp(kind) or types.is_time(kind)
        if not (is_number or types.is_boolean(kind) or is_date or _is_string(kind)):
            raise DataError(
                f"{self._source}: column {self.name!r}: expected numbers or words, found the type {kind}, "
                f"or --drop {quoted(self.name)}"
            )
        array = array.cast(pyarrow.string()).dictionary_encode()
        cells = self._of_texts(array.dictionary.to_pylist())
        place = array.indices.fill_null(len(cells)).to_numpy()
        result: NDArray[np.float64] = np.append(cells, _all_missing(1))[place]
        return result

    def _numbers_of(self, array: Any) -> NDArray[np.float64]:
        import pyarrow

        values: NDArray[np.float64] = array.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        is_finite = np.isfinite(values)  # a null is NaN
        if is_finite.all():
            return values
        result = np.where(is_finite, values, _all_missing(1)[0])
        infinite = np.isinf(values)
        if infinite.any():
            words = self._of_texts(["inf", "-inf"])
            result[infinite] = np.where(values[infinite] > 0, words[0], words[1])
        return result

    def _of_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The cell of each text, read as that of a CSV is."""
        if not texts:
            return np.empty(0)
        parser = _kernels.CsvParser(columns=self._letter, separator="\x1f")
        for text in texts:
            doubled = text.replace('"', '""').replace("\0", "\ufffd")
            parser.feed(f'"{doubled}"\n'.encode())
        parser.finish()
        values = parser.take()[:, 0].copy()
        words = np.array([self._number(word.decode()) for word in parser.words(0)] or [0], dtype=np.int64)
        bits = values.view(np.int64)
        is_word = bits > MISSING
        bits[is_word] = words[bits[is_word] - (MISSING + 1)] + (MISSING + 1)
        return values

    def _number(self, word: str) -> int:
        if word not in self._numbers:
            self._numbers[word] = len(self.words)
            self.words.append(word)
        return self._numbers[word]


def _is_string(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view")  # polars' own


def _all_missing(n: int) -> AnyArray:
    return np.full(n, MISSING, dtype=np.int64).view(np.float64)
