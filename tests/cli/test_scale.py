"""``--scale``: the model takes rows as they are; and the default C."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler

from apsvm import load_model
from apsvm.models.reading import load_any_model

#: For what is about the hinge, or needs some model quickly: by default the bound is chosen.
HINGE = ("--bound", "hinge")

SCALERS = {"maxabs": MaxAbsScaler, "standard": StandardScaler, "l2": Normalizer}


@pytest.fixture
def wide(cancer, rng, write_rows, tmp_path):
    """The columns of ``cancer`` in very different units and moved: (path, X)."""
    X = np.round(cancer.X.toarray() * np.logspace(-2, 3, 30) + np.linspace(-3, 3, 30), 9)
    return write_rows(tmp_path / "wide.svm", X, cancer.labels), X


@pytest.mark.parametrize("name", SCALERS)
def test_a_scaled_training_is_the_training_of_scaled_rows(name, wide, cancer, run, write_rows, info, scored, tmp_path):
    path, X = wide
    Z = SCALERS[name]().fit_transform(X)
    by_hand = write_rows(tmp_path / "scaled.svm", Z, cancer.labels)
    run("train", "-q", *HINGE, path, tmp_path / "m", "--scale", name, "-C", 10, "-e", 1e-5)
    run("train", "-q", *HINGE, by_hand, tmp_path / "h", "--scale", "none", "-C", 10, "-e", 1e-5)
    primal = [info(tmp_path / model).certificate.primal for model in ("m", "h")]
    assert primal[0] == pytest.approx(primal[1], rel=2e-4)
    assert info(tmp_path / "m").features.scale == name
    ours, theirs = (
        scored(run("predict", *pair).stdout) for pair in ((path, tmp_path / "m"), (by_hand, tmp_path / "h"))
    )
    assert np.corrcoef(ours, theirs)[0, 1] > 0.9999


def test_an_intercept_and_signs_of_standardised_rows(wide, cancer, run, tmp_path):
    path, X = wide
    Z = StandardScaler().fit_transform(X)
    run("train", "-q", *HINGE, path, tmp_path / "m", "--scale", "standard", "--loss", "zero-one", "-B", 1, "-C", 100)
    model = load_model(tmp_path / "m")
    w = model.coef * X.std(axis=0)
    assert Z @ w + model.intercept + X.mean(axis=0) @ model.coef == pytest.approx(model.score(X), abs=1e-8)
    assert ((model.score(X) > 0) == cancer.positive).mean() > 0.97


def test_warm_start_between_scaled_models(wide, run, info, tmp_path):
    """From its own solution a training starts at its objective, whatever the scaling."""
    path, _ = wide
    options = ("--scale", "standard", "-B", 2, "-C", 10, "--loss", "zero-one")
    run("train", "-q", *HINGE, path, tmp_path / "m", *options, "-e", 1e-4)
    done = run("train", "-v", *HINGE, path, tmp_path / "n", *options, "--warm-start", tmp_path / "m")
    first = done.stderr.splitlines()[2].split()
    assert float(first[1]) == pytest.approx(info(tmp_path / "m").certificate.primal, rel=1e-5)
    done = run("train", *HINGE, path, tmp_path / "n", "--scale", "l2", "--warm-start", tmp_path / "m", code=65)
    assert done.stderr.endswith(": of the model and this training, one divides rows by their length (l2)\n")


def test_export(wide, run, tmp_path):
    path, X = wide
    run("train", "-q", *HINGE, path, tmp_path / "m", "--scale", "maxabs", "--threshold", "none")
    done = run("export", tmp_path / "m", "--format", "liblinear")
    at = done.stdout.splitlines().index("w")
    assert X @ np.array([float(w) for w in done.stdout.splitlines()[at + 1 :]]) == pytest.approx(
        load_model(tmp_path / "m").score(X)
    )
    assert "warning" not in done.stderr
    run("train", "-q", *HINGE, path, tmp_path / "m", "--scale", "l2")
    assert run("export", tmp_path / "m", "--format", "liblinear").stderr.endswith(
        "warning: the model divides each row by its length (--scale l2); give the exported one such rows\n"
    )


def far_apart(rng):
    """Rows with a column a million times as large as the others, which says least, and their labels."""
    X = rng.normal(size=(200, 5)) * np.array([1.0, 1.0, 1.0, 1.0, 1e6])
    return X, np.where(X[:, 0] + X[:, 1] + 1e-7 * X[:, 4] + 0.5 * rng.normal(size=200) > 0.8, 1, -1)


def test_dense_rows_are_standardised_by_default(rng, run, write_rows, info, tmp_path):
    """So that a column of huge values stalls no training; and all rows of a cross-validation."""
    path = write_rows(tmp_path / "rows.svm", *far_apart(rng))
    for name, options in (("auto", ()), ("standard", ("--scale", "standard"))):
        run("train", "-q", *options, path, tmp_path / name)
    auto, standard = (load_any_model(tmp_path / name) for name in ("auto", "standard"))
    np.testing.assert_array_equal(auto.coef, standard.coef)
    assert auto.intercept == standard.intercept
    header = info(tmp_path / "auto")
    assert (header.features.scale, header.state, header.as_asked) == ("standard", "converged", True)
    run("cv", "-q", *HINGE, "-C", "1x,10x", "--folds", 2, path, "-o", tmp_path / "cv")
    assert info(tmp_path / "cv").features.scale == "standard"


def test_sparse_rows_and_rules_are_not_by_default(rng, run, write_rows, info, tmp_path):
    X, labels = far_apart(rng)
    X[:, 4] /= 1e5
    sparse = np.where(rng.random(X.shape) < 0.3, X, 0.0)
    path = write_rows(tmp_path / "rows.svm", sparse, labels)
    for name, scale in (("auto", ()), ("none", ("--scale", "none"))):
        run("train", "-q", *HINGE, "-C", "1x", *scale, path, tmp_path / name)
    np.testing.assert_array_equal(*(load_any_model(tmp_path / name).coef for name in ("auto", "none")))
    assert info(tmp_path / "auto").features.scale == "none"
    path = write_rows(tmp_path / "dense.svm", X, labels)
    run("train", "-q", *HINGE, "-C", "1x", "--features", "rules:5", path, tmp_path / "rules")
    assert info(tmp_path / "rules").features.scale == "none"


def test_tables_are_standardised_by_default(rng, run, info, tmp_path):
    """Sparse or not: words become columns of few values."""
    words = [f"w{word}" for word in rng.integers(0, 12, size=80)]
    lines = [f"{int(word < 'w4')},{word},{1e6 * rng.random():.1f}" for word in words]
    (tmp_path / "rows.csv").write_text("\n".join(["label,word,amount", *lines]) + "\n")
    for name, options in (("auto", ()), ("standard", ("--scale", "standard"))):
        run("train", "-q", *HINGE, *options, tmp_path / "rows.csv", tmp_path / name)
    np.testing.assert_array_equal(*(load_any_model(tmp_path / name).coef for name in ("auto", "standard")))
    assert info(tmp_path / "auto").features.scale == "standard"


def test_warp_is_not_scaled(cancer, run, tmp_path):
    done = run("train", cancer.path, tmp_path / "m", "--loss", "warp", "--scale", "l2", code=2)
    assert done.stderr.endswith("Error: --scale does not apply: the steps of --loss warp read the rows as they are\n")
    run("train", "-q", cancer.path, tmp_path / "m", "--loss", "warp", "--epochs", 1, "--scale", "none")


def test_the_default_C_is_shown(cancer, run, info, tmp_path):
    expected = 0.3 * 569**0.5 * (1 + 569 / 30) ** 2 / 30  # standardised features
    done = run("train", *HINGE, cancer.path, tmp_path / "m")
    assert f"C = 1x the default, {expected:.6g}; the default is what fits the scale of the features\n" in done.stderr
    assert pytest.approx(expected, rel=1e-6) == info(tmp_path / "m").C
    assert info(tmp_path / "m").settings["C"] == "auto"
    run("train", "-q", *HINGE, cancer.path, tmp_path / "p.model", "-C", "0.1x:10x:log10,3")
    found = {path.name: info(path) for path in tmp_path.glob("p.*")}
    assert {name: facts.settings["C"] for name, facts in found.items()} == {
        "p.C0.1x.model": "0.1x", "p.C1x.model": "1x", "p.C10x.model": "10x", "p.C3.model": 3.0,
    }  # fmt: skip
    assert pytest.approx(10 * expected, rel=1e-6) == found["p.C10x.model"].C
    run("train", "-q", cancer.path, tmp_path / "named", "-C", "1x")  # only the bound is chosen
    assert {one["C"] for one in info(tmp_path / "named").details["choice"]["candidates"]} == {"1x"}
    wrong = run("train", cancer.path, tmp_path / "wrong", "-C", "1xx", code=2)
    assert "expected a finite number above 0, auto or a multiple such as 10x, found '1xx'" in wrong.stderr


@pytest.mark.slow
def test_one_against_the_rest(digits, run, tmp_path):
    """Each class's ranker is the one that it has alone."""
    for name in ("l2", "standard"):
        run("train", "-q", *HINGE, digits.path, tmp_path / "all", "--one-vs-rest", "--scale", name, "-C", 1)
        run("train", "-q", *HINGE, digits.path, tmp_path / "eight", *digits.options, "--scale", name, "-C", 1)
        scores = load_any_model(tmp_path / "all").score(digits.X)
        assert scores[:, 8] == pytest.approx(load_model(tmp_path / "eight").score(digits.X), rel=1e-12)
        assert np.ptp(scores[:, 8]) > 0.1
