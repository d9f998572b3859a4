"""``--features``: train, predict, eval, info, cv, report and export with a map in front of w."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import average_precision_score

from apsvm import load_model
from apsvm.cli.options.parameters import FEATURES
from apsvm.data.features import FEATURE_MAPS

#: For what is about the hinge, or needs some model quickly: by default the bound is chosen.
HINGE = ("--bound", "hinge")

MAPS = ("piecewise:3", "products", "nystroem:30")


@pytest.fixture(scope="module")
def bumps(folder, write_rows):
    """Rows of which those in the middle are positive, so that no linear ranker tells them apart, but each map does."""
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(300, 3)), 6)
    X[rng.random(X.shape) < 0.2] = 0.0
    near = np.abs(X[:, 0]) + np.abs(X[:, 1]) < 0.9
    return write_rows(folder / "bumps.svm", X, np.where(near, 1.0, -1.0))


@pytest.fixture(scope="module")
def rows(bumps):
    X, labels = load_svmlight_file(str(bumps))
    return X.toarray(), labels > 0


@pytest.mark.parametrize("scale", ["none", "standard", "l2"])
@pytest.mark.parametrize("name", MAPS)
def test_train_predict_eval_info(name, scale, bumps, rows, run, scored, tmp_path):
    X, positive = rows
    model = tmp_path / "m"
    run("train", "-q", *HINGE, bumps, model, "--features", name, "--scale", scale, "-C", 100)
    stored = load_model(model)
    assert stored.width == 3
    assert stored.coef.size == stored.feature_map.n_out > 3
    assert stored.header.features.map == stored.feature_map.name
    scores = scored(run("predict", bumps, model).stdout)
    np.testing.assert_array_equal(scores, stored.score(X))
    ap = average_precision_score(positive, scores)
    assert ap > 0.9 > average_precision_score(positive, X[:, 0])
    evaluated = run("eval", bumps, "--model", model, "-m", "AP").stdout
    assert f"{ap:.6f}" in evaluated
    described = run("info", model).stdout
    assert f"mapped by {stored.feature_map.name} to {stored.coef.size} columns" in described
    as_json = json.loads(run("info", model, "--json").stdout)
    assert (as_json["features"]["map"], as_json["columns"]) == (stored.feature_map.name, stored.coef.size)


def score_of(exported, X):
    """As the help of ``apsvm export`` says; no part of the package."""
    features = exported["features"]
    name = features["name"].partition(":")[0]
    knots = features.get("knots", []), features.get("starts", [])
    of_feature = [knots[0][knots[1][j] : knots[1][j + 1]] for j in range(len(knots[1]) - 1)]
    scores = []
    for x in X.tolist():
        phi = list(x)
        if name == "piecewise":
            phi += [
                max(0.0, v - q) if q >= 0 else min(0.0, v - q) for v, qs in zip(x, of_feature, strict=True) for q in qs
            ]
        elif name != "linear":
            z = [(v - m) / s for v, m, s in zip(x, features["centre"], features["deviation"], strict=True)]
            phi = z + [z[i] * z[j] for i in range(len(z)) for j in range(i, len(z))]
            if name == "nystroem":
                distances = [sum((a - b) ** 2 for a, b in zip(z, one, strict=True)) for one in features["landmarks"]]
                k = [math.exp(-features["gamma"][0] * distance) for distance in distances]
                phi = [sum(a * b for a, b in zip(row, k, strict=True)) for row in features["normalisation"]]
        length = (math.sqrt(sum(v * v for v in phi)) if exported["unit_rows"] else 0.0) or 1.0
        (ranker,) = exported["rankers"]
        scores.append(sum(a * b for a, b in zip(ranker["coef"], phi, strict=True)) / length + ranker["intercept"])
    return np.array(scores)


@pytest.mark.parametrize("scale", ["standard", "l2"])
@pytest.mark.parametrize("name", ["linear", *MAPS])
def test_another_program_scores_by_the_exported_JSON(name, scale, bumps, rows, run, tmp_path):
    run("train", "-q", *HINGE, bumps, tmp_path / "m", "--features", name, "--scale", scale, "-B", 1)
    exported = json.loads(run("export", tmp_path / "m", "--format", "json").stdout)
    assert (exported["width"], exported["first_feature"]) == (3, 1)
    assert len(exported["columns"]) == len(exported["rankers"][0]["coef"])
    expected = load_model(tmp_path / "m").score(rows[0])
    np.testing.assert_allclose(score_of(exported, rows[0]), expected, rtol=1e-6, atol=1e-6)


def test_other_formats_know_no_maps(bumps, run, tmp_path):
    run("train", "-q", *HINGE, bumps, tmp_path / "m", "--features", "piecewise")
    done = run("export", tmp_path / "m", "--format", "liblinear", code=65)
    assert "its features are mapped (piecewise:4)" in done.stderr


def test_the_shell_completes_maps():
    offered = [item.value for item in FEATURES.shell_complete(None, None, "pi")]
    assert offered == ["piecewise", "piecewise:4"]
    assert len(FEATURES.shell_complete(None, None, "")) == len(FEATURE_MAPS)


def explained(text):
    """[(score, {name: value})] of the lines, in order."""
    rows = []
    for line in text.splitlines():
        score, *parts = line.split("\t")
        said = (part.removesuffix(")").rpartition(" (") for part in parts)
        rows.append((float(score), {words.partition("=")[0]: float(gave) for words, _, gave in said}))
    return rows


@pytest.mark.parametrize(("name", "scale"), [("piecewise", "standard"), ("linear", "l2")])
def test_explain(name, scale, bumps, rows, run, scored, tmp_path):
    X, _ = rows
    run("train", "-q", *HINGE, bumps, tmp_path / "m", "--features", name, "--scale", scale)
    scores = scored(run("predict", bumps, tmp_path / "m").stdout)
    lines = explained(run("predict", "--explain", bumps, tmp_path / "m").stdout)
    np.testing.assert_array_equal([score for score, _ in lines], scores)
    sums = np.array([sum(parts.values()) for _, parts in lines])
    np.testing.assert_allclose(scores, sums, rtol=1e-3, atol=1e-2)  # four digits of each
    assert all(set(parts) <= {"base", "1", "2", "3"} for _, parts in lines)
    for _, parts in lines:
        sizes = [abs(value) for name, value in parts.items() if name != "base"]
        assert sizes == sorted(sizes, reverse=True)
        assert 0.0 not in sizes
    first = explained(run("predict", bumps, tmp_path / "m", "--explain", 1).stdout)
    for (score, parts), (_, every) in zip(first, lines, strict=True):
        assert list(parts.items())[:2] == list(every.items())[:2]
        assert list(parts)[2:] == ["rest"] * (len(every) > 2)
        assert sum(parts.values()) == pytest.approx(score, rel=1e-3, abs=1e-2)
    run("predict", bumps, tmp_path / "m", tmp_path / "out", "--explain=2")
    assert len(explained((tmp_path / "out").read_text())) == len(X)


def test_what_cannot_be_explained(bumps, digits, run, tmp_path):
    run("train", "-q", *HINGE, bumps, tmp_path / "m", "--features", "nystroem:9")
    done = run("predict", bumps, tmp_path / "m", "--explain", code=65)
    assert done.stderr.endswith("the feature map nystroem:9 makes each column from all features at once\n")
    run("train", "-q", *HINGE, digits.path, tmp_path / "classes", "--one-vs-rest", "-C", 1)
    done = run("predict", digits.path, tmp_path / "classes", "--explain", code=2)
    assert done.stderr.endswith("is a set of rankers, one a class (--one-vs-rest)\n")
    assert run("predict", bumps, tmp_path / "m", "--explain=0", code=2).stderr.endswith(
        "error: Invalid value for '--explain': 0 is not in the range x>=1.\n"
    )


def test_plot_shapes(bumps, run, tmp_path):
    run("train", "-q", *HINGE, bumps, tmp_path / "m", "--features", "piecewise")
    run("plot", "shapes", tmp_path / "m", "-o", tmp_path / "all.svg")
    text = (tmp_path / "all.svg").read_text()
    assert all(f">{words}<" in text for words in ("1", "2", "3", "gives to the score"))
    run("train", "-q", *HINGE, bumps, tmp_path / "m", "--features", "products")
    run("plot", "shapes", tmp_path / "m", "-o", tmp_path / "bars.svg")
    assert "weight" in (tmp_path / "bars.svg").read_text()


@pytest.mark.slow
def test_shapes_that_are_none(bumps, digits, run, tmp_path):
    run("train", "-q", *HINGE, bumps, tmp_path / "m", "--features", "nystroem:9")
    done = run("plot", "shapes", tmp_path / "m", "-o", tmp_path / "x.png", code=65)
    assert "no feature has a curve of its own" in done.stderr
    run("train", "-q", *HINGE, digits.path, tmp_path / "classes", "--one-vs-rest", "-C", 1, "--features", "piecewise:1")
    assert "choose one" in run("plot", "shapes", tmp_path / "classes", "-o", tmp_path / "x.png", code=65).stderr
    run("plot", "shapes", tmp_path / "classes", "-o", tmp_path / "x.png", "--positive-label", 8)
    assert (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
def test_rules_from_training_to_a_proof(bumps, run, scored, tmp_path):
    run("train", "-q", bumps, "--run-dir", tmp_path / "run", "--features", "rules:60:depth=2")
    model = tmp_path / "run" / "ranker.model"
    assert "certificate  holds" in run("verify", model, bumps).stdout
    scores = scored(run("predict", bumps, model).stdout)
    lines = explained(run("predict", bumps, model, "--explain").stdout)
    np.testing.assert_allclose([sum(parts.values()) for _, parts in lines], scores, rtol=1e-3, atol=1e-2)
    run("plot", "shapes", model, "-o", tmp_path / "shapes.svg")
    run("report", tmp_path / "run", "-o", tmp_path / "page.html")
    assert "what two give together" in (tmp_path / "page.html").read_text()
