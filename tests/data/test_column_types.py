"""Kinds of columns: by the user's word, the writer's type, then the cells; the same from every format."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from over import over
from tables import columns_of, read, remarks, rows, workbook

from apsvm import APSVMClassifier
from apsvm.data import DataError, read_data
from apsvm.data.read_options import TableOptions
from apsvm.data.tables.cells import Cells, Places, Table
from apsvm.data.tables.learning import learn, learn_of_parts
from apsvm.data.tables.roles import Parts
from apsvm.data.tables.typed import Evidence
from apsvm.models.columns import NO_FEATURES

DOCS = Path(__file__).parents[2] / "docs" / "data.md"


def text_of(cells, name="a"):
    return f"{name},y\n" + "".join(f"{cell},{at % 2}\n" for at, cell in enumerate(cells))


def names_of(data):
    return columns_of(data).feature_names()


#: A column for each row of the manual's table, and what it becomes.
OF_THE_MANUAL = [
    ("words", pa.array([1, 2]), {"categorical": ("a",)}),
    ("left out", ["", ""], {}),
    ("numbers", pa.array([True, False]), {}),
    ("words", pa.array(["1", "2"]).dictionary_encode(), {}),
    ("dates", pa.array([date(2024, 1, 1), date(2024, 1, 2)]), {}),
    ("words", ["012", "123"], {}),
    ("numbers", ["1", "2"], {}),
    ("numbers", ["true", "false"], {}),
    ("numbers", ["$1", "$2"], {}),
    ("dates", ["2024-01-01", "2024-01-02"], {}),
    ("an error", ["1", "2", "x"], {}),
    ("an error", ["2024-01-01", "2024-13-02"], {}),
    ("left out", [f"text {at}" for at in range(12)], {}),
    ("words", ["u", "v"], {}),
]


def test_the_table_of_the_manual(tmp_path):
    _, table = DOCS.read_text().split("| column | it becomes |\n|---|---|\n")
    for line, (becomes, cells, options) in zip(table.split("\n\n")[0].splitlines(), OF_THE_MANUAL, strict=True):
        assert line.split("|")[2].strip().startswith(becomes), line
        columns = {"a": cells, "x": np.sin(np.arange(len(cells))), "y": np.arange(len(cells)) % 2}
        path = tmp_path / "t"
        if isinstance(cells, list):
            pd.DataFrame(columns).to_csv(path, index=False)
        else:
            pq.write_table(pa.table(columns), path)
        try:
            learned = columns_of(read_data(path, table=TableOptions(**options)))
        except DataError:
            found = "an error"
        else:
            kinds = {"number": "numbers", "category": "words", "date": "dates"}
            found = next((kinds[one.kind] for one in learned.features if one.name == "a"), "left out")
        assert found == becomes, line


@over(
    ("cells", "codes"),
    [
        (["01234", "12345", "00013"] * 4, True),
        (["4000000000000000001", "4000000000000000002"] * 6, True),
        (["1234", "12345", "99999"] * 4, False),
        (["12345", "23456", "34567"] * 4, False),
        (["0", "1", "0"] * 4, False),
        (["0.123", "1.234", "0.000"] * 4, False),
        (["10000000000000.0", "20000000000000.0"] * 6, False),
    ],
)
def test_codes_of_digits_are_words(cells, codes, tmp_path):
    """As many as there are spellings; in a CSV, where nobody names a type."""
    (tmp_path / "t.csv").write_text(text_of(cells))
    names = names_of(read_data(tmp_path / "t.csv"))
    assert len(names) == (len(set(cells)) if codes else 1), names


@over("name", [None, "customer"])
def test_the_index_of_pandas_is_no_feature(name, tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1]}).iloc[[0, 2, 3]].rename_axis(name)
    frame.to_parquet(tmp_path / "t")
    data = read_data(tmp_path / "t")
    assert names_of(data) == ("x",)
    index = name or "__index_level_0__"
    assert f"the index of the data frame is left out: {index}" in remarks(data)
    assert names_of(read_data(tmp_path / "t", table=TableOptions(features=("x", index)))) == ("x", index)
    assert read_data(tmp_path / "t", table=TableOptions(id=index)).table.keys.tolist() == ["0", "2", "3"]


@over(
    "kind",
    [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.string())],
)
def test_digits_typed_as_text_are_words(kind, tmp_path):
    table = pa.table({"zip": pa.array(["1", "10", "1", "10"]).cast(kind), "y": [0, 1, 1, 0]})
    pq.write_table(table, tmp_path / "t")
    assert names_of(read_data(tmp_path / "t")) == ("zip=1", "zip=10")


@over(
    ("cells", "names"),
    [
        ([1234567890123456789, 1234567890123456788] * 2, ("1234567890123456788", "1234567890123456789")),
        (["01234", "1234"] * 2, ("01234", "1234")),
        (["1e5", "100000"] * 2, ("100000", "1e5")),
        (["10", "10.0", "2.50", "2.5"], ("10", "2.5")),
    ],
)
def test_categories_are_as_many_as_spellings(cells, names, tmp_path):
    data = read(tmp_path, text_of(cells), categorical=("a",))
    assert names_of(data) == tuple(f"a={name}" for name in names)
    if isinstance(cells[0], int):
        pq.write_table(pa.table({"a": cells, "y": [0, 1, 0, 1]}), tmp_path / "t")
        assert names_of(read_data(tmp_path / "t", table=TableOptions(categorical=("a",)))) == names_of(data)
        frame = pd.DataFrame({"a": cells}).astype("category")
        assert APSVMClassifier().fit(frame, [0, 1, 0, 1]).to_model().header.features.names == names_of(data)


@over("word", ["18_25", "2019_05", "１２", "inf", "Infinity", "888E050011", "1_000"])
def test_words_that_python_would_take_for_numbers(word, tmp_path):
    data = read(tmp_path, text_of([word, "other"] * 3))
    assert set(names_of(data)) == {f"a={word}", "a=other"}
    labels = read(tmp_path, "x,y\n" + f"1,{word}\n2,other\n" * 3)
    assert set(columns_of(labels).label_words) == {word, "other"}
    assert set(names_of(read(tmp_path, text_of([word, "1", "2"]), categorical=("a",)))) == {f"a={word}", "a=1", "a=2"}
    with pytest.raises(DataError, match=f"data.csv:2: column 'a': expected a (finite )?number, found '{word}'"):
        read(tmp_path, text_of([word, "1", "2"]))


@over("n", [3, 20, 47, 52, 500])
def test_one_stray_word_is_named_at_every_size(n, tmp_path):
    cells = [f"{at / 8}" for at in range(n)]
    cells[1] = "unknown"
    with pytest.raises(DataError, match=r":3: column 'a': expected a number, found 'unknown'; a missing cell is empty"):
        read(tmp_path, text_of(cells))


def test_forms_of_dates(tmp_path):
    expected = read(tmp_path, text_of(["2024-02-12", "2024-03-26"]))
    for cells in (["2024-02-12 00:00:00 UTC", "2024-03-26 00:00:00 UTC"], ["12 February 2024", "26 March 2024"],
                  ['"February 12, 2024"', '"March 26, 2024"'], ["12-Feb-2024", "26-Mar-2024"]):  # fmt: skip
        assert rows(read(tmp_path, text_of(cells))) == rows(expected)
    firsts = text_of(["08/01/2025", "09/01/2025"])
    with pytest.raises(DataError, match="--date-order"):
        read(tmp_path, firsts)
    ages = {order: rows(read(tmp_path, firsts, date_order=order))[0][0] for order in ("dmy", "mdy")}
    assert ages == {"dmy": 1.0, "mdy": 31.0}


def test_a_zone_on_one_side_is_said(tmp_path):
    columns = columns_of(read(tmp_path, text_of(["2024-02-12T10:00:00+02:00", "2024-03-26T11:30:00+02:00"])))
    plain = read(tmp_path, text_of(["2024-02-12T08:00:00", "2024-03-26T09:30:00"]), columns)
    assert "column 'a': its times name no zone" in remarks(plain)
    days = columns_of(read(tmp_path, text_of(["2024-02-12", "2024-03-26"])))
    assert "'a': its times name a zone" in remarks(read(tmp_path, text_of(["2024-02-12T00:00+02:00"]), days))
    again = read(tmp_path, text_of(["2024-02-12T08:00:00Z", "2024-03-26T09:30:00Z"]), columns)
    assert "zone" not in remarks(again)
    assert rows(again) == rows(plain)


def test_what_is_filled_only_with_one_label_is_named(tmp_path):
    text = "amount,paid_back,fraud\n1,2024-01-02,Yes\n2,,No\n3,2024-01-05,Yes\n4,,No\n5,,No\n"
    assert "column 'paid_back' is filled only where fraud = Yes" in remarks(read(tmp_path, text))
    assert "filled only" not in remarks(read(tmp_path, text.replace("5,,No", "5,2024-01-07,No")))


def test_new_words_and_rare_ones(tmp_path):
    columns = columns_of(read(tmp_path, text_of(["u", "u", "v", "v", "w", "z"]), max_categories=2))
    data = read(tmp_path, text_of(["u", "w", "w"]), columns)
    assert remarks(data) == ""
    assert data.table.details == ("column 'a': 2 cells have one of the infrequent words of training ('w', …)",)
    assert "column 'a': 1 word was not in training ('q')" in remarks(read(tmp_path, text_of(["u", "q"]), columns))


def test_lines_above_the_names(tmp_path):
    text = "Export\n\na,b,c,y\n1,2,3,0\n1,2,4,1\n"
    assert rows(read(tmp_path, text, skip_lines=2)) == [[1, 2, 3], [1, 2, 4]]
    with pytest.raises(DataError, match=r"data.csv:5: column 'c'"):
        read(tmp_path, text.replace("2,4", "2,?") + "1,1,1,0\n", skip_lines=2, missing="refuse")


def test_types_that_differ_between_files(tmp_path):
    for number, cells in enumerate(([1.0, 2.0], ["x", "z"])):
        pq.write_table(pa.table({"a": cells, "y": [0, 1]}), tmp_path / f"part-{number}")
    with pytest.raises(DataError, match=r"part-1: column 'a' has the type string, and in .*part-0 double"):
        read_data(tmp_path / "part-*")


def test_decimal_marks_that_differ_between_files(tmp_path):
    for name, cells in (("1.csv", "a;y\n0,5;1\n1,5;0\n"), ("2.csv", "a;y\n0.5;1\n1.5;0\n"), ("3.csv", "a;y\n2;1\n")):
        (tmp_path / name).write_text(cells)
    with pytest.raises(DataError, match=r"2.csv: column 'a' has decimal points, and .*1.csv decimal commas"):
        read_data(tmp_path / "[12].csv")
    assert rows(read_data(tmp_path / "[13].csv")) == [[0.5], [1.5], [2]]


def test_structs_name_their_fields(tmp_path):
    pq.write_table(pa.table({"s": [{"u": 1, "v": 2}, {"u": 1, "v": 3}], "y": [0, 1]}), tmp_path / "t")
    with pytest.raises(DataError, match=r"column 's'.*whose fields u, v may be columns of their own, or --drop s"):
        read_data(tmp_path / "t")


def test_sheets(tmp_path):
    pytest.importorskip("python_calamine")
    cells = [["age", "city", "y"], [31, "Paris", 1], [None, "Rome", 0], [55.5, "Paris", 0]]
    data = read(tmp_path, workbook(cells))
    assert names_of(data) == ("age", "city=Paris", "city=Rome")
    assert rows(data)[1] == [43.25, 0, 1]
    with pytest.raises(DataError, match=r"no sheet is called 'Other'.*: there are Data"):
        read(tmp_path, workbook(cells), sheet="Other")
    with pytest.raises(DataError, match=r"data.csv: row 3: column 'age': expected a number, found 'old'"):
        read(tmp_path, workbook([*cells[:2], ["old", "Rome", 1], *cells[1:]]))
    titled = [["Report", None, None], *cells]
    with pytest.raises(DataError, match="row 1 has one filled cell of 3, row 2 3: --skip-lines 1"):
        read(tmp_path, workbook(titled))
    assert rows(read(tmp_path, workbook(titled), skip_lines=1)) == rows(data)
    with pytest.raises(DataError, match="row 1 has the names of columns, and cells of it are merged"):
        read(tmp_path, workbook(cells, merged="A1:B1"))
    with pytest.raises(DataError, match="not an Excel workbook that is read here"):
        read(tmp_path, workbook(cells)[:-300])


def test_parts_learn_what_the_whole_does(rng):
    n = 60
    arrays = {
        "amount": pa.array(np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)), from_pandas=True),
        "code": pa.array([f"{at % 3}" if at < 40 else "x" * (at % 2 + 1) for at in range(n)]),
        "city": pa.array([None if at % 7 == 0 else f"c{at % 4}" for at in range(n)]),
    }

    def table(begin, end):
        places = Places.of("t")
        cells = {
            name: Cells(name, places, pa.chunked_array([array.slice(begin, end - begin)]), is_text=name != "amount")
            for name, array in arrays.items()
        }
        return Table(cells, places)

    parts, options = Parts(features=tuple(arrays)), TableOptions(categorical=("code",))
    expected, said = learn(table(0, n), parts, options)
    cuts = [(20, 45), (0, 20), (45, n)]  # words stand in one part only
    evidence = [{name: Evidence.of(cells, spelled=True) for name, cells in table(*cut).columns.items()} for cut in cuts]
    learned, also_said = learn_of_parts(evidence, parts, options, "t")
    assert learned == expected
    assert also_said == said


def test_labels_alone_are_read_without_features(tmp_path):
    (tmp_path / "t").write_text(text_of([1, 2, 3]))
    data = read_data(tmp_path / "t", model=NO_FEATURES)
    assert (data.X.shape, data.relevance.tolist()) == ((3, 0), [0, 1, 0])
