"""A newcomer's trainer, one file (``tests/newcomer.py``) and one line in the registry: what it is then part of."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from newcomer import Perceptron, PerceptronSettings
from newcomers import LINE, dumped
from sklearn.metrics import average_precision_score
from trainings import training_set

from apsvm import load_any_model, load_model
from apsvm.trainers import known_losses, trainer_of
from apsvm.trainers.base import Watch
from apsvm.trainers.settings import SettingsError


def by_hand(X, relevant, passes=200, margin=0.1):
    """The same in plain Python, one query."""
    w, total, number = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0
    for _ in range(passes):
        scores = X @ w
        pos, neg = (max(np.flatnonzero(which), key=lambda row: sign * scores[row]) for which, sign in
                    ((relevant, -1), (~relevant, 1)))  # fmt: skip
        wrong = scores[pos] - scores[neg] <= margin
        w = w + (X[pos] - X[neg] if wrong else 0.0)
        total, number = total + w, number + 1
        if not wrong:
            break
    return total / number


def test_its_file_is_short():
    source = Path(sys.modules[Perceptron.__module__].__file__).read_text()
    assert len(source.splitlines()) <= 80


def test_it_trains_in_python(rows):
    X, relevant, _ = rows
    (outcome,) = Perceptron("perceptron", PerceptronSettings(margin=0.5)).train(training_set(X, relevant), Watch())
    np.testing.assert_allclose(outcome.w, by_hand(X, relevant, margin=0.5), rtol=1e-12)
    with pytest.raises(SettingsError, match=r"expected margin to be a finite number of at least 0, found -1"):
        PerceptronSettings(margin=-1.0)


def test_without_the_line_it_is_unknown():
    assert "perceptron" not in known_losses()


def test_the_registry(registered):
    assert "perceptron" in known_losses()
    assert trainer_of("perceptron") is Perceptron


def test_train_predict_eval_info_export(rows, run, tmp_path):
    X, relevant, data = rows
    model = tmp_path / "m.model"
    options = ("--loss", "perceptron", "--margin", 0.3, "--passes", 50, "--scale", "none")
    _, said = run("train", *options, "--log", tmp_path / "log", data, model)
    ranker = load_model(model)
    header = ranker.header
    ap = average_precision_score(relevant, ranker.score(X))
    assert "apsvm: all passes done after 50 iterations\n" in said
    assert f"apsvm: training AP {ap:.6f} ({relevant.sum()} of 60 rows positive)\n" in said
    np.testing.assert_allclose(ranker.coef, by_hand(X, relevant, 50, 0.3), rtol=1e-9)
    assert (header.family, header.loss, header.metric) == ("perceptron", "perceptron", "AP")
    assert (header.settings, header.seed) == ({"margin": 0.3, "passes": 50}, 0)
    assert (header.data.rows, header.data.positives, header.data.queries) == (60, relevant.sum(), 1)
    assert (header.state, header.as_asked) == ("all passes done", True)
    first, *records, last = (json.loads(line) for line in (tmp_path / "log").read_text().splitlines())
    assert (first["event"], first["loss"], first["margin"], first["n_rows"]) == ("start", "perceptron", 0.3, 60)
    assert [record["number"] for record in records] == list(range(1, 51))
    assert (last["event"], last["state"]) == ("end", "all passes done")

    scores = np.array([float(line) for line in run("predict", data, model)[0].splitlines()])
    np.testing.assert_array_equal(scores, ranker.score(X))
    judged = json.loads(run("eval", data, "--model", model, "--json")[0])
    assert judged["metrics"]["AP"] == pytest.approx(average_precision_score(relevant, scores), rel=1e-12)
    told = json.loads(run("info", "--json", model)[0])
    assert (told["family"], told["settings"]) == ("perceptron", {"margin": 0.3, "passes": 50})
    words = " ".join(run("info", model)[0].split())
    assert "trainer perceptron metric AP" in words
    assert "settings passes: 50; margin: 0.3" in words
    assert "The training ended after 50 iterations (all passes done)." in words
    assert "nr_feature 3\n" in run("export", model, "--format", "liblinear")[0]


def test_the_display_and_the_limits(rows, run, info_of, tmp_path):
    _, _, data = rows
    model = tmp_path / "m"
    _, said = run("train", "-v", "--loss", "perceptron", "--passes", 3, data, model)
    heading, *lines = [line for line in said.splitlines() if not line.startswith("apsvm: ")]
    assert heading.split() == ["pass", "wrong"]
    assert [line.split()[0] for line in lines] == ["1", "2", "3"]
    _, said = run("train", "--loss", "perceptron", "--time-limit", 0, data, model, code=3)
    assert (info_of(model).state, info_of(model).as_asked) == ("time limit", False)
    assert "time limit after 1 iterations" in said


def test_warm_start_scale_bias_and_queries(rng, rows, run, info_of, tmp_path):
    X, relevant, data = rows
    options = ("-q", "--loss", "perceptron", "--passes", 7)
    run("train", *options, data, tmp_path / "first")
    run("train", *options, "--warm-start", tmp_path / "first", data, tmp_path / "second")
    first, second = (load_model(tmp_path / name).coef for name in ("first", "second"))
    assert not np.array_equal(first, second)
    run("train", *options, "--scale", "standard", "-B", 1, data, tmp_path / "scaled")
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = by_hand(scaled, relevant, 7) / X.std(axis=0)
    np.testing.assert_allclose(load_model(tmp_path / "scaled").coef, expected, rtol=1e-9)
    queries = np.repeat([3, 4, 9], 20)
    relevant = relevant & (queries != 9)
    dumped(data, X, np.where(relevant, 1, -1), queries)
    run("train", *options, data, tmp_path / "queries")
    assert (info_of(tmp_path / "queries").data.queries, info_of(tmp_path / "queries").data.queries_skipped) == (2, 1)
    dumped(data, X, np.where(relevant, 1, -1), np.arange(60))
    assert "no query has both a positive and a negative row" in run("train", *options, data, tmp_path / "m", code=65)[1]


def test_one_against_the_rest(rng, run, info_of, tmp_path):
    """Each class as alone, to the last bit."""
    X = rng.normal(size=(60, 3))
    labels = 1 + (X @ rng.normal(size=(3, 3)) + 0.3 * rng.normal(size=(60, 3))).argmax(axis=1)
    data = dumped(tmp_path / "data.svm", X, labels)
    options = ("--loss", "perceptron", "--passes", 20)
    _, said = run("train", *options, "--one-vs-rest", data, tmp_path / "all")
    assert "3 classes: 3 all passes done" in said
    together = load_any_model(tmp_path / "all")
    for label in together.classes.tolist():
        run("train", "-q", *options, "--positive-label", label, data, tmp_path / "alone")
        alone = load_model(tmp_path / "alone")
        np.testing.assert_array_equal(together.ranker(label).coef, alone.coef)
        assert together.ranker(label).header == alone.header


def test_cross_validation(rows, run, info_of, tmp_path):
    """Over the grid that its settings declare, where none is named."""
    X, relevant, data = rows
    options = ("--loss", "perceptron", "--folds", 3, "--passes", 9, "--scale", "none")
    out, _ = run("cv", *options, data, "-o", tmp_path / "m", "--json", "-")
    margins = [settings["margin"] for settings in json.loads(out)["settings"]]
    assert margins == [0.01, 0.1, 1.0]
    chosen = info_of(tmp_path / "m")
    assert (chosen.settings["passes"], chosen.selection["folds"]) == (9, 3)
    assert chosen.settings["margin"] in margins
    expected = by_hand(X, relevant, 9, chosen.settings["margin"])
    np.testing.assert_allclose(load_model(tmp_path / "m").coef, expected, rtol=1e-9)
    run("cv", "--loss", "perceptron", "--folds", 3, "--margin", "0.2,0.4", data, "-o", tmp_path / "m")
    assert info_of(tmp_path / "m").settings["margin"] in (0.2, 0.4)


@pytest.mark.slow
def test_report(rows, run, tmp_path):
    pytest.importorskip("matplotlib")
    _, _, data = rows
    run("train", "-q", "--loss", "perceptron", "--passes", 9, "--run-dir", tmp_path / "run", data)
    run("report", tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text()
    for name, value in (("loss", "perceptron"), ("passes", "9"), ("margin", "0.1")):
        assert f"<dt>{name}</dt><dd>{value}</dd>" in page
    assert "all passes done" in page


def test_help(run):
    text = " ".join(run("train", "--help-all")[0].split())
    assert "Perceptron (--loss perceptron)" in text
    passes, margin = (text[text.index(f" {flag} ") :] for flag in ("--passes INTEGER RANGE", "--margin NUMBER"))
    assert re.match(r"[^[]*Corrections of each query, at most\.[^[]* \[default: ([^]]*perceptron )?200\b", passes)
    assert re.match(r"[^[]*How far ahead a positive must be\.[^[]* \[default: ([^]]*perceptron )?0\.1\b", margin)
    assert "|perceptron|" in text.replace(" ", "")


def test_options_of_others_are_refused(rows, run, tmp_path):
    _, _, data = rows
    said = run("train", "--loss", "ap", "--margin", 1, data, tmp_path / "m", code=2)[1]
    assert re.search(r"--margin is not for --loss ap: it is for (.* and )?Perceptron \(--loss perceptron\)", said)
    said = run("train", "--loss", "perceptron", "-C", 1, data, tmp_path / "m", code=2)[1]
    assert re.search(r"--C is not for --loss perceptron: it is for (.* and )?Structured SVM", said)
    said = run("train", "--loss", "perceptron", "--margin", -1, data, tmp_path / "m", code=2)[1]
    assert "expected a finite number of at least 0, found '-1'" in said
    assert "did you mean 'perceptron'?" in run("train", "--loss", "perceptrom", data, tmp_path / "m", code=2)[1]


def test_help_loads_nothing_heavy_with_it():
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from apsvm.trainers import TRAINERS\n"
        f"TRAINERS._places.update({LINE!r})\n"
        "from apsvm.cli.commands.train import train\n"
        "assert any(param.name == 'margin' for param in train.params)\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'cvxpy', 'joblib'} & set(sys.modules)\n"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
