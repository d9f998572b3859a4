"""Recognises a data file's format by its first bytes; its name does not count."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from enum import Enum
from typing import Any, BinaryIO, cast

from apsvm.data.dataset import DataError, NoRowsError
from apsvm.data.matrices import NPY_MAGIC, NPZ_MAGICS
from apsvm.data.text import COMPRESSED, BlockStream, blocks_of, opened_binary, text_blocks

#: Separators of a CSV.
SEPARATORS = ",\t;|"
_HEAD = 1 << 16
_LINES_SEEN = 100

_PARQUET, _ARROW_MAGICS = b"PAR1", (b"ARROW1", b"FEA1", b"\xff\xff\xff\xff")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: A number, or several with commas between them.
_LABEL = re.compile(rb"[-+.,\deE]+|nan|inf", re.IGNORECASE)
#: An object, or a list of objects.
_JSON = re.compile(rb"\s*(\{|\[\s*\{)")
_OF_SVMLIGHT = re.compile(rb"(qid|cost|bag|\d+):[^\s:,;|]+")


class Kind(Enum):
    """Format of a file; the value is its name in messages."""

    FOLDER = "a data folder"
    MATRIX = "a .npy or .npz matrix"
    SVMLIGHT = "svmlight text"
    CSV = "a table of separated values (CSV)"
    PARQUET = "a Parquet table"
    ARROW = "an Arrow table"
    JSON = "JSON lines"
    SHEET = "an Excel workbook"

    @property
    def is_table(self) -> bool:
        """True if the columns have names."""
        return self not in (Kind.FOLDER, Kind.MATRIX, Kind.SVMLIGHT)


#: First bytes of a zip archive, and of documents of older Office programs.
_ZIP, _OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
#: Separators that a table with colons does not have.
_APART = re.compile(rb"[\s,;|#]")
#: Separators and quotes that a table with blanks does not have.
_NO_BLANK = re.compile(rb"[\t:,;|#\"]")


def recognised(source: str | os.PathLike[str]) -> tuple[Kind, str | os.PathLike[str] | BinaryIO]:
    """Format of a file or of standard input ("-"), and the source to read: a stream if it can be read only once. Raises
    OSError, and DataError if the source is empty."""
    if source != "-":
        _refuse_url(os.fspath(source))
        mode = os.stat(source).st_mode
        if stat.S_ISDIR(mode):
            return Kind.FOLDER, source
        if stat.S_ISREG(mode):
            with open(source, "rb") as file:
                return _kind_of_some(file.read(_HEAD), os.fspath(source)), source
    name, opened = opened_binary(source)
    with ExitStack() as stack:
        stream = stack.enter_context(opened)
        head = b""
        read = getattr(stream, "read1", stream.read)  # a pipe may be slow: its first line is enough
        while len(head) < _HEAD and (more := read(_HEAD - len(head))):
            head += more
            if b"\n" in more and not _is_blank(head):
                break
        kind, closing = _kind_of_some(head, name), stack.pop_all()

    def blocks() -> Iterator[bytes]:
        with closing:
            yield head
            yield from blocks_of(stream, _HEAD, len)

    return kind, cast(BinaryIO, BlockStream(blocks(), name))


def _refuse_url(source: str) -> None:
    if re.match(r"[a-z][a-z0-9+]+://", source) and not os.path.exists(source):
        fetch = f"; to read it: curl -L '{source}' | apsvm … -" if source.startswith("http") else ""
        raise DataError(f"{source}: expected a file, found a URL{fetch}")


def _kind_of_some(head: bytes, name: str) -> Kind:
    """``kind_of``. Raises DataError for an empty file and for formats that are not read."""
    if not head:
        raise NoRowsError(f"{name}: the file is empty")
    if _is_blank(head) and len(head) < _HEAD:
        raise DataError(f"{name}: expected at least one row, found none: there are only blanks and ends of lines")
    what = _of_other_programs(head)
    kind = kind_of(head)
    between = _between_columns(_first_text(head)) if what is None and kind in (Kind.SVMLIGHT, Kind.CSV) else None
    if between is not None:
        what = f"a table whose columns are separated by {between}: commas, semicolons, tabs or | are known here"
    if what is not None:
        raise DataError(f"{name}: this is {what}")
    return kind


def _is_blank(head: bytes) -> bool:
    return not head.removeprefix(codecs.BOM_UTF8).strip()


def _of_other_programs(head: bytes) -> str | None:
    """Name of a common format that is not supported, with advice; None for others."""
    if head.startswith(_OLE):
        return "an Excel workbook (.xls), or another document of Microsoft Office: save the table as CSV"
    if _name_in_zip(head) == b"mimetype" and head.startswith(_ZIP) and b"opendocument" in head[:200]:
        return "an OpenDocument file: save the table as CSV"
    return None


def _is_workbook(head: bytes) -> bool:
    """True if a zip archive is an Excel workbook."""
    return b"[Content_Types].xml" in head or re.match(b"_rels/|docProps/|xl/", _name_in_zip(head)) is not None


def _name_in_zip(head: bytes) -> bytes:
    """Name of the first file of a zip archive."""
    return head[30 : 30 + int.from_bytes(head[26:28], "little")]


def _between_columns(text: bytes) -> str | None:
    """ "colons" or "blanks" if they separate the columns: no other separator stands in the first lines, and each line
    has as many. Blanks count in lines of numbers only, since the texts of one column have blanks too."""
    lines = [line.strip() for line in re.split(rb"[\r\n]+", text.removeprefix(codecs.BOM_UTF8)) if line.strip()]
    lines = lines[: -1 if len(text) >= _HEAD else None][:_LINES_SEEN]  # the last may be cut off
    if len(lines) < 2:
        return None
    counts = {line.count(b":") for line in lines}
    if len(counts) == 1 and counts.pop() >= 2 and not any(map(_APART.search, lines)):
        return "colons"
    widths = {len(line.split()) for line in lines}
    has_numbers = any(all(map(_LABEL.fullmatch, line.split())) for line in lines)
    if len(widths) == 1 and widths.pop() >= 2 and has_numbers and not any(map(_NO_BLANK.search, lines)):
        return "blanks"
    return None


def kind_of(head: bytes) -> Kind:
    """Format of a file that begins with these bytes: by signature, else by the first lines of text."""
    if head.startswith(_ZIP) and not _name_in_zip(head).endswith((b".npy", b".json")):  # of a matrix, or a model
        if _is_workbook(head):
            return Kind.SHEET
    elif head.startswith((NPY_MAGIC, *NPZ_MAGICS)):
        return Kind.MATRIX
    if head.startswith(_PARQUET):
        return Kind.PARQUET
    if head.startswith(_ARROW_MAGICS):
        return Kind.ARROW
    text = _first_text(head)
    is_utf16 = text.startswith(_UTF16)
    if _JSON.match(text.decode("utf-16", "ignore").encode() if is_utf16 else text.removeprefix(codecs.BOM_UTF8)):
        return Kind.JSON
    if is_utf16:
        return Kind.CSV
    is_marked, text = text.startswith(codecs.BOM_UTF8), text.removeprefix(codecs.BOM_UTF8)
    lines = [line for line in re.split(rb"[\r\n]+", text) if line.strip() and not line.lstrip().startswith(b"#")]
    if any(map(_is_svmlight, lines[:_LINES_SEEN])) or not lines:
        return Kind.SVMLIGHT
    if lines[0].lstrip().startswith(b"[") and is_json(lines[0]):  # a list of other values: the reader names them
        return Kind.JSON
    if is_marked:  # programs for tables write the mark
        return Kind.CSV
    first = lines[0].strip(b" ")
    # Text without a separator may be one column: a name, and cells below it.
    is_name = len(lines) > 1 and b":" not in first and _LABEL.fullmatch(first.split()[0]) is None
    return Kind.CSV if is_name or any(one.encode() in first for one in SEPARATORS) else Kind.SVMLIGHT


def is_json(text: bytes) -> bool:
    """True if the text is one JSON document."""
    try:
        parsed_json(text)
    except (ValueError, RecursionError):
        return False
    return True


def parsed_json(text: bytes, parse_int: Callable[[str], Any] = int) -> Any:
    """The value of a JSON document. Raises ValueError, also for half of a surrogate pair, and RecursionError."""
    value = json.loads(text.decode(), parse_int=parse_int)
    if b"\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _first_text(head: bytes) -> bytes:
    """The beginning of the text, decompressed; b"" if it is damaged, which the reader will report."""
    if not head.startswith(COMPRESSED):
        return head
    if head.startswith(_ZIP):  # the list of its files is at its end
        content = head[30 + sum(int.from_bytes(head[at : at + 2], "little") for at in (26, 28)) :]
        if _name_in_zip(head).endswith(b"/"):  # a folder, which has no content
            return _first_text(content)
        try:
            return zlib.decompressobj(-15).decompress(content, _HEAD) if head[8:10] == b"\x08\0" else content
        except zlib.error:
            return b""
    try:
        with text_blocks(io.BytesIO(head)) as (_, blocks):
            return next(blocks, b"")
    except DataError:
        return b""


def _is_svmlight(line: bytes) -> bool:
    """True if a line has index:value words, and nothing else, after the labels."""
    words = line.split(b"#")[0].split()
    words = words if words and _OF_SVMLIGHT.fullmatch(words[0]) else words[1:]
    return bool(words) and all(map(_OF_SVMLIGHT.fullmatch, words))
