"""Separated values (CSV, TSV) as cells: what separates them is seen in the first lines; the rest is native.

The text is UTF-8 unless said otherwise or a byte order mark says UTF-16. The first line that is not blank has the names
of the columns; above it may stand Excel's ``sep=;``. RFC 4180 says how quotes are read.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.data.dataset import DataError
from apsvm.data.tables.cells import MISSING_WORDS, Cells, Places, Scratch
from apsvm.data.tables.recognising import SEPARATORS

#: Bytes looked at before anything is parsed, and the rows among them.
HEAD = 1 << 19
#: Bytes that the line of the names may have.
LONGEST_NAMES = 1 << 26
_ROWS_SEEN = 200
#: What to do where the first line has no names.
IF_A_ROW = "if that is a row, write a line of names above it"

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
#: 1.234 is 1234 in German, and 1,234 in others; 234 may be either's.
_GROUPED, _SMALL = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}"), re.compile(r"[+-]?\d{1,3}")
_WINDOWS = "cp1252"
#: What may stand above the names; ``sep=;`` is what Excel writes, and reads.
_ABOVE = re.compile(rf"[\r\n \ufeff]*(?:sep=([{SEPARATORS}])[\r\n]+[\r\n ]*)?")
_NAMES = re.compile(rb"[\r\n \xef\xbb\xbf]*(?:sep=.[\r\n]+)?[^\r\n]+[\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

#: Held while csv.field_size_limit is another.
_LIMIT = Lock()

#: The letters of the native parser: columns of cells, of labels, of text, and those that are skipped.
CELLS, LABELS, TEXT, SKIPPED = "c", "l", "t", "s"
#: Says of the names of a table's columns which of these letters each has.
Choice = Callable[[Sequence[str]], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Head:
    """What the first lines say.

    Attributes
    ----------
    names : of the columns; "" of one without a name
    separator, decimal : one character each
    ambiguous : column name: a number, of the columns whose points may separate thousands
    first_line : the line behind the names
    size : the bytes of the lines up to there
    """

    names: list[str]
    separator: str
    decimal: str
    ambiguous: dict[str, str]
    first_line: int
    size: int

    @classmethod
    def of(cls, text: str, name: str, *, is_whole: bool, decimal: str | None) -> Head:
        """``text``: the beginning of the table, or all of it. Raises DataError."""
        above = _ABOVE.match(text)
        assert above is not None
        blank, text = above[0], text[above.end() :]
        if not text:
            raise DataError(f"{name}: expected the names of columns in the first line, found an empty file")
        separator = above[1] or _separator(text, is_whole)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
        try:
            names = [field.strip() for field in next(reader)]
            n_lines = reader.line_num
            rows = [[field.strip() for field in row] for row in islice(reader, _ROWS_SEEN)]
        except csv.Error as error:
            raise DataError(f"{name}: the first lines are no table: {error}") from None
        header = list(islice(io.StringIO(text, newline=""), n_lines))
        ambiguous = {}
        if decimal is None:
            cells = [field for row in rows for field in row]
            has_commas = separator != "," and any(map(_COMMA.fullmatch, cells))
            # Beside decimal commas 1.250 has a point between thousands.
            points = [cell for cell in cells if _POINT.fullmatch(cell) and not _GROUPED.fullmatch(cell)]
            decimal = "," if has_commas and not points else "."
            if separator != ",":
                ambiguous = _with_thousands(names, rows, mixed=separator != ";")
        _check_names(names, name)
        begin = len(blank.encode()) + sum(len(line.encode()) for line in header)
        return cls(names, separator, decimal, ambiguous, _count_lines(blank) + len(header) + 1, begin)


def _count_lines(text: str) -> int:
    return len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n")) - 1


def _with_thousands(names: Sequence[str], rows: Sequence[Sequence[str]], *, mixed: bool) -> dict[str, str]:
    """The columns whose points may all separate thousands, and a number of each; ``mixed``: only where numbers without
    a point stand beside them, which programs that write three decimals do not leave."""
    result = {}
    for name, column in zip(names, zip_longest(*rows, fillvalue=""), strict=False):
        fields = [field for field in column if field.lower() not in MISSING_WORDS]
        grouped = [field for field in fields if _GROUPED.fullmatch(field)]
        others = [field for field in fields if not _GROUPED.fullmatch(field)]
        if grouped and (others or not mixed) and all(map(_SMALL.fullmatch, others)):
            result[name] = grouped[0]
    return result


@contextmanager
def _long_fields() -> Iterator[None]:
    """Lets the csv module read fields as long as the head; its own limit, of all threads, is 131,072 characters."""
    with _LIMIT:
        limit = csv.field_size_limit(max(HEAD, csv.field_size_limit()))
        try:
            yield
        finally:
            csv.field_size_limit(limit)


def _separator(text: str, is_whole: bool) -> str:
    """The one by which all the first rows have the same number of fields, the more the better."""
    best, most = ",", (False, 1)
    for separator in SEPARATORS:
        try:
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
            counts = [len(row) for row in islice(reader, 20) if row]
        except csv.Error:
            continue
        counts = counts if is_whole or len(counts) < 2 else counts[:-1]
        if counts[0] > 1 and (len(set(counts)) == 1, counts[0]) > most:
            best, most = separator, (len(set(counts)) == 1, counts[0])
    return best


def _check_names(names: Sequence[str], source: str) -> None:
    twice = sorted(name for name, times in Counter(names).items() if name and times > 1)
    if all(map(_NUMBER.fullmatch, names)) or any(map(_NUMBER.fullmatch, twice)):
        numbers = filter(_NUMBER.fullmatch, names)
        raise DataError(
            f"{source}: expected the names of the columns in the first line, found numbers: "
            f"{', '.join(islice(numbers, 4))}; {IF_A_ROW}"
        )
    if twice:
        raise DataError(
            f"{source}: expected different names of columns in the first line, found more than once: "
            f"{', '.join(twice[:8])}; {IF_A_ROW}"
        )
    if any("\0" in name for name in names):
        raise DataError(
            f"{source}: expected text, found NUL bytes among the names of its columns; --encoding utf-16-le reads "
            "UTF-16 without a byte order mark"
        )


def decoded(blocks: Iterator[bytes], name: str, encoding: str, remarks: list[str] | None = None) -> Iterator[bytes]:
    """The text of ``text_blocks`` in UTF-8. Raises DataError. ``remarks``: where "auto" may take another encoding than
    UTF-8, and says so once that is read."""
    first = next(blocks)
    if first.startswith(_UTF16):
        encoding = "utf-16"
    blocks = chain((first,), blocks)
    if encoding == "auto" and remarks is not None:
        return _utf8_or_windows(blocks, name, remarks)
    if encoding == "auto" or codecs.lookup(encoding).name == "utf-8":
        return blocks
    return _recoded(blocks, name, encoding)


def _utf8_or_windows(blocks: Iterable[bytes], name: str, remarks: list[str]) -> Iterator[bytes]:
    """Text whose first bytes beyond ASCII are not UTF-8 as cp1252, which has ASCII too."""
    is_utf8: bool | None = None
    for block in blocks:
        if is_utf8 is None and not block.isascii():
            is_utf8 = _begins_as_utf8(block)
            if not is_utf8:
                remarks.append("it is not UTF-8, and is read as cp1252 (--encoding names another)")
        try:
            yield block if is_utf8 is not False else block.decode(_WINDOWS).encode()
        except UnicodeDecodeError as error:
            raise DataError(f"{name}: {not_utf8(block[error.start])}") from None


def _begins_as_utf8(block: bytes) -> bool:
    """Whether the first character beyond ASCII is one of UTF-8, as far as it is there."""
    try:
        codecs.utf_8_decode(block, "strict", False)
    except UnicodeDecodeError as error:
        return not block[: error.start].isascii()
    return True


def _recoded(blocks: Iterable[bytes], name: str, encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for block in blocks:
            yield decoder.decode(block).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        raise DataError(f"{name}: expected text of the encoding {encoding}: {error}") from None


def read_head(blocks: Iterator[bytes], name: str, decimal: str | None) -> tuple[Head, Iterator[bytes]]:
    """The first lines, and the text behind them. Raises DataError."""
    head, is_whole, size = b"", True, HEAD
    for block in blocks:
        head += block
        size = _size_of_head(head)
        if len(head) >= size:
            is_whole = False
            break
    seen = head[:size]
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(seen, final=is_whole)
    except UnicodeDecodeError as error:
        text = seen[: error.start].decode()
        if not re.search(r"[\r\n]\s*\S", text):  # that of another line is found with its place
            raise DataError(f"{name}: {not_utf8(seen[error.start])}") from None
        text, is_whole = re.sub(r"[^\r\n]*\Z", "", text), False
    with _long_fields():
        result = Head.of(text, name, is_whole=is_whole and len(head) <= size, decimal=decimal)
    return result, chain((head[result.size :],), blocks)


def _size_of_head(text: bytes) -> int:
    """How many bytes of a table are looked at that begins so: the names of its columns, and as much again for rows."""
    names = _NAMES.match(text)
    return max(HEAD, LONGEST_NAMES if names is None else 3 * names.end())


def not_utf8(byte: int) -> str:
    return f"expected UTF-8, found the byte 0x{byte:02x}; --encoding names another (latin-1, cp1252, …)"


def cells_of_text(
    blocks: Iterator[bytes],
    name: str,
    choose: Choice,
    *,
    encoding: str,
    decimal: str | None,
    scratch: Scratch,
) -> Cells:
    """The cells of the columns that ``choose`` keeps. Raises DataError."""
    recoded: list[str] = []
    head, rest = read_head(decoded(blocks, name, encoding, recoded), name, decimal)
    letters = choose(head.names)
    kept = [column for column, letter in zip(head.names, letters, strict=True) if letter != SKIPPED]
    parser = _kernels.CsvParser(
        columns="".join(letters), separator=head.separator, decimal=head.decimal, first_line=head.first_line
    )

    def parsed() -> Iterator[NDArray[np.float64]]:
        for block in rest:
            parser.feed(block)
            if scratch.folder is not None:
                yield parser.take()
        parser.finish()
        yield parser.take()

    try:
        if scratch.folder is None:  # the parser's own memory grows without being copied
            (values,) = parsed()
        else:
            values = scratch.gathered(parsed(), len(kept))
    except _kernels.CsvError as error:
        line, column, message = error.args
        place = f"{name}:{line}: " + (f"column {head.names[column]!r}: " if 0 <= column < len(head.names) else "")
        raise DataError(f"{place}{message}") from None
    places = Places(name, "line", head.first_line, *parser.apart())
    ambiguous = (
        f"column {column!r}: {number} is read with a decimal point, not as {number.replace('.', '')}"
        for column, letter in zip(head.names, letters, strict=True)
        if letter in (CELLS, LABELS) and (number := head.ambiguous.get(column))
    )
    return Cells(values, kept, _words(parser, values, kept, places), places, (*recoded, *ambiguous), head.decimal)


def _words(parser: _kernels.CsvParser, values: np.ndarray, kept: Sequence[str], places: Places) -> list[list[str]]:
    """The words of each column. Raises DataError for one that is not UTF-8, with its place."""
    result: list[list[str]] = []
    for at, column in enumerate(kept):
        result.append([])
        for number, word in enumerate(parser.words(at)):
            try:
                result[-1].append(word.decode())
            except UnicodeDecodeError as error:
                cells = Cells(values, kept, [[]] * len(kept), places).column(column)
                row = int(np.flatnonzero(cells.word_numbers == number)[0])
                raise cells.fail(row, not_utf8(word[error.start])) from None
    return result
