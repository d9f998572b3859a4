"""``apsvm export --format onnx``: onnxruntime gives the model's scores, labels and probabilities."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from apsvm import load_any_model

ASKED = ("--threshold", "f1", "--calibrate")
OPTIONS = [
    ("--bound", "hinge", "--features", "piecewise:3", *ASKED, "isotonic"),
    ("--bound", "hinge", "--features", "piecewise:3", "--scale", "l2"),
    ("--bound", "hinge", "--scale", "standard", *ASKED, "platt"),
    ("--loss", "wmw", "--lambda", "0.01", "--features", "products", "--scale", "standard"),
    ("--bound", "hinge", "--features", "nystroem:20"),
    ("--bound", "hinge", "--features", "rules:30:depth=3"),
    ("--bound", "tight", "--components", "2", "-C", "1", *ASKED, "platt"),
    ("--loss", "zero-one", "--bias", "1"),
]


@pytest.fixture(scope="module")
def onnxruntime():
    pytest.importorskip("onnx")
    return pytest.importorskip("onnxruntime")


@pytest.fixture
def exported(run, onnxruntime, tmp_path):
    """A session of a model's file."""

    def session(model, *options):
        out = tmp_path / "ranker.onnx"
        assert run("export", model, out, "--format", "onnx", *options).stderr == ""
        return onnxruntime.InferenceSession(out.read_bytes(), providers=["CPUExecutionProvider"])

    return session


def answers(session, X):
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options))
def test_onnxruntime_answers_as_we_do(options, cancer, trained, exported, run):
    path = trained(cancer, *options)
    model, X = load_any_model(path), cancer.X.toarray()
    X = np.concatenate([X, np.zeros((1, X.shape[1])), 3.0 * X[:5]])
    if model.unit_rows:
        X = np.concatenate([X, 1e250 * X[:5]])
    found = answers(exported(path), X)
    scores = model.score(X)
    np.testing.assert_allclose(found["score"], scores, rtol=1e-9, atol=1e-9 * np.abs(scores).max())
    threshold, calibration = model.header.threshold, model.header.calibration
    assert ("label" in found) == (threshold is not None)
    assert ("probability" in found) == (calibration is not None) == ("--calibrate" in options)
    if threshold is not None:
        assert set(found["label"].tolist()) == {0, 1}
        np.testing.assert_array_equal(found["label"], scores > threshold.value)
    if calibration is not None:
        np.testing.assert_allclose(found["probability"], calibration.probability(scores), atol=1e-9)
        if calibration.method == "platt":  # some of these rows are beyond those held out
            ends = calibration.lower, calibration.upper
            assert {found["probability"].min(), found["probability"].max()} & set(ends)
        assert 0.0 <= found["probability"].min() < found["probability"].max() <= 1.0


def test_several_classes(digits, run, exported, tmp_path):
    path = tmp_path / "digits.model"
    options = ("--loss", "zero-one", "-C", "100", "-e", "0.01", "--calibrate", "platt")
    run("train", "-q", "--one-vs-rest", *options, digits.path, path)
    model, X = load_any_model(path), digits.X.toarray()
    session = exported(path)
    found = answers(session, X)
    np.testing.assert_allclose(found["score"], model.score(X), rtol=1e-9, atol=1e-9)
    eights = model.ranker(8.0)
    expected = eights.header.calibration.probability(eights.score(X))
    np.testing.assert_allclose(found["probability"][:, 8], expected, atol=1e-9)
    classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
    assert classes == [str(digit) for digit in range(10)]
    assert np.mean(np.array(classes)[found["label"]].astype(float) == digits.labels) > 0.9
    alone = answers(exported(path, "--positive-label", "8"), X)
    np.testing.assert_array_equal(alone["score"], found["score"][:, 8])


@pytest.mark.parametrize("options", [("--features", "rules:20:depth=3"), ("--missing", "indicator")], ids=" ".join)
def test_a_table_s_own_columns(options, run, exported, tmp_path, rng):
    """Words and dates, missing cells among them, are encoded in the graph; a column may be called as an output is."""
    days = np.datetime64("2022-01-01", "s") + rng.integers(0, 700 * 86400, 200).astype("timedelta64[s]")
    days[::9] = "NaT"
    amounts = np.where(rng.random(200) < 0.1, np.nan, rng.lognormal(2.0, size=200).round(2))
    cities = rng.choice(["Rome", "Oslo", "Bonn", ""], 200)
    label = (np.nan_to_num(amounts) > 8) & (cities != "Oslo")
    rows = [
        f"{'' if np.isnan(a) else a},{city},{'' if np.isnat(day) else day},{int(y)}"
        for a, city, day, y in zip(amounts, cities, days, label, strict=True)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["score,city,X,y", *rows]) + "\n")
    run("train", "-q", "t.csv", "m", "--bound", "hinge", "-C", 1, "--max-categories", 2, *options, cwd=tmp_path)
    session = exported(tmp_path / "m")
    feeds = {"score of the row": amounts, "city": cities.astype(object), "X": days.astype(np.int64)}
    assert [one.name for one in session.get_inputs()] == list(feeds)
    (scores,) = session.run(["score"], {name: values[:, None] for name, values in feeds.items()})
    told = run("predict", "t.csv", "m", cwd=tmp_path).stdout.split()
    np.testing.assert_allclose(scores, np.array(told, dtype=float), rtol=1e-11, atol=1e-11)


def test_without_the_package(run, cancer, trained, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    done = run("export", trained(cancer), tmp_path / "x", "--format", "onnx", code=69)
    assert done.stderr == "apsvm: error: --format onnx needs the package onnx: pip install 'apsvm[onnx]'\n"
