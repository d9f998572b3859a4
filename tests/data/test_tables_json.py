"""JSON lines: the same rows as the CSV of the same cells, and errors that name the line and the column."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from over import over

from apsvm.data.dataset import DataError
from apsvm.data.read_options import TableOptions
from apsvm.data.reading import read_data

LINES = '{"a": 1, "b": "x", "label": 1}\n{"a": 2.5, "b": "y", "label": 0}\n'
cells = {
    "number": st.none() | st.floats(-1e300, 1e300) | st.integers(-(2**70), 2**70),
    "word": st.none() | st.sampled_from(["x", "y", "a,b", "\u2603", '"']),
    "truth": st.none() | st.booleans(),
    "day": st.none() | st.sampled_from(["2020-01-01T00:00:00", "2020-01-02"]),
    "mixed": st.none() | st.sampled_from([1, 2.5, "U", True]),
}


def as_csv(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return '"' + str(value).replace('"', '""') + '"'


@pytest.mark.slow
@settings(max_examples=60)
@given(rows=st.lists(st.fixed_dictionaries(cells), min_size=2, max_size=8), gz=st.booleans())
def test_it_is_what_the_csv_is(rows, gz, tmp_path_factory):
    folder = tmp_path_factory.mktemp("json")
    rows = [{**row, "label": at % 2} for at, row in enumerate(rows)]
    text = "".join(json.dumps({key: value for key, value in row.items() if value is not None}) + "\n" for row in rows)
    (folder / "t.jsonl").write_bytes(gzip.compress(text.encode()) if gz else text.encode())
    names = [*cells, "label"]
    lines = [",".join(names), *(",".join(as_csv(row[name]) for name in names) for row in rows)]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    options = TableOptions(categorical=("word", "day", "mixed", "truth"))
    outcomes = []
    for name in ("t.csv", "t.jsonl"):
        try:
            data = read_data(folder / name, table=options)
        except DataError as error:
            outcomes.append(type(error))
            continue
        X = data.X.toarray() if hasattr(data.X, "toarray") else data.X
        order = np.argsort(data.table.columns.feature_names())  # JSON has no order of columns where values are missing
        outcomes.append((sorted(data.table.columns.feature_names()), X[:, order].tolist(), data.relevance.tolist()))
    if all(any(row[name] is not None for row in rows) for name in cells):  # a column of CSV may be empty
        assert outcomes[0] == outcomes[1]


@over(
    ("text", "message"),
    [
        (LINES + '{"a": 1, "b": "x"', """:3: expected a JSON object a line, found '{"a": 1, "b": "x"'"""),
        (LINES + "[1, 2, 3]\n", ":3: expected a JSON object a line, found '[1, 2, 3]'"),
        (LINES + f"[{'é' * 30}]\n", f":3: expected a JSON object a line, found '[{'é' * 30}]'"),
        (LINES + "\n" + LINES, ":3: expected a JSON object a line, found ''"),
        (LINES + '{"a": [1], "b": "x", "label": 0}\n', ":3: column 'a': expected a number or a word, found a list"),
        (LINES + '{"a": 1, "b": {}, "label": 0}\n', ":3: column 'b': expected a number or a word, found an object"),
        (
            LINES + '{"a b": {}, "label": 0}\n',
            ":3: column 'a b': expected a number or a word, found an object, or --drop 'a b'",
        ),
        (LINES + '{"a": 1e999, "b": "x", "label": 0}\n', ":3: column 'a': expected a finite number, found 'inf'"),
        (LINES + '{"a": ' + "[" * 100_000 + "\n", ":3: expected a JSON object"),
        ('{"a": 1}\n{"a": 2}\n', "label"),
        ("{}\n{}\n", "label"),
        (LINES + '{"a": 1, "b": "\\ud800", "label": 0}\n', ":3: expected a JSON object a line, found '{"),
        ((LINES + '{"\u00e9": 1, "label": 0}\n').encode("latin-1"), ":3: expected UTF-8, found the byte 0xe9"),
        ('[{"a": 1, "label": 1},\n{"a": 2, "label": 0}]\n', ":1: expected a JSON object a line, found '[{"),
        (
            (LINES + '{"a": 1, "b": "\u00e9", "label": 0}\n').encode("latin-1"),
            ":3: expected UTF-8, found the byte 0xe9",
        ),
    ],
)
def test_errors_name_line_and_column(text, message, tmp_path):
    (tmp_path / "t").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError) as caught:
        read_data(tmp_path / "t")
    assert str(caught.value).startswith(str(tmp_path / "t"))
    assert message in str(caught.value)


def test_columns_of_lists_can_be_left_out(tmp_path):
    (tmp_path / "t").write_text(LINES + '{"a": 3, "b": "x", "label": 0, "tags": ["u", 1], "user": {"age": 3}}\n')
    data = read_data(tmp_path / "t", table=TableOptions(drop=("tags", "user")))
    assert data.table.columns.feature_names() == ("a", "b=x", "b=y")


@pytest.mark.parametrize("first", ["1", '"one"'])  # a column of pyarrow, and one of numbers and words
def test_long_integers_name_rows_exactly(first, tmp_path):
    ids = [2**53 + 1, 2**63 - 1, 2**63 + 1, 2**64 + 1, 2**64 + 2]
    for chosen in (ids[:2], ids):
        lines = [
            f'{{"id": {name}, "a": {first if at == 0 else at}, "label": {at % 2}}}' for at, name in enumerate(chosen)
        ]
        (tmp_path / "t").write_text("\n".join(lines))
        data = read_data(tmp_path / "t", table=TableOptions(id="id"))
        assert data.table.keys.tolist() == [str(name) for name in chosen]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_encodings(encoding, tmp_path):
    (tmp_path / "t").write_bytes((LINES.replace("x", "\u00e9") + "\n\n").encode(encoding))
    options = TableOptions(encoding="latin-1") if encoding == "latin-1" else TableOptions()
    data = read_data(tmp_path / "t", table=options)
    assert data.table.columns.feature_names() == ("a", "b=y", "b=\u00e9")


def test_a_model_finds_its_columns(tmp_path, capsys):
    from apsvm.cli import run

    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    rows = [{"a": a, "b": b, "label": int(a + b > 0.5)} for a, b in x.tolist()]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "t.csv").write_text("label,b,a\n" + "".join(f"{r['label']},{r['b']},{r['a']}\n" for r in rows))
    assert run(["train", "-q", str(tmp_path / "t.jsonl"), str(tmp_path / "m")]) == 0
    printed = []
    for name in ("t.jsonl", "t.csv"):
        assert run(["predict", str(tmp_path / name), str(tmp_path / "m")]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert len(set(printed[0].split())) > 30
