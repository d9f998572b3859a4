"""Quasi-Newton descent of what is not smooth: known minima, that it only falls, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from apsvm.solvers.quasi_newton import descend
from apsvm.solvers.score_space import ScoreFunction, Tangent


@dataclass
class Scores(ScoreFunction):
    """r of Xw, given as value and slopes."""

    X: np.ndarray
    function: object
    evaluations: int = 0

    @property
    def n_scores(self):
        return self.X.shape[0]

    def scores(self, w, out=None):
        return np.matmul(self.X, w, out=out)

    @property
    def lower_bound(self):
        return 0.0

    def tangent(self, scores, slopes):
        self.evaluations += 1
        value, slopes[:] = self.function(scores)
        return Tangent(value)

    def combine(self, slopes):
        return self.X.T @ slopes


def logistic(scores):
    return float(np.logaddexp(0.0, -scores).sum()), -1.0 / (1.0 + np.exp(scores))


def absolute(targets):
    """Σ|s − t|: a kink a score."""
    return lambda scores: (float(np.abs(scores - targets).sum()), np.sign(scores - targets))


def ramp(scores):
    """Σ min(1, max(0, 1 − s)): kinks, and not convex."""
    return float(np.clip(1.0 - scores, 0.0, 1.0).sum()), np.where((scores > 0.0) & (scores < 1.0), -1.0, 0.0)


def test_a_smooth_minimum(rng):
    X = rng.normal(size=(200, 8))
    C = 3.0
    expected = minimize(lambda w: 0.5 * w @ w + C * logistic(X @ w)[0], np.zeros(8), method="BFGS", tol=1e-10)
    w = descend(Scores(X, logistic), C, np.zeros(8), enough=1e-12)
    np.testing.assert_allclose(w, expected.x, atol=1e-4)
    assert 0.5 * w @ w + C * logistic(X @ w)[0] == pytest.approx(expected.fun, rel=1e-9)


def test_a_minimum_on_kinks(rng):
    """Least absolute deviations, whose minimum is also had as a linear programme of the dual; here by a path of smooth
    approximations √(x² + δ²)."""
    X, targets, C = rng.normal(size=(60, 5)), rng.normal(size=60), 2.0

    def smooth(w, delta):
        return 0.5 * w @ w + C * np.sqrt((X @ w - targets) ** 2 + delta**2).sum()

    best = np.zeros(5)
    for delta in 10.0 ** -np.arange(0, 7):
        best = minimize(smooth, best, args=(delta,), method="BFGS").x
    lowest = smooth(best, 0.0)
    for start in (np.zeros(5), rng.normal(size=5)):
        w = descend(Scores(X, absolute(targets)), C, start, enough=1e-9)
        assert smooth(w, 0.0) <= lowest * (1 + 1e-3)


def test_it_only_falls_and_counts(rng):
    X, C = rng.normal(size=(300, 6)), 10.0
    problem = Scores(X, ramp)
    steps = []
    start = rng.normal(size=6)
    w = descend(problem, C, start, enough=1e-6, on_step=steps.append)
    values = [0.5 * start @ start + C * ramp(X @ start)[0], *(step.objective for step in steps)]
    assert all(after < before for before, after in pairwise(values))
    assert values[-1] == pytest.approx(0.5 * w @ w + C * ramp(X @ w)[0], rel=1e-12)
    assert [step.number for step in steps] == sorted({step.number for step in steps})


def test_it_ends(rng):
    X = rng.normal(size=(50, 4))
    start = rng.normal(size=4)
    assert descend(Scores(X, ramp), 5.0, start, enough=1e-9, should_stop=lambda: True) is start
    steps = []
    descend(Scores(X, logistic), 5.0, start, enough=0.0, max_iterations=3, on_step=steps.append)
    assert len(steps) == 3
    # At a stationary point there is nowhere to go.
    assert not descend(Scores(X, lambda s: (1.0, np.zeros(50))), 5.0, np.zeros(4), enough=1e-9).any()


def test_features_of_different_scale(rng):
    """Told how J curves, it goes where it goes with features of one scale."""
    X, scale, C = rng.normal(size=(400, 20)), np.geomspace(1e-3, 1e3, 20), 1e6
    targets = X @ rng.normal(size=20) + 0.5 * rng.normal(size=400)
    values = []
    for curvature in (None, scale**2):
        w = descend(Scores(X * scale, absolute(targets)), C, np.zeros(20), enough=1e-3 * C, curvature=curvature)
        values.append(absolute(targets)(X * scale @ w)[0])
    lowest = absolute(targets)(X @ descend(Scores(X, absolute(targets)), C, np.zeros(20), enough=1e-3 * C))[0]
    assert values[1] <= 1.01 * lowest < 0.9 * values[0]


class Troubled(Scores):
    """Not finite from its fifth evaluation on."""

    def tangent(self, scores, slopes):
        if self.evaluations >= self.most:
            raise FloatingPointError("not finite")
        return super().tangent(scores, slopes)


def test_trouble_ends_with_the_lowest_point(rng):
    X, C, start = rng.normal(size=(300, 6)), 10.0, rng.normal(size=6)
    whole = []
    descend(Scores(X, ramp), C, start, enough=1e-6, on_step=whole.append)
    for most in (0, 5, 9):
        problem, steps = Troubled(X, ramp), []
        problem.most = most
        if most == 0:
            with pytest.raises(FloatingPointError):
                descend(problem, C, start, enough=1e-6)
            continue
        w = descend(problem, C, start, enough=1e-6, on_step=steps.append)
        assert 0 < len(steps) < len(whole)
        assert 0.5 * w @ w + C * ramp(X @ w)[0] == pytest.approx(steps[-1].objective, rel=1e-12)
