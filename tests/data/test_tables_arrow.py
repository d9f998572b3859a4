"""Parquet and Arrow tables hold the same rows as the same table in CSV."""

import datetime
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from apsvm.data import DataError, Dataset, read_data
from apsvm.data.read_options import TableOptions

COLUMNS = {
    "key": pa.array([2**53 + 1, 7, 8, 9], pa.int64()),
    "age": pa.array([31.5, None, float("nan"), 28], pa.float64()),
    "n": pa.array([1, 2, None, 4], pa.int16()),
    "ok": pa.array([True, False, None, True]),
    "city": pa.array(["Paris", 'Ro"me\n', None, ""]),
    "code": pa.array(["p", "x", "p", "x"]).dictionary_encode(),
    "text": pa.array(["u", "v", "NA", " u "]),
    "y": pa.array(["no", "yes", "no", "no"], pa.large_string()),
    "when": pa.array([datetime.datetime(2024, 1, day) for day in (1, 2, 3, 4)]),
}
OPTIONS = TableOptions(id="key", drop=("when",))


def written(folder: Path, kind: str, columns: Any = COLUMNS) -> Path:
    table, path = pa.table(columns), folder / f"data.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=3)
    elif kind == "feather":
        feather.write_feather(table, path, chunksize=3)
    elif kind == "feather1":
        feather.write_feather(table.drop_columns(["code", "y"]), path, version=1)
    elif kind == "stream":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    else:
        path.write_text(
            "key,age,n,ok,city,code,text,y,when\n9007199254740993,31.5,1,true,Paris,p,u,no,a\n"
            '7,,2,false,"Ro""me\n",x,v,yes,b\n8,NaN,,,,p,NA,no,c\n9,28,4,true,"",x, u ,no,d\n'
        )
    return path


def contents(data: Dataset) -> tuple[Any, ...]:
    assert data.table is not None
    assert data.table.keys is not None
    return data.X.tolist(), data.relevance.tolist(), data.table.keys.tolist(), data.table.columns


def test_types_that_arrow_cannot_encode(tmp_path: Path) -> None:
    """Dictionaries with a null, decimals of 32 bits and columns of nulls as names, in several chunks; a far date."""
    table = pa.table(
        {
            "kind": pa.DictionaryArray.from_arrays([0, 1, 0, 1], pa.array(["u", None])),
            "name": pa.array([Decimal("1.50"), Decimal(2), None, Decimal(4)], pa.decimal32(5, 2)),
            "none": pa.nulls(4),
            "far": pa.array([2**30, 0, 1, 2], pa.date32()),
            "y": [1, 0, 1, 0],
        }
    )
    with pa.ipc.new_stream(tmp_path / "t", table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    data = read_data(tmp_path / "t", table=TableOptions(id="name"))
    assert data.table is not None
    assert data.table.keys is not None
    assert data.table.keys.tolist() == ["1.50", "2.00", "", "4.00"]
    assert data.table.columns.feature_names()[:3] == ("kind=u", "kind is missing", "far: days before the newest")
    assert read_data(tmp_path / "t", table=TableOptions(id="none")).table.keys.tolist() == [""] * 4  # type: ignore[union-attr]


@pytest.mark.parametrize("option", ["cost", "label"])
def test_dates_are_no_costs_and_no_labels(tmp_path: Path, option: str) -> None:
    path = written(tmp_path, "parquet", {**COLUMNS, "y": pa.array([1, 0, 1, 0])})
    with pytest.raises(DataError, match="row 1: column 'when': expected a number, found '2024-01-01"):
        read_data(path, table=TableOptions(**{"label": "y", option: "when"}))


def test_categories_of_polars(tmp_path: Path) -> None:
    frame = pl.DataFrame({"x": ["a", None, "b"], "kind": ["u", "v", "u"], "y": [1, 0, 1]})
    typed = frame.with_columns(pl.col("x").cast(pl.Categorical), pl.col("kind").cast(pl.Enum(["u", "v"])))
    typed.write_ipc(tmp_path / "t")
    data = read_data(tmp_path / "t")
    assert data.table is not None
    assert data.table.columns.feature_names() == ("x=a", "x=b", "x is missing", "kind=u", "kind=v")


@pytest.mark.parametrize("kind", ["parquet", "feather", "stream"])
def test_the_same_as_csv(tmp_path: Path, kind: str) -> None:
    data = read_data(written(tmp_path, kind), table=OPTIONS)
    expected = read_data(written(tmp_path, "csv"), table=OPTIONS)
    assert contents(data) == contents(expected)
    assert data.table is not None
    assert data.table.lines is None
    assert data.table.columns.feature_names()[:3] == ("age", "n", "ok")
    assert data.table.keys is not None
    assert data.table.keys[0] == "9007199254740993"
    assert len(data.fingerprint) == 64


def test_what_polars_writes(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    polars.DataFrame({"word": ["u", "v", "u"], "y": [1, 0, 0]}).write_ipc(tmp_path / "t.arrow")
    if not hasattr(pa, "string_view"):
        with pytest.raises(DataError, match="not an Arrow table that is read here"):
            read_data(tmp_path / "t.arrow")
        return
    assert read_data(tmp_path / "t.arrow").table.columns.feature_names() == ("word=u", "word=v")


def test_from_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "parquet")
    monkeypatch.setattr("apsvm.data.tables.kinds._HEAD", 100)  # what is looked at is not all there is
    with io.TextIOWrapper(io.BytesIO(path.read_bytes())) as stream:
        monkeypatch.setattr("sys.stdin", stream)
        data = read_data("-", table=OPTIONS)
    expected = read_data(path, table=OPTIONS)
    assert contents(data) == contents(expected)
    assert data.fingerprint == expected.fingerprint
    assert data.source == "<stdin>"


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    path = written(tmp_path, "parquet")
    dated = read_data(path, table=TableOptions(id="key"))
    assert "when: days before the newest" in dated.table.columns.feature_names()
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match="not a Parquet table that is read here"):
        read_data(path, table=OPTIONS)
    lists = written(tmp_path, "parquet", {"l": pa.array([[1], [2]]), "y": [1, 0]})
    with pytest.raises(DataError, match=r"column 'l': expected numbers or words, found the type list<"):
        read_data(lists)
    for value in ("inf", "-inf"):
        infinite = written(tmp_path, "parquet", {"a": [1.0, float(value)], "y": [1, 0]})
        message = f"data.parquet: row 2: column 'a': expected a finite number, found '{value}'"
        with pytest.raises(DataError, match=message):
            read_data(infinite)
    long = written(tmp_path, "parquet", {"a": [2**53 + 1, 1], "y": [1, 0]})
    assert read_data(long).X.tolist() == [[2.0**53], [1.0]]
    twice = pa.table([pa.array([1.0, 2.0]), pa.array([3.0, 4.0]), pa.array([1, 0])], names=["a", "a", "y"])
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, twice.schema) as writer:
        writer.write_table(twice)
    with pytest.raises(DataError, match=r"expected different names of columns, found more than once: a$"):
        read_data(path)
    blank = written(tmp_path, "parquet", {"a": [1, 2], "b": pa.array([None, None], pa.string()), "y": [1, 0]})
    assert "columns without any value are left out: b" in read_data(blank).table.remarks
    empty = written(tmp_path, "parquet", {"a": pa.array([], pa.int8()), "y": pa.array([], pa.int8())})
    with pytest.raises(DataError, match="expected at least one row, found none"):
        read_data(empty)
