"""The solver on risks whose minimiser is known, and its end states."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from apsvm.solvers import line_search
from apsvm.solvers.cutting_plane import Restoration, Solver
from apsvm.solvers.line_search import AfterLineSearch, AtTheQPsPoint
from apsvm.solvers.qp import BACKENDS
from apsvm.solvers.score_space import Tangent
from apsvm.solvers.state import State
from apsvm.solvers.working_set import IDLE_LIMIT, WorkingSet


class Hinge:
    """risk(w) = lowest + max(0, max_i (1 − t_i·w)): the SVM with the rows of target as margins. Its scores are w."""

    def __init__(self, target, lowest=0.0):
        self.target = np.asarray(target)
        self.n_scores = self.target.shape[1]
        self.lower_bound = lowest

    def scores(self, w, out=None):
        if out is None:
            return w
        out[:] = w
        return out

    def tangent(self, scores, slopes):
        margins = 1.0 - self.target @ scores
        worst = int(np.argmax(margins))
        if margins[worst] <= 0:
            slopes[:] = 0.0
            return Tangent(self.lower_bound, self.lower_bound)
        slopes[:] = -self.target[worst]
        return Tangent(self.lower_bound + float(margins[worst]), self.lower_bound + 1.0)

    def memo(self, slopes):
        return None

    def combine(self, slopes):
        return slopes.copy()

    def __call__(self, w):
        return self.tangent(w, np.empty(w.size)).value


CUTTERS = {"plain": AtTheQPsPoint, "line search": AfterLineSearch}


@pytest.fixture(params=CUTTERS)
def solve(request):
    """One run with either cutter, by the hinge's rows."""

    def call(target, C, backend=None, *, start=None, constraints=None, **options):
        risk = Hinge(target)
        cutter = CUTTERS[request.param](risk)
        backend = backend or BACKENDS["auto"]()
        solver = Solver(cutter, risk.target.shape[1], backend, start=start, constraints=constraints)
        return solver.minimise(C, **options)

    return call


@pytest.mark.parametrize("qp", list(BACKENDS))
def test_known_minimiser(qp, solve):
    # min ½w² + C max(0, 1 − 2w): w = min(2C, ½), by hand.
    for C, expected in ((0.1, 0.2), (0.25, 0.5), (10.0, 0.5)):
        solution = solve([[2.0]], C, BACKENDS[qp](), epsilon=1e-9)
        assert solution.state is State.CONVERGED
        assert solution.w[0] == pytest.approx(expected, abs=np.sqrt(2.0 * 1e-9 * C))  # strong convexity
        assert solution.certificate.primal == pytest.approx(0.5 * expected**2 + C * max(0.0, 1 - 2 * expected))


def test_bounds_hold_and_tighten_at_every_iteration(solve, rng):
    target = rng.normal(size=(200, 10)) + 0.3
    seen = []
    solution = solve(target, 100.0, epsilon=1e-6, on_iteration=seen.append)
    assert solution.state is State.CONVERGED
    optimum = solution.certificate.primal
    assert len(seen) == solution.iterations > 10
    for before, after in pairwise(seen):
        assert after.certificate.primal <= before.certificate.primal
        assert after.certificate.dual >= before.certificate.dual
    for iteration in seen:
        assert iteration.certificate.dual <= optimum + 1e-9 * optimum
        assert iteration.certificate.gap >= 0
    assert solution.certificate.primal == pytest.approx(
        0.5 * solution.w @ solution.w + 100.0 * Hinge(target)(solution.w), rel=1e-12
    )
    assert solution.risk == Hinge(target)(solution.w)


def test_end_states(solve, rng):
    target = rng.normal(size=(200, 20)) + 1.0
    assert solve(target, 1e3, epsilon=1e-9, max_iterations=3).state is State.ITERATION_LIMIT
    assert solve(target, 1e3, epsilon=1e-9, time_limit=0.0).state is State.TIME_LIMIT
    stopped = solve(target, 1e3, epsilon=1e-9, should_stop=lambda: True)
    assert (stopped.state, stopped.iterations) == (State.INTERRUPTED, 1)


class Rounded(Hinge):
    """Its values lie a little above its planes."""

    def tangent(self, scores, slopes):
        value, offset = super().tangent(scores, slopes)
        return Tangent(value + 1e-6, offset)


@pytest.mark.parametrize("cutter", CUTTERS.values(), ids=CUTTERS)
def test_a_gap_that_rounding_leaves_is_noticed(cutter, rng):
    risk = Rounded(rng.normal(size=(200, 20)) + 1.0)
    solution = Solver(cutter(risk), 20, BACKENDS["active-set"]()).minimise(1e3, epsilon=1e-7)
    assert solution.state is State.STALLED
    assert solution.certificate.gap == pytest.approx(1e-6 * 1e3, rel=1e-6)


