"""Tables: what is read of a CSV, what is learned of its columns, and that what it cannot be is said with its place."""

import bz2
import gzip
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from tables import SIMPLE, columns_of, read, remarks, rows

from apsvm.data import DataError, read_data
from apsvm.data.read_options import TableOptions
from apsvm.data.tables.features import BLOCK
from apsvm.data.tables.kinds import Kind, kind_of
from apsvm.data.tables.text import decoded
from apsvm.models.columns import Column, ColumnKind, ForModel


def test_numbers_words_and_missing_cells(tmp_path: Path) -> None:
    data = read(tmp_path, SIMPLE)
    columns = columns_of(data)
    assert columns.feature_names() == ("age", "city=Paris", "city=Rome", "city is missing", "paid")
    assert rows(data) == [[31, 1, 0, 0, 1], [31, 0, 1, 0, 0], [55, 1, 0, 0, 1], [28, 0, 0, 1, 1]]
    assert data.relevance.tolist() == [1, 0, 0, 1]
    assert columns.label == "y"
    assert columns.features[0] == Column(name="age", fill=31.0)
    assert columns.features[1].kind is ColumnKind.CATEGORY
    assert "'y' has the labels" in remarks(data)
    assert "2 cells are missing (age 1, city 1)" in remarks(data)
    wide = read(tmp_path, "a,b,c,d,e,f,g,y\n,,,,,,,1\n1,1,1,1,1,1,,0\n1,1,1,1,1,1,1,0\n")
    assert "8 cells are missing (g 2, a 1, b 1, c 1, d 1, e 1, … in 7 columns): the" in remarks(wide)
    assert data.table is not None
    assert data.table.lines is not None
    assert data.table.lines.tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("rule", "age", "names", "said"),
    [
        ("median", [31, 31, 55, 28], "age city=Paris city=Rome city is missing paid", "the column's median"),
        ("zero", [31, 0, 55, 28], "age city=Paris city=Rome paid", "0 stands for them (--missing)"),
        ("indicator", [31, 31, 55, 28], "age age is missing city=Paris city=Rome city is missing paid", "the column's"),
    ],
)
def test_rules_of_missing_cells(tmp_path: Path, rule: str, age: list[float], names: str, said: str) -> None:
    data = read(tmp_path, SIMPLE, missing=rule)
    assert f"(age 1, city 1): {said}" in remarks(data)
    assert " ".join(columns_of(data).feature_names()) == names
    assert [row[0] for row in rows(data)] == age
    if rule == "indicator":
        assert [row[1] for row in rows(data)] == [0, 1, 0, 0]


def test_a_median_is_that_of_numpy(tmp_path: Path, rng: np.random.Generator) -> None:
    """Also where every second value, which a sample takes, is far from the others, or the sum of two infinite."""
    for values in (rng.normal(size=9001), np.tile([0.0, 1.0, 0.0, 2.0], 2500), np.array([1.0, 4.0]), np.zeros(1)):
        text = "a,y\n,1\n" + "".join(f"{value!r},0\n" for value in values.tolist())
        data = read(tmp_path, text)
        assert columns_of(data).features[0].fill == np.median(values)
        assert remarks(data).splitlines()[0] == "column 'y' has the labels (--label-column names another)"
        assert remarks(data).splitlines()[1].startswith("1 cell is missing")
    assert columns_of(read(tmp_path, "a,y\n1.7e308,0\n1.7e308,1\n")).features[0].fill == 1.7e308


def test_rows_without_a_label_are_left_out_on_request(tmp_path: Path) -> None:
    """As if they were not in the file, except that places are those of the file; of several files each its own."""
    text = "id,a,b,y\nr0,1,u,yes\nr1,7,v,NA\nr2,,w,no\nr3,9,w,\nr4,3,u,no\n"
    some = "id,a,b,y\nr0,1,u,yes\nr2,,w,no\nr4,3,u,no\n"
    data = read(tmp_path, text, labelled_only=True, id="id")
    alone = read(tmp_path, some, id="id")
    assert rows(data) == rows(alone)
    assert data.relevance.tolist() == [1.0, 0.0, 0.0]
    assert columns_of(data) == columns_of(alone)
    assert "rows without a value in column 'y' are left out: 2" in remarks(data)
    assert data.table is not None
    assert data.table.keys is not None
    assert data.table.lines is not None
    assert (data.table.keys.tolist(), data.table.lines.tolist()) == (["r0", "r2", "r4"], [2, 4, 6])
    with pytest.raises(DataError, match=r":4: column 'a': the cell is missing"):
        read(tmp_path, text, labelled_only=True, missing="refuse")
    with pytest.raises(DataError, match="column 'y' has no value in any row"):
        read(tmp_path, "a,y\n1,\n2,NA\n", labelled_only=True)
    table = pa.table({"a": [1.0, 2.0, 3.0], "y": pa.array([True, None, False])})
    paths = [str(tmp_path / name) for name in ("1.parquet", "2.parquet")]
    for path in paths:
        pq.write_table(table, path)
    both = read_data(tmp_path / "*.parquet", table=TableOptions(labelled_only=True))
    assert both.X[:, 0].tolist() == [1.0, 3.0, 1.0, 3.0]


