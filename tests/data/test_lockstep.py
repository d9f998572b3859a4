"""Threads in lock-step: the same bits as alone, whoever ends, fails or leaves when."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from over import over

from apsvm._support.clock import wall_time_ns
from apsvm.data import lockstep as module
from apsvm.data.features.scaling import learn_scaling
from apsvm.data.lockstep import Lockstep, members_at_once
from apsvm.data.rows import Rows

MEMBERS = 5


def in_lockstep(lockstep, work, members=MEMBERS):
    """The results of work(kernels, number), or what it raised, of each member."""

    def one(number):
        try:
            with lockstep.joined() as kernels:
                return work(kernels, number)
        except ValueError as error:
            return error

    with ThreadPoolExecutor(members) as pool:
        return list(pool.map(one, range(members), timeout=60))


def matrix(kind, dtype, n=700, d=9):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, d)).astype(dtype)
    X[rng.random(X.shape) < 0.5] = 0.0
    if kind == "dense":
        return X
    return sp.csr_array(X) if kind == "csr" else sp.csr_matrix(X)


def passes(rows, number):
    """Scores and combinations in an order of the member's own, each depending on those before."""
    rng = np.random.default_rng(number)
    order = np.argsort(rng.random(len(rows)) < 0.3, kind="stable")
    mine = rows.select(order if number % 2 else rng.permutation(order)[: 100 * (number + 1)])
    w, results = rng.normal(size=rows.dimension), []
    for step in range(2 + 3 * number):  # uneven ends
        scores = mine.scores(w)
        c = np.where(scores > np.quantile(scores, 0.4), np.tanh(scores), 0.0)
        w = w - 0.01 * mine.combine(c) + (mine.combine(np.zeros(len(mine))) if step % 3 == 0 else 0.0)
        results += [scores, w]
    return np.concatenate(results).tobytes()


@over("threads", [1, 2, 3])
@over("dtype", [np.float32, np.float64])
@over("kind", ["dense", "csr", "csr_matrix"])
def test_each_has_the_bits_that_it_has_alone(kind, dtype, threads):
    X = matrix(kind, dtype)
    rows = Rows(X, bias=2.0, scaling=learn_scaling("l2", X))
    alone = [passes(rows, number) for number in range(MEMBERS)]
    together = in_lockstep(Lockstep(threads), lambda kernels, number: passes(rows.with_kernels(kernels), number))
    assert together == alone
    assert len(set(alone)) == MEMBERS


def test_large_matrices_are_cut_into_the_same_blocks():
    """The matrix has more than one piece."""
    rows = Rows(np.random.default_rng(0).normal(size=(40_000, 20)))
    alone = [passes(rows, number) for number in (1, 3)]
    together = in_lockstep(
        Lockstep(2), lambda kernels, number: passes(rows.with_kernels(kernels), 2 * number + 1), members=2
    )
    assert together == alone


def test_two_matrices():
    """Members with rows of their own are served in the same round."""
    rows = [Rows(matrix("dense", np.float64)), Rows(matrix("csr", np.float64)), Rows(matrix("dense", np.float64))]
    together = in_lockstep(Lockstep(1), lambda kernels, number: passes(rows[number % 3].with_kernels(kernels), number))
    assert together == [passes(rows[number % 3], number) for number in range(MEMBERS)]


@pytest.mark.parametrize("threads", [1, 2])
def test_so_many_are_at_work_at_most_and_all_are_served_together(threads, monkeypatch):
    rows = Rows(matrix("dense", np.float64))
    walks, lock = [], threading.Lock()
    at_work, most = 0, 0
    walk = module._walk
    monkeypatch.setattr(module, "_walk", lambda asked, n: (walks.append(len(asked)), walk(asked, n))[1])

    def work(kernels, number):
        nonlocal at_work, most
        mine, c = rows.with_kernels(kernels), np.ones(len(rows))
        everybody.wait(timeout=60) if number >= MEMBERS - threads else None
        for _ in range(4):
            with lock:
                at_work += 1
                most = max(most, at_work)
            time.sleep(1e-3)
            with lock:
                at_work -= 1
            mine.combine(c)

    everybody = threading.Barrier(threads)
    in_lockstep(Lockstep(threads), work)
    assert most <= threads
    assert sum(walks) == 4 * MEMBERS
    assert max(walks) > threads


