"""A newcomer's trainer, one file (``tests/newcomer.py``) and one line in the registry: what it is then part of."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from newcomer import Perceptron, PerceptronSettings
from sklearn.metrics import average_precision_score
from trainings import training_set

from apsvm import load_model
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
    _, said = run("train", "-v", *options, "--log", tmp_path / "log", data, model)
    ranker = load_model(model)
    header = ranker.header
    ap = average_precision_score(relevant, ranker.score(X))
    assert "apsvm: all passes done after 50 iterations\n" in said
    assert f"apsvm: training AP {ap:.6f}\n" in said
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
    assert "settings passes: 50; margin: 0.3" in words
    assert "all passes done after 50 iterations" in words
    assert "nr_feature 3\n" in run("export", model, "--format", "liblinear")[0]


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
