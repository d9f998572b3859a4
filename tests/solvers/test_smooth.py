"""Minimising λ/2 ‖w‖² + L(Xw): both searches on problems with known minimisers, and every way to stop."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from apsvm.solvers import nonlinear_cg
from apsvm.solvers.score_space import ScoreFunction, Tangent
from apsvm.solvers.smooth import SEARCHES, Limits, SmoothEvaluation, SmoothIteration, SmoothSolution, minimise
from apsvm.solvers.state import State


class Dense(ScoreFunction):
    """L(s) = Σ_i q_i φ(s_i − b_i) of a dense X, and how often X was passed over."""

    def __init__(self, X, b, phi, slope):
        self.X, self.b, self.phi, self.slope = X, b, phi, slope
        self.passes = self.evaluations = 0

    @property
    def n_scores(self):
        return self.b.size

    def scores(self, w, out=None):
        self.passes += 1
        return np.matmul(self.X, w, out=out)

    def slopes(self, scores, out):
        self.evaluations += 1
        out[:] = self.slope(scores - self.b)

    @property
    def lower_bound(self):
        return -np.inf

    def tangent(self, scores, slopes):
        self.slopes(scores, slopes)
        return Tangent(float(self.phi(scores - self.b).sum()))

    def combine(self, slopes):
        self.passes += 1
        return self.X.T @ slopes


def least_squares(rng, n=60, d=12):
    X = rng.normal(size=(n, d)) * np.geomspace(0.1, 10, d)
    return Dense(X, rng.normal(size=n), lambda r: r * r / 2, lambda r: r)


def logistic(rng, n=80, d=6):
    X = rng.normal(size=(n, d))
    return Dense(X, rng.normal(size=n), lambda r: np.logaddexp(0, -r), lambda r: -1 / (1 + np.exp(r)))


def quartic(rng, n=40, d=5):
    """Curvature that changes a lot along a line."""
    X = rng.normal(size=(n, d))
    return Dense(X, 5 * rng.normal(size=n), lambda r: r**4, lambda r: 4 * r**3)


def solve(problem, name, tolerance=1e-9, **more) -> SmoothSolution:
    limits = Limits(tolerance, **{key: more.pop(key) for key in list(more) if key in Limits.__slots__})
    return minimise(problem, problem.X.shape[1], 0.1, SEARCHES[name](), limits, **more)


@pytest.mark.parametrize("name", SEARCHES)
def test_least_squares(rng, name):
    problem = least_squares(rng)
    X = problem.X
    expected = np.linalg.solve(X.T @ X + 0.1 * np.eye(X.shape[1]), X.T @ problem.b)
    found = solve(problem, name, tolerance=1e-7)
    assert found.state is State.CONVERGED
    np.testing.assert_allclose(found.w, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("make", [logistic, quartic])
@pytest.mark.parametrize("name", SEARCHES)
def test_against_another_minimiser(rng, name, make):
    problem = make(rng)

    def objective(w):
        residual = problem.X @ w - problem.b
        return 0.05 * w @ w + problem.phi(residual).sum(), 0.1 * w + problem.X.T @ problem.slope(residual)

    reference = scipy_minimize(objective, np.zeros(problem.X.shape[1]), jac=True, method="BFGS", tol=1e-10)
    found = solve(problem, name)
    assert found.state is State.CONVERGED
    value, gradient = objective(found.w)
    assert found.objective == pytest.approx(value, rel=1e-13)
    assert found.gradient_norm == pytest.approx(np.abs(gradient).max(), abs=1e-9)
    assert found.objective == pytest.approx(reference.fun, rel=1e-9)
    np.testing.assert_allclose(found.w, reference.x, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", SEARCHES)
def test_what_is_told(rng, name):
    problem = logistic(rng)
    evaluations: list[SmoothEvaluation] = []
    iterations: list[SmoothIteration] = []
    found = solve(problem, name, on_evaluation=evaluations.append, on_iteration=iterations.append)
    assert [told.index for told in evaluations] == list(range(1, len(evaluations) + 1))
    assert found.evaluations == len(evaluations) == problem.evaluations
    # The last one checks the result, by scores that are computed afresh.
    assert (evaluations[-1].objective, evaluations[-1].gradient_norm) == (found.objective, found.gradient_norm)
    assert [told.index for told in iterations] == list(range(1, found.iterations + 1))
    assert iterations[-1].gradient_norm <= found.target * (1 + 1e-6)
    if name == "lbfgs":
        objectives = [told.objective for told in iterations]
        falls = -np.diff(objectives)
        assert (falls >= -1e-12 * np.abs(objectives[:-1])).all()  # to the last bit or two


@pytest.mark.parametrize("name", SEARCHES)
def test_the_first_trial_changes_scores_by_one(rng, name):
    problem, trials = logistic(rng), []
    solve(problem, name, on_evaluation=trials.append)
    step = next(trial.step for trial in trials if trial.step is not None)
    change = problem.X @ (problem.X.T @ problem.slope(-problem.b))
    assert step * np.sqrt(np.mean(change**2)) == pytest.approx(1.0)


@pytest.mark.parametrize("name", SEARCHES)
def test_limits(rng, name):
    problem = quartic(rng)
    whole = solve(problem, name)
    short = solve(problem, name, max_iterations=2)
    assert (short.state, short.iterations) == (State.ITERATION_LIMIT, 2)
    assert whole.objective < short.objective
    assert short.gradient_norm > short.target == pytest.approx(whole.target)
    exactly = solve(problem, name, max_iterations=whole.iterations)
    assert exactly.state is State.CONVERGED
    late = solve(problem, name, time_limit=0.0)
    assert (late.state, late.iterations) == (State.TIME_LIMIT, 0)
    asked: list[bool] = []

    def interrupt():
        asked.append(True)
        return len(asked) > 12

    stopped = solve(problem, name, should_stop=interrupt)
    assert stopped.state is State.INTERRUPTED
    assert stopped.evaluations == 14  # the thirteenth was the last of the search
    assert stopped.objective <= problem.tangent(problem.scores(0 * stopped.w), np.empty(problem.n_scores)).value


@pytest.mark.parametrize("name", SEARCHES)
def test_more_than_rounding_allows_is_called_stalled(rng, name):
    found = solve(logistic(rng), name, tolerance=1e-300)
    # The floor of what rounding leaves is asked for instead, or the search ends short of it; never a false claim.
    assert found.state is (State.CONVERGED if found.gradient_norm <= found.target else State.STALLED)
    assert found.gradient_norm < 1e-7


@pytest.mark.parametrize("name", SEARCHES)
def test_start(rng, name):
    problem = logistic(rng)
    whole = solve(problem, name)
    again = solve(problem, name, start=whole.w)
    assert (again.state, again.iterations) == (State.CONVERGED, 0)
    np.testing.assert_array_equal(again.w, whole.w)
    # From elsewhere it asks for the same.
    far = solve(problem, name, start=whole.w + 3.0)
    assert far.target == whole.target
    np.testing.assert_allclose(far.w, whole.w, rtol=1e-6, atol=1e-7)


class Troubled(Dense):
    """A problem with a method that raises FloatingPointError after some calls."""

    def __init__(self, problem, where, after):
        super().__init__(problem.X, problem.b, problem.phi, problem.slope)
        self.where, self.left = where, after

    def _check(self, where):
        self.left -= where == self.where
        if where == self.where and self.left < 0:
            self.where = None  # the result is looked at once more
            raise FloatingPointError("not finite")

    def scores(self, w, out=None):
        self._check("scores")
        return super().scores(w, out)

    def slopes(self, scores, out):
        self._check("slopes")
        super().slopes(scores, out)

    def combine(self, slopes):
        self._check("combine")
        return super().combine(slopes)


@pytest.mark.parametrize("where", ["scores", "slopes", "combine"])
@pytest.mark.parametrize("name", SEARCHES)
def test_late_trouble_ends_with_the_point_reached(rng, name, where):
    problem = logistic(rng)
    whole = solve(problem, name)
    with pytest.raises(FloatingPointError):
        solve(Troubled(problem, where, 0), name)
    for after in (5, 9):
        iterations: list[SmoothIteration] = []
        found = solve(Troubled(problem, where, after), name, on_iteration=iterations.append)
        assert (found.state, found.trouble) == (State.NUMERICAL_TROUBLE, "not finite")
        assert 0 < found.iterations == len(iterations) < whole.iterations
        slopes = np.empty(problem.n_scores)
        value = problem.tangent(problem.scores(found.w), slopes).value
        assert found.objective == 0.05 * found.w @ found.w + value
        assert found.gradient_norm == np.abs(0.1 * found.w + problem.combine(slopes)).max() > found.target
        at_zero = problem.tangent(np.zeros(problem.n_scores), slopes).value
        assert whole.objective < found.objective < at_zero


@pytest.mark.parametrize("make", [logistic, quartic, least_squares])
def test_quasi_newton_passes_twice_an_iteration(rng, make):
    problem = make(rng)
    found = solve(problem, "lbfgs", tolerance=1e-7)
    assert found.state is State.CONVERGED
    # X d and Xᵀc an iteration; at 0, with what rounding leaves there, and the end afresh.
    assert problem.passes == 2 * found.iterations + 5


def test_the_steepest_direction_without_a_step_is_the_end(rng, monkeypatch):
    tried = []

    def minimise(line, w, direction, slope, step):
        tried.append(direction)
        assert len(tried) < 5

    monkeypatch.setattr(nonlinear_cg._Line, "minimise", minimise)
    assert solve(logistic(rng), "prcg").state is State.STALLED
    assert len(tried) == 1
