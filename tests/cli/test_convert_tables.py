"""``apsvm convert`` of a table in parts: the folder of the whole table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from apsvm.data import open_folder

PENGUINS = Path(__file__).parents[2] / "examples" / "penguins.csv"
OPTIONS = ("--label-column", "species", "--max-categories", "2", "--missing", "indicator")


@pytest.fixture
def parts(tmp_path):
    """Three files of the same rows; words first appear in another order in the last, and columns stand in another."""
    header, *rows = PENGUINS.read_text().splitlines()
    for name, begin, end in (("a.csv", 0, 100), ("b.csv", 100, 101), ("c.csv", 101, len(rows))):
        lines = [header, *rows[begin:end]]
        if name == "c.csv":
            lines = [";".join(reversed(line.split(","))) for line in lines]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    return [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]


def assert_alike(one, other):
    first, second = open_folder(one), open_folder(other)
    dense = [X.toarray() if hasattr(X, "toarray") else X for X in (first.X, second.X)]
    np.testing.assert_array_equal(*dense)
    np.testing.assert_array_equal(first.relevance, second.relevance)
    assert first.table.columns == second.table.columns
    assert len(set(first.relevance.tolist())) == 3


def test_parts_are_the_whole(parts, run, tmp_path):
    said = run("convert", tmp_path / "?.csv", tmp_path / "parts", *OPTIONS).stderr
    run("convert", PENGUINS, tmp_path / "whole", *OPTIONS)
    assert_alike(tmp_path / "parts", tmp_path / "whole")
    assert "19 cells are missing (sex 11" in said
    run("train", "-q", tmp_path / "parts", tmp_path / "m", "--positive-label", "Gentoo", "--bound", "hinge")
    assert run("predict", PENGUINS, tmp_path / "m").stdout == run("predict", tmp_path / "whole", tmp_path / "m").stdout


def test_for_a_model(parts, run, tmp_path):
    model = tmp_path / "m"
    run("train", "-q", PENGUINS, model, *OPTIONS, "--positive-label", "Gentoo", "--bound", "hinge")
    run("convert", "-q", tmp_path / "[bc].csv", tmp_path / "parts", "--model", model)
    scores = run("predict", PENGUINS, model).stdout.splitlines()
    assert run("predict", tmp_path / "parts", model).stdout.splitlines() == scores[100:]


def test_other_formats(parts, run, tmp_path):
    from pyarrow import csv, parquet

    nulls = csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    parquet.write_table(csv.read_csv(parts[0], convert_options=nulls), tmp_path / "a.parquet")
    parts[0].unlink()
    run("convert", "-q", tmp_path / "[abc].*", tmp_path / "parts", *OPTIONS)
    run("convert", "-q", PENGUINS, tmp_path / "whole", *OPTIONS)
    assert_alike(tmp_path / "parts", tmp_path / "whole")


def test_what_does_not_fit_is_said_with_its_file_and_line(parts, run, tmp_path):
    _, second, _ = parts
    lines = second.read_text().splitlines()
    out = tmp_path / "out"
    second.write_text("\n".join([lines[0].replace("island", "isle"), *lines[1:]]))
    said = run("convert", tmp_path / "[ab].csv", out, *OPTIONS, code=65).stderr
    assert "b.csv: expected the columns of " in said
    assert "a.csv, found no column island" in said
    second.write_text("\n".join([f"{lines[0]},age", f"{lines[1]},3"]))
    assert run("convert", tmp_path / "[ab].csv", out, *OPTIONS, code=65).stderr.endswith(
        ", found the column age besides\n"
    )
    second.write_text("\n".join([lines[0], lines[1], ",".join(["Adelie", "Dream", "abc", *lines[1].split(",")[3:]])]))
    said = run("convert", tmp_path / "[ab].csv", out, *OPTIONS, "--max-categories", "1", code=65).stderr
    assert "b.csv:3: column 'culmen_length_mm': expected a number, found 'abc'" in said
    assert not out.exists()


def test_bags_of_parts(run, tmp_path):
    """Their labels are those of their best rows, and of rows alone where bags are ignored."""
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("bag,x,label\n1,1,0\n1,2,1\n2,3,0\n2,4,0\n")
    parts = (tmp_path / "?.csv", tmp_path / "parts", "--label-column", "label")
    for options, labels in (("--bag-label", "any"), [1.0, 1.0, 0.0, 0.0]), (("--bags", "ignore"), [0.0, 1.0, 0.0, 0.0]):
        run("convert", "-q", *parts, "--bag-column", "bag", *options)
        found = open_folder(tmp_path / "parts")
        assert (found.relevance.tolist(), found.bags is None) == (labels * 2, "ignore" in options)
    said = run("convert", "-q", *parts, "--bag-column", "bag", code=65).stderr
    assert "a.csv" in said


@pytest.fixture
def searches(tmp_path):
    lines = ["query,doc,clicked,length", *(f"q {row % 3},d{row},{row % 2},{row * 7 % 11}" for row in range(18))]
    (tmp_path / "searches.csv").write_text("\n".join(lines).replace("q ", "query-") + "\n")
    return tmp_path / "searches.csv"


def test_queries_keep_their_words(searches, run, tmp_path):
    parts = ("--label-column", "clicked", "--qid-column", "query", "--drop", "doc")
    run("convert", "-q", searches, tmp_path / "folder", *parts)
    run("train", "-q", tmp_path / "folder", tmp_path / "m", "--bound", "hinge")
    found = run("predict", tmp_path / "folder", tmp_path / "m", "--trec-run", "tag").stdout
    assert found == run("predict", searches, tmp_path / "m", "--trec-run", "tag").stdout
    assert {line.split()[0] for line in found.splitlines()} == {"query-0", "query-1", "query-2"}


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([1], "damaged: expected text in 'queries[0]', found 1"),
        (["a"], "numbers from 0 to 0"),
        ("a", "damaged: "),
    ],
)
def test_names_of_queries_that_are_none(queries, message, searches, run, tmp_path):
    folder = tmp_path / "folder"
    run("convert", "-q", searches, folder, "--label-column", "clicked", "--qid-column", "query", "--drop", "doc")
    header = json.loads((folder / "header.json").read_text())
    (folder / "header.json").write_text(json.dumps({**header, "queries": queries}))
    assert message in run("train", folder, tmp_path / "m", code=65).stderr


def test_decimal_commas_of_parts(run, tmp_path):
    """Points stand between the thousands of the whole."""
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x;y;label\n1,5;1.000;1\n2,5;2.000;0\n")
    run("convert", "-q", tmp_path / "?.csv", tmp_path / "parts", "--label-column", "label")
    assert open_folder(tmp_path / "parts").X.tolist() == [[1.5, 1000.0], [2.5, 2000.0]] * 2
