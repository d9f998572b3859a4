"""``--components`` on the command line: training, scoring, explaining, exporting, reporting."""

from __future__ import annotations

import json

import numpy as np
import pytest

from apsvm import load_any_model
from apsvm.models.components import ComponentRanker
from apsvm.models.sets import RankerSet


@pytest.fixture
def two_kinds(tmp_path, rng):
    """A file of positives of two kinds, and its matrix."""
    X = np.round(rng.normal(size=(300, 4)), 3)
    X[:15, 0] += 4.0
    X[15:30, 1] += 4.0
    path = tmp_path / "two.svm"
    _write(path, np.where(np.arange(300) < 30, 1, -1), X)
    return path, X


@pytest.fixture
def three_classes(tmp_path, rng):
    X, labels, kind = rng.normal(size=(300, 6)), rng.integers(1, 4, size=300), rng.integers(2, size=300)
    X[np.arange(300), 2 * labels - 2 + kind] += 4.0
    path = tmp_path / "three.svm"
    _write(path, labels, np.round(X, 3))
    return path, np.round(X, 3)


def _write(path, labels, X) -> None:
    lines = (
        f"{y} " + " ".join(f"{j}:{x:g}" for j, x in enumerate(row, start=1)) for y, row in zip(labels, X, strict=True)
    )
    path.write_text("".join(f"{line}\n" for line in lines))


def test_train_predict_eval_info(two_kinds, here, tmp_path):
    path, X = two_kinds
    model, linear = tmp_path / "m", tmp_path / "linear"
    done = here("train", path, model, "--components", 2, "--scale", "standard", "-C", 1000)
    assert "stationary point" in done.stderr
    here("train", "-q", path, linear, "--scale", "standard", "-C", 1000)
    ranker = load_any_model(model)
    assert isinstance(ranker, ComponentRanker)
    scores = np.array([float(line) for line in here("predict", path, model).stdout.splitlines()])
    np.testing.assert_allclose(scores, (X @ ranker.coef.T + ranker.intercepts).max(axis=1), rtol=1e-9)
    both = here("eval", path, "--model", model, "--model", linear, "-m", "AP", "--json").stdout
    of_two, of_one = (system["AP"] for system in _figures(json.loads(both)))
    assert of_two > of_one + 0.05
    text = here("info", model).stdout
    assert "a ranker of several components" in text
    assert "component 2" in text
    assert len(json.loads(here("info", model, "--json").stdout)["components"]) == 2


def _figures(content) -> list[dict]:
    """Objects with an AP, in order, wherever they are."""
    if isinstance(content, dict):
        if isinstance(content.get("AP"), float):
            return [content]
        content = list(content.values())
    return [one for part in content if isinstance(part, dict | list) for one in _figures(part)]


@pytest.mark.parametrize("features", ["linear", "piecewise"])
@pytest.mark.parametrize("scale", ["none", "maxabs", "l2"])
def test_features_and_scalings(features, scale, two_kinds, here, tmp_path):
    path, _ = two_kinds
    model = tmp_path / "m"
    options = ("--components", 2, "--features", features, "--scale", scale, "-C", "1x", "--bound", "tight", "--bias", 1)
    here("train", "-q", path, model, *options)
    ranker = load_any_model(model)
    assert isinstance(ranker, ComponentRanker)
    scores = [float(line) for line in here("predict", path, model).stdout.splitlines()]
    assert np.mean(scores[:30]) > np.mean(scores[30:])
    lines = here("predict", path, model, "--explain=9").stdout.splitlines()
    for score, line in zip(scores, lines, strict=True):
        first, component, *parts = line.split("\t")
        assert float(first) == score
        h = int(component.removeprefix("component=")) - 1
        assert 0 <= h < 2
        assert len(parts) <= 1 + 4
        assert abs(sum(float(part.split("=")[1]) for part in parts) - score) < 1e-4 * np.ptp(scores)