def test_a_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    commands = f"{{ printf '\\n'; sleep 0.05; printf 'a,y\\n1,\\n'; }} > '{path}'"
    child = os.posix_spawn("/bin/sh", ["sh", "-c", commands], os.environ)
    with pytest.raises(DataError, match=rf"^{path}:3: column 'y': this row has no label"):
        read_data(path)
    assert os.waitpid(child, 0)[1] == 0


def test_an_encoding_is_decided_once() -> None:
    blocks, said = [b"a,\xc3\xa9,y\n", b"1,\xe9,0\n"], list[str]()
    assert list(decoded(iter(blocks), "t.csv", "auto", said)) == blocks
    assert said == []


def test_the_separator_is_that_of_all_rows(tmp_path: Path) -> None:
    data = read(tmp_path, "t|a|b,y\nx,1\nu|v,0\n")  # of | the first line has more
    assert columns_of(data).feature_names() == ("t|a|b=u|v", "t|a|b=x")


def test_missing_cells_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data.csv:3: column 'age': the cell is missing"):
        read(tmp_path, SIMPLE, missing="refuse")
    whole = read(tmp_path, "a,y\n1,0\n2,1\n", missing="refuse")
    with pytest.raises(DataError, match=r"data.csv:3: column 'a': the cell is missing, which the model was trained"):
        read(tmp_path, "a,y\n1,0\n,1\n", columns_of(whole))


def test_a_model_finds_columns_by_name(tmp_path: Path) -> None:
    columns = columns_of(read(tmp_path, SIMPLE))
    text = "y,zip,paid,city,age\n0,7,FALSE,Oslo,\n1,8,1,Paris,3\n"
    data = read(tmp_path, text, columns)
    assert rows(data) == [[31, 0, 0, 0, 0], [3, 1, 0, 0, 1]]
    assert "does not know the columns zip" in remarks(data)
    assert "column 'city': 1 word has no feature in the model ('Oslo')" in remarks(data)
    of_two = remarks(read(tmp_path, text.replace("Paris", "Bern"), columns))
    assert "column 'city': the words of 2 cells have no feature in the model ('Oslo', …)" in of_two
    assert "): such a word gives nothing to a score" in of_two
    of_many = remarks(read(tmp_path, "y,paid,city,age\n" + "0,1,Oslo,3\n" * (BLOCK + 2), columns))
    assert f"column 'city': the words of {BLOCK + 2:,} cells have no feature" in of_many
    assert "1 cell is missing (age 1)" in remarks(data)
    with pytest.raises(DataError, match=r"needs the column 'city', and the file has only age, .*; is it 'City'"):
        read(tmp_path, "age,paid,y,City\n1,1,1,Rome\n", columns)
    with pytest.raises(DataError, match=r"the columns 'city', 'paid', .*; is it 'CITY'"):
        read(tmp_path, "age,PAID,y,CITY\n1,1,1,Rome\n", columns)
    taken = columns_of(read(tmp_path, "amount,country,y\n1,2,0\n2,5,1\n"))
    with pytest.raises(DataError, match=r"needs the column 'amount', and the file has only country, y; add it"):
        read(tmp_path, "country,y\n1,1\n", taken)
    with pytest.raises(DataError, match=r"data.csv:3: column 'age': expected a number, found 'old'"):
        read(tmp_path, "age,paid,y,city\n1,1,1,Rome\nold,1,1,Rome\n", columns)
    # Whoever only wants scores needs no labels.
    assert len(rows(read(tmp_path, "age,paid,city\n1,1,Rome\n", columns, unlabelled=True))) == 1
    with pytest.raises(DataError, match="no column is called 'y'"):
        read(tmp_path, "age,paid,city\n1,1,Rome\n", columns)


