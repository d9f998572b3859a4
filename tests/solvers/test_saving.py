"""A solver that is saved between two iterations and taken up by another comes to the same bits."""

from __future__ import annotations

import io

import numpy as np
import pytest

from apsvm.solvers.cutting_plane import Restoration, Solver
from apsvm.solvers.qp import BACKENDS
from apsvm.solvers.state import State
from tests.solvers.test_cutting_plane import CUTTERS, Hinge


class Remembering(Hinge):
    """Every second plane has a memo."""

    def memo(self, slopes):
        return slopes[:3].copy() if slopes[0] > 0 else None


def beyond_half(w):
    """Hard constraints: w_0 ≥ ½."""
    violated = w[0] < 0.5
    planes = np.zeros((int(violated), w.size))
    planes[:, 0] = -1.0
    return Restoration(np.maximum(w, np.where(np.arange(w.size) == 0, 0.5, -np.inf)), planes, np.full(len(planes), 0.5))


def through_a_file(state):
    file = io.BytesIO()
    np.savez(file, **state)
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        return dict(loaded)


@pytest.mark.parametrize("constraints", [None, beyond_half])
@pytest.mark.parametrize("cutter", CUTTERS.values(), ids=CUTTERS)
def test_the_same_bits_from_every_iteration_on(cutter, constraints, rng):
    target = rng.normal(size=(400, 20)) + 0.6

    def solver():
        return Solver(cutter(Remembering(target)), 20, BACKENDS["auto"](), constraints=constraints)

    saved, whole = [], solver()
    ends = [
        whole.minimise(C, epsilon=1e-6, on_iteration=lambda _, C=C: saved.append((C, through_a_file(whole.state()))))
        for C in (10.0, 1e4)
    ]
    assert len(saved) > 20
    if cutter is CUTTERS["line search"]:
        assert max(state["levels.heights.blocks"].max() for _, state in saved) > 2
    for C, state in saved[2::5]:
        again = solver()
        again.restore(state)
        resumed = [again.minimise(later, epsilon=1e-6) for later in (10.0, 1e4) if later >= C]
        for ours, theirs in zip(resumed, ends[-len(resumed) :], strict=True):
            np.testing.assert_array_equal(ours.w, theirs.w)
            assert (ours.risk, ours.certificate) == (theirs.risk, theirs.certificate)
            assert (ours.iterations, ours.planes, ours.state) == (theirs.iterations, theirs.planes, theirs.state)


@pytest.mark.parametrize("cutter", CUTTERS.values(), ids=CUTTERS)
def test_an_interrupted_run_goes_on(cutter, rng):
    target = rng.normal(size=(200, 8)) + 0.5
    whole = Solver(cutter(Hinge(target)), 8, BACKENDS["auto"]()).minimise(100.0, epsilon=1e-7)
    solver = Solver(cutter(Hinge(target)), 8, BACKENDS["auto"]())
    assert solver.minimise(100.0, epsilon=1e-7, max_iterations=5).state is State.ITERATION_LIMIT
    solver.restore(solver.state())
    resumed = solver.minimise(100.0, epsilon=1e-7)
    np.testing.assert_array_equal(resumed.w, whole.w)
    assert resumed.iterations == whole.iterations > 6


def test_another_problem_is_refused(rng):
    solver = Solver(CUTTERS["plain"](Hinge([[1.0]])), 1, BACKENDS["auto"]())
    solver.minimise(2.0, max_iterations=2)
    for wrong in ({"C": 3.0}, {"C": 2.0, "centre": np.ones(1)}):
        solver.restore(solver.state())
        with pytest.raises(ValueError, match="run that was saved, C = 2"):
            solver.minimise(**wrong)


def test_the_time_of_a_resumed_run_counts_from_its_beginning(rng):
    target = rng.normal(size=(200, 8)) + 0.5
    solver = Solver(CUTTERS["plain"](Hinge(target)), 8, BACKENDS["auto"]())
    solver.minimise(100.0, epsilon=1e-7, max_iterations=2)
    state = solver.state()
    (seconds,) = (key for key in state if key.endswith("seconds"))
    state[seconds] = 1e6
    solver.restore(state)
    assert solver.minimise(100.0, epsilon=1e-7, time_limit=1e5).state is State.TIME_LIMIT
