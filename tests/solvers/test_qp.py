"""The working-set QP: every backend against the others, on growing and singular problems, with hard planes too."""

from __future__ import annotations

import numpy as np
import pytest
from over import over

from apsvm.solvers.certificate import feasible
from apsvm.solvers.qp import BACKENDS
from apsvm.solvers.qp.active_set import ActiveSet
from apsvm.solvers.qp.auto import Auto
from apsvm.solvers.qp.base import Backend, Problem, QPSolution
from apsvm.solvers.qp.cvxpy_clarabel import Cvxpy


def random_problem(rng, n_planes, dimension, C, *, hard=0, duplicates=0, scale=1.0) -> Problem:
    planes = scale * rng.normal(size=(n_planes, dimension))
    for _ in range(duplicates):
        planes[rng.integers(n_planes)] = planes[rng.integers(n_planes)]
    offsets = rng.random(n_planes)
    soft = np.ones(n_planes, dtype=bool)
    if hard:
        # Feasible by construction: w = e_1 satisfies every hard plane a·w + b ≤ 0.
        soft[:hard] = False
        planes[:hard, 0] = -np.abs(planes[:hard, 0]) - offsets[:hard]
    return Problem(planes @ planes.T, offsets, soft, C)


def objective(problem: Problem, alpha: np.ndarray) -> float:
    return float(problem.offsets @ alpha - 0.5 * alpha @ problem.gram @ alpha)


def test_feasible():
    alpha, soft = np.array([3.0, -1.0, np.nan, 5.0, 2.0]), np.array([True, True, True, False, True])
    given = alpha.copy()
    assert feasible(alpha, soft, 4.0).tolist() == pytest.approx([2.4, 0.0, 0.0, 5.0, 1.6])
    assert feasible(alpha, soft, 5.0).tolist() == [3.0, 0.0, 0.0, 5.0, 2.0]
    assert np.array_equal(alpha, given, equal_nan=True)


def test_a_start_at_the_limits_of_rounding_is_not_lost(rng):
    for _ in range(200):
        sizes = {"n_planes": int(rng.integers(2, 40)), "dimension": int(rng.integers(1, 10))}
        problem = random_problem(rng, C=float(10.0 ** rng.integers(-3, 5)), **sizes)
        first = ActiveSet().solve(problem, np.zeros(problem.offsets.size), 0.0)
        assert ActiveSet().solve(problem, first.alpha, 0.0).gap <= first.gap


@pytest.mark.parametrize(("soft", "gap"), [([False], 2.0), ([False, True], 3.0)])
def test_a_hard_plane_that_nothing_satisfies_shows_in_the_gap(soft, gap):
    n = len(soft)
    problem = Problem(np.zeros((n, n)), np.array([1.0, 0.5])[:n], np.array(soft), 2.0)
    solution = ActiveSet().solve(problem, np.zeros(n), 1e-9)
    assert solution.gap == problem.gap(solution.alpha) == gap


CASES = [
    {"n_planes": 1, "dimension": 3},
    {"n_planes": 12, "dimension": 30},
    {"n_planes": 60, "dimension": 5},  # far more planes than dimensions: singular
    {"n_planes": 30, "dimension": 8, "duplicates": 15},
    {"n_planes": 25, "dimension": 10, "hard": 6},
    {"n_planes": 6, "dimension": 4, "hard": 6},  # nothing soft
    {"n_planes": 20, "dimension": 30, "scale": 1e4},
    {"n_planes": 20, "dimension": 10, "scale": 1e-4},
]


@over("case", CASES, ids=str)
@over("C", [1e-3, 1.0, 1e4])
def test_backends_agree_and_are_certified(case, C, rng):
    for _ in range(3):
        problem = random_problem(rng, C=C, **case)
        start = np.zeros(problem.offsets.size)
        found = {name: BACKENDS[name]().solve(problem, start, 1e-9 * C) for name in BACKENDS}
        best = max(objective(problem, solution.alpha) for solution in found.values())
        for name, solution in found.items():
            alpha = solution.alpha
            assert (alpha >= 0).all(), name
            assert alpha[problem.soft].sum() <= C * (1 + 1e-12), name
            rounding = max(1e-14 * C, problem.rounding(alpha))
            assert solution.gap == pytest.approx(problem.gap(alpha), abs=rounding), name
            tolerance = max((1e-7 if name == "cvxpy" else 1e-9) * C, 10 * problem.rounding(alpha))
            assert solution.gap <= tolerance, name
            assert objective(problem, alpha) >= best - tolerance, name


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_active_set_is_certified_where_an_interior_point_method_is_not(scale, rng):
    """Singular and badly scaled."""
    for _ in range(10):
        problem = random_problem(rng, 40, 10, 1e3, scale=scale)
        solution = ActiveSet().solve(problem, np.zeros(40), 1e-9)
        assert solution.gap <= max(1e-6, 10 * problem.rounding(solution.alpha))


def test_the_gap_bounds_the_error(rng):
    for _ in range(50):
        problem = random_problem(rng, 15, 6, 2.0)
        optimum = objective(problem, ActiveSet().solve(problem, np.zeros(15), 1e-12).alpha)
        alpha = rng.random(15) * rng.choice([0.0, 1.0], size=15)
        alpha *= rng.random() * 2.0 / max(alpha.sum(), 1e-9)
        assert optimum - objective(problem, alpha) <= problem.gap(alpha) + 1e-12