def test_the_less_frequent_words_share_a_feature(tmp_path: Path) -> None:
    words = ["a"] * 5 + ["b"] * 3 + ["c", "d"] + ["1", "1.0"]
    text = "w,y\n" + "".join(f"{word},{at % 2}\n" for at, word in enumerate(words))
    data = read(tmp_path, text, max_categories=3)
    assert columns_of(data).feature_names() == ("w=1", "w=a", "w=b", "w is other")
    assert "words, each a feature: w (3 of 5); at most 3 have features of their own" in remarks(data)
    all_have = remarks(read(tmp_path, f"kind of {text}"))
    assert "words, each a feature: kind of w (5)" in all_have.splitlines()
    assert np.array(rows(data)).sum(axis=0).tolist() == [2, 5, 3, 2]
    later = read(tmp_path, "w,y\nc,1\nz,0\n1,0\n2,0\n", columns_of(data))
    assert rows(later) == [[0, 0, 0, 1], [0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 0, 1]]


def test_many_categories_stay_sparse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apsvm.data.tables.features.BLOCK", 150)
    rng = np.random.default_rng(0)
    table = rng.integers(0, 30, (400, 3))
    numbers = rng.integers(0, 3, 400)
    lines = [f"w{a},v{b},u{c},{x},{'' if x > 1 else x},{x % 2}"
             for (a, b, c), x in zip(table.tolist(), numbers.tolist(), strict=True)]  # fmt: skip
    data = read(tmp_path, "a,b,c,x,z,y\n" + "\n".join(lines), missing="indicator")
    assert sp.issparse(data.X)
    assert data.X.has_canonical_format
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32
    data.X.check_format(full_check=True)
    names = columns_of(data).feature_names()
    expected = np.array(
        [[n in (f"a=w{a}", f"b=v{b}", f"c=u{c}", "z is missing" * (x > 1)) or x * (n == "x") + min(x, 1) * (n == "z")
          for n in names]  # the median is 1
         for (a, b, c), x in zip(table.tolist(), numbers.tolist(), strict=True)], dtype=float
    )  # fmt: skip
    assert np.array_equal(data.X.toarray(), expected)
    lines[200] = lines[200].replace(f",{numbers[200]},", ",old,", 1)
    with pytest.raises(DataError, match=r"data.csv:202: column 'x': expected a number, found 'old'"):
        read(tmp_path, "a,b,c,x,z,y\n" + "\n".join(lines), columns_of(data))


@pytest.mark.parametrize("missing", ["median", "indicator"])
@pytest.mark.parametrize(
    ("words", "right", "wrong", "line"), [(False, ",7", ",old", 8), (True, "2024-01-08", "08.01.2024", 9)]
)
def test_dense_rows_are_read_block_by_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: bool, right: str, wrong: str, line: int, missing: str
) -> None:
    """In place of the cells and elsewhere; a wrong cell of a later block has its line."""
    lines = [f"{at % 2},{at + 1 if at % 4 else ''}{f',w{at % 3},2024-01-0{at + 1}' * words}" for at in range(9)]
    text = "\n".join([f"y,a{',w,day' * words}", *lines])
    whole = read(tmp_path, text, missing=missing)
    monkeypatch.setattr("apsvm.data.tables.features.BLOCK", 4)
    assert rows(read(tmp_path, text, missing=missing)) == rows(whole)
    with pytest.raises(DataError, match=rf"data.csv:{line}: column"):
        read(tmp_path, text.replace(right, wrong), columns_of(whole))


@pytest.mark.parametrize(
    ("cost", "message"),
    [("dear", "expected a number, found 'dear'"), ("-1.5", "at least 0, found -1.5"), ("", "has no cost")],
)
def test_costs_that_are_none(cost: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"data.csv.*3.*{message}"):
        read(tmp_path, f"y,cost,x\n1,0,1\n0,{cost},2\n1,2,3\n", label="y", cost="cost")


def test_parts_of_columns(tmp_path: Path) -> None:
    text = "query,doc,grade,bag,cost,x\n9007199254740993,007,2,b,1.5,1\n9007199254740992,8,0,a,0,2\n"
    data = read(tmp_path, text, label="grade", qid="query", id="doc", cost="cost", drop=("bag",))
    assert data.groups is not None
    assert data.groups.tolist() == [9007199254740993, 9007199254740992]
    assert data.costs is not None
    assert data.costs.tolist() == [1.5, 0]
    assert data.table is not None
    assert data.table.keys is not None
    assert data.table.keys.tolist() == ["007", "8"]
    assert data.table.keys.dtype == object  # and not as wide as the longest, each
    assert data.select(np.array([1])).table.keys.tolist() == ["8"]  # type: ignore[union-attr]
    assert rows(data) == [[1], [2]]
    data = read(tmp_path, 'q, "b",y,x\nhat,B,0,1\nhat,B,0,2\ncoat,A,1,3\n', qid="q", bag="b")
    assert data.groups is not None
    assert data.bags is not None
    assert (data.groups.tolist(), data.bags.tolist()) == ([0, 0, 1], [0, 0, 1])
    again = read(tmp_path, "x,b,q,y\n1,B,hat,0\n3,A,coat,1\n", columns_of(data))
    assert again.groups is not None
    assert again.bags is not None
    assert (again.groups.tolist(), again.bags.tolist()) == ([0, 1], [0, 1])
    no_queries = "no column is called 'q', as that of the queries was: all rows are one query"
    assert no_queries not in remarks(again)
    assert no_queries in remarks(read(tmp_path, "x,b,y\n1,B,0\n3,A,1\n", columns_of(data)))
    with pytest.raises(DataError, match=r"data.csv:3: .*line 2"):
        read(tmp_path, "b,y,x\nB,0,1\nB,1,2\n", bag="b")
    # Only some columns are features; where one is called so, the queries need no naming.
    assert rows(read(tmp_path, "qid,y,a,b\n1,0,3,4\n1,1,5,6\n", features=("b",))) == [[4], [6]]


