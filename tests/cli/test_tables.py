"""Tables at the command line: every command reads them, columns are found by name, and what was done is said."""

from __future__ import annotations

import csv
import itertools
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from html_reader import Reader

from apsvm import load_model

PENGUINS = Path(__file__).parents[2] / "examples" / "penguins.csv"
OPTIONS = ("--label-column", "species", "--positive-label", "Chinstrap")


@pytest.fixture(scope="module")
def model(tmp_path_factory, run):
    path = tmp_path_factory.mktemp("tables") / "penguins.model"
    done = run("train", PENGUINS, path, *OPTIONS, "-C", "10", "--features-from", os.devnull, code=65)
    assert "no column is left to be a feature" in done.stderr
    done = run("train", PENGUINS, path, *OPTIONS, "-C", "10", "--scale", "standard")
    assert "19 cells are missing (sex 11, body_mass_g 2, culmen_depth_mm 2" in done.stderr
    assert "words, each a feature: island (3), sex (2)" in done.stderr
    assert "344 rows, 68 positive (species = Chinstrap)" in done.stderr
    return path


@pytest.fixture(scope="module")
def scores(model, run):
    return run("predict", PENGUINS, model).stdout


def shuffled(path: Path, more: str = "") -> Path:
    """The same rows with other columns, the other way round, ``more`` among them."""
    lines = [line.split(",") for line in PENGUINS.read_text().splitlines()]
    if more:
        lines = [[*line, more if at else f"{more}_column"] for at, line in enumerate(lines)]
    path.write_text("".join(",".join(reversed(line)) + "\n" for line in lines))
    return path


def test_columns_are_found_by_name(model, scores, run, tmp_path):
    other = shuffled(tmp_path / "other.csv", "x")
    done = run("predict", other, model)
    assert done.stdout == scores
    assert "x_column" in done.stderr
    assert run("predict", "-", model, input=other.read_bytes()).stdout == scores
    for data in (PENGUINS, other):
        assert json.loads(run("eval", data, "--model", model, "--json").stdout)["metrics"]["AP"] > 0.98
    other.write_text(other.read_text().replace("island", "isle"))
    assert "is it 'isle'?" in run("predict", other, model, code=65).stderr
    # Nobody who predicts needs the labels; whoever judges does.
    other.write_text(shuffled(other).read_text().replace("species", "kind"))
    assert run("predict", other, model).stdout == scores
    assert "--label-column" in run("eval", other, "--model", model, code=65).stderr
    assert run("eval", other, "--model", model, "--label-column", "kind").returncode == 0


def test_classes_by_name(run, tmp_path):
    path = tmp_path / "classes.model"
    run("train", PENGUINS, path, "--label-column", "species", "--one-vs-rest", "-C", "1", "--scale", "standard")
    names = ["Adelie", "Chinstrap", "Gentoo"]
    assert run("predict", PENGUINS, path, "--header").stdout.splitlines()[0].split() == names
    assert list(json.loads(run("eval", PENGUINS, "--model", path, "--json").stdout)["per_class"]) == names
    chosen = run("eval", PENGUINS, "--model", path, "--positive-label", "Gentoo", "--json").stdout
    assert json.loads(chosen)["rows"] == 344
    for command in (("eval", PENGUINS, "--model", path), ("export", path, "--format", "liblinear")):
        assert ", ".join(names) in run(*command, "--positive-label", "Emu", code=65).stderr
    for options in ((), ("--positive-label", "Emu")):
        said = run("train", PENGUINS, path, "--label-column", "species", *options, code=65).stderr
        assert ", ".join(names) in said


def test_the_wrong_kind_of_file(model, run, tmp_path):
    svmlight, by_position, table = tmp_path / "data.svm", tmp_path / "by_position.model", tmp_path / "data.tsv"
    svmlight.write_text("1 1:1 2:2\n-1 1:2\n")
    assert "give it a table" in run("predict", svmlight, model, code=65).stderr
    run("train", svmlight, by_position, "-q")
    assert "2 features by position" in run("predict", PENGUINS, by_position, code=65).stderr
    table.write_text("a\tb\n1\t2\n2\t0\n")
    done = run("predict", table, by_position)
    assert done.stdout == run("predict", svmlight, by_position).stdout
    assert "a, b, in this order" in done.stderr
    for arguments in ((svmlight, tmp_path / "m", "--label-column", "y"), (PENGUINS, tmp_path / "m")):
        assert "--label-column" in run("train", *arguments, code=65).stderr