def test_warm_starts_along_a_growing_problem(rng):
    planes = rng.normal(size=(320, 40))
    offsets = rng.random(320)
    alpha = np.zeros(0)
    for t in range(1, 321):
        problem = Problem(planes[:t] @ planes[:t].T, offsets[:t], np.ones(t, dtype=bool), 10.0)
        alpha = np.append(alpha, 0.0)
        solution = ActiveSet().solve(problem, alpha, 1e-9)
        assert solution.gap <= 1e-9
        alpha = solution.alpha


@pytest.mark.parametrize("huge", [1e4, 1e8])
def test_one_huge_plane_does_not_spoil_the_others(huge, rng):
    """Rounding is measured by the planes with an α, not by all."""
    for _ in range(10):
        planes = rng.normal(size=(15, 20))
        planes[3] *= huge
        offsets = rng.random(15)
        offsets[3] = -30.0 * huge
        problem = Problem(planes @ planes.T, offsets, np.ones(15, dtype=bool), 10.0)
        solution = ActiveSet().solve(problem, np.zeros(15), 1e-9)
        assert solution.alpha[3] == 0.0
        assert solution.gap <= 1e-9


def test_the_factor_that_is_kept_gives_what_a_fresh_one_gives(rng):
    """Planes come and go, some of them near copies of others; C and the offsets change as well."""
    planes, offsets = rng.normal(size=(200, 15)), rng.random(200)
    for t in range(0, 200, 5):
        planes[t] = planes[(t * 7) % 200] + rng.choice([0.0, 1e-9, 1e-4]) * rng.normal(size=15)
    soft = np.arange(200) % 11 > 0
    planes[~soft, 0] = -np.abs(planes[~soft, 0]) - offsets[~soft]
    kept, alpha_of, there = ActiveSet(), np.zeros(200), np.zeros(200, dtype=bool)
    for t in range(200):
        there[t] = True
        if t % 9 == 8:
            there[rng.integers(t)] = False
        at = np.flatnonzero(there)
        C = 10.0 if t % 20 else float(rng.choice([1.0, 100.0]))
        moved = offsets[at] + (planes[at] @ rng.normal(size=15) if t % 30 == 29 else 0.0)
        problem = Problem(planes[at] @ planes[at].T, moved, soft[at], C, at)
        ours, fresh = kept.solve(problem, alpha_of[at], 1e-10), ActiveSet().solve(problem, np.zeros(at.size), 1e-10)
        assert ours.gap <= max(1e-10, problem.rounding(ours.alpha))
        assert objective(problem, ours.alpha) == pytest.approx(objective(problem, fresh.alpha), rel=1e-12, abs=1e-10)
        alpha_of[:] = 0.0
        alpha_of[at] = ours.alpha


def test_null_planes_are_harmless():
    problem = Problem(np.zeros((2, 2)), np.zeros(2), np.ones(2, dtype=bool), 1.0)
    for name in BACKENDS:
        assert BACKENDS[name]().solve(problem, np.zeros(2), 1e-9).gap == 0.0


class GivesUp(Backend):
    name = "gives-up"

    def solve(self, problem, start, tolerance):
        return QPSolution(start, problem.gap(start), self.name)


def test_auto_falls_back_with_a_record(rng, monkeypatch):
    problem = random_problem(rng, 10, 20, 5.0)
    auto = Auto()
    usual = auto.solve(problem, np.zeros(10), 1e-6)
    assert (usual.backend, usual.fell_back) == ("active-set", None)
    monkeypatch.setattr(auto, "_first", GivesUp())
    helped = auto.solve(problem, np.zeros(10), 1e-6)
    assert helped.backend == "cvxpy"
    assert "left a gap of" in helped.fell_back
    assert objective(problem, helped.alpha) == pytest.approx(objective(problem, usual.alpha), abs=1e-6)


def test_cvxpy_keeps_a_good_start(rng):
    problem = random_problem(rng, 10, 20, 5.0)
    good = ActiveSet().solve(problem, np.zeros(10), 1e-10).alpha
    np.testing.assert_array_equal(Cvxpy().solve(problem, good, 1e-6).alpha, good)


@pytest.mark.parametrize(("scale", "C"), [(1e150, 1e10), (1.0, 1e300), (1e-140, 1e-300)])
def test_beyond_floating_point(scale, C, rng):
    """No backend fails where the problem, or a unit of it, overflows: the gap says what the solution is worth."""
    problem = random_problem(rng, 3, 20, C, scale=scale)
    with np.errstate(over="ignore", invalid="ignore"):
        for name in BACKENDS:
            solution = BACKENDS[name]().solve(problem, np.zeros(3), 1e-6 * C)
            assert (solution.alpha >= 0).all(), name
            assert not np.isnan(solution.gap), name


@pytest.mark.parametrize("seed", [9, 18])
def test_what_cvxpy_thinks_of_an_answer_is_not_heard(seed):
    """It warns that it may be inaccurate; the gap says how much."""
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 12)
    A = rng.normal(size=(n, rng.integers(1, 5))) * 10.0 ** rng.integers(-8, 8, size=(n, 1))
    offsets = rng.normal(size=n) * 10.0 ** rng.integers(-4, 4)
    C, soft = 10.0 ** rng.integers(-6, 9), rng.random(n) < 0.8
    problem = Problem(gram=A @ A.T, offsets=offsets, C=C, soft=soft)
    solution = Cvxpy().solve(problem, np.zeros(n), 1e-9)
    assert solution.gap == problem.gap(solution.alpha)