@pytest.mark.parametrize(
    ("labels", "options", "relevance", "words"),
    [
        ("yes no no", {}, [1, 0, 0], ("no", "yes")),
        ("legit fraud legit", {}, [0, 1, 0], ("legit", "fraud")),
        ("legit bad legit", {}, [0, 1, 0], ("legit", "bad")),
        ("legit bad legit", {"positive_label": "legit"}, [1, 0, 1], ("bad", "legit")),
        ("True FALSE true", {}, [1, 0, 1], ()),
        ("cat dog ape", {}, [1, 2, 0], ("ape", "cat", "dog")),
        ("true false maybe", {}, [2, 0, 1], ("false", "maybe", "true")),
        ("1 2 4", {}, [1, 2, 4], ()),
    ],
)
def test_labels(
    tmp_path: Path, labels: str, options: dict[str, str], relevance: list[float], words: tuple[str, ...]
) -> None:
    text = "y,x\n" + "".join(f"{label},1\n" for label in labels.split())
    data = read(tmp_path, text, **options)
    assert data.relevance.tolist() == relevance
    assert columns_of(data).label_words == words
    again = read(tmp_path, text, columns_of(data))
    assert again.relevance.tolist() == relevance
    if len(words) == 2 and not options:
        why = "the rarer one" if "bad" in words else "by its name"
        said = f"column 'y': {words[1]!r} is positive, {why}, {words[0]!r} negative (--positive-label)"
        assert said in remarks(data).splitlines()
    first = read(tmp_path, f"y,x\n{labels.split()[0]},1\n", columns_of(data))
    assert first.relevance.tolist() == relevance[:1]
    if words:
        assert data.label_value(words[1]) == 1.0
        with pytest.raises(DataError, match="no row has the label 'nobody'"):
            data.label_value("nobody")
        with pytest.raises(DataError, match=r"data.csv:2: column 'y': expected a label of .*, found 'other'"):
            read(tmp_path, "y,x\nother,1\n", columns_of(data))


def test_columns_that_may_be_labels_are_found_in_the_first_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apsvm.data.text._BLOCK", 50)
    monkeypatch.setattr("apsvm.data.tables.reading._BLOCKS_SEEN", 2)
    with pytest.raises(DataError, match=r"columns of two values: a, b$"):
        read(tmp_path, "a,b\n" + "1,3\n0,4\n" * 20 + "2,5\n")


def test_numbers_that_name_the_rows_are_no_feature(tmp_path: Path) -> None:
    def text(name: str, ids: Any) -> str:
        return f"{name},a,y\n" + "".join(f"{one},{at % 3},{at % 2}\n" for at, one in enumerate(ids))

    for name in ("id", "customer_ID", "customerId", "Kunden-Nr", "Unnamed: 0"):
        data = read(tmp_path, text(name, range(70, 50, -1)))
        assert columns_of(data).feature_names() == ("a",)
        assert f"columns that name the rows are left out: {name} (--id-column" in remarks(data)
    for name, ids in (("paid", range(20)), ("id", [1, 1, *range(2, 20)]), ("id", [0.5, *range(1, 20)])):
        assert columns_of(read(tmp_path, text(name, ids))).feature_names() == (name, "a")
    assert columns_of(read(tmp_path, text("id", range(20)), features=("id",))).feature_names() == ("id",)


