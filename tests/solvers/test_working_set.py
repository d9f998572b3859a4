"""The planes of a working set against a plain list of them, through additions, solutions, forgetting and moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from apsvm.solvers import working_set as module
from apsvm.solvers.working_set import WorkingSet

DIMENSION, LOWER = 3, -0.25


@dataclass
class Plane:
    a: np.ndarray
    b: float
    soft: bool
    memo: np.ndarray | None = None
    idle: int = 0
    alpha: float = 0.0
    name: int = -1


def check(kept: WorkingSet, twin: list[Plane]) -> None:
    """All that a working set says is what the list says."""
    assert len(kept) == len(twin) == kept.alpha.size
    problem = kept.problem()
    A = np.array([one.a for one in twin]).reshape(-1, DIMENSION)
    b = np.array([one.b - LOWER * one.soft for one in twin])
    np.testing.assert_allclose(problem.gram, A @ A.T, atol=1e-12)
    np.testing.assert_allclose(problem.offsets, A @ kept.centre + b, atol=1e-12)
    np.testing.assert_allclose(kept.offsets_from(np.ones(DIMENSION)), A.sum(axis=1) + b, atol=1e-12)
    assert problem.soft.tolist() == [one.soft for one in twin]
    np.testing.assert_array_equal(kept.alpha, [one.alpha for one in twin])
    assert (np.diff(problem.names) > 0).all()
    for one, name in zip(twin, problem.names.tolist(), strict=True):
        assert one.name in (-1, name), "a plane that stays keeps its name"
        one.name = name


def accept(kept: WorkingSet, twin: list[Plane], alpha: np.ndarray) -> None:
    w, dual = kept.accept(alpha)
    for one, value in zip(twin, kept.alpha.tolist(), strict=True):
        one.alpha = value
    expected = kept.centre - sum((one.alpha * one.a for one in twin), np.zeros(DIMENSION))
    np.testing.assert_allclose(w, expected, atol=1e-9)
    of_planes = sum(one.alpha * (one.b - LOWER * one.soft) for one in twin)
    assert dual == pytest.approx(of_planes - 0.5 * expected @ expected + kept.C * LOWER)


@pytest.mark.parametrize("seed", [1, 2])
def test_against_a_list(seed, monkeypatch):
    monkeypatch.setattr(module, "IDLE_LIMIT", 3)
    rng = np.random.default_rng(seed)
    kept, twin, sizes, names = WorkingSet(DIMENSION, LOWER), [], set(), set()
    kept.C = 2.0
    check(kept, twin)
    kept.forget_idle()
    kept.move(lambda memo: memo)
    assert kept.dual_of_nothing == kept.C * LOWER
    for _ in range(120):
        action = rng.choice(["add", "add", "add", "solve", "move", "centre"], p=[0.24, 0.24, 0.24, 0.19, 0.02, 0.07])
        if action == "add":
            one = Plane(rng.normal(size=DIMENSION), float(rng.normal()), bool(rng.random() < 0.8))
            one.memo = None if rng.random() < 0.3 else rng.normal(size=DIMENSION)
            kept.add(one.a, one.b, soft=one.soft, memo=one.memo)
            twin.append(one)
        elif action == "solve" and twin:
            # Of α of all sizes: what is small beside the largest is idle, however small the largest is.
            alpha = np.where(rng.random(len(twin)) < 0.5, 0.0, rng.random(len(twin))) * 10.0 ** rng.choice(
                [-12.0, -1.0]
            )
            accept(kept, twin, alpha)
            used = rng.random(len(twin)) < 0.1
            kept.use(used)
            kept.forget_idle()
            largest = max(one.alpha for one in twin)
            for one, is_used in zip(twin, used.tolist(), strict=True):
                one.idle = 0 if one.alpha > 1e-9 * largest else one.idle * (not is_used) + 1
            twin = [one for one in twin if one.idle < 3]
        elif action == "move":
            kept.move(lambda memo: 2.0 * memo)
            twin = [one for one in twin if one.memo is not None and one.alpha > 0.0]
            for one in twin:
                one.a, one.name = one.a + 2.0 * one.memo, -1
            assert {*kept.problem().names.tolist()}.isdisjoint(names)
        elif action == "centre":
            kept.recentre(rng.normal(size=DIMENSION))
            assert kept.dual_of_nothing == pytest.approx(kept.C * LOWER - 0.5 * kept.centre @ kept.centre)
        check(kept, twin)
        names = {*kept.problem().names.tolist()}
        sizes.add(len(twin))
    assert max(sizes) > 16  # the arrays grew twice


def test_the_only_one_that_stays():
    kept, twin = WorkingSet(DIMENSION, LOWER), [Plane(np.arange(at, at + 3.0), float(at), True) for at in range(3)]
    kept.C = 2.0
    for one in twin:
        kept.add(one.a, one.b, soft=True)
    for _ in range(module.IDLE_LIMIT):
        assert len(kept) == 3
        accept(kept, twin, np.array([0.0, 1.0, 0.0]))
        kept.forget_idle()
    check(kept, twin[1:2])


def test_what_is_not_finite_stays_out():
    kept = WorkingSet(2)
    for plane, offset in (([1e200, 0.0], 0.0), ([1.0, 0.0], np.inf), ([np.nan, 0.0], 0.0)):
        with np.errstate(over="ignore"), pytest.raises(FloatingPointError, match="cutting plane"):
            kept.add(np.array(plane), offset, soft=True)
    assert len(kept) == 0
