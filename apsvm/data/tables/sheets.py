"""Reads a sheet of an Excel workbook with python-calamine (``pip install 'apsvm[excel]'``)."""

from __future__ import annotations

import zipfile
from typing import Any, BinaryIO

from apsvm.data.dataset import DataError, NoRowsError, parsing
from apsvm.data.tables.cells import different_names, refuse_title

#: Bytes that the files of a workbook may unpack to.
MOST_UNPACKED = 1 << 31


def columns_of_sheet(
    stream: BinaryIO, name: str, sheet: str | None, skip_lines: int
) -> tuple[dict[str, list[Any]], int]:
    """The values of each column of the sheet, by default the first, and the number of their first row. Raises
    DataError."""
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise DataError(
            f"{name}: reading an Excel workbook needs pip install 'apsvm[excel]'; or save it as CSV"
        ) from None
    with parsing(name, "an Excel workbook"), zipfile.ZipFile(stream) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > MOST_UNPACKED:
        raise DataError(f"{name}: the workbook unpacks to {size >> 20:,} MB, {MOST_UNPACKED >> 20:,} MB are the most")
    stream.seek(0)
    with parsing(name, "an Excel workbook"):
        book = CalamineWorkbook.from_filelike(stream)
    if sheet is not None and sheet not in book.sheet_names:
        raise DataError(f"{name}: no sheet is called {sheet!r} (--sheet): there are {', '.join(book.sheet_names)}")
    with parsing(name, "an Excel workbook"):
        content = book.get_sheet_by_name(book.sheet_names[0] if sheet is None else sheet)
        rows = content.to_python(skip_empty_area=False)
        merged = content.merged_cell_ranges or []
    first = next((at for at, row in enumerate(rows) if at >= skip_lines and any(map(_is_filled, row))), None)
    if first is None:
        raise NoRowsError(f"{name}: expected at least one row, found none")
    refuse_title([[*map(_is_filled, row)] for row in rows[first : first + 20]], f"{name}: row", first + 1)
    end = max((end[0] for start, end in merged if start[0] <= first <= end[0]), default=None)
    if end is not None:
        raise DataError(
            f"{name}: row {first + 1} has the names of columns, and cells of it are merged: expected one row with a "
            f"name in each column; --skip-lines {end + 1} begins behind it"
        )
    names = ["" if value == "" else str(value).strip() for value in rows[first]]
    different_names([one for one in names if one], name)
    below = list(rows[first + 1 :])
    while below and not any(map(_is_filled, below[-1])):
        below.pop()
    if not below:
        raise NoRowsError(f"{name}: expected at least one row, found none")
    columns = {one: [_value(row[at]) for row in below] for at, one in enumerate(names) if one}
    return columns, first + 2


def _is_filled(value: object) -> bool:
    return value not in ("", None)


def _value(value: object) -> object:
    """Value of a cell; None if it is empty."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value