HOSTILE = [
    ("", "the file is empty"),
    ("\n\n", "expected at least one row, found none"),
    (b"\xef\xbb\xbf\n", "expected at least one row, found none"),
    ("a,y\n", "expected at least one row below the names of columns, found none"),
    ("a,a,y\n1,2,0\n", "found more than once: a"),
    ("a,y\n1,0\n1,2,3\n", r"data.csv:3: expected 2 fields, found 3"),
    ("a,y\n1,0\n\n1\n", r"data.csv:4: expected 2 fields, found 1"),
    ("a,y\n1,0\n\0,1\n", r"data.csv:3: found a NUL byte"),
    ("a,y\r\n1,1\r\n2,1\r\n1e400,0\r\n", r"data.csv:4: column 'a': expected a finite number"),
    ('a,y\n"x\n\0",1\n', r"data.csv:3: found a NUL byte"),
    ('a,y\n1,0\n"1,1\n', r"data.csv:3: expected 2 fields, found 1: is a closing quote missing\?"),
    ('a,y\n1,0\n\n2,"1\n3,1\n', "data.csv:4: a quoted field begins in this row and never ends"),
    ("a,y\n1,\n2,1\n3,NA\n", r":2: column 'y': this row has no label, like 2 in all: leave it out \(--labelled-only\)"),
    ("a,y\n1,1\n2,1\n-inf,0\n", r"data.csv:4: column 'a': expected a finite number, found '-inf'"),
    ("a,y\n1,0\n2,inf\n", r"data.csv:3: column 'y': expected a finite number, found 'inf'"),
    ("1,2\n3,4\n", "expected the names of the columns in the first line, found numbers: 1, 2"),
    ("a,b\n3,4\n", r"no column is named as labels are; name it by --label-column; its columns are a, b"),
    ("a,,b\n3,4,5\n", r"its columns are a, \(no name\), b$"),
    ("a," * 200_000 + "y\n" + "x" * 600_000 + ",1\n", "the first lines are no table: field larger than field limit"),
    ("default,a,deposit\nno,3,yes\nyes,4,no\nno,5,yes\n", "columns of two values: default, deposit$"),
    ("a,y,class\n3,4,1\n", "several columns may be the labels: y, class"),
    ("a,b,c\n3,no,1\n4,yes,2\n3,,3\n", "its columns are a, b, c; columns of two values: a, b$"),
    ("a;y\n1,234.5;1\n2,5;0\n", r"data.csv:2: column 'a': expected a number, found '1,234.5'"),
    ("a,y\n–,1\n3,0\n5,1\n", r"found '–'; a missing cell is empty, or NA"),
    (" \n\n\t\n", "found none: there are only blanks and ends of lines"),
    ("a:b:y\n1:2:0\n2:1:1\n", "this is a table whose columns are separated by colons"),
    ("1 2 0\n2 1 1\n", "this is a table whose columns are separated by blanks: commas, semicolons"),
    ("1 2 0\n" * 11_000, "this is a table whose columns are separated by blanks"),
    ("a b y\n1.5 2 0\n2 1 1\n", "this is a table whose columns are separated by blanks"),
    ("0,red,0\n1,blue,1\n", "in the first line, found numbers: 0, 0; if that is a row, write a line"),
    ("b,2,u,u,yes\na,3,u,v,no\n", "found more than once: u; if that is a row, write a line of names above it$"),
    ("1.5,red,no\n2,blue,yes\n", "its columns are 1.5, red, no; if that is a row, write a line of names above it$"),
    ("https://example.org/t.csv?x=1", "expected a file, found a URL; to read it: curl -L"),
    ("Report\n\na,b,c,y\n1,2,3,0\n1,2,4,1\n", "line 1 has one filled cell of 4, line 3 4: --skip-lines 2 begins"),
    ("," * 1_100_000 + "\n1\n", "expected at most 1,048,576 columns, found 1,100,001"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), r"this is an Excel workbook \(.xls\)"),
    ("a,a=b,y\nb,1,1\nc,2,0\n", "two columns would make a feature 'a=b': rename or --drop one"),
    ("y,\n1,\n0,\n", "no column is left to be a feature"),
    ("a,y\n,1\n,0\n", "no column is left to be a feature: a: it has no value"),
    ("d,y\n2024-01-05,1\n2024-13-06,0\n", r"column 'd' has dates \('2024-01-05'\).*--drop d"),
    ("d,y\n03/04/2024 10:00,1\n,0\n", "column 'd': '03/04/2024 10:00' may be"),
]


@pytest.mark.parametrize(("text", "message"), HOSTILE, ids=range(len(HOSTILE)))
def test_what_cannot_be_read_is_said(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_data(text) if isinstance(text, str) and "://" in text else read(tmp_path, text)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (["mimetype"], "this is an OpenDocument file: save"),
        (["a.csv", "b.csv"], "expected a zip archive of one file, found 2: a.csv, b.csv"),
    ],
)
def test_archives_that_are_no_table(tmp_path: Path, members: list[str], message: str) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for member in members:
            is_type = member == "mimetype"
            archive.writestr(member, "application/vnd.oasis.opendocument.spreadsheet" if is_type else SIMPLE)
    for options in ({}, {"label": "y"}):
        with pytest.raises(DataError, match=f"data.csv: {message}"):
            read(tmp_path, packed.getvalue(), **options)


