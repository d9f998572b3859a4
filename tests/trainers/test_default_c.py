"""What the default C depends on, and what it must not depend on."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from trainings import train_svm, training_set

from apsvm.data.features.scaling import learn_scaling
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.trainers import default_c
from apsvm.trainers.default_c import FACTOR_OVER_ROWS, FACTORS


@pytest.fixture
def X(rng):
    return rng.normal(size=(200, 5)) * np.array([1.0, 1.0, 10.0, 100.0, 1e-2])


def data(X, groups=None, **more):
    relevant = np.arange(X.shape[0]) % 7 == 0
    return training_set(Rows(X, **more), relevant, groups)


def default_C(data, loss="ap", bound="hinge"):
    return default_c.default_C(data, make_loss(loss), bound)


def test_the_rule(X):
    geometric = np.exp(np.log(X.var(axis=0)).mean())
    groups = np.arange(200) // 20
    for bound, (one, several) in FACTORS.items():
        assert default_C(data(X), bound=bound) == pytest.approx(one / (5 * geometric))
        assert default_C(data(X, np.full(200, 3)), bound=bound) == pytest.approx(one / (5 * geometric))
        within = np.exp(np.log(X.reshape(10, 20, 5).var(axis=1).mean(axis=0)).mean())
        assert default_C(data(X, groups), bound=bound) == pytest.approx(several / (5 * within))
    assert default_C(data(sp.csr_array(X), bias=1.0)) == pytest.approx(default_C(data(X)))
    for loss in ("zero-one", "f1"):
        assert default_C(data(X), loss) == pytest.approx(FACTOR_OVER_ROWS / (5 * geometric))


def test_units_and_zeros_of_features_do_not_matter(X):
    """A change of unit leaves the ranking that is learned as it is; a constant feature counts for nothing."""
    C = default_C(data(X))
    assert default_C(data(30.0 * X)) == pytest.approx(C / 900.0)
    assert default_C(data(X + 5.0)) == pytest.approx(C, rel=1e-6)
    assert default_C(data(np.column_stack([X, np.full(200, 7.0)]))) == pytest.approx(C)
    w = [train_svm(data(a * X), C=default_C(data(a * X)), epsilon=1e-6).w for a in (1, 8)]
    assert 8 * w[1] == pytest.approx(w[0], rel=1e-3, abs=1e-3 * np.abs(w[0]).max())


def test_of_scaled_rows(X):
    scaling = learn_scaling("standard", X)
    assert default_C(data(X, scaling=scaling)) == pytest.approx(FACTORS["hinge"][0] / 5)


def test_within_queries(X):
    """What all rows of a query share decides nothing between them; the 0-1 loss knows no queries."""
    groups = np.arange(200) // 20
    moved = X + 50.0 * groups[:, None]
    assert default_C(data(moved, groups)) == pytest.approx(default_C(data(X, groups)), rel=1e-6)
    assert default_C(data(moved, groups), "zero-one") < 0.1 * default_C(data(X, groups), "zero-one")


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_nothing_varies(value):
    assert default_C(data(np.full((20, 3), value))) == 1.0


def test_too_large_to_square():
    X = np.ones((20, 2))
    X[::2] = 1e200
    assert default_C(data(X)) == 1.0


def test_features_so_small_that_no_C_is_large_enough():
    values = 1e-160 * np.arange(8.0)
    assert default_C(training_set(values[:, None], np.arange(8) < 3)) == 1.0
