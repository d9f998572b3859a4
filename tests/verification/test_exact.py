"""Sums and products without rounding, against fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from apsvm.data.features.scaling import Scaling
from apsvm.verification.exact import dot, products, total
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
    import scipy.sparse as sp

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
