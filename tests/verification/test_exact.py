"""Sums and products without rounding, against fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from apsvm.data.features.scaling import UNIT_ROWS, Scaling
from apsvm.verification import rows as rows_module
from apsvm.verification.exact import UNIT, dot, float64_error, products, total
from apsvm.verification.rows import PlainRows

NUMBERS = st.floats(-1e60, 1e60).filter(lambda x: x == 0.0 or abs(x) > 1e-60)
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20)


@given(PAIRS)
def test_products_and_their_sums(pairs):
    a, b = np.array(pairs).T
    p, e = products(a, b)
    exact = [Fraction(x) * Fraction(y) for x, y in pairs]
    assert [Fraction(x) + Fraction(y) for x, y in zip(p.tolist(), e.tolist(), strict=True)] == exact
    high, low = dot(a, b)
    assert high == float(sum(exact))
    assert abs(Fraction(high) + Fraction(low) - sum(exact)) <= abs(sum(exact)) * Fraction(2) ** -100


def test_sums_that_are_not_finite():
    assert math.isnan(total([math.inf, -math.inf]))
    assert math.isnan(total([1e308] * 20))


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=2, max_size=8), st.booleans())
def test_scores_and_slopes_of_rows(rows, sparse):
    """Rounded once each, whatever cancels, of sums of twice as many digits."""
    X = np.array(rows)
    w, slopes, centre = X[0] + 1.0, X[:, 1] - 2.0, X[-1] / 3.0
    plain = PlainRows(sp.csr_array(X) if sparse else X, Scaling("standard", None, centre), 0.5)

    def check(found, terms):
        parts = [Fraction(x) * Fraction(y) for x, y in terms]
        assert abs(Fraction(found) - sum(parts)) <= abs(sum(parts)) / 2**51 + sum(map(abs, parts)) / 2**100

    weights = np.append(w, 3.0)
    for row, score in zip(X, plain.exact_scores(weights, 7.0), strict=True):
        terms = [*zip(row, w, strict=True), *zip(-centre, w, strict=True), (0.5, 3.0), (-7.0, 1.0)]
        check(score, terms)
    for j, combined in enumerate(plain.exact_combine(slopes)[:-1]):
        check(combined, [*zip(X[:, j], slopes, strict=True), *((-centre[j], c) for c in slopes)])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("bias", "components"), [(None, 1), (0.5, 1), (3.0, 2)])
@pytest.mark.parametrize("scale", ["standard", "l2"])
def test_rows_are_those_of_their_definition(sparse, bias, components, scale, monkeypatch):
    """In blocks of two rows: scaled, centred, and with a constant feature."""
    monkeypatch.setattr(rows_module, "BLOCK", 6)
    monkeypatch.setattr(rows_module, "EXACT_BLOCK", 6)
    rng = np.random.default_rng(0)
    X = rng.normal((0.0, 2.0, -1.0), size=(11, 3))
    X[4] = 0.0
    if scale == "l2":
        scaling, centre, divisors = UNIT_ROWS, np.zeros(3), np.ones(3)
        expected = X / np.maximum(np.linalg.norm(X, axis=1), 1e-300)[:, None]
    else:
        centre, divisors = np.array([0.5, 2.0, -1.0]), np.array([1.0, 2.0, 0.25])
        scaling = Scaling("standard", divisors, centre)
        expected = (X - centre) / divisors
    plain = PlainRows(sp.csr_array(X) if sparse else X, scaling, bias, components)
    if scale == "l2" and components == 1:
        plain, centre = plain.around_their_mean(), expected.mean(axis=0)
        expected = expected - centre
    unscaled = expected * divisors + centre
    apart = (np.abs(unscaled) + np.abs(centre)) / divisors

    def of_instances(parts):
        with_bias = parts if bias is None else np.column_stack([parts, np.full(11, bias)])
        return np.array([np.kron(one, row) for row in with_bias for one in np.eye(components)])

    Z, magnitudes = of_instances(expected), of_instances(apart)
    combined = magnitudes if sparse else np.abs(Z)
    w, slopes = rng.normal(size=Z.shape[1]), rng.normal(size=Z.shape[0])
    assert (plain.count, plain.columns) == (Z.shape[0], 3)
    for found, wanted in (
        (plain.scores(w), Z @ w),
        (plain.exact_scores(w, 0.75), Z @ w - 0.75),
        (plain.combine(slopes), slopes @ Z),
        (plain.exact_combine(slopes), slopes @ Z),
        (plain.sizes(w), magnitudes @ np.abs(w)),
        (plain.combined_sizes(np.abs(slopes)), np.abs(slopes) @ combined),
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    constant, size = plain.constant(np.array([1.0, -2.0, 3.0]))
    assert (constant, size) == (pytest.approx(-centre @ [1.0, -2.0, 3.0]), pytest.approx(np.abs(centre) @ [1, 2, 3]))
    spread = Z @ plain.directions()
    np.testing.assert_allclose(spread.T @ spread, 11 * np.eye(Z.shape[1]), atol=1e-9)


def test_what_rounding_may_do():
    assert float64_error(10_000) == 632.0 * UNIT
