"""``train --threshold --calibrate``, ``predict --classify --probability``, and what others make of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

from apsvm import load_any_model


def lines(text):
    return text.splitlines()


@pytest.fixture(scope="module")
def decided(cancer, trained):
    return trained(cancer, "--threshold", "fpr=.02", "--calibrate", "auto")


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (("--threshold", "fpr=.02"), "fpr=0.02"),
        (("--threshold", "top=100", "--loss", "wmw", "--lambda", "0.1"), "top=100"),
        (("--threshold", "Recall=0.95", "--loss", "warp", "--epochs", "3"), "recall=0.95"),
        (("--threshold", "f1", "--features", "piecewise:3", "--scale", "standard"), "f1"),
        (("--calibrate", "platt"), "f1"),
        (("--loss", "zero-one"), "loss"),
        (("--loss", "zero-one", "--threshold", "precision=.9"), "precision=0.9"),
    ],
    ids=lambda options: " ".join(options) if isinstance(options, tuple) else "",
)
def test_the_rule_is_kept_and_the_scores_are_what_they_were(options, rule, cancer, trained):
    header = load_any_model(trained(cancer, *options)).header
    assert header.threshold.rule == rule
    assert header.threshold.held_out == (None if rule == "loss" else "5 folds of rows")
    assert (header.calibration is not None) == ("--calibrate" in options)
    without = [*options[2:]] if options[0] in ("--threshold", "--calibrate") else [*options[:2]]
    plain = load_any_model(trained(cancer, *without))
    assert plain.header.calibration is None
    np.testing.assert_array_equal(plain.score(cancer.X), load_any_model(trained(cancer, *options)).score(cancer.X))


def test_classify_and_probability(cancer, decided, run, scored):
    model = load_any_model(decided)
    scores = model.score(cancer.X)
    labels = lines(run("predict", cancer.path, decided, "--classify").stdout)
    assert labels == np.where(scores > model.header.threshold.value, "1", "-1").tolist()
    assert set(labels) == {"1", "-1"}
    probability = scored(run("predict", cancer.path, decided, "--probability").stdout)
    np.testing.assert_allclose(probability, model.header.calibration.probability(scores), rtol=1e-5)
    both = [
        line.split("\t") for line in lines(run("predict", cancer.path, decided, "--classify", "--probability").stdout)
    ]
    assert both == [[label, f"{p:.6g}"] for label, p in zip(labels, probability.tolist(), strict=True)]
    best = lines(run("predict", cancer.path, decided, "--top", "3", "--probability").stdout)
    order = np.argsort(-scores, kind="stable")[:3]
    assert best == [f"{row + 1}\t{probability[row]:.6g}" for row in order.tolist()]


def test_an_exported_constant_holds_the_threshold(cancer, decided, run, tmp_path):
    model = load_any_model(decided)
    text = lines(run("export", decided, "--format", "liblinear").stdout)
    assert text[4] == "bias 1"
    constant = float(text[-1])
    assert constant == model.intercept - model.header.threshold.value
    above = cancer.X @ model.coef + constant > 0.0
    assert 0.99 < np.mean(above == (model.score(cancer.X) > model.header.threshold.value)) <= 1.0
    whole = json.loads(run("export", decided, "--format", "json").stdout)["rankers"][0]
    assert (whole["threshold"], whole["intercept"]) == (model.header.threshold.value, model.intercept)
    assert whole["probability"]["method"] == "isotonic"


def test_each_class_has_its_own(run, tmp_path, rng):
    """One class has too few rows, and none."""
    X = np.concatenate([rng.normal(size=(120, 3)), [[-9.0, -9.0, -9.0]]])
    labels = np.append(np.argmax(X[:-1], axis=1), 7)
    rows = [
        f"{label} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(x, 1))
        for label, x in zip(labels, X.tolist(), strict=True)
    ]
    (tmp_path / "d").write_text("\n".join(rows) + "\n")
    asked = ("--one-vs-rest", "--bound", "hinge", "--threshold", "f1", "--calibrate", "platt")
    said = run("train", tmp_path / "d", tmp_path / "m", *asked).stderr
    assert "class 7 has no threshold: 2 folds need at least 2 positive rows, found 1" in said
    model = load_any_model(tmp_path / "m")
    assert [header.threshold is not None for header in model.headers] == [True, True, True, False]
    assert len({header.threshold.value for header in model.headers[:3]}) == 3
    found = lines(run("predict", tmp_path / "d", tmp_path / "m", "--classify", "--header").stdout)
    assert found[0] == "label"
    assert np.mean(np.array(found[1:]) == labels.astype(str)) > 0.8
    assert run("predict", tmp_path / "d", tmp_path / "m", "--probability", code=65).stderr.endswith(
        ": it has no probabilities: train --calibrate auto makes them\n"
    )


def test_too_few_rows_are_said_before_the_training(run, tmp_path):
    (tmp_path / "d").write_text("1 1:1\n-1 1:2\n-1 1:3\n-1 1:4\n")
    for option, value in (("--threshold", "f1"), ("--calibrate", "auto")):
        said = run("train", tmp_path / "d", tmp_path / "m", option, value, code=65).stderr
        assert "/d: 2 folds need at least 2 positive rows, found 1" in said
        assert not (tmp_path / "m").exists()
    (tmp_path / "g").write_text("".join(f"{row % 3} 1:{row}\n" for row in range(30)))
    said = run("train", tmp_path / "g", tmp_path / "m", "--loss", "ndcg", "--threshold", "f1", code=65).stderr
    assert said.endswith(
        ": a threshold and probabilities are of two classes, and these labels are grades: "
        "--relevant-from says which of them are positive\n"
    )
    asked = ("--loss", "ndcg", "--bound", "hinge", "-C", "1", "--folds", "2", "-o", tmp_path / "m")
    said = run("cv", "-q", tmp_path / "g", *asked, "--threshold", "f1", code=3).stderr
    assert said == (
        "apsvm: warning: there is no threshold: a threshold and probabilities are of two classes, and these labels "
        "are grades: --relevant-from says which of them are positive\n"
    )
    assert load_any_model(tmp_path / "m").header.threshold is None
    assert run("cv", "-q", tmp_path / "g", *asked).stderr == ""
    assert load_any_model(tmp_path / "m").header.threshold is None


def test_eval_cuts_where_the_model_does(cancer, run, tmp_path, trained):
    models = [trained(cancer, "--threshold", "fpr=.02"), trained(cancer, "--bound", "hinge", "-C", "0.01")]
    metrics = ("-m", "F1", "-m", "Precision", "-m", "Recall", "-m", "Accuracy")
    truth, alone = cancer.positive, []
    for path in models:
        model = load_any_model(path)
        scores = model.score(cancer.X)
        called = scores > model.header.threshold.value
        alone.append(json.loads(run("eval", cancer.path, "--model", path, *metrics, "--json").stdout))
        assert alone[-1]["threshold"] == model.header.threshold.value != 0.0
        judges = (f1_score, precision_score, recall_score, accuracy_score)
        assert [*alone[-1]["metrics"].values()] == pytest.approx([judge(truth, called) for judge in judges], abs=1e-15)
        np.savetxt(tmp_path / f"{len(alone)}", scores - model.header.threshold.value)
    of_scores = ("--scores", tmp_path / "1", "--scores", tmp_path / "2")
    of_models = ("--model", models[0], "--model", models[1])
    tested = (*metrics, "--compare", "--confidence", "0.9")
    shown = run("eval", cancer.path, *of_models, *tested).stdout
    assert f"{alone[1]['threshold']:.6g}, the model's (f1)" in shown
    found = json.loads(run("eval", cancer.path, *of_models, *tested, "--json").stdout)["systems"]
    moved = json.loads(run("eval", cancer.path, *of_scores, *tested, "--json").stdout)["systems"]
    for of_model, of_file, one in zip(found.values(), moved.values(), alone, strict=True):
        assert of_model["metrics"] == of_file["metrics"] == one["metrics"]
        assert of_model["intervals"] == of_file["intervals"]
        assert of_file["threshold"] == 0.0
    assert [one.get("against_first") for one in found.values()] == [one.get("against_first") for one in moved.values()]
    assert "0, as there is none" in run("eval", cancer.path, "--scores", tmp_path / "1", *metrics).stdout


def test_a_model_without(cancer, run, write_rows, tmp_path):
    queries, model = np.arange(cancer.labels.size) % 5, tmp_path / "m"
    data = write_rows(tmp_path / "data", cancer.X, cancer.labels, query_id=queries)
    run("train", "-q", data, model, "--bound", "hinge")
    assert load_any_model(model).header.threshold is None
    for option, what in (
        ("--classify", "no threshold: train --threshold f1"),
        ("--probability", "no probabilities"),
    ):
        assert f"{model}: it has {what}" in run("predict", cancer.path, model, option, code=65).stderr
    said = run("predict", cancer.path, model, "--classify", "--trec-run", "x", code=2).stderr
    assert said.endswith("error: --trec-run does not go with --classify\n")


def test_cv_chooses_one_for_the_model_that_it_writes(cancer, run, tmp_path):
    asked = ("--loss", "ap", "--bound", "hinge", "-C", "0.1x,1x", "--folds", "2")
    said = run("cv", cancer.path, *asked, "-o", tmp_path / "m").stderr
    header = load_any_model(tmp_path / "m").header
    assert (header.threshold.rule, header.threshold.held_out, header.calibration) == ("f1", "2 folds of rows", None)
    assert f"positive is a score above {header.threshold.value:.6g} (f1): of the 569 held-out rows" in said
    decided = ("--threshold", "top=50", "--calibrate", "platt")
    run("cv", "-q", cancer.path, *asked, "-o", tmp_path / "m", *decided)
    header = load_any_model(tmp_path / "m").header
    assert (header.threshold.rule, header.calibration.method) == ("top=50", "platt")
    said = run("cv", cancer.path, *asked, "--threshold", "f1", code=2).stderr
    assert said.endswith("error: --threshold needs --output\n")
