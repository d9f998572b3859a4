"""The constant feature: which losses get one where nobody names it, of what size, and that all commands agree on it."""

from __future__ import annotations

import numpy as np
import pytest

from apsvm import load_model
from tests.instances import loss_names

ROWS = 1500


@pytest.fixture(scope="module")
def rare(folder, write_rows):
    """One row in fifty is positive, and features lie about 0: without a constant no score says which are."""
    rng = np.random.default_rng(5)
    labels = np.where(rng.permutation(ROWS) < ROWS // 50, 1.0, -1.0)
    X = np.round((rng.normal(size=(ROWS, 3)) + 1.5 * (labels > 0)[:, None]) * [1.0, 20.0, 0.3], 4)
    return write_rows(folder / "rare.svm", X, labels)


@pytest.fixture(scope="module")
def few(folder, rare):
    path = folder / "few.svm"
    lines = rare.read_text().splitlines(keepends=True)
    positives = [line for line in lines if not line.startswith("-")]
    path.write_text("".join([*positives[:10], *lines[:120]]))
    return path


@pytest.fixture(scope="module")
def thousandfold(folder, rare, write_rows):
    import apsvm

    data = apsvm.read_svmlight(str(rare), dense=True)
    return write_rows(folder / "thousandfold.svm", data.X * 1000.0, data.relevance)


@pytest.fixture
def measured(run):
    """A metric of a model on the rows that it was trained on."""

    def of(metric, data, model):
        lines = run("eval", data, "--model", model, "-m", metric).stdout.splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(metric))

    return of


@pytest.mark.parametrize("loss", loss_names())
def test_who_draws_the_line_at_0_gets_one(loss, few, run, tmp_path):
    """Whatever is registered."""
    run("train", "-q", "--loss", loss, "-e", 0.1, "--scale", "standard", few, tmp_path / "m")
    header = load_model(tmp_path / "m").header
    draws_line = header.threshold is not None and header.threshold.rule == "loss"
    assert header.features.bias == (10.0 if draws_line else None)


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_the_classifiers_are_useful(scale, rare, thousandfold, run, measured, tmp_path):
    for data in (rare, thousandfold):
        run("train", "-q", "--loss", "f1", "--scale", scale, data, tmp_path / "f1")
        run("train", "-q", "--loss", "zero-one", "--scale", scale, data, tmp_path / "zero-one")
        assert measured("F1", data, tmp_path / "f1") > 0.4
        assert measured("Accuracy", data, tmp_path / "zero-one") > 0.98 + 1 / ROWS


def test_its_size_is_that_of_the_features(rare, thousandfold, run, tmp_path):
    """So that the scale of the features changes no classifier."""
    for data in (rare, thousandfold):
        run("train", "-q", "--loss", "f1", "--scale", "none", data, tmp_path / data.stem)
    one, other = (load_model(tmp_path / name) for name in ("rare", "thousandfold"))
    assert one.header.features.bias == pytest.approx(10.0 * (1.0 * 20.0 * 0.3) ** (1 / 3), rel=0.1)
    assert other.header.features.bias == pytest.approx(1000.0 * one.header.features.bias, rel=1e-12)
    np.testing.assert_allclose(1000.0 * other.coef, one.coef, rtol=1e-5)
    assert other.intercept == pytest.approx(one.intercept, rel=1e-5)
