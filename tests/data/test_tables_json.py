"""JSON lines: the same rows as the CSV of the same cells, and errors that name the line and the column."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import example, given, settings
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
@example(rows=[dict.fromkeys(cells), {"number": 10**15, "word": "x", "truth": False, "day": "", "mixed": 1}], gz=False)
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
        (LINES + f"[{'é' * 30}]\n", f":3: expected a JSON object a line, found '[{'é' * 30}]'"),
        (LINES + "\n" + LINES, ":3: expected a JSON object a line, found ''"),
        (LINES + '{"a": [1], "b": "x", "label": 0}\n', ":3: column 'a': expected a number or a word, found a list"),
        (LINES + '{"a": 1, "b": {}, "label": 0}\n', ":3: column 'b': expected a number or a word, found an object"),
        (
            LINES + '{"a b": {}, "label": 0}\n',
            ":3: column 'a b': expected a number or a word, found an object, or --drop 'a b'",
        ),
        (LINES + '{"a": 1e999, "b": "x", "label": 0}\n', ":3: column 'a': expected a finite number, found 'inf'"),
        (LINES + '{"a": ' + "[" * 100_000 + "\n", ":3: expected values at most 64 deep"),
        ('{"a": 1}\n{"a": 2}\n', "label"),
        ("{}\n{}\n", "label"),
        (LINES + '{"a": 1, "b": "\\ud800", "label": 0}\n', ":3: expected a JSON object a line, found '{"),
        ((LINES + '{"\u00e9": 1, "label": 0}\n').encode("latin-1"), ":3: expected text in UTF-8, found the byte 0xe9"),
        ('[{"a": 1, "label": 1},\n 2]\n', "item 2: expected a JSON object, found '2'"),
        ("[" + '{"a":' * 50_000 + "\n", ":1: expected values at most 64 deep"),
    ],
)
def test_errors_name_line_and_column(text, message, tmp_path):
    (tmp_path / "t").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError) as caught:
        read_data(tmp_path / "t")
    assert str(caught.value).startswith(str(tmp_path / "t"))
    assert message in str(caught.value)


def test_an_array_over_all_lines(tmp_path):
    rows = [json.loads(line) for line in LINES.splitlines()]
    expected = read_data(written(tmp_path, LINES))
    for text in (json.dumps(rows), json.dumps(rows, indent=1)):
        data = read_data(written(tmp_path, text))
        assert data.table.columns == expected.table.columns
        np.testing.assert_array_equal(data.X, expected.X)


def written(folder, text):
    (folder / "t").write_text(text)
    return folder / "t"


def test_columns_of_lists_can_be_left_out(tmp_path):
    (tmp_path / "t").write_text(LINES + '{"a": 3, "b": "x", "label": 0, "tags": ["u", 1], "user": {"age": 3}}\n')
    data = read_data(tmp_path / "t", table=TableOptions(drop=("tags", "user")))
    assert data.table.columns.feature_names() == ("a", "b=x", "b=y")