def test_one_against_the_rest(three_classes, here, tmp_path):
    path, X = three_classes
    model = tmp_path / "m"
    here("train", "-q", path, model, "--one-vs-rest", "--components", 2, "-C", 100)
    rankers = load_any_model(model)
    assert isinstance(rankers, RankerSet)
    assert rankers.each is ComponentRanker
    assert rankers.classes.tolist() == [1.0, 2.0, 3.0]
    alone = tmp_path / "alone"
    here("train", "-q", path, alone, "--positive-label", 2, "--components", 2, "-C", 100)
    np.testing.assert_array_equal(rankers.ranker(2.0).coef, load_any_model(alone).coef)
    np.testing.assert_array_equal(rankers.score(X)[:, 1], rankers.ranker(2.0).score(X))
    assert len(here("predict", path, model).stdout.splitlines()[0].split("\t")) == 3
    assert "class" in here("eval", path, "--model", model).stdout
    assert "components" in here("info", model).stdout
    again = tmp_path / "again"
    here("train", "-q", path, again, "--one-vs-rest", "--components", 2, "-C", 100, "--warm-start", model)
    exported = json.loads(here("export", model, "--format", "json").stdout)
    assert [len(ranker["components"]) for ranker in exported["rankers"]] == [2, 2, 2]


def test_json_has_all_that_scoring_takes(two_kinds, here, tmp_path):
    path, X = two_kinds
    model = tmp_path / "m"
    here("train", "-q", path, model, "--components", 3, "-C", 100)
    (ranker,) = json.loads(here("export", model, "--format", "json").stdout)["rankers"]
    scores = [X @ part["coef"] + part["intercept"] for part in ranker["components"]]
    np.testing.assert_allclose(np.max(scores, axis=0), load_any_model(model).score(X), rtol=1e-12)
    for layout in ("liblinear", "svmlight"):
        assert "several components" in here("export", model, "--format", layout, code=65).stderr


def test_a_path_of_C_and_starts_from_models(two_kinds, here, tmp_path):
    path, _ = two_kinds
    here("train", "-q", path, tmp_path / "m.model", "--components", 2, "-C", "10,100")
    at_10 = tmp_path / "m.C10.model"
    assert load_any_model(at_10).header.C == 10.0
    here("train", "-q", path, tmp_path / "again", "--components", 2, "-C", 10, "--warm-start", at_10)
    here("train", "-q", path, tmp_path / "linear", "-C", 10)
    here("train", "-q", path, tmp_path / "again", "--components", 2, "-C", 10, "--warm-start", tmp_path / "linear")
    done = here("train", "-q", path, tmp_path / "x", "--components", 3, "--warm-start", at_10, code=65)
    assert done.stderr.endswith(": it has 2 components, this training has 3\n")
    done = here("train", "-q", path, tmp_path / "x", "--components", 1, "--warm-start", at_10, code=65)
    assert done.stderr.endswith(": it has 2 components, this training has 1\n")
    here("train", "-q", path, tmp_path / "x", "--warm-start", at_10)
    assert load_any_model(tmp_path / "x").components == 2


@pytest.mark.parametrize("options", [("--components", 0), ("--components", 65), ("--components", "two")])
def test_how_many_there_may_be(options, two_kinds, here, tmp_path):
    here("train", two_kinds[0], tmp_path / "m", *options, code=2)


@pytest.mark.parametrize("options", [("--latent",), ("--oracle", "appx"), ("--loss", "wmw")])
def test_what_does_not_go_together(options, two_kinds, here, tmp_path):
    assert "--components" in here("train", two_kinds[0], tmp_path / "m", "--components", 2, *options, code=2).stderr


def test_cv_finds_how_many(two_kinds, here, tmp_path):
    path, _ = two_kinds
    model = tmp_path / "m"
    here("cv", path, "-o", model, "--components", "1,2", "-C", 1000, "--bound", "tight", "--folds", 3)
    assert isinstance(load_any_model(model), ComponentRanker)
    assert load_any_model(model).header.settings["components"] == 2


@pytest.mark.slow
def test_the_report_says_which_component_leads(two_kinds, here, tmp_path):
    path, _ = two_kinds
    here("train", "-q", path, "--run-dir", tmp_path / "run", "--components", 2, "-C", 1000)
    here("report", tmp_path / "run", "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Components</h2>" in page
    assert "Component 2: the largest weights" in page


def test_the_curves_of_a_model_of_several_are_refused(two_kinds, here, tmp_path):
    path, _ = two_kinds
    here("train", "-q", path, tmp_path / "m", "--components", 2, "-C", 100, "--features", "piecewise")
    done = here("plot", "shapes", tmp_path / "m", "-o", tmp_path / "p.svg", code=65)
    assert done.stderr.endswith(": expected a linear ranker, found a ranker of several components (--components)\n")
