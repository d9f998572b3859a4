"""The constant feature: which losses get one where nobody names it, of what size, and that all commands agree on it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from apsvm import load_any_model, load_model
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
def measured(here):
    """A metric of a model on the rows that it was trained on."""

    def of(metric, data, model):
        lines = here("eval", data, "--model", model, "-m", metric).stdout.splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(metric))

    return of


@pytest.mark.parametrize("loss", loss_names())
def test_who_draws_the_line_at_0_gets_one(loss, few, here, tmp_path):
    """Whatever is registered."""
    here("train", "-q", "--loss", loss, "-e", 0.1, "--scale", "standard", few, tmp_path / "m")
    header = load_model(tmp_path / "m").header
    draws_line = header.threshold is not None and header.threshold.rule == "loss"
    assert header.features.bias == (10.0 if draws_line else None)


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_the_classifiers_are_useful(scale, rare, thousandfold, here, measured, tmp_path):
    for data in (rare, thousandfold):
        here("train", "-q", "--loss", "f1", "--scale", scale, data, tmp_path / "f1")
        here("train", "-q", "--loss", "zero-one", "--scale", scale, data, tmp_path / "zero-one")
        assert measured("F1", data, tmp_path / "f1") > 0.4
        assert measured("Accuracy", data, tmp_path / "zero-one") > 0.98 + 1 / ROWS


def test_its_size_is_that_of_the_features(rare, thousandfold, here, tmp_path):
    """So that the scale of the features changes no classifier."""
    for data in (rare, thousandfold):
        here("train", "-q", "--loss", "f1", "--scale", "none", data, tmp_path / data.stem)
    one, other = (load_model(tmp_path / name) for name in ("rare", "thousandfold"))
    assert one.header.features.bias == pytest.approx(10.0 * (1.0 * 20.0 * 0.3) ** (1 / 3), rel=0.1)
    assert other.header.features.bias == pytest.approx(1000.0 * one.header.features.bias, rel=1e-12)
    np.testing.assert_allclose(1000.0 * other.coef, one.coef, rtol=1e-5)
    assert other.intercept == pytest.approx(one.intercept, rel=1e-5)


def test_naming_it_gives_the_same_model(rare, here, tmp_path):
    here("train", "-q", "--loss", "zero-one", rare, tmp_path / "auto")
    bias = load_model(tmp_path / "auto").header.features.bias
    here("train", "-q", "--loss", "zero-one", rare, tmp_path / "named", "-B", bias)
    assert (tmp_path / "auto").read_bytes() == (tmp_path / "named").read_bytes()


@pytest.mark.parametrize("value", ["much", "nan", "inf", "1e999", ""])
def test_what_it_cannot_be(value, rare, here, tmp_path):
    said = here("train", "--loss", "f1", rare, tmp_path / "m", "-B", value, code=2).stderr
    assert "expected a finite number, auto or none" in said


def test_features_that_do_not_vary_or_are_not_there(here, tmp_path):
    (tmp_path / "same").write_text("1 1:2\n-1 1:2\n" * 3)
    (tmp_path / "none").write_text("1\n-1\n" * 3)
    for data in ("same", "none"):
        here("train", "-q", "--loss", "f1", tmp_path / data, tmp_path / "m", code=3)
        assert load_model(tmp_path / "m").header.features.bias == 10.0


def test_a_class_gets_what_it_gets_alone(rare, here, tmp_path):
    here("train", "-q", "--one-vs-rest", "--loss", "f1", rare, tmp_path / "all")
    here("train", "-q", "--positive-label", 1, "--loss", "f1", rare, tmp_path / "one")
    of_all, alone = load_any_model(tmp_path / "all").ranker(1.0), load_model(tmp_path / "one")
    assert of_all.coef.tobytes() == alone.coef.tobytes()
    assert of_all.intercept == alone.intercept != 0.0
    assert of_all.header.features.bias == alone.header.features.bias is not None


def test_verify_info_and_warm_starts_know_it(rare, here, tmp_path):
    here("train", "-q", "--loss", "f1", "-C", 100, "-e", 1e-5, rare, tmp_path / "m")
    before = load_model(tmp_path / "m")
    here("verify", tmp_path / "m", rare)
    assert f"a constant feature of {before.header.features.bias:g}" in here("info", tmp_path / "m").stdout
    here("train", "-q", "--loss", "f1", "-C", 100, "-e", 1e-5, rare, tmp_path / "again", "--warm-start", tmp_path / "m")
    again = load_model(tmp_path / "again")
    assert again.header.iterations < before.header.iterations
    np.testing.assert_allclose(again.score(np.eye(3)), before.score(np.eye(3)), rtol=0.05)


def compared(here, data, *options):
    """Of each loss the values of its settings in the folds."""
    told = json.loads(here("cv", "-q", data, "--json", "-", "-C", "1x", "--folds", 3, *options).stdout)
    return {one["loss"]: one for one in told["settings"]}


def test_cv_gives_each_loss_its_own(rare, here, tmp_path):
    """Losses over rankings beside them are as they are alone; and the model written is what was compared."""
    options = ("--scale", "standard", "--bound", "hinge", "-m", "Accuracy")
    both = compared(here, rare, "--loss", "ap,zero-one", *options, "-o", tmp_path / "m")
    alone = {**compared(here, rare, "--loss", "ap", *options), **compared(here, rare, "--loss", "zero-one", *options)}
    for loss in ("ap", "zero-one"):
        assert both[loss]["metrics"] == alone[loss]["metrics"], loss
    assert both["zero-one"]["metrics"]["Accuracy"]["mean"] > 0.98
    none = compared(here, rare, "--loss", "zero-one", *options, "-B", "none")
    assert none["zero-one"]["metrics"]["Accuracy"]["mean"] < 0.95
    header = load_model(tmp_path / "m").header
    assert header.features.bias == (10.0 if header.loss == "zero-one" else None)


def test_the_advice_where_nothing_is_ranked(rare, here, tmp_path):
    """No bound is tight for these losses; what they lack is a constant."""
    options = ("-q", "--loss", "f1", "--scale", "standard", "-B", "none")
    said = here("train", *options, rare, tmp_path / "m", code=3).stderr
    assert (
        "Try a constant feature (this loss needs one), a larger C, --loss ap, whose model has a threshold too" in said
    )
    assert "--bound" not in said
    (tmp_path / "same").write_text("1 1:2\n-1 1:2\n-1 1:2\n")
    said = here("train", *options[:3], tmp_path / "same", tmp_path / "m", code=3).stderr
    assert said.endswith(
        ": this model ranks nothing: all training rows have the same score. Try a larger C, --loss ap, whose "
        "model has a threshold too, or features that vary\n"
    )
