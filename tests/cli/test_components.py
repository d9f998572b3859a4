"""``--components`` on the command line: training, scoring, explaining, exporting, reporting."""

from __future__ import annotations

import json

import numpy as np
import pytest

from apsvm import load_any_model
from apsvm.models.components import ComponentRanker


@pytest.fixture
def two_kinds(tmp_path, rng):
    """A file of positives of two kinds, and its matrix."""
    X = np.round(rng.normal(size=(300, 4)), 3)
    X[:15, 0] += 4.0
    X[15:30, 1] += 4.0
    path = tmp_path / "two.svm"
    _write(path, np.where(np.arange(300) < 30, 1, -1), X)
    return path, X


def _write(path, labels, X) -> None:
    lines = (
        f"{y} " + " ".join(f"{j}:{x:g}" for j, x in enumerate(row, start=1)) for y, row in zip(labels, X, strict=True)
    )
    path.write_text("".join(f"{line}\n" for line in lines))


def test_train_predict_eval_info(two_kinds, run, tmp_path):
    path, X = two_kinds
    model, linear = tmp_path / "m", tmp_path / "linear"
    done = run("train", "-v", path, model, "--components", 2, "--scale", "standard", "-C", 1000)
    assert "stationary point" in done.stderr
    run("train", "-q", path, linear, "--scale", "standard", "-C", 1000)
    ranker = load_any_model(model)
    assert isinstance(ranker, ComponentRanker)
    scores = np.array([float(line) for line in run("predict", path, model).stdout.splitlines()])
    np.testing.assert_allclose(scores, (X @ ranker.coef.T + ranker.intercepts).max(axis=1), rtol=1e-9)
    both = run("eval", path, "--model", model, "--model", linear, "-m", "AP", "--json").stdout
    of_two, of_one = (system["AP"] for system in _figures(json.loads(both)))
    assert of_two > of_one + 0.05
    assert "a ranker of several components" in run("info", model).stdout
    assert len(json.loads(run("info", model, "--json").stdout)["components"]) == 2


def _figures(content) -> list[dict]:
    """Objects with an AP, in order, wherever they are."""
    if isinstance(content, dict):
        if isinstance(content.get("AP"), float):
            return [content]
        content = list(content.values())
    return [one for part in content if isinstance(part, dict | list) for one in _figures(part)]


def test_json_has_all_that_scoring_takes(two_kinds, run, tmp_path):
    path, X = two_kinds
    model = tmp_path / "m"
    run("train", "-q", path, model, "--components", 3, "-C", 100)
    (ranker,) = json.loads(run("export", model, "--format", "json").stdout)["rankers"]
    scores = [X @ part["coef"] + part["intercept"] for part in ranker["components"]]
    np.testing.assert_allclose(np.max(scores, axis=0), load_any_model(model).score(X), rtol=1e-12)
    assert "several components" in run("export", model, "--format", "liblinear", code=65).stderr


def test_cv_finds_how_many(two_kinds, run, tmp_path):
    path, _ = two_kinds
    model = tmp_path / "m"
    run("cv", path, "-o", model, "--components", "1,2", "-C", 1000, "--bound", "tight", "--folds", 3)
    assert isinstance(load_any_model(model), ComponentRanker)
    assert load_any_model(model).header.settings["components"] == 2
