"""``--keep-if-worse OLD ROWS``: a worse model is not written, and says so by an exit code of its own."""

from __future__ import annotations

import json

import numpy as np
import pytest

from apsvm.cli.shared import WORSE


@pytest.fixture(scope="module")
def models(run, tmp_path_factory):
    """A folder with rows, rows held out, and a model of one of two columns."""
    folder = tmp_path_factory.mktemp("guarded")
    rng = np.random.default_rng(4)
    for name in ("rows.csv", "held.csv", "before.csv"):
        a, b = rng.normal(size=(2, 200))
        y = (a + 3.0 * b + rng.normal(size=200) > 3.0).astype(int)
        lines = [f"{a[i]},{b[i]},{y[i]}\n" for i in range(200)]
        (folder / name).write_text("a,b,y\n" + "".join(lines))
    for name, dropped in (("worse", "b"), ("better", "a")):
        run("train", "-q", folder / "before.csv", folder / name, "--bound", "hinge", "-C", 1, "--drop", dropped)
    (folder / "unlike.csv").write_text("b,y\n1,0\n2,1\n")
    (folder / "alike.csv").write_text("a,b,y\n1,2,0\n2,3,0\n")
    return folder


TRAIN = ("train", "rows.csv", "new", "--bound", "hinge", "-C", 1)
CV = ("cv", "rows.csv", "-o", "new", "--bound", "hinge", "-C", 1, "--folds", 2)


@pytest.mark.parametrize("command", [TRAIN, CV], ids=["train", "cv"])
def test_the_better_of_two_stays(command, run, models):
    (models / "new").write_bytes((models / "better").read_bytes())
    done = run(*command, "--drop", "b", "--keep-if-worse", "new", "held.csv", code=WORSE, cwd=models)
    assert (models / "new").read_bytes() == (models / "better").read_bytes()
    old = json.loads(run("eval", "held.csv", "--model", "better", "--json", cwd=models).stdout)["metrics"]["AP"]
    assert f", that of new {old:.6f}" in done.stderr
    assert "no model written: AP on held.csv is " in done.stderr
    run(*command, "-q", "--keep-if-worse", "worse", "held.csv", cwd=models)
    assert (models / "new").read_bytes() != (models / "better").read_bytes()
    (models / "c.toml").write_text('keep_if_worse = ["worse", "held.csv"]\n')
    run(*command, "-q", "--drop", "b", "--config", "c.toml", cwd=models)  # as good
    (models / "c.toml").write_text('keep_if_worse = ["worse"]\n')
    assert (
        "'keep_if_worse' must be a list of 2 strings" in run(*command, "--config", "c.toml", code=2, cwd=models).stderr
    )


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            (*TRAIN, "--keep-if-worse", "worse", "before.csv"),
            65,
            "error: before.csv: worse is trained on these rows, which flatter it",
        ),
        (
            (*TRAIN, "--keep-if-worse", "worse", "rows.csv"),
            65,
            "error: rows.csv: the new model is trained on these rows, which flatter it",
        ),
        (
            (*TRAIN, "--drop", "c", "--keep-if-worse", "worse", "unlike.csv"),
            65,
            "error: unlike.csv: the model needs the column 'a', and the file has only b, y",
        ),
        (
            (*TRAIN, "--drop", "c", "--keep-if-worse", "worse", "alike.csv"),
            65,
            "error: alike.csv: there are no positive rows (0 positive, 2 negative); a ranking needs both",
        ),
        ((*TRAIN, "--keep-if-worse", "worse", "no.csv"), 66, "error: cannot read no.csv: No such file or directory"),
        ((*TRAIN, "--keep-if-worse", "no", "held.csv"), 66, "error: cannot read no: No such file or directory"),
        ((*TRAIN, "--keep-if-worse", "worse", "-"), 2, "Error: --keep-if-worse names two files: OLD and ROWS"),
        (
            (*TRAIN, "--one-vs-rest", "--keep-if-worse", "worse", "held.csv"),
            2,
            "Error: of worse and the new model one ranks classes, and the other does not",
        ),
        (
            (*TRAIN[:-1], "1,2", "--keep-if-worse", "worse", "held.csv"),
            2,
            "Error: --keep-if-worse is for one model: give one value of -C",
        ),
        (
            ("train", "rows.csv", "held.csv", "--keep-if-worse", "worse", "held.csv"),
            2,
            "Error: 'held.csv' is the judged rows file: it would be overwritten",
        ),
        (
            ("cv", "rows.csv", "-o", "held.csv", "--keep-if-worse", "worse", "held.csv"),
            2,
            "Error: 'held.csv' is the judged rows file: it would be overwritten",
        ),
        (
            (*TRAIN, "--log", "worse", "--keep-if-worse", "worse", "held.csv"),
            2,
            "Error: 'worse' is the old model file: it would be overwritten",
        ),
        (
            ("cv", "rows.csv", "-C", "1", "--keep-if-worse", "worse", "held.csv"),
            2,
            "Error: --keep-if-worse is for the model that -o writes",
        ),
    ],
)
def test_what_cannot_be_judged(arguments, code, words, run, models):
    said = run(*arguments, code=code, cwd=models).stderr
    assert said.endswith(f"{words}\n")
    assert "converged" not in said
