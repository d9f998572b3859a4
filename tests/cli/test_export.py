"""``apsvm export``: the exported models give our scores in LIBLINEAR."""

from __future__ import annotations

import numpy as np
import pytest

from apsvm import load_model

OPTIONS = [
    (),
    ("--loss", "zero-one"),
    ("--loss", "zero-one", "--bias", "0.25"),
]


@pytest.fixture(scope="module")
def liblinear():
    return pytest.importorskip("liblinear.liblinearutil")


def above_threshold(model, X):
    return model.score(X) - model.header.threshold.value


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options) or "default")
def test_liblinear_scores_as_we_do(options, cancer, trained, run, liblinear, tmp_path):
    model, out = trained(cancer, *options), tmp_path / "liblinear.model"
    run("export", model, out, "--format", "liblinear")
    theirs = liblinear.load_model(str(out))
    labels, _, values = liblinear.predict([], cancer.X.toarray(), theirs, "-q")
    ours = above_threshold(load_model(model), cancer.X)
    assert np.allclose(np.array(values)[:, 0], ours, rtol=1e-12, atol=1e-12)
    assert np.array_equal(labels, np.where(ours > 0, 1, -1))
    assert set(labels) == {1, -1}
    assert (abs(load_model(model).intercept) > 1e-3) == ("zero-one" in options)


@pytest.mark.parametrize("label", ["-1", "0.5", "1e300"])
def test_liblinear_reads_every_positive_label(label, run, liblinear, tmp_path):
    data, model, out = tmp_path / "data", tmp_path / "m", tmp_path / "out"
    data.write_text(f"{label} 1:1\n3 1:2\n")
    run("train", "-q", data, model, "--positive-label", label)
    run("export", model, out, "--format", "liblinear")
    named = next(line for line in out.read_text().splitlines() if line.startswith("label "))
    positive, negative = map(int, named.split()[1:])
    assert positive != negative
    assert max(abs(positive), abs(negative)) < 2**31
    theirs = liblinear.load_model(str(out))
    assert theirs.get_labels() == [positive, negative]
    _, _, values = liblinear.predict([], [[1.0], [2.0]], theirs, "-q")
    assert values[0][0] > values[1][0]


def test_a_class_of_a_model_without_classes(run, tmp_path):
    data, model, out = tmp_path / "data", tmp_path / "m", tmp_path / "out"
    data.write_text("1 1:1\n-1 1:2\n")
    run("train", "-q", data, model)
    done = run("export", model, out, "--format", "json", "--positive-label", 1, code=65)
    assert done.stderr.endswith("remove --positive-label\n")
    assert not out.exists()


def test_features_from_zero_are_exported_from_one(run, liblinear, tmp_path):
    data, model = tmp_path / "data", tmp_path / "m"
    data.write_text("1 0:1 1:3\n-1 0:2\n")
    run("train", "-q", data, model, "--zero-based")
    done = run("export", model, tmp_path / "out", "--format", "liblinear")
    assert done.stderr.endswith(
        "warning: the model counts features from 0; the exported one counts the same features from 1\n"
    )
    theirs = liblinear.load_model(str(tmp_path / "out"))
    _, _, values = liblinear.predict([], [{1: 1.0, 2: 3.0}, {1: 2.0}], theirs, "-q")
    ours = above_threshold(load_model(model), np.array([[1.0, 3.0], [2.0, 0.0]]))
    assert np.allclose([value[0] for value in values], ours)
