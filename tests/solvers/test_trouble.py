"""Values that are not finite: late in a run, it ends with its best point; at the start they are an error."""

from __future__ import annotations

import numpy as np
import pytest
from over import over

from apsvm.solvers.cutting_plane import Solver
from apsvm.solvers.line_search import AfterLineSearch
from apsvm.solvers.qp import BACKENDS
from apsvm.solvers.qp.base import QPSolution
from apsvm.solvers.score_space import Tangent
from apsvm.solvers.state import State
from tests.solvers.test_cutting_plane import CUTTERS, Hinge


class Trouble(Hinge):
    """One of its methods comes to something that is not finite, from a given call on."""

    def __init__(self, target, where, after):
        super().__init__(target)
        self.where, self.left = where, after

    def _due(self, where):
        self.left -= where == self.where
        return where == self.where and self.left < 0

    def scores(self, w, out=None):
        if self._due("scores"):
            raise FloatingPointError("the scores are not finite")
        return super().scores(w, out)

    def tangent(self, scores, slopes):
        if self._due("tangent"):
            raise FloatingPointError("the scores are not finite")
        value, offset = super().tangent(scores, slopes)
        return Tangent(np.inf, offset) if self._due("value") else Tangent(value, offset)

    def combine(self, slopes):
        if self._due("plane"):
            return np.full(slopes.size, np.nan)
        return np.full(slopes.size, 1e200) if self._due("square") else super().combine(slopes)


class NoNumbers:
    """A backend whose answers are no numbers, from a given call on."""

    def __init__(self, after):
        self.exact, self.left = BACKENDS["active-set"](), after

    def solve(self, problem, start, tolerance):
        self.left -= 1
        if self.left >= 0:
            return self.exact.solve(problem, start, tolerance)
        return QPSolution(np.full(start.size, np.nan), np.nan, "none")


@over("where", ["scores", "tangent", "value", "plane", "square", "QP"])
@over("cutter", CUTTERS.values(), ids=CUTTERS)
def test_late_trouble_ends_with_the_best_point(where, cutter, rng):
    target, C = rng.normal(size=(200, 8)) + 1.0, 50.0
    exact = Solver(cutter(Hinge(target)), 8, BACKENDS["auto"]()).minimise(C, epsilon=1e-9)
    for after in (2, 5):
        seen = []
        backend = NoNumbers(after) if where == "QP" else BACKENDS["auto"]()
        risk = Hinge(target) if where == "QP" else Trouble(target, where, after)
        solver = Solver(cutter(risk), 8, backend)
        solution = solver.minimise(C, epsilon=1e-9, on_iteration=seen.append)
        assert solution.state is State.NUMERICAL_TROUBLE
        assert "not finite" in solution.trouble
        assert 0 < solution.iterations == len(seen) < exact.iterations
        objective = 0.5 * solution.w @ solution.w + C * Hinge(target)(solution.w)
        bounds = solution.certificate
        assert bounds.primal == pytest.approx(objective, rel=1e-12)
        assert bounds.primal <= seen[-1].certificate.primal
        assert bounds.dual >= max(iteration.certificate.dual for iteration in seen)
        assert bounds.dual <= exact.certificate.primal * (1 + 1e-12)
        assert not bounds.reached
        # What was not finite has not stayed behind: with better luck it goes on from there.
        if isinstance(risk, Trouble):
            risk.where = None
            whole = solver.minimise(C, epsilon=1e-6)
            assert whole.state is State.CONVERGED
            assert whole.certificate.primal <= exact.certificate.primal + 1.01e-6 * C


@over("where", ["scores", "tangent", "value", "plane", "square"])
@over("cutter", CUTTERS.values(), ids=CUTTERS)
def test_trouble_before_any_good_point_is_an_error(where, cutter, rng):
    risk = Trouble(rng.normal(size=(20, 3)), where, 0)
    with pytest.raises(FloatingPointError, match="not finite"):
        Solver(cutter(risk), 3, BACKENDS["auto"]()).minimise(50.0)


def test_trouble_with_a_first_QP_has_a_good_point(rng):
    target = rng.normal(size=(20, 3))
    solution = Solver(AfterLineSearch(Hinge(target)), 3, NoNumbers(0)).minimise(2.0)
    assert (solution.state, solution.iterations, solution.w.tolist()) == (State.NUMERICAL_TROUBLE, 0, [0.0] * 3)
    assert (solution.certificate.primal, solution.certificate.dual) == (2.0, 0.0)
