"""Reads Parquet, Arrow (Feather), JSON, sheets and data frames as tables of Arrow's arrays."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from apsvm._support.shown import shortened
from apsvm.data.dataset import DataError, NoRowsError, parsing
from apsvm.data.read_options import TableOptions
from apsvm.data.tables.cells import Cells, Places, Table, different_names, leaving_out, shown, text_of, type_of
from apsvm.data.tables.kinds import Kind, is_json, parsed_json
from apsvm.data.tables.text import Choosing, decoded, not_utf8
from apsvm.data.text import text_blocks

#: Bytes read at a time of each Parquet column.
_BUFFER = 1 << 18
#: Deepest nesting of JSON values that is read.
DEEPEST_JSON = 64
#: float64 holds every integer below it.
_EXACT = float(1 << 53)
#: Fewest digits of an integer that may be a code, as in a CSV.
_FEWEST_DIGITS = 16
_NOT_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[^][{}]+')


def table_of_arrow(stream: BinaryIO, kind: Kind, name: str, choose: Choosing, options: TableOptions) -> Table:
    """The columns of a Parquet, Arrow, JSON or Excel file that ``choose`` keeps. Raises DataError, OSError."""
    text: list[str] = []
    if kind is Kind.JSON:
        columns = _columns_of_json(stream, name, options.encoding)
        places = Places.of(name, "line")
    elif kind is Kind.SHEET:
        from apsvm.data.tables.sheets import columns_of_sheet

        columns, first = columns_of_sheet(stream, name, options.sheet, options.skip_lines)
        places = Places.of(name, first=first)
    else:
        return _table_of_columns(stream, kind, name, choose)
    arrays = {}
    for column in choose(name, list(columns), ()):
        cells = columns[column]
        arrays[column] = _of_one_type(cells, column, places, text) if isinstance(cells, list) else cells
    return _checked(arrays, places, text)


def table_of_frame(table: Any, text: Sequence[str], source: str) -> Table:
    """All columns of the Arrow table ``table``, called ``source`` in messages. The columns ``text`` have no type.
    Raises DataError."""
    columns = dict(zip(different_names(table.column_names, source), table.columns, strict=True))
    return _checked(columns, Places.of(source), text)


def _checked(columns: dict[str, Any], places: Places, text: Sequence[str], strings: Sequence[str] = ()) -> Table:
    """The table of these columns. ``strings`` are typed as text and were read as dictionaries. Raises DataError for a
    type that is not read."""
    import pyarrow
    from pyarrow import types

    for name, column in columns.items():
        kind = column.type.value_type if types.is_dictionary(column.type) else column.type
        if not types.is_null(kind) and not type_of(kind):
            parts = f", whose fields {', '.join(field.name for field in kind)} may be" if types.is_struct(kind) else ""
            raise DataError(
                f"{places.source}: column {name!r}: expected numbers or words, found the type "
                f"{shortened(str(kind))}{parts and f'{parts} columns of their own'}, or {leaving_out(name)}"
            )
        if types.is_string_view(kind):  # polars writes it; pyarrow cannot look values up in it
            is_coded = types.is_dictionary(column.type)
            string = pyarrow.string()
            columns[name] = column.cast(pyarrow.dictionary(pyarrow.int32(), string) if is_coded else string)
    cells = {
        name: Cells(name, places, array, is_text=name in text, is_string=name in strings)
        for name, array in columns.items()
    }
    table = Table(cells, places)
    if len(table) == 0:
        raise NoRowsError(f"{places.source}: expected at least one row, found none")
    return table


def _table_of_columns(stream: BinaryIO, kind: Kind, name: str, choose: Choosing) -> Table:
    """The table of a Parquet or Arrow file."""
    with parsing(name, kind.value):
        if kind is Kind.PARQUET:
            from pyarrow import parquet

            schema = parquet.read_schema(stream)
            stream.seek(0)
        else:
            whole = _arrow_file(stream)
            schema = whole.schema
        names = schema.names  # pyarrow decodes them here
    kept = list(choose(name, different_names(names, name), _index_of(schema)))
    strings = [column for column in kept if kind is Kind.PARQUET and type_of(schema.field(column).type) == "string"]
    with parsing(name, kind.value):
        if kind is Kind.PARQUET:
            # As dictionaries: each distinct text is unpacked once.
            file = parquet.ParquetFile(stream, pre_buffer=False, buffer_size=_BUFFER, read_dictionary=strings)
            whole = file.read(columns=kept)
        whole.validate(full=True)
    return _checked({column: whole[column] for column in kept}, Places.of(name), [], strings)


def _arrow_file(stream: BinaryIO) -> Any:
    from pyarrow import feather, ipc

    magic = stream.read(6)
    stream.seek(0)
    if magic.startswith(b"\xff\xff\xff\xff"):
        return ipc.open_stream(stream).read_all()
    return ipc.open_file(stream).read_all() if magic.startswith(b"ARROW1") else feather.read_table(stream)


def _index_of(schema: Any) -> list[str]:
    """The columns that were the index of a data frame, from the metadata that pandas writes."""
    try:
        noted = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
        return [name for name in noted if isinstance(name, str)]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return []


def _columns_of_json(stream: BinaryIO, name: str, encoding: str) -> dict[str, Any]:
    """The columns of JSON, an object a line or an array of objects, as Arrow's arrays or lists of values."""
    import pyarrow
    from pyarrow import json as arrow_json

    with text_blocks(stream) as (_, blocks):
        content = b"".join(decoded(blocks, name, encoding)).rstrip()
    lines = content.split(b"\n")
    _refuse_deep(content, lines, name)
    try:
        table = arrow_json.read_json(io.BytesIO(content))
        table.validate(full=True)  # that texts are UTF-8
        if all(map(_is_exact, table.columns)) and table.num_rows == len(lines):
            return dict(zip(different_names(table.column_names, name), table.columns, strict=True))
    except (pyarrow.ArrowException, UnicodeError):
        pass  # a column of numbers and words, or a line that is no object: pyarrow does not give its place
    return _by_name(_objects(content, lines, name))


