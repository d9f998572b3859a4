"""``apsvm compare``: what a new model moves in the first rows, and whether it is better by more than chance."""

from __future__ import annotations

import json

import numpy as np
import pytest

from apsvm.cli.shared import WORSE

ROWS = 300


@pytest.fixture(scope="module")
def models(run, tmp_path_factory):
    """A folder with a table, queries of it, a model of one column and one of both."""
    folder = tmp_path_factory.mktemp("compared")
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, ROWS))
    y = (a + 3.0 * b + rng.normal(size=ROWS) > 3.0).astype(int)
    lines = [f"r{i},{i % 7},{a[i]},{b[i]},{y[i]}\n" for i in range(ROWS)]
    (folder / "rows.csv").write_text("name,qid,a,b,y\n" + "".join(lines))
    (folder / "later.csv").write_text("name,a,b\n" + "".join(f"r{i},{a[i]},{b[i]}\n" for i in range(ROWS)))
    for name, dropped in (("old", "b,qid"), ("new", "qid"), ("old-q", "b"), ("new-q", "a")):
        options = ("--id-column", "name", "--drop", dropped, "--bound", "hinge", "-C", 1)
        run("train", "-q", folder / "rows.csv", folder / name, *options)
    return folder


def scores_of(run, folder, model, data="rows.csv"):
    return np.array(run("predict", folder / data, folder / model).stdout.split(), dtype=float)


def test_what_moved_and_whether_by_chance(run, models):
    said = run("compare", "old", "new", "rows.csv", "--top", 20, cwd=models).stdout
    old, new = (np.argsort(np.argsort(-scores_of(run, models, name))) + 1 for name in ("old", "new"))
    came, went = (new <= 20) & (old > 20), (old <= 20) & (new > 20)
    assert came.sum() > 3
    listed = [line.split() for line in said.splitlines() if line.startswith(("in ", "out "))]
    labels = [line.rsplit(",", 1)[1] for line in (models / "rows.csv").read_text().split()[1:]]
    assert said.splitlines()[0].split() == ["row", "old", "new", "label"]
    assert [row[4] for row in listed] == [("negative", "positive")[int(labels[int(row[1][1:])])] for row in listed]
    assert {row[1] for row in listed if row[0] == "in"} == {f"r{i}" for i in np.flatnonzero(came)}
    assert {row[1] for row in listed if row[0] == "out"} == {f"r{i}" for i in np.flatnonzero(went)}
    assert all((int(row[2]), int(row[3])) == (old[int(row[1][1:])], new[int(row[1][1:])]) for row in listed)
    moves = [abs(int(row[2]) - int(row[3])) for row in listed if row[0] == "in"]
    assert moves == sorted(moves, reverse=True)
    assert f"{came.sum()} of 20 rows are new" in said
    arguments = ("eval", "rows.csv", "--model", "old", "--model", "new", "--compare", "--confidence", ".95", "--json")
    judged = json.loads(run(*arguments, "-m", "AP", "-m", "P@20", cwd=models).stdout)["systems"]["new"]
    against = judged["against_first"]["AP"]
    assert against["p"] < 0.05
    assert f"AP: NEW is {against['effect']:.4f} better, more than chance (p = {against['p']:.3g})" in said
    found = round(20 * judged["metrics"]["P@20"])
    assert f"{found} by NEW" in said
    (models / "copy").write_bytes((models / "old").read_bytes())
    moved, copied = (run("compare", "old", name, "rows.csv", "--top", 1, cwd=models).stdout for name in ("new", "copy"))
    assert "1 of 1 rows are new" in moved
    assert "0 of 1 rows are new" in copied
    back = run("compare", "new", "old", "rows.csv", code=WORSE, cwd=models).stdout
    assert "better" not in back
    assert f"AP: NEW is {against['effect']:.4f} worse" in back


def test_first_rows_of_each_query(run, models):
    said = run("compare", "old-q", "new-q", "rows.csv", "--top", 5, cwd=models).stdout
    assert "the first 5 of each query: " in said
    assert " of 35 rows are new" in said
    listed = [line.split() for line in said.splitlines() if line.startswith("in ")]
    assert len(listed) > 7
    assert all(int(row[2][1:]) % 7 == int(row[1]) and int(row[3]) > 5 >= int(row[4]) for row in listed)


def test_rows_without_labels(run, models):
    done = run("compare", "old", "new", "later.csv", cwd=models)
    assert "the first 100: " in done.stdout
    assert "AP" not in done.stdout
    assert done.stderr.endswith("only places are compared\n")
    # Some rows have labels: as good as none, by the same reading.
    rows = (models / "rows.csv").read_text().splitlines()
    (models / "undecided.csv").write_text("\n".join([rows[0], rows[1][:-1], *rows[2:]]))
    again = run("compare", "old", "new", "undecided.csv", cwd=models)
    assert again.stdout == done.stdout
    assert again.stderr.endswith("only places are compared\n")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("old", "old", "rows.csv"), 2, "error: OLD and NEW are the same file"),
        (("old", "new", "-"), 2, "error: DATA may be read once for each model: name a file"),
        (
            ("old", "classes", "rows.csv"),
            65,
            "error: classes: it is a set of rankers, one a class (--one-vs-rest): compare is for models of one ranking",
        ),
        (("old", "new", "no.csv"), 66, "error: cannot read no.csv: No such file or directory"),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else None,
)
def test_what_cannot_be_compared(arguments, code, words, run, models):
    if not (models / "classes").exists():
        run("train", "-q", models / "rows.csv", models / "classes", "--one-vs-rest", "--id-column", "name")
    assert run("compare", *arguments, code=code, cwd=models).stderr.endswith(f"{words}\n")
