"""Reads separated values (CSV, TSV) with pyarrow. The first lines show the separator and the decimal mark.

The text is UTF-8, or UTF-16 with a byte order mark, unless the user names another encoding. The first line that is not
blank has the names of the columns; Excel's ``sep=;`` may stand above it. Quotes follow RFC 4180.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import Any, BinaryIO

from apsvm.data.dataset import DataError, NoRowsError
from apsvm.data.read_options import TableOptions
from apsvm.data.tables.cells import (
    MISSING_WORDS,
    Cells,
    Places,
    Table,
    different_names,
    refuse_title,
    shown,
)
from apsvm.data.tables.kinds import SEPARATORS
from apsvm.data.text import BlockStream, text_blocks

#: Bytes from which the dialect is derived.
HEAD = 1 << 19
#: Limits of the line with the names: bytes, and columns.
LONGEST_NAMES = 1 << 26
MOST_COLUMNS = 1 << 20
#: Bytes that pyarrow parses at a time, and the longest row.
_BLOCK, _LONGEST_ROW = 1 << 21, 1 << 26
#: Rows from which the dialect is derived.
_ROWS_SEEN = 200
#: Advice where the first line may be a row.
IF_A_ROW = "if that is a row, write a line of names above it"

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
#: 1.234 is 1234 in German, and 1,234 in others; 234 may be either's.
_GROUPED, _SMALL = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}"), re.compile(r"[+-]?\d{1,3}")
_WINDOWS = "cp1252"
#: Blank lines above the names, and the ``sep=;`` that Excel writes.
_ABOVE = re.compile(rf"[\r\n \ufeff]*(?:sep=([{SEPARATORS}])[\r\n]+[\r\n ]*)?")
_NAMES = re.compile(rb"[\r\n \xef\xbb\xbf]*(?:sep=.[\r\n]+)?[^\r\n]+[\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

#: Rows that the csv module reads at a time.
_ROWS = 1 << 14

#: The csv module refuses longer fields. The limit, 131,072 characters by default, is one for the process.
csv.field_size_limit(max(HEAD, csv.field_size_limit()))

Source = str | os.PathLike[str] | BinaryIO
#: (name of the table, names of its columns, those of a data frame's index) → the columns to read. The value is True for
#: a feature that is not named as a category: its spelling does not count.
Choosing = Callable[[str, Sequence[str], Sequence[str]], Mapping[str, bool]]


@dataclass(frozen=True, slots=True)
class Head:
    """Dialect derived from the first lines.

    Attributes
    ----------
    names : the columns' names; "" for a column without one
    separator, decimal : one character each
    ambiguous : columns whose points may separate thousands, each with one of its numbers
    first_line : the line behind the names
    size : bytes up to that line
    has_blanks : True if blanks stand before quotes
    decimals : columns in which all cells seen are numbers, some with a decimal point
    """

    names: list[str]
    separator: str
    decimal: str
    ambiguous: dict[str, str]
    first_line: int
    size: int
    has_blanks: bool
    decimals: frozenset[str]

    @classmethod
    def of(cls, text: str, name: str, *, is_whole: bool, decimal: str | None, skip_lines: int) -> Head:
        """The dialect of ``text``, the beginning of a table or all of it. Raises DataError."""
        skipped = "".join(islice(io.StringIO(text, newline=""), skip_lines))
        text = text[len(skipped) :]
        above = _ABOVE.match(text)
        assert above is not None
        blank, text = skipped + above[0], text[above.end() :]
        if not text:
            raise DataError(f"{name}: expected the names of columns in the first line, found an empty file")
        separator = above[1] or _separator(text, is_whole)
        _refuse_many(text, separator, name)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
        try:
            names = [field.strip() for field in next(reader)]
            n_lines = reader.line_num
            rows = [[field.strip() for field in row] for row in islice(reader, _ROWS_SEEN)]
        except csv.Error as error:
            raise DataError(f"{name}: the first lines are no table: {error}") from None
        first_line = len(re.findall(r"\r\n|\r|\n", blank)) + 1
        refuse_title([list(map(bool, row)) for row in (names, *rows)], f"{name}: line", first_line)
        header = list(islice(io.StringIO(text, newline=""), n_lines))
        ambiguous = {}
        columns = dict(zip(names, zip_longest(*rows, fillvalue=""), strict=False))
        if decimal is None:
            cells = [field for row in rows for field in row]
            has_commas = separator != "," and any(map(_COMMA.fullmatch, cells))
            # Beside decimal commas 1.250 has a point between thousands.
            points = [cell for cell in cells if _POINT.fullmatch(cell) and not _GROUPED.fullmatch(cell)]
            decimal = "," if has_commas and not points else "."
            if separator != ",":
                ambiguous = _with_thousands(columns, mixed=separator != ";")
        _check_names(names, name, first_line)
        begin = len(blank.encode()) + sum(len(line.encode()) for line in header)
        has_blanks = re.search(rf'{re.escape(separator)} +"', text) is not None
        decimals = frozenset(
            name
            for name, cells in columns.items()
            if decimal == "." and any(map(_POINT.fullmatch, cells)) and all(map(_NUMBER.fullmatch, filter(None, cells)))
        )
        return cls(names, separator, decimal, ambiguous, first_line + len(header), begin, has_blanks, decimals)


def _with_thousands(columns: Mapping[str, Sequence[str]], *, mixed: bool) -> dict[str, str]:
    """The columns in which every point may separate thousands, each with a number. ``mixed``: only columns that also
    have numbers without a point, since a program that writes three decimals writes them in every cell."""
    result = {}
    for name, column in columns.items():
        fields = [field for field in column if field.lower() not in MISSING_WORDS]
        grouped = [field for field in fields if _GROUPED.fullmatch(field)]
        others = [field for field in fields if not _GROUPED.fullmatch(field)]
        if grouped and (others or not mixed) and all(map(_SMALL.fullmatch, others)):
            result[name] = grouped[0]
    return result


def _separator(text: str, is_whole: bool) -> str:
    """The separator that gives the first rows one number of fields; of several the one with most fields."""
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


def _refuse_many(text: str, separator: str | None, source: str) -> None:
    """Raises DataError if the first line has more than ``MOST_COLUMNS`` columns, by any separator for None."""
    line = text.lstrip("\r\n").partition("\n")[0]
    found = max(line.count(one) for one in separator or SEPARATORS) + 1
    if found > MOST_COLUMNS:
        raise DataError(
            f"{source}: expected at most {MOST_COLUMNS:,} columns, found {found:,} or more in the first line"
        )


def _check_names(names: Sequence[str], source: str, first_line: int) -> None:
    numbers = list(filter(_NUMBER.fullmatch, names))
    if len(set(numbers)) < len(numbers) or len(numbers) == len(names):
        raise DataError(
            f"{source}: expected the names of the columns in the first line, found numbers: "
            f"{', '.join(numbers[:4])}; {IF_A_ROW}"
        )
    different_names(list(filter(None, names)), f"{source}: line {first_line}", f"; {IF_A_ROW}")
    if any("\0" in name for name in names):
        raise DataError(
            f"{source}: expected text, found NUL bytes among the names of its columns; --encoding utf-16-le reads "
            "UTF-16 without a byte order mark"
        )


def decoded(blocks: Iterator[bytes], name: str, encoding: str, remarks: list[str] | None = None) -> Iterator[bytes]:
    """The text of ``text_blocks`` in UTF-8. With ``remarks``, "auto" also reads cp1252 and adds a remark. Raises
    DataError."""
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
    """The text in UTF-8. It is decoded as cp1252 if its first bytes beyond ASCII are not UTF-8."""
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
    """True if the first non-ASCII character, as far as it is in the block, is valid UTF-8."""
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


def read_head(
    blocks: Iterator[bytes], name: str, decimal: str | None, skip_lines: int = 0
) -> tuple[Head, Iterator[bytes]]:
    """The dialect of a table, and the text behind the names. Raises DataError."""
    head, is_whole, size = b"", True, HEAD
    for block in blocks:
        head += block
        if len(head) > 2 * MOST_COLUMNS:  # a line of separators alone would be gathered whole
            _refuse_many(head.decode("utf-8", "replace"), None, name)
        names = _NAMES.match(head)
        size = max(HEAD, LONGEST_NAMES if names is None else 3 * names.end())  # the names, and as much again for rows
        if len(head) >= size:
            is_whole = False
            break
    seen = head[:size]
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(seen, final=is_whole)
    except UnicodeDecodeError as error:
        text = seen[: error.start].decode()
        if not re.search(r"[\r\n]\s*\S", text):  # an error of a later line is raised with its place
            raise DataError(f"{name}: {not_utf8(seen[error.start])}") from None
        text, is_whole = re.sub(r"[^\r\n]*\Z", "", text), False
    result = Head.of(text, name, is_whole=is_whole and len(head) <= size, decimal=decimal, skip_lines=skip_lines)
    return result, chain((head[result.size :],), blocks)


def not_utf8(byte: int) -> str:
    return f"expected text in UTF-8, found the byte 0x{byte:02x}: is it text? --encoding names another encoding"


class _Body(BlockStream):
    """The rows of a table as a stream of UTF-8 that counts its lines. Raises DataError for bytes that are not text."""

    def __init__(self, blocks: Iterator[bytes], name: str, first_line: int) -> None:
        super().__init__(chain.from_iterable(map(self._checked, chain(blocks, (None,)))), name)
        self._first_line, self._cut, self._ends_in_line = first_line, b"", False
        self.lines = self.quotes = 0

    def _checked(self, block: bytes | None) -> Iterator[bytes]:
        """The block up to its last whole character; None ends the text."""
        is_last, block, self._cut = block is None, self._cut + (block or b""), b""
        wrong, problem = block.find(b"\0"), "found a NUL byte: expected text"
        if not block.isascii():
            try:
                _, size = codecs.utf_8_decode(block, "strict", is_last)
                block, self._cut = block[:size], block[size:]
            except UnicodeDecodeError as error:
                if not 0 <= wrong < error.start:
                    wrong, problem = error.start, not_utf8(block[error.start])
        if wrong >= 0:
            raise DataError(f"{self.name}:{self._first_line + self.lines + block[:wrong].count(10)}: {problem}")
        end = b"\n" if b"\n" in block else b"\r"
        self.lines += block.count(end)
        self.quotes += block.count(b'"')
        self._ends_in_line = not block.endswith(end) if block else self._ends_in_line
        yield block

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.lines + self._ends_in_line


def table_of_text(source: Source, choose: Choosing, options: TableOptions, most_blocks: int | None = None) -> Table:
    """The columns that ``choose`` keeps, of all rows or those in the first ``most_blocks`` blocks. Raises DataError,
    OSError.

    Columns of decimal numbers are read as numbers, which take half the memory of their text. If one of them turns out
    to have other cells, the file is read again as text."""
    try:
        return _table(source, choose, options, most_blocks, with_numbers=_can_be_read_again(source))
    except _NotNumbersError:
        return _table(source, choose, options, most_blocks, with_numbers=False)


def _can_be_read_again(source: Source) -> bool:
    return isinstance(source, str | os.PathLike)


def _table(
    source: Source, choose: Choosing, options: TableOptions, most_blocks: int | None, *, with_numbers: bool
) -> Table:
    """Raises _NotNumbersError."""
    digest, recoded = hashlib.sha256(), list[str]()
    with text_blocks(source, digest.update) as (name, blocks):
        blocks = blocks if most_blocks is None else _whole_lines(blocks, most_blocks)
        text = decoded(blocks, name, options.encoding, recoded)
        head, rest = read_head(text, name, options.decimal, options.skip_lines)
        kept = choose(name, head.names, ())
        place = {column: number for number, column in enumerate(head.names)}
        decimals = head.decimals if with_numbers and not head.has_blanks else ()  # pyarrow alone reads numbers
        of_numbers = {place[column] for column, is_plain in kept.items() if is_plain and column in decimals}
        body = _Body(rest, name, head.first_line)
        rows = _Rows(source, name, head, body, options.encoding)
        arrays = rows.columns([place[column] for column in kept], of_numbers)
    places = Places.of(name, "line", head.first_line) if body.rows == rows.n else Places.of(name)
    ambiguous = [
        f"column {column!r}: {number} is read with a decimal point, not as {number.replace('.', '')}"
        for column in kept
        if (number := head.ambiguous.get(column))
    ]
    cells = {
        column: Cells(column, places, array, is_text=True, decimal=head.decimal)
        for column, array in zip(kept, arrays, strict=True)
    }
    return Table(cells, places, (*recoded, *ambiguous), digest.hexdigest())


def _whole_lines(blocks: Iterator[bytes], most: int) -> Iterator[bytes]:
    """The whole lines of the first ``most`` blocks."""
    text = b"".join(islice(blocks, most))
    yield text if next(blocks, None) is None else text[: text.rfind(b"\n") + 1]


class _NotNumbersError(Exception):
    """A column of ``Head.decimals`` has other cells."""


@dataclass
class _Rows:
    """The rows below the names, of which ``n`` have been read."""

    source: Source
    name: str
    head: Head
    body: _Body
    encoding: str
    n: int = 0

    def columns(self, kept: Sequence[int], numbers: Collection[int]) -> list[Any]:
        """The columns ``kept`` as Arrow's chunked arrays: float64 for those in ``numbers``, else strings. Raises
        DataError, _NotNumbersError."""
        import pyarrow
        from pyarrow import compute

        schema = pyarrow.schema([(f"{at}", pyarrow.float64() if at in numbers else pyarrow.string()) for at in kept])
        batches = []
        try:
            for batch in self._batches_of_csv(kept) if self.head.has_blanks else self._batches(schema):
                self.n += len(batch)
                batches.append(batch)
        except _RowError as error:
            raise DataError(f"{self._place(error.row)}: {error}") from None
        except pyarrow.ArrowInvalid as error:
            if "CSV conversion error" in str(error):
                raise _NotNumbersError from None
            if "straddl" in str(error):
                longest = f"expected a row of at most {_LONGEST_ROW >> 20} MB: is a closing quote missing?"
                raise DataError(f"{self._place(self.n)}: {longest}") from None
            raise DataError(f"{self.name}: not a table of separated values: {shown(str(error))}") from None
        if self.n == 0:
            raise NoRowsError(f"{self.name}: expected at least one row below the names of columns, found none")
        columns = pyarrow.Table.from_batches(batches).columns
        of_numbers = (column for at, column in zip(kept, columns, strict=True) if at in numbers)
        if any(compute.any(compute.is_inf(column)).as_py() for column in of_numbers):
            raise _NotNumbersError
        # A quote is unmatched, and a cell of the last row goes over lines.
        if self.body.quotes % 2 and any("\n" in str(column[self.n - 1].as_py()) for column in columns):
            raise DataError(f"{self._place(self.n - 1)}: a quoted field begins in this row and never ends")
        return list(columns)

    def _batches(self, schema: Any) -> Iterator[Any]:
        """Batches of the columns of ``schema``, named by their numbers. Raises _RowError, ArrowInvalid."""
        import pyarrow
        from pyarrow import csv as arrow_csv

        skipped = 0
        wrong: list[_RowError] = []

        def invalid(row: Any) -> str:
            nonlocal skipped
            if not row.text.strip(" \t"):
                skipped += 1
                return "skip"
            hint = ": is a closing quote missing?" if row.text.count('"') % 2 else ""
            found = f"expected {row.expected_columns:,} fields, found {row.actual_columns:,}{hint}"
            wrong.append(_RowError(row.number - 1 - skipped, found))
            return "error"

        size = min(max(_BLOCK, 512 * self.head.size), _LONGEST_ROW)  # a block of few rows is slow
        try:
            yield from arrow_csv.open_csv(
                io.BufferedReader(self.body),  # which reads whole blocks
                read_options=arrow_csv.ReadOptions(
                    column_names=[f"{at}" for at in range(len(self.head.names))], block_size=size, use_threads=False
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self.head.separator, newlines_in_values=True, invalid_row_handler=invalid
                ),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=schema.names,
                    column_types=schema,
                    strings_can_be_null=True,
                    null_values=[""],
                    check_utf8=False,
                ),
            )
        except pyarrow.ArrowInvalid as error:
            if wrong:
                raise wrong[0] from None
            if "Empty CSV" not in str(error):
                raise

    def _batches_of_csv(self, kept: Sequence[int]) -> Iterator[Any]:
        """The same batches by the csv module, which accepts blanks before quotes. Raises _RowError."""
        import pyarrow

        text = io.TextIOWrapper(io.BufferedReader(self.body), encoding="utf-8", newline="")
        rows = csv.reader(text, delimiter=self.head.separator, skipinitialspace=True)
        names, expected = [f"{at}" for at in kept], len(self.head.names)
        while block := list(islice((row for row in rows if row), _ROWS)):
            wrong = next((at for at, row in enumerate(block) if len(row) != expected), None)
            if wrong is not None:
                raise _RowError(self.n + wrong, f"expected {expected:,} fields, found {len(block[wrong]):,}")
            columns = [[row[at] or None for row in block] for at in kept]
            yield pyarrow.record_batch([pyarrow.array(column, pyarrow.string()) for column in columns], names)

    def _place(self, row: int) -> str:
        """Location of a row, counted from 0, in a message: its line if known, else its number."""
        line = self._line(row) if _can_be_read_again(self.source) else None
        return f"{self.name}: row {row + 1}" if line is None else f"{self.name}:{line}"

    def _line(self, row: int) -> int | None:
        """The line of a row, found by reading the file again; None if the csv module fails before it."""
        with text_blocks(self.source) as (_, blocks):
            body = _Body(decoded(blocks, self.name, self.encoding, []), "", 1)
            text = io.TextIOWrapper(io.BufferedReader(body), encoding="utf-8", newline="")
            for _ in range(self.head.first_line - 1):
                next(text, None)
            rows, line, n = csv.reader(text, delimiter=self.head.separator, skipinitialspace=True), 0, -1
            try:
                for fields in rows:
                    n += any(field.strip() for field in fields) or len(fields) > 1
                    if n == row:
                        return self.head.first_line + line
                    line = rows.line_num
            except (csv.Error, DataError):
                pass
            return None


class _RowError(Exception):
    """A row, counted from 0, with too few fields or too many."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row