def test_the_names_behind_a_byte_order_mark_and_blank_lines(tmp_path: Path) -> None:
    data = read(tmp_path, "\ufeff\r\n X,y\n1,1\n2,0\n", label="y")
    assert data.table is not None
    assert data.table.columns.feature_names() == ("X",)
    for encoding in ("utf-8-sig", "utf-16"):  # what Excel writes
        assert read(tmp_path, "sep=;\r\ny;a,b\r\n1;2,5\r\n0;3\r\n".encode(encoding)).X.tolist() == [[2.5], [3.0]]
    with pytest.raises(DataError, match=r"data\.csv:3: expected 2 fields, found 3"):
        read(tmp_path, "sep=,\ny,a\n1,2,3\n")


def test_text_and_stray_words_are_no_categories(tmp_path: Path) -> None:
    text = "name,note,x,y\n" + "".join(f"n{at},t {at % 3},{at / 2},{at % 2}\n" for at in range(200))
    data = read(tmp_path, text)
    assert columns_of(data).feature_names() == ("note=t 0", "note=t 1", "note=t 2", "x")
    assert "columns of text, whose words differ in most rows, are left out: name (200) (--id-column" in remarks(data)
    with pytest.raises(DataError, match=r"'name' has 200 different words in 200 rows .*--drop name, or --id-column"):
        read(tmp_path, text, features=("name", "x"))
    stray = text.replace("n7,t 1,3.5", "n7,t 1,n.a.").replace("n9,t 0,4.5", "n9,t 0,n.a.")
    with pytest.raises(DataError, match=r"data.csv:9: column 'x': expected a number, found 'n.a.' \(2 such cells\)"):
        read(tmp_path, stray, id="name")
    money = text.replace("3.5", '"$3.5"')
    with pytest.raises(DataError, match=r"found '\$3.5' \(10 such cells\)"):
        read(tmp_path, money, id="name")


def test_what_is_said_of_columns_that_are_not_there(tmp_path: Path) -> None:
    for part in ("label", "id", "qid", "bag"):
        option = f"--{part}-column"
        with pytest.raises(DataError, match=rf"no column is called 'yy' \({option}\): .* a, y; did you mean 'y'"):
            read(tmp_path, "a,y\n1,0\n", **{part: "yy"})
    with pytest.raises(DataError, match="column 'a' is given two parts"):
        read(tmp_path, "a,y\n1,0\n", id="a", qid="a")


