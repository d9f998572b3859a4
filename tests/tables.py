"""Tables read from text, and what was made of them; the same rows in every format."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from datetime import date
from importlib.util import find_spec
from math import sin
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from hypothesis import strategies as st
from pyarrow import feather

from apsvm.data import Dataset, read_data
from apsvm.data.read_options import TableOptions
from apsvm.models.columns import Columns, ForModel

SIMPLE = "age,city,paid,y\n31,Paris,true,1\n,Rome,false,0\n55,Paris,true,0\n28,,true,1\n"


def read(folder: Path, text: str | bytes, model: Columns | None = None, **options: Any) -> Dataset:
    path = folder / "data.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    unlabelled = bool(options.pop("unlabelled", False))
    wanted = None if model is None else ForModel(model, model.feature_names(), model.width)
    return read_data(path, table=TableOptions(**options), model=wanted, unlabelled=unlabelled)


def columns_of(data: Dataset) -> Columns:
    assert data.table is not None
    return data.table.columns


def remarks(data: Dataset) -> str:
    assert data.table is not None
    return "\n".join(data.table.remarks)


def rows(data: Dataset) -> list[list[float]]:
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    return X.tolist()


def workbook(cells: list[list[Any]], merged: str = "") -> bytes:
    """The bytes of an .xlsx of one sheet."""

    def cell(value: Any) -> str:
        if value is None:
            return "<c/>"
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        return f'<c t="b"><v>{int(value)}</v></c>' if isinstance(value, bool) else f"<c><v>{value!r}</v></c>"

    def related(kind: str, target: str) -> str:
        what = f'Id="r1" Type="{office}/{kind}" Target="{target}"'
        return f'<Relationships xmlns="{package}/relationships"><Relationship {what}/></Relationships>'

    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    body = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in cells)
    merges = f'<mergeCells count="1"><mergeCell ref="{merged}"/></mergeCells>' if merged else ""
    sheets = '<sheets><sheet name="Data" sheetId="1" r:id="r1"/></sheets>'
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": related("officeDocument", "xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}">{sheets}</workbook>',
        "xl/_rels/workbook.xml.rels": related("worksheet", "worksheets/sheet1.xml"),
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{body}</sheetData>{merges}</worksheet>',
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


#: A row without a missing cell.
WHOLE = {"id": 7, "amount": 1.5, "count": 3, "city": "x", "ok": True, "when": "2001-02-03", "code": "00012"}
#: Rows of numbers, words, dates and codes, some of them missing below the first; by ``x`` no two scores are equal.
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.integers(0, 2**63 - 1),
            "amount": st.none() | st.floats(-1e9, 1e9),
            "count": st.none() | st.integers(-1000, 1000),
            "city": st.none() | st.sampled_from(["x", "y,z", 'q"', "t\tu", "v;w", "l\nm", "n|o", "\u2603"]),
            "ok": st.booleans(),
            "when": st.none() | st.dates(date(1970, 1, 1), date(2030, 1, 1)).map(str),
            "code": st.sampled_from(["00012", "01234", "20000"]),
        }
    ),
    min_size=4,
    max_size=24,
).map(lambda records: [{**WHOLE, **one, "x": sin(at), "y": at % 2} for at, one in enumerate([WHOLE, *records])])


def every_format(folder: Path, records: list[dict[str, Any]]) -> tuple[list[Path], list[Any]]:
    """The same rows in each format, CSV first, and as frames of pandas and polars."""
    kinds = {
        "id": pa.int64(),
        "amount": pa.float64(),
        "count": pa.int64(),
        "ok": pa.bool_(),
        "x": pa.float64(),
        "y": pa.int64(),
    }
    typed = pa.Table.from_pylist(records, pa.schema([(name, kinds.get(name, pa.string())) for name in records[0]]))
    at = typed.column_names.index("when")
    dated = typed.set_column(at, "when", typed["when"].cast(pa.timestamp("us")))
    for name, separator in (("csv", ","), ("tabs", "\t"), ("semicolons", ";"), ("bars", "|")):
        with open(folder / name, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(records[0]), delimiter=separator)
            writer.writeheader()
            writer.writerows(records)
    (folder / "gzip").write_bytes(gzip.compress((folder / "csv").read_bytes()))
    (folder / "json").write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / "array").write_text(json.dumps(records))
    pq.write_table(typed, folder / "parquet", row_group_size=3)
    pq.write_table(dated, folder / "dated")
    feather.write_feather(typed, folder / "feather", chunksize=3)
    with pa.ipc.new_stream(folder / "stream", dated.schema) as writer:
        writer.write_table(dated, max_chunksize=3)
    if find_spec("python_calamine"):
        cells = [list(records[0]), *([str(row.pop("id")), *row.values()] for row in map(dict, records))]
        (folder / "xlsx").write_bytes(workbook(cells))  # whose numbers are of 64 bits
    paths = sorted(folder.iterdir(), key=lambda path: path.name != "csv")
    features = dated.drop_columns(["id", "y"])
    return paths, [features.to_pandas(), pl.from_arrow(features)]
