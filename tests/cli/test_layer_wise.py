"""Networks trained a layer at a time (--layer-wise), through every command."""

import json

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from apsvm import load_any_model
from apsvm.models.net import NetRanker

BAD_USE, BAD_DATA, STOPPED_EARLY = 2, 65, 3


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """300 rows of two features, positive where they lie far from the origin; a third feature is noise of another scale:
    the file, X and the labels."""
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(300, 3)) * [1.0, 10.0, 1000.0], 4)
    radius = np.hypot(X[:, 0], X[:, 1] / 10.0) + 0.2 * rng.normal(size=300)
    labels = (radius > np.quantile(radius, 0.75)).astype(int)
    path = tmp_path_factory.mktemp("rings") / "rows.svm"
    lines = (
        f"{y} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(x)) for y, x in zip(labels, X.tolist(), strict=True)
    )
    path.write_text("".join(f"{line}\n" for line in lines))
    return path, X, labels


@pytest.fixture(scope="module")
def model(made, tmp_path_factory, run):
    path = tmp_path_factory.mktemp("model") / "net.model"
    run("train", "-q", "--layer-wise", "6", made[0], path)
    return path


@pytest.mark.slow
def test_train_says_what_became_of_it(made, run, tmp_path):
    log = tmp_path / "log"
    result = run("train", "-v", "--loss", "ap", "--layer-wise", "6,4", made[0], tmp_path / "m", "--log", log)
    assert "the last convex majorant's minimum, in the weights of layer 1" in result.stderr
    assert "kept the network after" in result.stderr
    assert "log loss" in result.stderr
    ranker = load_any_model(tmp_path / "m")
    assert isinstance(ranker, NetRanker)
    assert ranker.net.units == [6, 4, 1]
    header = ranker.header
    assert (header.family, header.loss) == ("structured-svm", "ap")
    assert header.C in (100.0, 1000.0, 10000.0)
    assert f"C = {header.C:g}, by the loss on rows held out (10000: " in result.stderr
    assert header.settings["layer_wise"] == "6,4"
    assert header.certificate.layer == 1
    assert header.certificate.reached
    assert header.as_asked
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"start", "iteration", "oracle", "layer", "pass", "end"} <= {record["event"] for record in records}
    assert {record["stage"] for record in records if record["event"] == "iteration"} == {
        f"layer {number}" for number in (1, 2, 3)
    }


def test_predict_eval_and_info(made, model, run, scored):
    path, X, labels = made
    scores = scored(run("predict", path, model).stdout)
    ranker = load_any_model(model)
    np.testing.assert_array_equal(scores, ranker.score(X))
    (first, last) = ranker.net.layers
    np.testing.assert_allclose(
        scores, (np.maximum(X @ first.weights.T + first.bias, 0.0) @ last.weights.T + last.bias)[:, 0], rtol=1e-9
    )
    figure = average_precision_score(labels, scores)
    assert figure > 0.85
    assert f"{figure:.6f}" in run("eval", path, "--model", model, "-m", "AP").stdout
    assert f"{figure:.6f}" in run("eval", path, "--model", model, "-m", "AP", "--positive-label", "1").stdout
    text = run("info", model).stdout
    assert "a network of dense layers" in text
    assert "in the weights of layer" in " ".join(text.split())
    about = json.loads(run("info", "--json", model).stdout)
    assert (about["kind"], about["units"], about["width"]) == ("net", [6, 1], 3)
    assert about["weights"]["nonzero"] == 24


@pytest.mark.slow
def test_cv_compares_sizes(made, run, tmp_path):
    out = run(
        "cv", made[0], "--layer-wise", "none,4,4x3", "-C", "1000", "--folds", "2", "-o", tmp_path / "m", "--json",
        tmp_path / "cv.json",
    )  # fmt: skip
    results = json.loads((tmp_path / "cv.json").read_text())
    assert {one["layer_wise"] for one in _settings(results)} == {"none", "4", "4x3"}
    ranker = load_any_model(tmp_path / "m")
    assert isinstance(ranker, NetRanker)
    assert ranker.header.selection["layer_wise"] in ("4", "4x3")
    assert "4x3" in out.stdout


def _settings(results):
    """Every object in the results that names a setting."""
    if isinstance(results, dict):
        if "layer_wise" in results and isinstance(results["layer_wise"], str):
            yield results
        results = list(results.values())
    if isinstance(results, list):
        for one in results:
            yield from _settings(one)


def test_what_knows_only_linear_rankers(made, model, run, tmp_path):
    for layout in ("liblinear", "json"):
        result = run("export", model, "-", "--format", layout, code=BAD_DATA)
        assert "expected a linear ranker, found a network" in result.stderr
    assert "--explain is for" in run("predict", "--explain=2", made[0], model, code=BAD_USE).stderr
    wider = tmp_path / "wider.svm"
    wider.write_text("1 1:1 7:1\n0 2:1\n")
    assert run("predict", wider, model, code=BAD_DATA).stderr