def zipped(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("folder")
        archive.writestr("folder/t.csv", content)
        archive.writestr("__MACOSX/folder/._t.csv", b"attributes")
    return packed.getvalue()


SEMICOLONS = "age;city;y\r\n31,5;Paris;1\r\n;Rome;0\r\n55;Paris;0\r\n"


@pytest.mark.parametrize(
    "text",
    [
        SEMICOLONS.encode(),
        b"\xef\xbb\xbf" + SEMICOLONS.encode(),
        SEMICOLONS.encode("utf-16"),
        SEMICOLONS.replace("\r\n", "\r").encode(),
        SEMICOLONS.replace("\r\n", "\n\n").encode().rstrip(),
        SEMICOLONS.replace(";", " \t").replace(",", ".").encode(),
        SEMICOLONS.replace(";", "|").encode(),
        gzip.compress(SEMICOLONS.encode()),
        bz2.compress(SEMICOLONS.encode()),
        pa.Codec("zstd").compress(SEMICOLONS.encode(), asbytes=True),
        zipped(SEMICOLONS.encode()),
        b'age,city,y\n"31.5"," Paris ",1\n"NA",Rome,0\n55, "Paris",0\n',
    ],
    ids=range(12),
)
def test_ways_of_writing(tmp_path: Path, text: bytes) -> None:
    data = read(tmp_path, text)
    assert columns_of(data).feature_names() == ("age", "city=Paris", "city=Rome")
    assert rows(data) == [[31.5, 1, 0], [43.25, 0, 1], [55, 1, 0]]
    assert data.relevance.tolist() == [1, 0, 0]


def test_decimal_commas_in_quotes(tmp_path: Path) -> None:
    data = read(tmp_path, 'a,b,y\n"1,5",2,1\n"-2,25",3,0\n', decimal=",")
    assert rows(data) == [[1.5, 2], [-2.25, 3]]


def test_encodings(tmp_path: Path) -> None:
    text = "città,y\nForlì,1\nRoma,0\nRoma,1\n"
    data = read(tmp_path, text.encode("latin-1"), encoding="latin-1")
    assert columns_of(data).feature_names() == ("città=Forlì", "città=Roma")
    guessed = read(tmp_path, text.encode("cp1252"))
    assert columns_of(guessed).feature_names() == ("città=Forlì", "città=Roma")
    assert "it is not UTF-8, and is read as cp1252 (--encoding names another)" in remarks(guessed)
    with pytest.raises(DataError, match=r"data.csv: expected text in UTF-8, found the byte 0x81.*--encoding"):
        read(tmp_path, text.replace("Roma", "\x81").encode("latin-1"))
    # UTF-8 with a byte that is not of it, and where that is requested: its place.
    for damaged, options in ((text.encode() + b"\xec,1\n", {}), (text.encode("latin-1"), {"encoding": "utf-8"})):
        with pytest.raises(DataError, match="expected text in UTF-8, found the byte 0xe"):
            read(tmp_path, damaged, **options)
    with pytest.raises(DataError, match=r"data\.csv: expected text of the encoding utf-16: .*truncated data"):
        read(tmp_path, text.encode("utf-16")[:-1], encoding="utf-16")


def test_labels_of_one_word(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="all rows have the label 'yes'; a ranking needs another one too"):
        read(tmp_path, "y,a\nyes,1\nyes,2\n").positives(0.0)


def test_a_title_above_the_names(tmp_path: Path) -> None:
    for options in ({"label": "y"}, {}):
        with pytest.raises(DataError, match=r"its columns are Export of May; commas.* --skip-lines"):
            read(tmp_path, "Export of May\ny,a\n1,2\n", **options)


def test_a_first_row_taken_for_names_is_suspected(tmp_path: Path) -> None:
    said = "column 'ill' is called like one of its labels, and other names are numbers: if that is a row"
    assert said in remarks(read(tmp_path, "2.5,7,ill\n1,2,well\n4,3,ill\n", label="ill"))
    assert said not in remarks(read(tmp_path, "a,7,ill\n1,2,0\n4,3,1\n", label="ill"))
    assert said not in remarks(read(tmp_path, "a,b,ill\n1,2,well\n4,3,ill\n", label="ill"))


def test_columns_without_a_name_or_a_value_are_left_out(tmp_path: Path) -> None:
    data = read(tmp_path, ",a,empty,y,\n0,1,,1,\n1,2,NA,0,\n")
    assert columns_of(data).feature_names() == ("a",)
    assert "columns without a name are left out: 1, 5" in remarks(data)
    tabs = read(tmp_path, "\ta\ty\n0\t1\t1\n1\t2\t0\n")
    assert columns_of(tabs).feature_names() == ("a",)
    assert "columns without a name are left out: 1" in remarks(tabs).splitlines()
    assert "columns without any value are left out: empty" in remarks(data).splitlines()


def test_a_model_that_knows_no_names(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("b,a,y\n1,2,0\n3,4,1\n")
    data = read_data(path, model=ForModel(None, None, 2))
    assert rows(data) == [[1, 2], [3, 4]]
    assert data.relevance.tolist() == [0, 1]
    assert "taken to be b, a, in this order" in remarks(data)
    with pytest.raises(DataError, match="the model knows its 3 features by position only, and the table has 2"):
        read_data(path, model=ForModel(None, None, 3))
    named = read_data(path, model=ForModel(None, ("a", "b"), 2))
    assert rows(named) == [[2, 1], [4, 3]]
    path.write_text("c,d\n1,2\n")
    with pytest.raises(DataError, match="no column is named as labels are"):
        read_data(path, model=ForModel(None, None, 2))


def test_what_files_are() -> None:
    svmlight = [
        b"1 1:0.5\n",
        b"# x, y\n+1 qid:3 2:1e5 # a, b\n",
        b"1,4\n2 3:1\n",
        b"1\n",
        b"",
        b"1\t2:5\n",
        b"1 1:x 2:2\n",
    ]
    assert {kind_of(text) for text in svmlight} == {Kind.SVMLIGHT}
    tables = [
        b"a,b\n1,2\n",
        b"a\tb\n1\t2\n",
        b"a;b\n",
        b"1,2,3\n4,5,6\n",
        b"when,y\n10:30,1\n",
        b"\xef\xbb\xbfa\n",
        b"name\n1\n",
    ]
    assert {kind_of(text) for text in tables} == {Kind.CSV}
    assert kind_of(gzip.compress(tables[0])) is Kind.CSV
    assert kind_of(gzip.compress(svmlight[0])) is Kind.SVMLIGHT
    assert kind_of(b"PAR1....") is Kind.PARQUET
    assert kind_of(b"ARROW1\0\0") is Kind.ARROW


def test_options_of_tables_are_for_tables(tmp_path: Path) -> None:
    (tmp_path / "data.svm").write_text("1 1:1\n-1 1:2\n")
    with pytest.raises(DataError, match=r"--label-column is for tables .*, and this is svmlight text"):
        read_data(tmp_path / "data.svm", table=TableOptions(label="y"))
    columns = columns_of(read(tmp_path, SIMPLE))
    with pytest.raises(DataError, match=r"the model finds its columns by their names \(age, city, paid, …\)"):
        read_data(tmp_path / "data.svm", model=ForModel(columns, columns.feature_names(), columns.width))


def test_lines_behind_blank_ones_and_line_breaks_in_quotes(tmp_path: Path) -> None:
    rows_above = 'a,b,y\n1,"x\ny",1\n\n2,z,0\n'
    data = read(tmp_path, rows_above)
    assert data.table is not None
    assert data.table.lines is None  # rows are counted
    with pytest.raises(DataError, match=r"data.csv: row 3: column 'a': expected a number, found 'w'"):
        read(tmp_path, rows_above + "w,z,1\n3,z,0\n")
    with pytest.raises(DataError, match=r"data.csv:6: expected 3 fields, found 2"):
        read(tmp_path, rows_above + "3,z\n")


def test_points_of_exponents_are_decimal_ones(tmp_path: Path) -> None:
    assert rows(read(tmp_path, "a;b;y\n1,5;1.257e-01;1\n2,5;2.25e-01;0\n")) == [[1.5, 0.1257], [2.5, 0.225]]
    with pytest.raises(DataError, match=r"column 'b': expected a number, found '1.257e-01'.*--decimal"):
        read(tmp_path, "a;b;y\n1,5;1.257e-01;1\n2,5;2.25e-01;0\n", decimal=",")
    assert rows(read(tmp_path, "a;b;y\n1,5e1;3;1\n2,5;4;0\n")) == [[15, 3], [2.5, 4]]


def test_a_folder_of_parquet_files_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "part-0.parquet").touch()
    with pytest.raises(IsADirectoryError, match=r"Parquet files, part-0.parquet among them: name them by a pattern"):
        read_data(tmp_path)


@pytest.mark.parametrize("last", ["old", "inf", "1e999", " 3.5", "NA"])
def test_numbers_are_numbers_to_the_last_row(last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that begins with decimals is read as numbers, and again as text where something else follows."""
    monkeypatch.setattr("apsvm.data.tables.text._BLOCK", 1000)
    text = "a,b,y\n" + "1.5,2.25,0\n-0.5,,1\n" * 300
    for each in (text, text.replace("a,b", 'a, "b"')):
        assert rows(read(tmp_path, each))[:2] == [[1.5, 2.25], [-0.5, 2.25]]
    if last in (" 3.5", "NA"):
        assert rows(read(tmp_path, f"{text}{last},1,0\n"))[-1] == [3.5 if last == " 3.5" else 0.5, 1.0]
    else:
        with pytest.raises(DataError, match=rf"data.csv:602: column 'a': expected a (finite )?number, found '{last}'"):
            read(tmp_path, f"{text}{last},1,0\n")
    with pytest.raises(DataError, match=r"data.csv:602: column .a.: expected a number, found .x."):
        read(tmp_path, f"{text}x,1,0\n", columns_of(read(tmp_path, text)))


def test_amounts_of_a_model_of_plain_numbers(tmp_path: Path) -> None:
    """They are numbers written otherwise; shares in per cent are others."""
    trained = read(tmp_path, "a,y\n1234.5,0\n17,1\n")
    model = ForModel(columns=columns_of(trained), names=None, width=1)
    path = tmp_path / "new.csv"
    path.write_text('a,y\n"$1,234.50",0\n$17,1\n')
    assert read_data(path, model=model).X[:, 0].tolist() == [1234.5, 17.0]
    path.write_text("a,y\n12 %,0\n3 %,1\n")
    with pytest.raises(DataError, match="expected a number, found '12 %'"):
        read_data(path, model=model)


def test_the_one_amount_of_another_money_is_named(tmp_path: Path) -> None:
    text = "a,y\n" + "".join(f"${at},{at % 2}\n" for at in range(1, 40)) + "€7,1\n"
    with pytest.raises(DataError, match=r":41: column 'a': expected a number like '\$1', found '€7'"):
        read(tmp_path, text)
