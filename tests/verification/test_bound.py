"""Lower bounds of convex problems, pinned between what is proved and what is met."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from apsvm.data.features.scaling import NO_SCALING
from apsvm.verification.bound import Claim, Convex, Limits, exact_scores, prove
from apsvm.verification.exact import UNIT, float64_error
from apsvm.verification.plain import definition_of
from apsvm.verification.risk import PlainRisk, Plane, Units, tasks_of
from apsvm.verification.rows import PlainRows


def problem_of(X, relevant, loss, C, costs=None):
    """½‖w‖² + C·hinge, and its value at w = 0."""
    rows, definition = PlainRows(X, NO_SCALING, None), definition_of(loss)
    risk = PlainRisk(definition, tasks_of(definition, relevant, costs=costs), Units(len(X)))
    through_0 = Plane(0.0, 0.0, np.zeros(len(X)))
    w = np.zeros(X.shape[1])
    problem = Convex(
        rows,
        risk.hinge,
        risk.rounding,
        risk.largest_loss,
        through_0,
        C,
        definition.level_free,
        rows.sizes(w + 1.0),
        0.0,
    )
    return problem, sum(problem.at(w, exact_scores(rows, w, level_free=definition.level_free)))


@pytest.mark.parametrize(
    ("loss", "scale", "C", "optimum", "most"),
    [
        ("ap", [1.0, 1.0, 1.0], 1000.0, 727.7247281798, 20),
        ("zero-one", [1.0, 1.0, 1.0], 1000.0, 755.7465602378, 20),
        ("ap", [1e6, 1.0, 1.0, 1e-3], 10.0, 5.646526857191, 20),
        ("zero-one", [1.0] * 140, 1.0, 0.192534125561, 20),
    ],
)
def test_the_optimum_lies_between(loss, scale, C, optimum, most):
    """It is shown that no point is lower, and that one is lower than what is claimed too high."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, len(scale)))
    problem, value = problem_of(X * scale, X[:, 0] + rng.normal(size=40) > 0.7, loss, C)
    w = np.zeros(len(scale))
    claim = Claim(optimum, 1e-7 * optimum, -np.inf)
    result = prove(problem, w, value, claim, 0.0, Limits(iterations=most))
    assert claim.proved_by(result.lower, result.slack)
    assert result.lower <= optimum * (1.0 + 1e-9)
    assert 0.0 < result.slack <= 1e-7 * optimum
    result = prove(problem, w, value, Claim(1.001 * optimum, 0.0, -np.inf), 0.0, Limits(iterations=most))
    assert optimum * (1.0 - 1e-9) <= result.lowest < 1.001 * optimum


@pytest.mark.parametrize("cost", [1.0, 4.0])
@pytest.mark.parametrize(("C", "optimum"), [(0.5, 0.375), (4.0, 0.5), (1024.0, 0.5)])
def test_a_bound_that_is_proved_is_none_too_high(C, optimum, cost):
    """max(0, 1 − w) of one positive and one negative row at ±1: w = min(1, C)."""
    X, relevant = np.array([[1.0], [-1.0]]), np.array([True, False])
    problem, value = problem_of(X, relevant, "zero-one", C / cost, np.full(2, cost))
    result = prove(problem, np.zeros(1), value, Claim(optimum, 1e-9, -np.inf), 0.0, Limits(iterations=30))
    assert Fraction(result.lower) <= Fraction(optimum)
    assert result.lower == pytest.approx(optimum, rel=1e-12)
    # Of the loss, and of scores of size 1.
    assert result.slack == pytest.approx(float64_error(2) * 2.0 * min(C, 1.0), rel=1e-6, abs=0.0)
    if C < 1.0:  # of one plane: 17.5 units for its loss, 4 for α, 3 for the square
        assert (optimum - result.lower) / UNIT == pytest.approx(24.5, abs=0.4)


def test_every_plane_of_a_bound_is_rounded():
    """Two positives on axes of their own and their mirror images: w = (1, 1.2) is least, at the kink of the first."""
    X, relevant, C = (
        np.array([[1.0, 0.0], [0.0, 0.6], [-1.0, 0.0], [0.0, -0.6]]),
        np.array([True, True, False, False]),
        4.0,
    )
    problem, value = problem_of(X, relevant, "zero-one", C)
    optimum, square = 1.78, 1.0 + 1.2**2
    result = prove(problem, np.zeros(2), value, Claim(optimum, 1e-9, -np.inf), 0.0, Limits(iterations=30))
    # α = 2 of the plane of all rows, of offset 1, and 1 + 1 of that of the second axis, of ½: 39 units for the losses,
    # 16 for α, 19 for the slopes of all planes, 3 for the square.
    assert (optimum - result.lower) / UNIT == pytest.approx(39.0 * C + 16.0 * (3.0 - square) + 22.0 * square, rel=0.03)


def test_what_a_claim_is():
    claim = Claim(lower=2.0, open=0.25, least=1.0)
    assert claim.proved_by(1.5, 0.25)
    assert not claim.proved_by(1.499, 0.25)
    assert claim.refuted(1.749, 0.25)
    assert not claim.refuted(1.75, 0.25)
    assert claim.proved_by(1.0, 2.0)
    assert not claim.proved_by(0.999, 2.0)
    assert claim.refuted(0.999, 2.0)
    assert not claim.refuted(1.0, 2.0)
