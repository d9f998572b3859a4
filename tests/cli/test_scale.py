"""``--scale``: the model takes rows as they are; and the default C."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler

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