def test_one_that_fails_leaves_the_others_alone():
    rows = Rows(matrix("dense", np.float64))

    def work(kernels, number):
        mine = rows.with_kernels(kernels)
        if number == 2:
            mine.scores(np.zeros(rows.dimension))
            raise ValueError("a class that cannot be trained")
        return passes(mine, number)

    results = in_lockstep(Lockstep(1), work)
    assert str(results.pop(2)) == "a class that cannot be trained"
    assert results == [passes(rows, number) for number in (0, 1, 3, 4)]


def test_a_pass_that_fails_is_the_asker_s_own_error():
    rows = Rows(matrix("dense", np.float64))

    def work(kernels, number):
        mine = rows.with_kernels(kernels)
        if number == 3:
            mine.scores(np.zeros(rows.dimension), np.empty(len(rows) - 1))
        return passes(mine, number)

    results = in_lockstep(Lockstep(2), work)
    assert "rows of" in str(results.pop(3))
    assert results == [passes(rows, number) for number in (0, 1, 2, 4)]


def test_kernels_work_on_after_their_thread_has_left():
    rows = Rows(matrix("csr", np.float64))
    with Lockstep(1).joined() as kernels:
        mine = rows.with_kernels(kernels)
    assert passes(mine, 1) == passes(rows, 1)


def test_kernels_stay_with_the_rows():
    """With selections, copies for many passes, other threads and a constant feature."""
    asked = []

    def ones(request, threads):
        asked.append(threads)
        request.out[:] = 1.0

    X = matrix("dense", np.float64)
    rows = Rows(X).with_kernels(ones)
    for one in (rows, rows.for_many_passes(), rows.select(np.arange(5)), rows.with_threads(3)):
        assert (one.scores(np.zeros(9)) == 1.0).all()
    assert (rows.with_bias(1.0).for_many_passes().scores(np.zeros(10)) == 1.0).all()
    assert asked == [1, 1, 1, 3, 1]
    assert (Rows(X).scores(np.zeros(9)) == 0.0).all()


@pytest.mark.slow
def test_waiting_is_not_counted():
    """A thread's own clock stands still while others are at work."""
    rows, waited, both_at_work = Rows(matrix("dense", np.float64)), [], threading.Barrier(2)

    def work(kernels, number):
        both_at_work.wait(timeout=60)
        if number == 0:
            before = time.perf_counter_ns() - wall_time_ns()
            rows.with_kernels(kernels).scores(np.zeros(rows.dimension))
            waited.append(time.perf_counter_ns() - wall_time_ns() - before)
        else:
            time.sleep(0.2)

    in_lockstep(Lockstep(2), work, members=2)
    assert waited[0] >= 0.1e9


def test_how_many_go_together(monkeypatch):
    monkeypatch.setattr(module, "memory", lambda: 10**10)
    assert members_at_once(1 << 30, 1000, 100, threads=2) == 32
    assert members_at_once(1 << 30, 1000, 5, threads=2) == 5
    assert members_at_once(1 << 30, 1000, 3, threads=2) == 1  # nearly a thread each
    assert members_at_once(1 << 20, 1000, 100, threads=2) == 1  # in the cache anyhow
    assert members_at_once(1 << 30, 1_000_000, 100, threads=2) == 9  # 128 bytes a row each, an eighth of the memory


def test_passes_over_few_rows_are_not_waited_for(monkeypatch):
    """While the other member is at work elsewhere."""
    walks, walk = [], module._walk
    monkeypatch.setattr(module, "_walk", lambda asked, threads: (walks.append(len(asked)), walk(asked, threads))[1])
    rows = Rows(matrix("dense", np.float64))
    both, done = threading.Barrier(2), threading.Event()

    def work(kernels, number):
        both.wait(timeout=60)
        few = rows.with_kernels(kernels).select(np.arange(99))
        if number == 0:
            assert done.wait(timeout=60)
        else:
            few.combine(few.scores(np.ones(rows.dimension)))
            done.set()
        assert not walks
        return rows.with_kernels(kernels).scores(np.ones(rows.dimension))

    one, other = in_lockstep(Lockstep(2, fewest_rows=100), work, members=2)
    np.testing.assert_array_equal(one, other)
    assert sum(walks) == 2


def test_what_is_worth_sharing(monkeypatch):
    monkeypatch.setattr(module, "WORTH_SHARING", 4 << 20)
    assert module.rows_worth_sharing(40 << 20, 1000) == 100
    assert module.rows_worth_sharing(0, 1000) > 1000
