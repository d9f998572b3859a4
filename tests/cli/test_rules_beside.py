"""``apsvm train`` says where boosted rules rank held-out rows better, or worse, than the ranker that it has trained."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from apsvm import load_model

SAID = re.compile(r"^apsvm: boosted rules rank held-out rows (better|worse), by ([\d.]+) of AP \(5 folds", re.MULTILINE)


def rows_of(inside, n=600):
    rng = np.random.default_rng(4)
    X = np.round(rng.normal(size=(n, 4)), 3)
    hidden = X[:, 0] ** 2 + X[:, 1] ** 2 if inside else X.sum(axis=1) + 3.0
    return X, np.where(hidden + 0.2 * rng.normal(size=n) < 0.3, 1.0, -1.0)


@pytest.fixture(scope="module")
def disc(folder, write_rows):
    """Positive where two features are both near 0: no linear score tells."""
    return write_rows(folder / "disc.svm", *rows_of(inside=True))


@pytest.fixture(scope="module")
def sums(folder, write_rows):
    """Positive where the sum of the features is small."""
    return write_rows(folder / "sums.svm", *rows_of(inside=False))


def test_said_where_rules_are_better(disc, run, tmp_path):
    found = SAID.search(run("train", disc, tmp_path / "linear").stderr)
    assert found is not None
    assert found[1] == "better"
    assert run("train", disc, tmp_path / "rules", "--features", "rules").stderr.count("boosted rules") == 0
    X, y = rows_of(inside=True, n=3000)
    linear, rules = (
        average_precision_score(y[600:] > 0, load_model(tmp_path / name).score(X[600:])) for name in ("linear", "rules")
    )
    assert 0.3 < float(found[2]) < rules - linear + 0.15


def test_said_where_rules_are_worse(sums, run, tmp_path):
    """Steps are no match for a straight border."""
    found = SAID.search(run("train", sums, tmp_path / "m").stderr)
    assert found is not None
    assert found[1] == "worse"


def test_said_of_no_other_training(disc, sums, run, tmp_path):
    """Neither where nothing was held out, nor of another loss, or of named features."""
    for options in ((disc, "-q"), (disc, "-C", "1", "--bound", "hinge"), (disc, "--loss", "auc")):
        assert "boosted rules" not in run("train", options[0], tmp_path / "m", *options[1:]).stderr
    assert "boosted rules" not in run("train", disc, tmp_path / "m", "--features", "linear").stderr