@pytest.mark.slow
def test_options_of_tables(run, tmp_path):
    lines = PENGUINS.read_text().splitlines()
    table = tmp_path / "data.csv"
    table.write_text("\n".join([f"{line},{at if at else 'ring'}" for at, line in enumerate(lines)]))
    names = tmp_path / "names.txt"
    names.write_text("flipper_length_mm\n\nbody_mass_g\nring\n")
    path, again = tmp_path / "m", tmp_path / "again"
    run("train", table, path, *OPTIONS, "--features-from", names, "--drop", "ring", "--missing", "indicator", "-q")
    features = json.loads(run("info", path, "--json").stdout)["features"]
    assert features["names"] == [
        "flipper_length_mm", "flipper_length_mm is missing", "body_mass_g", "body_mass_g is missing",
    ]  # fmt: skip
    done = run("train", table, again, *OPTIONS, "--missing", "refuse", code=65)
    assert "data.csv:5: column 'culmen_length_mm': the cell is missing, and in 1 more (--missing" in done.stderr
    done = run("train", table, again, *OPTIONS, "--encoding", "klingon", code=2)
    assert "unknown encoding: klingon" in done.stderr
    config = tmp_path / "c.toml"
    config.write_text('label-column = "species"\npositive-label = "Gentoo"\ndrop = "ring,sex"\nmax-categories = 2\n')
    run("train", table, again, "--config", config, "-q")
    names = json.loads(run("info", again, "--json").stdout)["features"]["names"]
    assert names[:3] == ["island=Biscoe", "island=Dream", "island is other"]
    assert not {"ring", "sex"} & set(names)


def test_the_best_rows_and_why(model, scores, run, tmp_path):
    """Their numbers, or names where a column has them."""
    values = [float(line) for line in scores.split()]
    order = np.argsort(-np.array(values), kind="stable")[:5].tolist()
    lines = [line.split("\t") for line in run("predict", PENGUINS, model, "--top", "5").stdout.splitlines()]
    assert lines == [[str(row + 1), f"{values[row]:.6g}"] for row in order]
    rows = PENGUINS.read_text().splitlines()
    table = tmp_path / "named.csv"
    table.write_text("\n".join([f"ring,{rows[0]}", *(f"R{at},{row}" for at, row in enumerate(rows[1:]))]))
    done = run("predict", table, model, "--top", "5", "--id-column", "ring", "--explain=2")
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == [f"R{row}" for row in order]
    culmen = rows[1 + order[0]].split(",")[2]
    assert f"culmen_length_mm={float(culmen):.4g} (+" in "\t".join(lines[0])
    assert any("island=Dream (+" in one for one in lines[0])
    for options in (("--top", "3", "--trec-run", "tag"), ("--trec-run", "a b"), ("--trec-run", "a", "--explain")):
        run("predict", table, model, *options, code=2)


def test_reasons_are_the_columns_of_a_table(run, tmp_path, rng):
    """Columns share joint contributions equally; a date, a word and a missing cell are named."""
    lines = []
    for day in range(1, 29):
        for word in ("a", "b", ""):
            number = round(rng.normal(), 3)
            label = int(number + (word == "b") > 1)
            lines.append(f"{'' if rng.random() < 0.2 else number},{word},2024-02-{day:02},{label}")
    (tmp_path / "rows.csv").write_text("\n".join(["number,word,day,y", *lines]))
    options = ("--features", "rules:20:depth=3", "--missing", "indicator", "--bound", "hinge", "-C", 1)
    run("train", "-q", "rows.csv", "m", *options, cwd=tmp_path)
    done = run("predict", "rows.csv", "m", "--top", 84, "--explain", cwd=tmp_path)
    told = [line.split("\t") for line in done.stdout.splitlines()]
    seen = set()
    for row, score, *reasons in told:
        gave = {reason.rpartition(" (")[0]: float(reason.rpartition(" (")[2][:-1]) for reason in reasons}
        assert sum(gave.values()) == pytest.approx(float(score), abs=2e-3)
        number, word, day, _ = lines[int(row) - 1].split(",")
        shown = {"base", f"number={float(number):.4g}" if number else "number is missing"}
        shown |= {f"day={day} or later, Wednesday" if day.endswith("28") else f"day={day}"}
        shown |= {f"word={word}" if word else "word is missing"}
        assert set(gave) <= shown
        seen |= {name.split("=")[0] for name in gave}
    assert {"base", "number", "number is missing", "word", "word is missing"} <= seen
    run("train", "-q", "rows.csv", "linear", "--bound", "hinge", "-C", 1, cwd=tmp_path)
    (tmp_path / "newer.csv").write_text("number,word,day\n0,a,2024-03-01\n")
    assert (
        "\tday=2024-02-28 or later, Friday ("
        in run("predict", "newer.csv", "linear", "--top", 1, "--explain", cwd=tmp_path).stdout
    )
    rows = [f"{a},{b},{int(a * b + a > 1)}" for a, b in rng.normal(size=(80, 2)).round(3)]
    (tmp_path / "pairs.csv").write_text("\n".join(["a,b,y", *rows]))
    run("train", "-q", "pairs.csv", "m", "--features", "products", "--bound", "hinge", "-C", 1, cwd=tmp_path)
    model, first = load_model(tmp_path / "m"), rows[0].split(",")
    usual = [column.fill for column in model.header.features.columns.features]
    (row, at_usual) = model.contributions(np.array([[float(first[0]), float(first[1])], usual]))[0][:]
    of_a, of_b, of_both = row - at_usual
    (tmp_path / "one.csv").write_text("\n".join(["a,b,y", rows[0]]))
    told = run("predict", "one.csv", "m", "--top", 1, "--explain", cwd=tmp_path).stdout
    assert f"a={float(first[0]):.4g} ({of_a + of_both / 2:+.4g})" in told
    assert f"b={float(first[1]):.4g} ({of_b + of_both / 2:+.4g})" in told


