"""``apsvm export --format python``: a file of standard Python that answers as ``apsvm predict`` does."""

from __future__ import annotations

import ast
import csv
import gzip
import sys
import time
from datetime import UTC, date, datetime, timedelta, timezone
from types import SimpleNamespace

import numpy as np
import pytest
from pages import ROOT

from apsvm import load_model
from apsvm.models.averages import average_of

HINGE = ("--bound", "hinge", "-C", 1)
OF_TABLES = [
    (*HINGE, "--threshold", "f1", "--calibrate", "isotonic"),
    (*HINGE, "--missing", "indicator", "--threshold", "f1", "--calibrate", "platt"),
    (*HINGE, "--features", "piecewise:3", "--scale", "l2", "--max-categories", "2"),
    (*HINGE, "--features", "rules:20:depth=3"),
    (*HINGE, "--features", "products"),
    (*HINGE, "--features", "nystroem:15"),
    ("--components", "2", "-C", "1"),
    ("--one-vs-rest", "--label-column", "kind", *HINGE, "--threshold", "f1", "--calibrate", "platt"),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A folder with rows of numbers, words, dates and missing cells."""
    folder, rng = tmp_path_factory.mktemp("standalone"), np.random.default_rng(3)
    lines = []
    for at in range(150):
        paid, age, day = rng.lognormal(3), rng.integers(18, 80), datetime(2023, 1, 1) + timedelta(rng.uniform(0, 600))
        city = rng.choice(["Rome", "Oslo", "Bonn", "7", ""])
        y = paid * (city == "Oslo") + rng.lognormal(2) > 12
        cells = [
            f"${paid:,.2f}",
            "" if rng.random() < 0.2 else age,
            city,
            f"{day:%d.%m.%Y %H:%M}" * (at % 9 > 0),
            rng.random() < 0.3,
        ]
        cells.append(f"{day:%I:%M %p}" * (at % 11 > 0))
        lines.append([*map(str, cells), rng.choice(["a", "b", "c"]), "yes" if y else "no"])
    with open(folder / "rows.csv", "w", newline="") as file:
        csv.writer(file).writerows([["paid", "age", "city", "day", "new", "at", "kind", "y"], *lines])
    return folder


def exported(run, model, *options):
    """The names in the file, which imports nothing but the standard library."""
    code = run("export", model, "--format", "python", *options).stdout
    imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [getattr(node, "module", None) or node.names[0].name for node in imports]
    assert set(names) <= {*sys.stdlib_module_names, "collections.abc"}
    space: dict[str, object] = {"__name__": "scorer"}
    exec(compile(code, "scorer.py", "exec"), space)
    return SimpleNamespace(**space)


def rows_of(path):
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path, newline="") as file:
        return list(csv.DictReader(file))


def numbers(text):
    return np.array([line.split("\t") for line in text.splitlines()], dtype=float)


@pytest.mark.parametrize("options", OF_TABLES, ids=lambda options: " ".join(map(str, options)))
def test_a_row_s_score_is_that_of_predict(options, table, run):
    data, model = table / "rows.csv", table / "model"
    run("train", "-q", data, model, *(() if "--one-vs-rest" in options else ("--label-column", "y")), *options)
    scorer, rows = exported(run, model), rows_of(data)
    of_classes = "--one-vs-rest" in options
    scores = [list(one.values()) if of_classes else [one] for one in map(scorer.score, rows)]
    expected = numbers(run("predict", data, model).stdout)
    tolerance = 1e-9 if "nystroem:15" in options else 1e-12  # of the inverse root of a kernel
    np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance)
    assert np.ptp(expected) > 0.01
    if "--calibrate" in options:
        likely = [list(one.values()) if of_classes else [one] for one in map(scorer.probability, rows)]
        np.testing.assert_allclose(likely, numbers(run("predict", data, model, "--probability").stdout), atol=1e-12)
    else:
        with pytest.raises(ValueError, match="no probabilities"):
            scorer.probability(rows[0])
    if "--threshold" in options:
        assert list(map(scorer.label, rows)) == run("predict", data, model, "--classify").stdout.splitlines()


@pytest.mark.slow
def test_real_rows(run, tmp_path):
    penguins = ("--label-column", "species", "--positive-label", "Gentoo")
    mammography = ("--label-column", "calcification", "--id-column", "image")
    for source, options in (("penguins.csv", penguins), ("mammography_train.csv.gz", mammography)):
        data, model = ROOT / "examples" / source, tmp_path / "model"
        run("train", "-q", data, model, *HINGE, "--features", "rules:50", *options)
        scores = list(map(exported(run, model).score, rows_of(data)))
        np.testing.assert_allclose(scores, numbers(run("predict", data, model).stdout)[:, 0], rtol=1e-12, atol=1e-12)


def test_an_average(table, run):
    data, parts = table / "rows.csv", []
    for features in ("linear", "piecewise:3"):
        run("train", "-q", data, table / "part", *HINGE, "--features", features, "--label-column", "y")
        parts.append(load_model(table / "part"))
    average_of(parts, [0.5, 2.0]).save(table / "average")
    scores = list(map(exported(run, table / "average").score, rows_of(data)))
    np.testing.assert_allclose(scores, numbers(run("predict", data, table / "average").stdout)[:, 0], rtol=1e-12)


@pytest.fixture
def in_tokyo(monkeypatch):
    """The time zone of this process."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


def test_values_of_python(table, run, in_tokyo):
    data, model = table / "rows.csv", table / "values"
    run("train", "-q", data, model, *HINGE, "--label-column", "y")
    scorer = exported(run, model)
    as_text = {"paid": "$1,234.50", "age": "NA", "city": "7.0", "day": "31.12.2023 22:30", "new": "TRUE", "kind": " b"}
    as_text["at"] = "10:30 p.m."
    moment = datetime(2023, 12, 31, 23, 30, tzinfo=timezone(timedelta(hours=1)))
    values = {"paid": 1234.5, "age": float("nan"), "city": 7, "day": moment, "new": True, "kind": "b", "more": 0}
    values["at"] = moment.astimezone(UTC).time()
    assert scorer.score(as_text) == pytest.approx(scorer.score(values), abs=1e-13)
    at_five = {**values, "day": datetime(2023, 12, 31, 5, 7, 9)}
    assert scorer.score(at_five) == scorer.score({**values, "day": "31.12.2023 05:07:09"})
    assert scorer.score({**values, "day": date(2023, 12, 31)}) == scorer.score({**as_text, "day": "31.12.2023"})
    wrong = [("age", "old", "expected a number, found 'old'"), ("paid", "inf", "expected a number, found 'inf'"),
             ("day", "2023-13-01", "expected a date such as 31/03"), ("at", "24:00", "expected a date such as 17"),
             ("age", 1e999, "expected a number"),
             ("age", [1], "expected a number"), ("age", 10**400, "expected a number")]  # fmt: skip
    for column, cell, words in wrong:
        with pytest.raises(ValueError, match=f"column '{column}': {words}"):
            scorer.score({**values, column: cell})
    with pytest.raises(ValueError, match="lacks the column 'age'"):
        scorer.score({"paid": 1})


def test_rows_by_number(cancer, trained, run):
    path = trained(cancer, "--bound", "hinge")
    scorer, expected = exported(run, path), numbers(run("predict", cancer.path, path).stdout)[:5, 0]
    X = cancer.X.toarray()[:5]
    np.testing.assert_allclose([scorer.score(row) for row in X.tolist()], expected, rtol=1e-12)
    by_number = [{j + 1: value for j, value in enumerate(row) if value} for row in X.tolist()]
    assert [scorer.score(row) for row in by_number] == [scorer.score(row) for row in X.tolist()]
    with pytest.raises(ValueError, match="no feature 999"):
        scorer.score({999: 1.0})
    with pytest.raises(ValueError, match="expected 30 numbers, found 1"):
        scorer.score([1.0])
    with pytest.raises(ValueError, match="expected finite numbers, found None"):
        scorer.score({1: None})


def test_unit_rows_of_any_size(run, tmp_path):
    rows = [{1: size * a, 2: size * b} for size in (1.0, 1e180, 1e-200) for a, b in ((1.0, 2.0), (-1.0, 3.0))]
    lines = [f"{1 - 2 * (row[1] < 0)} 1:{row[1]!r} 2:{row[2]!r}\n" for row in rows]
    (tmp_path / "rows").write_text("".join(lines))
    run("train", "-q", "rows", "m", *HINGE, "--scale", "l2", cwd=tmp_path)
    expected = numbers(run("predict", "rows", "m", cwd=tmp_path).stdout)[:, 0]
    np.testing.assert_allclose(list(map(exported(run, tmp_path / "m").score, rows)), expected, rtol=1e-12)


def test_what_has_no_such_file(run, tmp_path):
    (tmp_path / "bags").write_text("1 bag:1 1:1\n1 bag:1 1:2\n-1 bag:2 1:0\n1 bag:3 1:2\n-1 bag:4 1:1\n")
    run("train", "-q", "bags", "m", "--pool", "mean", *HINGE, cwd=tmp_path)
    assert run("export", "m", "--format", "python", code=65, cwd=tmp_path).stderr.endswith(
        "error: m: it ranks bags (--pool), and --format python scores single rows\n"
    )
    (tmp_path / "users").write_text("0 1:1 2:1\n0 2:1 3:1\n0 1:1 3:1\n")
    run("train", "-q", "users", "items", "--loss", "warp", "--rows-as-users", cwd=tmp_path)
    assert run("export", "items", "--format", "python", code=65, cwd=tmp_path).stderr.endswith(
        "error: items: expected a linear ranker, found a ranker of items for users (--rows-as-users)\n"
    )