def test_start_is_used(solve):
    seen = []
    solve([[2.0]], 10.0, start=np.array([0.5]), on_iteration=seen.append)
    assert seen[0].certificate.primal == pytest.approx(0.125)


def test_hard_constraints(solve):
    # min ½w² + C max(0, 1 + w) subject to w ≥ 2: w = 2, where the risk alone would have w = −1 or less.
    def constraints(w):
        violated = w[0] < 2.0
        point = np.array([max(w[0], 2.0)])
        planes, offsets = (np.array([[-1.0]]), np.array([2.0])) if violated else (np.empty((0, 1)), np.empty(0))
        return Restoration(point, planes, offsets)

    solution = solve([[-1.0]], 3.0, epsilon=1e-9, constraints=constraints)
    assert solution.state is State.CONVERGED
    assert solution.w[0] == pytest.approx(2.0)
    assert solution.certificate.dual == pytest.approx(2.0 + 3.0 * 3.0)


def test_values_beyond_floating_point_are_an_error(solve):
    with pytest.raises(FloatingPointError, match="scale them down"):
        solve([[1e200]], 1.0)


@pytest.mark.parametrize("two_sided", [True, False])
def test_the_minimum_of_a_quadratic_and_tangents(two_sided, rng):
    """Against a fine grid; the tangents are those of a random convex function, falling on the left, rising on the
    right."""
    inside = 0
    for _ in range(600):
        linear, square = rng.normal(), rng.choice([0.0, rng.random() * 3])
        lines = np.array([rng.normal(size=2) for _ in range(5)])
        ends = (rng.random() * 0.5, 0.5 + rng.random() * 0.5)
        tangents = []
        for t in ends:
            slope, at_zero = max(lines, key=lambda line: line[0] * t + line[1])
            tangents.append(line_search._Line(t, slope, at_zero))
        derivatives = [linear + 2 * square * tangent.t + tangent.slope for tangent in tangents]
        if derivatives[0] >= 0 or derivatives[1] < 0:
            continue
        left, right = tangents[0], tangents[1] if two_sided else None
        t, value = line_search._minimum(line_search._Quadratic(0.0, linear, square), left, right)
        end = ends[1] if two_sided else 1.0
        grid = np.linspace(ends[0], end, 20_001)
        used = tangents if two_sided else tangents[:1]
        values = linear * grid + square * grid**2 + np.max([one.slope * grid + one.at_zero for one in used], axis=0)
        assert ends[0] <= t <= end
        assert values.min() - 1e-3 <= value <= values.min() + 1e-12
        inside += ends[0] < t < end
    assert inside > 20


@pytest.mark.parametrize("cutter", CUTTERS.values(), ids=CUTTERS)
@pytest.mark.parametrize("path", [[0.1, 1.0, 10.0, 100.0], [100.0, 1.0, 1.0, 30.0]])
def test_a_path_of_C_gives_what_single_runs_give_in_fewer_iterations(cutter, path, rng):
    target = rng.normal(size=(300, 15)) + 0.8
    solver = Solver(cutter(Hinge(target)), 15, BACKENDS["auto"]())
    shared = single = 0
    for C in path:
        ours = solver.minimise(C, epsilon=1e-4)
        alone = Solver(cutter(Hinge(target)), 15, BACKENDS["auto"]()).minimise(C, epsilon=1e-4)
        assert ours.state is State.CONVERGED
        assert ours.certificate.tolerance == 1e-4 * C
        assert ours.certificate.primal == pytest.approx(alone.certificate.primal, abs=1.01e-4 * C)
        assert ours.certificate.dual <= alone.certificate.primal * (1 + 1e-12)
        shared, single = shared + ours.iterations, single + alone.iterations
    assert shared < single


def test_idle_planes_are_forgotten_and_the_gram_matrix_stays_right(rng):
    working_set = WorkingSet(4)
    working_set.C = 1.0
    planes = rng.normal(size=(30, 4))
    for t, plane in enumerate(planes):
        working_set.add(plane, float(t), soft=t % 3 > 0)
    problem = working_set.problem()
    np.testing.assert_allclose(problem.gram, planes @ planes.T, rtol=1e-14, atol=1e-14)
    alpha = np.zeros(30)
    alpha[[3, 17]] = 0.25
    for _ in range(IDLE_LIMIT):
        assert len(working_set) == 30
        w, dual = working_set.accept(alpha)
        working_set.forget_idle()
    assert len(working_set) == 2
    np.testing.assert_allclose(working_set.problem().gram, planes[[3, 17]] @ planes[[3, 17]].T, rtol=1e-14)
    np.testing.assert_array_equal(working_set.problem().offsets, [3.0, 17.0])
    np.testing.assert_array_equal(working_set.problem().soft, [False, True])
    np.testing.assert_allclose(w, -0.25 * (planes[3] + planes[17]))
    assert dual == pytest.approx(0.25 * 20.0 - 0.5 * w @ w)