def test_the_best_rows_as_a_page(model, scores, run, tmp_path):
    """As the lines have them, with what adds up to their scores, and the positives found so far if labels are there."""
    rows = PENGUINS.read_text().splitlines()
    heading = rows[0].split(",")
    table, page = tmp_path / "named.csv", tmp_path / "list.html"
    table.write_text("\n".join([f"ring,{rows[0]}", *(f"<R{at}>,{row}" for at, row in enumerate(rows[1:]))]))
    options = ("--top", "7", "--id-column", "ring", "--explain=2")
    lines = [line.split("\t") for line in run("predict", table, model, *options).stdout.splitlines()]
    done = run("predict", table, model, *options, "--html", page)
    assert done.stdout == ""
    assert done.stderr.endswith(f"apsvm: page written to {page}\n")
    reader = Reader(page.read_text())
    assert reader.rows[0] == ["place", "row", "score", "label", "found so far", "what put it there"]
    listed = reader.rows[1:]
    assert [row[:2] for row in listed] == [[str(place), line[0]] for place, line in enumerate(lines, 1)]
    for row, line in zip(listed, lines, strict=True):
        gave = [float(number) for number in re.findall(r"\(([+-][^)]*)\)", "\t".join(line[2:]))]
        assert sum(gave) == pytest.approx(float(line[1]), rel=2e-3, abs=1e-3)
        assert all(f"{number:+.4g}" in row[-1] for number in gave[1:])  # the base, that of all rows, is said once
    labels = [row.split(",")[heading.index("species")] == "Chinstrap" for row in rows[1:]]
    found = np.cumsum([labels[int(line[0][2:-1])] for line in lines])
    assert [int(row[4]) for row in listed] == found.tolist()
    assert f"of {sum(labels)} positive rows" in reader.text
    without = tmp_path / "without.csv"
    at = heading.index("species")
    cells = [row.split(",") for row in rows]
    without.write_text("\n".join(",".join([*row[:at], *row[at + 1 :]]) for row in cells))
    run("predict", without, model, "--top", "3", "--html", page)
    assert Reader(page.read_text()).rows[0] == ["place", "row", "score"]
    for options in ((), ("--top", "3", "--trec-run", "tag"), ("--top", "3", "--which")):
        assert run("predict", table, model, "--html", page, *options, code=2).stderr
    assert run("predict", table, model, "scores", "--top", "3", "--html", page, code=2).stderr.count("leave out OUT")


