"""The direction of a quasi-Newton step, against the inverse Hessian that the two loops stand for."""

from __future__ import annotations

import numpy as np
import pytest
from over import over

from apsvm.solvers.quasi_newton import newton_direction


def inverse_hessian(diagonal, steps, changes, products):
    """The BFGS matrix, updated a pair at a time from a multiple of the diagonal (Nocedal and Wright, 7.16 to 7.20)."""
    H = np.diag(diagonal)
    if steps:
        H = H * (products[-1] / (changes[-1] @ H @ changes[-1]))
    for s, y, product in zip(steps, changes, products, strict=True):
        V = np.eye(diagonal.size) - np.outer(y, s) / product
        H = V.T @ H @ V + np.outer(s, s) / product
    return H


@over("n", [1, 7, 8, 30])
@over("m", [0, 1, 2, 10])
def test_it_is_minus_the_inverse_hessian_times_the_gradient(n, m, rng):
    gradient, diagonal = rng.normal(size=n), rng.random(n) + 0.5
    steps = list(rng.normal(size=(m, n)))
    changes = [step * (rng.random(n) + 0.1) for step in steps]
    products = [float(step @ change) for step, change in zip(steps, changes, strict=True)]
    expected = -inverse_hessian(diagonal, steps, changes, products) @ gradient
    found = newton_direction(gradient, diagonal, steps, changes, products)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9 * float(np.abs(expected).max()))


def test_a_change_that_underflows_leaves_the_diagonal_as_it_is():
    tiny = np.full(2, 1e-200)
    found = newton_direction(np.ones(2), np.array([1.0, 2.0]), [tiny], [tiny], [1e-3])
    assert found == pytest.approx([-1.0, -2.0])
