"""Quantities that the default C depends on, and quantities that it must not depend on."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from trainings import train_svm, training_set

from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.trainers.structured_svm import default_c


@pytest.fixture
def X(rng):
    return rng.normal(size=(200, 5)) * np.array([1.0, 1.0, 10.0, 100.0, 1e-2])


def data(X, groups=None, **more):
    relevant = np.arange(X.shape[0]) % 7 == 0
    return training_set(Rows(X, **more), relevant, groups)


def default_C(data, loss="ap", bound="hinge"):
    return default_c.default_C(data, make_loss(loss), bound)


#: Written out, so that a factor which somebody changes is noticed.
EXPECTED_FACTORS = {"hinge": (0.3, 0.01), "tight": (1.0, 0.5)}


def rule(factor: float, n: int, variance) -> float:
    d = len(variance)
    return factor * np.sqrt(n) * min(1 + n / d, 100) ** 2 / (d * np.prod(variance) ** (1 / d))


@pytest.mark.parametrize("bound", EXPECTED_FACTORS)
def test_the_rule(X, bound):
    one, several = EXPECTED_FACTORS[bound]
    groups = np.arange(200) // 20
    expected = rule(one, 200, X.var(axis=0))
    assert default_C(data(X), bound=bound) == pytest.approx(expected)
    assert default_C(data(X, np.full(200, 3)), bound=bound) == pytest.approx(expected)  # one query is none
    within = X.reshape(10, 20, 5).var(axis=1).mean(axis=0)
    assert default_C(data(X, groups), bound=bound) == pytest.approx(rule(several, 200, within))


def test_losses_over_rows(X):
    geometric = np.exp(np.log(X.var(axis=0)).mean())
    for loss in ("zero-one", "f1"):
        assert default_C(data(X), loss) == pytest.approx(5e4 / (5 * geometric))
        assert default_C(data(np.vstack([X, X])), loss) == pytest.approx(5e4 / (5 * geometric))


def test_sparse_as_dense(rng):
    X = rng.normal(size=(60, 8)) * (rng.random((60, 8)) < 0.3)
    groups = np.arange(60) // 12
    assert np.ptp(X.var(axis=0)) > 0
    for bias in (None, 1.0):
        for queries in (None, groups):
            sparse, dense = (default_C(data(matrix, queries, bias=bias)) for matrix in (sp.csr_array(X), X))
            assert sparse == pytest.approx(dense)


def test_constant_and_duplicate_columns(X):
    C = default_C(data(X))
    assert default_C(data(np.column_stack([X, np.full(200, 7.0), np.zeros(200)]))) == pytest.approx(C)
    twice = default_C(data(np.column_stack([X, X])))
    assert twice == pytest.approx(C / 2 * (21 / 41) ** 2)  # w needs half the square length, and is less certain


@settings(max_examples=50)
@given(
    seed=st.integers(0, 2**16),
    unit=st.floats(1e-6, 1e6),
    shift=st.floats(-100, 100),
    bound=st.sampled_from(["hinge", "tight"]),
    by_query=st.booleans(),
)
def test_equivariance(seed, unit, shift, bound, by_query):
    """All features a times as large: C / a²; another zero, another order of rows or columns: the same."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(4, 40), rng.integers(1, 6)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, size=d)
    groups = rng.integers(0, 3, size=n) if by_query else None
    C = default_C(data(X, groups), bound=bound)
    assert default_C(data(unit * X, groups), bound=bound) == pytest.approx(C / unit**2)
    moved = X + shift * X.std(axis=0)
    assert default_C(data(moved, groups), bound=bound) == pytest.approx(C, rel=1e-6)
    rows, columns = rng.permutation(n), rng.permutation(d)
    shuffled = X[rows][:, columns]
    assert default_C(data(shuffled, None if groups is None else groups[rows]), bound=bound) == pytest.approx(C)


def test_units_and_zeros_of_features_do_not_matter(X):
    """A change of unit leaves the ranking that is learned as it is; a constant feature counts for nothing."""
    C = default_C(data(X))
    assert default_C(data(30.0 * X)) == pytest.approx(C / 900.0)
    assert default_C(data(X + 5.0)) == pytest.approx(C, rel=1e-6)
    assert default_C(data(np.column_stack([X, np.full(200, 7.0)]))) == pytest.approx(C)
    w = [train_svm(data(a * X), C=default_C(data(a * X)), epsilon=1e-6).w for a in (1, 8)]
    assert 8 * w[1] == pytest.approx(w[0], rel=1e-3, abs=1e-3 * np.abs(w[0]).max())


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_nothing_varies(value):
    assert default_C(data(np.full((20, 3), value))) == 1.0


def test_too_large_to_square():
    X = np.ones((20, 2))
    X[::2] = 1e200
    assert default_C(data(X)) == 1.0


@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_the_most_for_a_loss_of_the_top(unit, rng):
    """A list whose first rows are all but tied asks for a C without end; it is bounded, in the features' own unit."""
    n = 4000
    first = np.where(np.arange(n) < 20, 1.0 - 1e-9 * np.arange(n), -np.linspace(0.0, 1.0, n))
    X = unit * np.column_stack([first, rng.normal(size=n)])
    listed = training_set(Rows(X), np.arange(n) % 10 < 5, None)
    w0 = np.array([1e-3, 0.0]) / unit
    C, why = default_c.default_C_at(listed, make_loss("p@10"), "auto", w0, "ap", 0.97)
    variance = X.var(axis=0)
    assert pytest.approx(default_c.MOST_OF_THE_TOP / (2.0 * np.sqrt(variance.prod())), rel=1e-9) == C
    assert "largest" in why
