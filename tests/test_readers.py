"""The readers of exported JSON in docs/answers.md answer as ``apsvm predict`` does: in JavaScript, and in SQL."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from command import in_process

PAGE = (Path(__file__).parents[1] / "docs" / "answers.md").read_text(encoding="utf-8")
JAVASCRIPT, SQL = (re.search(rf"^```{name}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[1] for name in ("js", "sql"))
MAIN = """
const fs = require("fs"), [model, rows] = process.argv.slice(2).map(path => JSON.parse(fs.readFileSync(path)));
console.log(JSON.stringify(rows.map(row => answer(model, row))));
"""
node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def apsvm(*arguments) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("APSVM")}
    done = in_process([*map(str, arguments)], env=kept)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


@pytest.fixture
def payments(tmp_path, rng):
    """The rows of a table with words and missing cells; new ones have words that no row of training has."""

    def write(path: Path, n: int, countries: list[str]) -> list[dict[str, str]]:
        amount, country = rng.normal(size=n), rng.choice(countries, size=n)
        fraud = amount + 2.0 * (country == "XX") + 0.5 * rng.normal(size=n) > 1.5
        rows = [
            {
                "id": str(number),
                "amount": "" if rng.random() < 0.1 else repr(value),
                "country": "" if rng.random() < 0.1 else where,
                "fraud": str(int(is_fraud)),
            }
            for number, (value, where, is_fraud) in enumerate(
                zip(amount.tolist(), country.tolist(), fraud.tolist(), strict=True), 1
            )
        ]
        with open(path, "w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        return rows

    write(tmp_path / "payments.csv", 150, ["DK", "SE", "XX", "NO"])
    return tmp_path, write(tmp_path / "new.csv", 60, ["DK", "XX", "new"])


def exported(folder: Path, *options: str) -> tuple[dict, list[list[str]]]:
    """The model as JSON, and what ``apsvm predict`` says of the new rows: score, label and probability."""
    model = folder / "payments.model"
    about = ("--label-column", "fraud", "--drop", "id", "--positive-label", "1", "--max-categories", "3")
    apsvm("train", "-q", folder / "payments.csv", model, "--bound", "hinge", *about, *options)
    apsvm("export", model, folder / "payments.json", "--format", "json")
    scores = apsvm("predict", folder / "new.csv", model).split()
    answers = apsvm("predict", folder / "new.csv", model, "--classify", "--probability").splitlines()
    lines = [[score, *line.split("\t")] for score, line in zip(scores, answers, strict=True)]
    assert len({label for _, label, _ in lines}) == 2
    return json.loads((folder / "payments.json").read_text(encoding="utf-8")), lines


@node
@pytest.mark.parametrize(
    "options",
    [
        ("--threshold", "f1", "--calibrate", "isotonic"),
        ("--features", "piecewise:3", "--scale", "l2", "--calibrate", "platt", "--missing", "indicator"),
    ],
    ids=" ".join,
)
def test_in_javascript(options, payments):
    folder, rows = payments
    model, expected = exported(folder, *options)
    (folder / "answer.js").write_text(JAVASCRIPT + MAIN, encoding="utf-8")
    (folder / "rows.json").write_text(json.dumps(rows))
    command = ["node", "answer.js", "payments.json", "rows.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    answers = json.loads(done.stdout)
    assert [answer["label"] for answer in answers] == [label for _, label, _ in expected]
    if "platt" in options:  # some of these rows are beyond those held out
        probability = model["rankers"][0]["probability"]
        assert {answer["probability"] for answer in answers} & {probability["lower"], probability["upper"]}
    for name, at in (("score", 0), ("probability", 2)):
        found = [answer[name] for answer in answers]
        np.testing.assert_allclose(found, [float(line[at]) for line in expected], rtol=1e-9, atol=1e-12)


@pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 38), reason="the operators -> and ->> came with SQLite 3.38")
@pytest.mark.parametrize("missing", ["median", "indicator", "zero"])
def test_in_sql(missing, payments):
    folder, rows = payments
    model, expected = exported(folder, "--threshold", "f1", "--calibrate", "platt", "--missing", missing)
    assert [column["kind"] for column in model["table"]] == ["number", "category"]
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE payments (id INTEGER, amount REAL, country TEXT)")
        for row in rows:
            values = int(row["id"]), float(row["amount"]) if row["amount"] else None, row["country"]
            database.execute("INSERT INTO payments VALUES (?, ?, ?)", values)
        answers = database.execute(SQL, {"model": json.dumps(model)}).fetchall()
    assert [score for _, score, _ in answers] == sorted((score for _, score, _ in answers), reverse=True)
    by_id = {number: (score, is_positive) for number, score, is_positive in answers}
    scores, positive = zip(*(by_id[int(row["id"])] for row in rows), strict=True)
    np.testing.assert_allclose(scores, [float(score) for score, _, _ in expected], rtol=1e-9, atol=1e-12)
    assert list(positive) == [int(label) for _, label, _ in expected]
