"""Steps to a level of the model, and which level."""

from __future__ import annotations

import numpy as np
import pytest

from apsvm.solvers import levels
from apsvm.solvers.cutting_plane import Solver
from apsvm.solvers.levels import BAND, FIRST_BLOCK, HEIGHTS, Heights, Levels
from apsvm.solvers.line_search import AfterLineSearch
from apsvm.solvers.qp import BACKENDS
from apsvm.solvers.score_space import Tangent
from apsvm.solvers.state import State
from apsvm.solvers.working_set import WorkingSet
from tests.solvers.test_cutting_plane import Hinge


class Always:
    """One height."""

    def __init__(self, at):
        self._at = at

    def next(self, gap):
        return self._at


def model(working_set, w):
    """½‖w − c‖² + C·max(L, max_t a_t·w + b_t), from what was put in; inf where a hard plane is violated."""
    values = working_set.offsets_from(w)
    soft = working_set.problem().soft
    if (values[~soft] > 1e-9).any():
        return np.inf
    away = w - working_set.centre
    return 0.5 * away @ away + working_set.C * max(0.0, values[soft].max()) + working_set.dual_of_nothing


def random_working_set(rng, *, hard=0):
    working_set = WorkingSet(6, lower_bound=-0.5)
    working_set.C = 30.0
    working_set.recentre(rng.normal(size=6))
    for t in range(12):
        working_set.add(rng.normal(size=6), -3.0 if t < hard else rng.normal(), soft=t >= hard)
    return working_set


@pytest.mark.parametrize("hard", [0, 2])
@pytest.mark.parametrize("at", [1, 2])
def test_a_step_is_the_projection_onto_its_level(at, hard, rng, monkeypatch):
    """Against cvxpy, which is told how high the step came out."""
    import cvxpy as cp

    monkeypatch.setattr(levels, "Heights", lambda: Always(at))
    for _ in range(4):
        working_set = random_working_set(rng, hard=hard)
        problem = working_set.problem()
        _, dual = working_set.accept(BACKENDS["active-set"]().solve(problem, np.zeros(12), 1e-10).alpha)
        best = 0.1 * rng.normal(size=6)
        primal = model(working_set, best) + 1.0
        steps = Levels()
        for _ in range(5):  # each begins where the last one ended
            point = steps.step(working_set, best, primal, dual, 1e-6)
        height = model(working_set, point)
        assert abs((height - dual) / (primal - dual) - HEIGHTS[at]) <= BAND + 1e-9
        w = cp.Variable(6)
        values = working_set._planes[:12] @ w + working_set._offsets[:12]
        slack = cp.maximum(0.0, cp.max(values[hard:]))
        below = 0.5 * cp.sum_squares(w - working_set.centre) + 30.0 * slack + working_set.dual_of_nothing <= height
        constraints = [below, *([values[:hard] <= 0.0] if hard else [])]
        cp.Problem(cp.Minimize(cp.sum_squares(w - best)), constraints).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(point, w.value, atol=2e-4)


def test_a_level_near_the_minimum_is_reached(rng, monkeypatch):
    """From θ = ½ upwards, in two steps."""
    monkeypatch.setattr(levels, "Heights", lambda: Always(1))
    for _ in range(3):
        working_set, best, steps = random_working_set(rng), 0.1 * rng.normal(size=6), Levels()
        _, dual = working_set.accept(BACKENDS["active-set"]().solve(working_set.problem(), np.zeros(12), 1e-10).alpha)
        gap = 1e-4 * (model(working_set, best) - dual)
        for _ in range(2):
            point = steps.step(working_set, best, dual + gap, dual, 1e-6)
        assert abs((model(working_set, point) - dual) / gap - HEIGHTS[1]) <= BAND + 1e-9
        assert steps._ratios[1] > 8.0


def test_no_step_without_a_gap(rng):
    working_set = random_working_set(rng)
    for primal in (1.0, 0.5, np.inf, np.nan):
        assert Levels().step(working_set, np.zeros(6), primal, 1.0, 1e-3) is None


def test_steps_stay_finite_where_no_level_is_ever_reached(rng):
    """A dual bound that is far too high, or a primal one, for hundreds of steps."""
    working_set, steps = random_working_set(rng), Levels()
    for primal, dual in ((1e9, 1e8), (-1e8, -1e9)):
        for _ in range(300):
            point = steps.step(working_set, np.ones(6), primal, dual, 1e-3)
            assert point is None or np.isfinite(point).all()
    assert all(0.0 < ratio < np.inf for ratio in steps._ratios)


def choices(rate_of, n):
    """Choices of n iterations in which log(gap) falls by the rate of the choice."""
    heights, gap, result = Heights(), 1.0, []
    for _ in range(n):
        result.append(heights.next(gap))
        gap *= np.exp(-rate_of[result[-1]])
    return result


@pytest.mark.parametrize("best", [0, 1, 2])
def test_the_best_of_slow_ones_is_found_and_kept(best):
    rates = [0.05, 0.05, 0.05]
    rates[best] = 0.1
    result = choices(rates, 400)
    assert result[:FIRST_BLOCK] == [0] * FIRST_BLOCK
    assert set(result) == {0, 1, 2}
    assert np.mean(np.array(result) == best) > 0.8
    late = np.array(result[200:]) != best
    assert 0 < late.sum() < np.sum(np.array(result[:200]) != best)  # tried again, but ever less often


def test_what_has_become_slow_is_left():
    heights, gap, result = Heights(), 1.0, []
    for t in range(200):
        at = heights.next(gap)
        result.append(at)
        gap *= np.exp(-(0.1 if (at == 1) == (t < 100) else 0.01))
    assert np.mean(np.array(result[30:100]) == 1) > 0.7
    assert np.mean(np.array(result[130:]) == 1) < 0.3


class Mean(Hinge):
    """The mean of the rows' hinges."""

    def tangent(self, scores, slopes):
        margins = 1.0 - self.target @ scores
        active = margins > 0.0
        slopes[:] = -self.target[active].sum(axis=0) / margins.size
        return Tangent(self.lower_bound + margins[active].sum() / margins.size)


@pytest.mark.parametrize("lowest", [0.0, -3.0])
def test_levels_save_iterations_and_keep_the_bounds(lowest, rng, monkeypatch):
    """Rows with noise, of which many are active."""
    target = rng.normal(size=(3000, 30)) + 0.15
    seen = {}
    for name, heights in (("levels", Heights), ("plain", lambda: Always(0))):
        monkeypatch.setattr(levels, "Heights", heights)
        risk = Mean(target, lowest)
        iterations = []
        solution = Solver(AfterLineSearch(risk), 30, BACKENDS["auto"]()).minimise(
            1e4, epsilon=1e-5, on_iteration=iterations.append
        )
        assert solution.state is State.CONVERGED
        seen[name] = solution, iterations
    optimum = seen["plain"][0].certificate
    for solution, iterations in seen.values():
        assert solution.certificate.primal == pytest.approx(optimum.primal, abs=1e-5 * 1e4)
        assert all(one.certificate.dual <= optimum.primal + 1e-9 * abs(optimum.primal) for one in iterations)
        assert all(one.certificate.primal >= optimum.dual - 1e-9 * abs(optimum.primal) for one in iterations)
    assert seen["levels"][0].iterations < 0.8 * seen["plain"][0].iterations
