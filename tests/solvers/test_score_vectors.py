"""Score vectors as handles: the solvers work on vectors that they cannot look into, and come to the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from apsvm.solvers.cutting_plane import Solver
from apsvm.solvers.line_search import AfterLineSearch, AtTheQPsPoint
from apsvm.solvers.qp import BACKENDS
from apsvm.solvers.quasi_newton import descend
from apsvm.solvers.score_space import ArrayVectors, ScoreFunction, Tangent
from apsvm.solvers.smooth import SEARCHES, Limits, minimise
from apsvm.solvers.state import State


class Handle:
    """A vector that lies elsewhere: nothing can be done with it here."""

    __slots__ = ("hidden",)

    def __init__(self, array):
        self.hidden = array


class HandleVectors:
    """What ``ArrayVectors`` does, where the vectors are."""

    def __init__(self, size):
        self._arrays = ArrayVectors(size)
        self.made = 0

    def empty(self):
        self.made += 1
        return Handle(self._arrays.empty())

    def add(self, x, t, y, out):
        assert out is not x
        self._arrays.add(x.hidden, t, y.hidden, out.hidden)

    def move(self, x, t, y):
        self._arrays.move(x.hidden, t, y.hidden)

    def subtract(self, x, y, out):
        self._arrays.subtract(x.hidden, y.hidden, out.hidden)

    def scale(self, t, x, out):
        self._arrays.scale(t, x.hidden, out.hidden)

    def absolute(self, x, out):
        self._arrays.absolute(x.hidden, out.hidden)

    def dot(self, x, y):
        return self._arrays.dot(x.hidden, y.hidden)


class Here(ScoreFunction):
    """A mean of ℓ(s_i) over rows, its vectors arrays."""

    lower_bound = 0.0

    def __init__(self, X, phi, slope):
        self.X, self.phi, self.slope = X, phi, slope
        self.arrays = ArrayVectors(X.shape[0])

    @property
    def n_scores(self):
        return self.X.shape[0]

    @property
    def vectors(self):
        return self.arrays

    def scores(self, w, out=None):
        return np.matmul(self.X, w, out=out)

    def tangent(self, scores, slopes):
        slopes[:] = self.slope(scores) / scores.size
        return Tangent(float(self.phi(scores).mean()))

    def combine(self, slopes):
        return self.X.T @ slopes


class Elsewhere(Here):
    """The same function, its vectors handles."""

    def __init__(self, X, phi, slope):
        super().__init__(X, phi, slope)
        self.handles = HandleVectors(X.shape[0])

    @property
    def vectors(self):
        return self.handles

    def scores(self, w, out=None):
        out = self.handles.empty() if out is None else out
        super().scores(w, out.hidden)
        return out

    def tangent(self, scores, slopes):
        return super().tangent(scores.hidden, slopes.hidden)

    def combine(self, slopes):
        return super().combine(slopes.hidden)


def hinge(X):
    return X, lambda s: np.maximum(0.0, 1.0 - s), lambda s: np.where(s < 1.0, -1.0, 0.0)


def ramp(X):
    return X, lambda s: np.clip(1.0 - s, 0.0, 1.0), lambda s: np.where((s > 0.0) & (s < 1.0), -1.0, 0.0)


def logistic(X):
    return X, lambda s: np.logaddexp(0.0, -s), lambda s: -1.0 / (1.0 + np.exp(s))


def by_planes(cutter):
    return lambda risk: Solver(cutter(risk), 6, BACKENDS["auto"]()).minimise(100.0, epsilon=1e-4).w


def by_search(name):
    return lambda risk: minimise(risk, 6, 1e-3, SEARCHES[name](), Limits(1e-8)).w


@pytest.mark.parametrize(
    ("function", "solve"),
    [
        (hinge, by_planes(AfterLineSearch)),
        (hinge, by_planes(AtTheQPsPoint)),
        (logistic, by_planes(AfterLineSearch)),
        (logistic, by_search("lbfgs")),
        (logistic, by_search("prcg")),
        (ramp, lambda risk: descend(risk, 100.0, np.ones(6), enough=1e-6)),
    ],
    ids=["line search", "planes", "planes of a smooth risk", "L-BFGS", "CG", "kinks"],
)
def test_the_solvers_never_look_into_a_vector(function, solve, rng):
    X = rng.normal(size=(80, 6)) + 0.4
    elsewhere = Elsewhere(*function(X))
    w = solve(elsewhere)
    assert w.any()
    np.testing.assert_array_equal(w, solve(Here(*function(X))))
    # However many iterations: vectors are used again.
    assert 2 <= elsewhere.handles.made <= 20


def test_a_line_search_holds_four_vectors(rng):
    """The scores, their change, and slopes at two points: memory of large data is mostly this."""
    X = rng.normal(size=(300, 6)) + 0.2
    elsewhere = Elsewhere(*hinge(X))
    solution = Solver(AfterLineSearch(elsewhere), 6, BACKENDS["auto"]()).minimise(300.0, epsilon=1e-6)
    assert solution.state is State.CONVERGED
    assert solution.iterations > 10
    assert elsewhere.handles.made == 4


def test_array_vectors(rng):
    vectors = ArrayVectors(7)
    x, y, out = rng.normal(size=(3, 7))
    vectors.add(x, 0.3, y, out)
    np.testing.assert_array_equal(out, x + 0.3 * y)
    vectors.subtract(x, y, out)
    np.testing.assert_array_equal(out, x - y)
    moved = x.copy()
    vectors.move(moved, 0.3, y)
    np.testing.assert_array_equal(moved, x + 0.3 * y)
    vectors.scale(-2.5, x, out)
    np.testing.assert_array_equal(out, -2.5 * x)
    vectors.absolute(x, out)
    np.testing.assert_array_equal(out, np.abs(x))
    assert vectors.dot(x, y) == pytest.approx(float(np.sum(x * y)))
    assert vectors.empty().shape == (7,)
    for operation in (lambda: vectors.subtract(x, y, y), lambda: vectors.add(x, 2.0, y, y)):
        x0, y0 = x.copy(), y.copy()
        operation()
        np.testing.assert_array_equal(x, x0)
        assert not np.array_equal(y, y0)