def _refuse_deep(content: bytes, lines: Sequence[bytes], name: str) -> None:
    """Raises DataError for values that are nested too deep for a recursive parser."""
    if content.count(b"{") + content.count(b"[") <= len(lines) + 1:
        return
    depth = 0
    for number, line in enumerate(lines):
        if line.count(b"{") + line.count(b"[") + depth <= DEEPEST_JSON:
            continue
        for bracket in _NOT_BRACKETS.sub(b"", line):
            depth += 1 if bracket in b"{[" else -1
            if depth > DEEPEST_JSON:
                raise DataError(f"{name}:{number + 1}: expected values at most {DEEPEST_JSON} deep, found deeper ones")
        depth = 0


def _objects(content: bytes, lines: Sequence[bytes], name: str) -> Iterator[dict[str, Any]]:
    """The rows. Raises DataError for a row that is no object."""
    if content.startswith(b"[") and (len(lines) > 1 or content.endswith(b"]")) and is_json(content):
        for number, row in enumerate(parsed_json(content, _integer)):
            if not isinstance(row, dict):
                raise DataError(f"{name}: item {number + 1}: expected a JSON object, found {shown(json.dumps(row))}")
            yield row
        return
    for number, line in enumerate(lines):
        try:
            row = parsed_json(line, _integer)
        except UnicodeDecodeError as error:
            raise DataError(f"{name}:{number + 1}: {not_utf8(line[error.start])}") from None
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            found = shown(line.decode("utf-8", "replace").strip())
            raise DataError(f"{name}:{number + 1}: expected a JSON object a line, found {found}")
        yield row


def _by_name(rows: Iterator[dict[str, Any]]) -> dict[str, list[Any]]:
    """The values of each name, None where a row lacks it."""
    every = list(rows)
    names = dict.fromkeys(name for row in every for name in row)
    return {name: [row.get(name) for row in every] for name in names}


def _is_exact(column: Any) -> bool:
    """True if the type that pyarrow derived keeps the values of the text: no date, no integer that may be a code."""
    import pyarrow
    from pyarrow import compute

    if pyarrow.types.is_floating(column.type) or pyarrow.types.is_integer(column.type):
        ends = compute.min_max(column).as_py().values()
        return all(end is None or abs(end) < 10.0 ** (_FEWEST_DIGITS - 1) for end in ends)
    return not (pyarrow.types.is_nested(column.type) or pyarrow.types.is_temporal(column.type))


def _integer(digits: str) -> int | float | str:
    """The integer, or its digits as text if it may be a code (``Cells.are_codes``)."""
    return int(digits) if len(digits) < _FEWEST_DIGITS else digits


def _of_one_type(values: list[Any], column: str, places: Places, text: list[str]) -> Any:
    """The values as an array. A column of numbers and words is added to ``text``. Raises DataError for lists."""
    at = next((at for at, value in enumerate(values) if isinstance(value, list | dict)), None)
    if at is not None:
        found = "a list" if isinstance(values[at], list) else "an object"
        problem = f"expected a number or a word, found {found}, or {leaving_out(column)}"
        raise DataError(f"{places.shown(at, column)}: {problem}")
    return array_of(values, column, text)


def array_of(values: Sequence[Any], column: str, text: list[str]) -> Any:
    """Python values as a chunked array. A column of numbers and words becomes texts, and is added to ``text``."""
    import pyarrow

    types = {type(value) for value in values if value is not None}
    if (types and not (types <= {int, float} or len(types) == 1)) or (types & {str} and any(map(_is_digits, values))):
        text.append(column)
        return pyarrow.chunked_array([array_of_words(values)])
    if types == {int, float}:
        values = [None if value is None else float(value) for value in values]
    return pyarrow.chunked_array([pyarrow.array(values)])


def _is_digits(value: object) -> bool:
    """True if the text stands for an integer that was unquoted in JSON."""
    return isinstance(value, str) and len(value) >= _FEWEST_DIGITS and value.lstrip("-").isdigit()


def array_of_words(values: Sequence[Any]) -> Any:
    """The values as an array of texts, written as in a CSV."""
    import pyarrow

    return pyarrow.array([value if value is None else _word_of(value) for value in values], pyarrow.string())


def _word_of(value: object) -> str:
    if isinstance(value, float) and abs(value) < _EXACT:
        return text_of(value)
    return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)