@pytest.mark.parametrize("lowest", [-3.0, 5.0])
def test_a_risk_with_another_lower_bound(lowest, rng):
    """Only the objectives are shifted, by C times the bound."""
    target = rng.normal(size=(200, 10)) + 0.3
    for cutter in CUTTERS.values():
        plain, shifted = Hinge(target), Hinge(target, lowest)
        seen = []
        solver = Solver(cutter(shifted), 10, BACKENDS["auto"]())
        ours = solver.minimise(100.0, epsilon=1e-6, on_iteration=seen.append)
        judge = Solver(cutter(plain), 10, BACKENDS["auto"]()).minimise(100.0, epsilon=1e-6)
        assert ours.state is State.CONVERGED
        assert ours.certificate.primal == pytest.approx(0.5 * ours.w @ ours.w + 100.0 * shifted(ours.w), rel=1e-12)
        assert ours.certificate.primal - 100.0 * lowest == pytest.approx(judge.certificate.primal, abs=1.01e-4)
        assert ours.certificate.dual - 100.0 * lowest <= judge.certificate.primal + 1e-9
        assert seen[0].certificate.dual >= 100.0 * lowest
        # A second C, from the planes of the first.
        again = solver.minimise(1.0, epsilon=1e-6)
        alone = Solver(cutter(plain), 10, BACKENDS["auto"]()).minimise(1.0, epsilon=1e-6)
        assert again.certificate.primal - lowest == pytest.approx(alone.certificate.primal, abs=1.01e-6)


def test_a_declared_lower_bound_may_be_all_there_is():
    """Where the risk is its bound, the bound alone certifies."""
    risk = Hinge([[1.0]], -2.0)
    risk.tangent = lambda scores, slopes: (slopes.fill(0.0), Tangent(-2.0))[1]
    solution = Solver(AfterLineSearch(risk), 1, BACKENDS["auto"]()).minimise(3.0, epsilon=0.0)
    assert (solution.state, solution.iterations) == (State.CONVERGED, 1)
    assert (solution.certificate.primal, solution.certificate.dual) == (-6.0, -6.0)


def test_a_risk_without_a_lower_bound_is_refused():
    with pytest.raises(ValueError, match="lower bound, found -inf"):
        Solver(AfterLineSearch(Hinge([[1.0]], -np.inf)), 1, BACKENDS["auto"]())


class Drifting(Hinge):
    """Scores that were added up along a line, and not computed from w, come with a risk that is too low."""

    def __init__(self, target, drift):
        super().__init__(target)
        self.drift = drift
        self.computed = set()

    def scores(self, w, out=None):
        out = super().scores(w, out)
        self.computed.add(out.tobytes())
        return out

    def tangent(self, scores, slopes):
        value, offset = super().tangent(scores, slopes)
        if scores.tobytes() in self.computed:
            return Tangent(value, offset)
        return Tangent(value - self.drift, offset - self.drift)


def test_a_certificate_is_of_the_risk_computed_afresh(rng):
    """Without ``verified_risk`` the drift would count as a gain, and the certificate would be of no point at all."""
    target = rng.normal(size=(200, 8)) + 1.0
    C, epsilon = 50.0, 1e-2
    solution = Solver(AfterLineSearch(Drifting(target, 5.0 * epsilon)), 8, BACKENDS["auto"]()).minimise(
        C, epsilon=epsilon, max_iterations=200
    )
    exact = Hinge(target)(solution.w)
    assert solution.state is State.CONVERGED
    assert solution.risk == exact
    assert solution.certificate.primal == pytest.approx(0.5 * solution.w @ solution.w + C * exact, rel=1e-14)
    assert solution.certificate.primal - solution.certificate.dual <= epsilon * C


def test_a_gap_that_was_asked_for_is_no_larger(rng):
    """Every iteration but the last has more than the gap asked for, and the last has no more."""
    larger_by_less_than_twice = 0
    for _ in range(40):
        target = rng.normal(size=(100, 8)) + 1.0
        for cutter in CUTTERS.values():
            seen = []
            C, epsilon = 20.0, float(rng.choice([1e-1, 1e-2, 1e-3]))
            solution = Solver(cutter(Hinge(target)), 8, BACKENDS["auto"]()).minimise(
                C, epsilon=epsilon, on_iteration=seen.append
            )
            gaps = [iteration.certificate.primal - iteration.certificate.dual for iteration in seen]
            assert solution.state is State.CONVERGED
            assert gaps[-1] <= epsilon * C
            assert min(gaps[:-1], default=np.inf) > epsilon * C
            larger_by_less_than_twice += any(gap <= 2 * epsilon * C for gap in gaps[:-1])
    assert larger_by_less_than_twice > 5  # where a certificate at twice the tolerance would have ended it
