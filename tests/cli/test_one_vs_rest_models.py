"""Models of apsvm train --one-vs-rest: predict, eval, info and export."""

from __future__ import annotations

import json

import numpy as np
import pytest

from apsvm import load_any_model

#: For what needs some model quickly: by default the bound is chosen.
HINGE = ("--bound", "hinge")


def table(text: str) -> np.ndarray:
    return np.array([[float(word) for word in line.split("\t")] for line in text.splitlines()])


# ------------------------------------------------------------------------------------------------ training


def test_predict(digits, digit_set, run, tmp_path):
    rankers = load_any_model(digit_set)
    text = run("predict", digits.path, digit_set).stdout
    scores = table(text)
    assert np.array_equal(scores, rankers.score(digits.X))
    for label in (0, 9):
        assert np.array_equal(scores[:, label], rankers.ranker(label).score(digits.X))
    named = run("predict", "--header", digits.path, digit_set).stdout
    assert named == "\t".join(map(str, range(10))) + "\n" + text
    assert (np.argmax(scores, axis=1) == digits.labels).mean() > 0.8
    run("train", *HINGE, "-q", digits.path, tmp_path / "one", "--positive-label", "1", "--max-iterations", "1", code=3)
    assert "--header names classes" in run("predict", "--header", digits.path, tmp_path / "one", code=2).stderr


def test_the_best_of_each_class(digits, digit_set, run):
    rankers = load_any_model(digit_set)
    lines = [line.split("\t") for line in run("predict", digits.path, digit_set, "--top", "3").stdout.splitlines()]
    scores = rankers.score(digits.X)
    best = np.argsort(-scores, axis=0, kind="stable")[:3]
    expected = [[f"{label}", f"{at + 1}", f"{scores[at, label]:.6g}"] for label in range(10) for at in best[:, label]]
    assert lines == expected
    explained = run("predict", digits.path, digit_set, "--top", "3", "--explain").stdout
    assert [line.split("\t")[:2] for line in explained.splitlines()] == [line[:2] for line in lines]
    assert "base (" in explained
    for option in ("--header", "--classify"):
        assert f"{option} needs a model" in run("predict", digits.path, digit_set, "--top", "3", option, code=2).stderr


def test_systems_side_by_side(digits, digit_set, run, tmp_path):
    other, scores = tmp_path / "other", tmp_path / "scores"
    run("train", "-q", "--one-vs-rest", digits.path, other, "--loss", "zero-one", "--bias", "1", "-C", "0.1")
    words = ("--model", digit_set, "--model", other)
    found = json.loads(run("eval", digits.path, *words, "--compare", "--confidence", "0.9", "--json").stdout)["systems"]
    first, second = found.values()
    assert first["metrics"] != second["metrics"]
    d = [second["per_class"][str(c)]["AP"] - first["per_class"][str(c)]["AP"] for c in range(10)]
    against = second["against_first"]["AP"]
    assert against["effect"] == pytest.approx(np.mean(d))
    assert (against["better"], against["worse"]) == (sum(x > 0 for x in d), sum(x < 0 for x in d))
    lines = [line.split("\t")[3] for line in run("predict", digits.path, digit_set).stdout.splitlines()]
    scores.write_text("\n".join(lines))
    picked = run("eval", digits.path, "--scores", scores, "--positive-label", "3", "--json").stdout
    assert json.loads(picked)["metrics"] == first["per_class"]["3"]


def test_what_eval_refuses(digits, digit_set, trained, run):
    one = trained(digits)
    message = run("eval", digits.path, "--model", digit_set, "--model", one, code=2).stderr
    assert "ranks several classes and" in message
    run("eval", digits.path, "--model", digit_set, "--relevant-from", "3", code=2)
    done = run("eval", digits.path, "--model", digit_set, "--positive-label", "12", code=65)
    assert done.stderr.endswith(
        ": it has a ranker for each of the classes 0, 1, 2, 3, 4, 5, 6, 7, 8, 9: none of them is 12.0\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--loss", "zero-one", "--bias", "0.5")], ids=["", "with a bias"])
def test_liblinear_classifies_as_we_do(options, digits, run, tmp_path):
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    model, out = tmp_path / "m", tmp_path / "out"
    run("train", *HINGE, "-q", "--one-vs-rest", digits.path, model, *options)
    run("export", model, out, "--format", "liblinear")
    labels, _, values = liblinear.predict([], digits.X.toarray(), liblinear.load_model(str(out)), "-q")
    rankers = load_any_model(model)
    ours = rankers.score(digits.X) - [header.threshold.value for header in rankers.headers]
    assert np.allclose(values, ours, rtol=1e-10, atol=1e-10)
    assert np.array_equal(labels, np.argmax(ours, axis=1))


def test_export_of_one_class(digits, digit_set, run, tmp_path):
    picked = run("export", digit_set, "--format", "liblinear", "--positive-label", "8").stdout
    run("train", *HINGE, "-q", digits.path, tmp_path / "m", "-C", "3", "--positive-label", "8")
    assert picked == run("export", tmp_path / "m", "--format", "liblinear").stdout
    done = run("export", digit_set, "--format", "liblinear", "--positive-label", "0.5", code=65)
    assert done.stderr.endswith(
        ": it has a ranker for each of the classes 0, 1, 2, 3, 4, 5, 6, 7, 8, 9: none of them is 0.5\n"
    )


def test_export_of_labels_that_liblinear_has_not(tagged, run, tmp_path):
    path, _ = tagged
    run("train", *HINGE, "-q", "--one-vs-rest", path, tmp_path / "m")
    assert run("export", tmp_path / "m", "--format", "liblinear", code=65).stderr.endswith(
        ": LIBLINEAR's labels are integers of 32 bits, and 7.5 is none\n"
    )
