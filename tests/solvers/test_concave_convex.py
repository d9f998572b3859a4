"""Concave-convex rounds on a difference of two known convex functions, neither of which is a ranking's."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from apsvm.solvers.concave_convex import Majorant, descend
from apsvm.solvers.cutting_plane import Solver
from apsvm.solvers.line_search import AfterLineSearch
from apsvm.solvers.qp import BACKENDS
from apsvm.solvers.score_space import Tangent
from apsvm.solvers.state import State

C = 20.0


class Largest:
    """max_i (a_i·w + b_i), convex; its scores are w itself."""

    def __init__(self, slopes, offsets):
        self.slopes_of, self.offsets = slopes, offsets
        self.n_scores = slopes.shape[1]
        self.lower_bound = 0.0

    def at(self, w):
        values = self.slopes_of @ w + self.offsets
        best = int(np.argmax(values))
        return float(values[best]), self.slopes_of[best], float(self.offsets[best])

    def scores(self, w, out=None):
        out[:] = w
        return out

    def tangent(self, scores, slopes):
        value, slopes[:], offset = self.at(scores)
        return Tangent(value, offset)

    def combine(self, slopes):
        return slopes.copy()

    def memo(self, slopes):
        return None


@pytest.fixture
def difference(rng):
    """h = the larger of 0 and 40 planes, g the largest of 15 flatter ones through 0."""
    h = Largest(np.vstack([np.zeros(5), rng.normal(size=(40, 5))]), np.append(0.0, rng.normal(size=40) + 1.0))
    return h, Largest(0.6 * rng.normal(size=(15, 5)), np.zeros(15))


class Problem:
    """J, its majorants and a cutting-plane solver for them."""

    def __init__(self, h, g):
        self.h, self.g = h, g
        self.solver = Solver(AfterLineSearch(h), 5, BACKENDS["auto"]())
        self.majorants = []
        self.options = {}

    def J(self, w):
        return 0.5 * w @ w + C * (self.h.at(w)[0] - self.g.at(w)[0])

    def majorise(self, w):
        centre = C * self.g.at(w)[1]
        self.majorants.append(Majorant(w, self.J(w), self.h.at(w)[0], centre, -0.5 * float(centre @ centre)))
        return self.majorants[-1]

    def minimise(self, majorant, good_enough):
        return self.solver.minimise(C, epsilon=1e-6, centre=majorant.centre, good_enough=good_enough, **self.options)

    def descend(self, start, tolerance=1e-3 * C, **options):
        self.solver.restart(start)
        return descend(self.majorise, self.minimise, start, tolerance, **options)


def value_of(majorant, h, w):
    return 0.5 * w @ w - majorant.centre @ w + C * h.at(w)[0]


def test_it_falls_to_a_point_that_its_majorant_cannot_leave(difference, rng):
    several = 0
    for _ in range(10):
        problem, rounds = Problem(*difference), []
        start = 3.0 * rng.normal(size=5)
        end = problem.descend(start, on_round=rounds.append)
        assert end.state is State.CONVERGED
        assert [each.number for each in rounds] == list(range(1, len(rounds) + 1))
        values = [each.certificate.primal for each in rounds]
        assert values[0] == problem.J(start)
        assert all(after < before for before, after in pairwise(values))
        assert end.certificate == rounds[-1].certificate
        assert end.certificate.primal == problem.J(end.best.point)
        assert end.certificate.primal - end.certificate.dual <= 1e-3 * C
        assert all(each.certificate.primal - each.certificate.dual > 1e-3 * C for each in rounds[:-1])
        several += len(rounds) > 2
        # Each majorant lies above J, touches it, and nowhere below its certificate.
        for majorant in problem.majorants:
            at = value_of(majorant, problem.h, majorant.point)
            assert at == pytest.approx(problem.J(majorant.point))
            for scale in (0.01, 0.3, 3.0):
                there = majorant.point + scale * rng.normal(size=5)
                assert value_of(majorant, problem.h, there) >= problem.J(there) - 1e-9
                assert value_of(majorant, problem.h, there) >= majorant.lower_bound
                if majorant is problem.majorants[-1]:
                    assert value_of(majorant, problem.h, there) >= end.certificate.dual - 1e-9
    assert several > 3


def test_limits_end_with_the_lowest_point_and_a_bound_of_its_majorant(difference, rng):
    start = 3.0 * rng.normal(size=5)
    problem = Problem(*difference)
    one = problem.descend(start, most_rounds=1)
    assert one.state is State.ITERATION_LIMIT
    assert one.certificate.primal == problem.J(one.best.point) < problem.J(start)
    assert not one.certificate.reached
    problem.options = {"max_iterations": 1}
    short = problem.descend(start)
    assert short.state is State.ITERATION_LIMIT
    assert short.certificate.primal == problem.J(short.best.point) <= problem.J(start)
    problem.options = {"should_stop": lambda: True}
    assert problem.descend(start).state is State.INTERRUPTED


def test_a_round_that_gains_nothing_is_the_last(difference, rng):
    """Rounding: the solver says that the majorant fell, and J is where it was."""

    start = 3.0 * rng.normal(size=5)

    class Level(Problem):
        def majorise(self, w):
            return replace(super().majorise(w), objective=self.J(start))

    problem, rounds = Level(*difference), []
    end = problem.descend(start, on_round=rounds.append)
    assert end.state is State.STALLED
    assert len(rounds) == 1
    np.testing.assert_array_equal(end.best.point, start)


@pytest.mark.parametrize("where", ["majorise", "minimise"])
def test_trouble(difference, rng, where):
    """Before a finite point it is an error, later an end with the lowest point."""

    class Troubled(Problem):
        left = 0

        def majorise(self, w):
            return self._do("majorise", super().majorise, w)

        def minimise(self, majorant, good_enough):
            return self._do("minimise", super().minimise, majorant, good_enough)

        def _do(self, what, call, *arguments):
            self.left -= what == where
            if what == where and self.left < 0:
                raise FloatingPointError("the objective is not finite")
            return call(*arguments)

    start = 3.0 * rng.normal(size=5)
    for after in range(3):
        problem, rounds = Troubled(*difference), []
        problem.left = after
        if where == "majorise" and after == 0:
            with pytest.raises(FloatingPointError):
                problem.descend(start)
            continue
        end = problem.descend(start, tolerance=1e-9, on_round=rounds.append)
        assert (end.state, end.trouble) == (State.NUMERICAL_TROUBLE, "the objective is not finite")
        assert len(rounds) == after
        assert end.certificate.primal == problem.J(end.best.point) == min(m.objective for m in problem.majorants)
        assert end.certificate.dual <= end.certificate.primal
        assert not end.certificate.reached