def test_a_trec_run(run, tmp_path):
    rng = np.random.default_rng(3)
    table = tmp_path / "runs.csv"
    lines = [f"{q},d{q}{at},{rng.integers(0, 3)},{rng.normal():.6f}" for q in (7, 3, 5) for at in range(6)]
    table.write_text("\n".join(["topic,docno,relevance,bm25", *lines]))
    path, out = tmp_path / "m", tmp_path / "run.txt"
    options = ("--qid-column", "topic", "--id-column", "docno", "--loss", "ndcg")
    run("train", table, path, *options, "-q")
    run("predict", table, path, out, "--trec-run", "mine")
    result = [line.split() for line in out.read_text().splitlines()]
    assert [line[0] for line in result] == ["7"] * 6 + ["3"] * 6 + ["5"] * 6
    assert [line[3] for line in result] == [*"123456"] * 3
    assert {(line[1], line[5]) for line in result} == {("Q0", "mine")}
    assert all(float(a[4]) >= float(b[4]) for a, b in itertools.pairwise(result) if a[0] == b[0])
    qrels = tmp_path / "qrels.txt"
    fields = [line.split(",") for line in lines]
    qrels.write_text("".join(f"{q} 0 {doc} {grade}\n" for q, doc, grade, _ in fields))
    of_run = json.loads(run("eval", "--qrels", qrels, "--run", out, "-m", "nDCG@3", "--json").stdout)
    of_model = run("eval", table, "--model", path, "-m", "nDCG@3", "--json").stdout
    assert of_run["metrics"]["nDCG@3"] == pytest.approx(json.loads(of_model)["metrics"]["nDCG@3"], abs=1e-12)
    without = tmp_path / "none.csv"
    without.write_text("bm25\n1\n")
    assert "needs queries" in run("predict", without, path, "--trec-run", "t", code=65).stderr


def test_a_folder_of_a_table(model, scores, run, info, tmp_path):
    """It has the names, and what became of the columns; a model finds its features in it."""
    folder, path = tmp_path / "folder", tmp_path / "m"
    run("convert", PENGUINS, folder, "--label-column", "species")
    assert run("predict", folder, model).stdout == scores
    options = ("--positive-label", "Chinstrap", "-C", "10", "--scale", "standard")
    run("train", folder, path, *options, "-q")
    assert info(path).features == info(model).features
    assert run("predict", PENGUINS, path).stdout == scores
    lines = PENGUINS.read_text().splitlines()
    part = tmp_path / "part.csv"
    part.write_text("\n".join([lines[0], *(line for line in lines if "Biscoe" in line)]))
    done = run("convert", part, folder, "--label-column", "species")
    done = run("predict", folder, model, code=65)
    assert done.stderr.endswith(
        ": the model needs the feature 'island=Dream', which this folder lacks: apsvm convert --model MODEL "
        "makes one that has what the model needs\n"
    )
    run("convert", part, folder, "--model", model)
    expected = [score for score, line in zip(scores.split(), lines[1:], strict=True) if "Biscoe" in line]
    assert run("predict", folder, model).stdout.split() == expected
    of_folder, of_part = (
        run("eval", data, "--model", model, "--positive-label", "Adelie").stdout for data in (folder, part)
    )
    assert of_folder == of_part
    labels = folder / "relevance.npy"
    labels.write_bytes(labels.read_bytes()[:-1] + b"\x7f")
    assert "relevance.npy: damaged" in run("predict", folder, model, code=65).stderr


def test_columns_beside_the_best_rows(model, run, tmp_path):
    """--show: cells as they stand in the file, in lines and on the page."""
    with open(PENGUINS, newline="") as stream:
        cells = list(csv.DictReader(stream))
    lines = run("predict", PENGUINS, model, "--top", 4, "--show", "island,culmen_length_mm").stdout.splitlines()
    for line in lines:
        number, _, island, length = line.split("\t")
        assert (island, length) == tuple(cells[int(number) - 1][name] for name in ("island", "culmen_length_mm"))
    run("predict", PENGUINS, model, "--top", 4, "--show", "island", "--html", tmp_path / "page.html")
    assert "<th>island" in (tmp_path / "page.html").read_text().replace(' class="left"', "")
    assert "--show needs --top" in run("predict", PENGUINS, model, "--show", "island", code=2).stderr
    assert "nothere" in run("predict", PENGUINS, model, "--top", 4, "--show", "nothere", code=65).stderr


def test_scores_of_a_table_are_judged_without_a_model(model, run, tmp_path):
    (tmp_path / "scores").write_text(run("predict", PENGUINS, model).stdout)
    options = ("--label-column", "species", "--positive-label", "Chinstrap", "--json", "-m", "AP")
    alone = json.loads(run("eval", PENGUINS, "--scores", tmp_path / "scores", *options).stdout)
    assert alone["metrics"] == json.loads(run("eval", PENGUINS, "--model", model, *options).stdout)["metrics"]
