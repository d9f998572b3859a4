"""Kernels with several threads, on data large enough for all of them to be at work: the same bits as with one.

``scripts/test --tsan`` runs this with kernels built to stop where two threads touch the same memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from apsvm._native import _kernels
from apsvm.losses import make_loss
from tests.native.test_checks import ints

THREADS = 4


@pytest.fixture(scope="module")
def rng() -> np.random.Generator:
    return np.random.default_rng(20261122)


def same(call: Callable[[int], Any]) -> None:
    """Results of a kernel with one thread and with several."""
    for one, several in zip(call(1), call(THREADS), strict=True):
        np.testing.assert_array_equal(one, several)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_passes_over_rows(kind, rng):
    X = rng.normal(size=(60_000, 20)) * (rng.random((60_000, 20)) < 0.5)
    S = sp.csr_array(X)
    matrix = X if kind == "dense" else _kernels.CsrMatrix(S.indptr, S.indices, S.data, *S.shape)
    W, C = rng.normal(size=(2, 20)), rng.normal(size=(60_000, 2))

    def call(threads: int) -> tuple[np.ndarray, ...]:
        scores, sums = np.empty((60_000, 2)), np.empty((2, 20))
        getattr(_kernels, f"scores_{kind}")(matrix, None, W, scores, threads)
        getattr(_kernels, f"combine_{kind}")(matrix, None, C, sums, threads)
        return scores, sums

    same(call)


@pytest.mark.parametrize("algorithm", ["bucket", "qs"])
@pytest.mark.parametrize("sizes", [(300, 400_000), (20, 3000)])
def test_oracles(algorithm, sizes, rng):
    """One query that all threads share, and many that are shared out among them."""
    n_pos, n_neg = sizes
    queries = 1 if n_neg > 100_000 else 12
    scores = rng.normal(size=queries * (n_pos + n_neg))

    def call(threads: int) -> tuple[np.ndarray, ...]:
        oracle = _kernels.RankingOracle(algorithm, True, threads)
        oracle.add_tables(n_neg, *make_loss("ap").tables(n_pos, n_neg))
        first = np.arange(queries) * (n_pos + n_neg)
        oracle.add_tasks(ints(*first), ints(*[0] * queries), np.ones(queries))
        weights = np.empty(scores.size)
        answers = [oracle(scores, weights) for _ in range(2)]
        return weights, np.array(answers)

    same(call)


@pytest.mark.parametrize("form", ["ndcg@k", "f(beta)", "p@k"])
def test_measures(form, rng):
    discount = make_loss("ndcg").discount(5)
    scores = rng.normal(size=12 * 3020)

    def call(threads: int) -> tuple[np.ndarray, ...]:
        oracle = _kernels.MeasureOracle(form, 5.0, discount, threads)
        oracle.add_tasks(ints(*np.arange(12) * 3020), ints(*[20] * 12), ints(*[3000] * 12), np.ones(12))
        weights = np.empty(scores.size)
        return np.array(oracle(scores, weights)), weights

    same(call)


def test_bags(rng):
    offsets = np.r_[0, np.cumsum(rng.integers(1, 9, size=130_000))].astype(np.int64)
    scores = rng.normal(size=int(offsets[-1]))

    def call(threads: int) -> tuple[np.ndarray, ...]:
        best, top = np.empty(offsets.size - 1, np.int64), np.empty(offsets.size - 1, np.int64)
        _kernels.best_of_bags(scores, offsets, best, threads)
        _kernels.top_of_bags(scores, offsets, np.ones(top.size, np.int64), top, threads)
        return best, top

    same(call)


def test_pairs(rng):
    n = 40_000
    starts, scores = ints(0, n // 2, n), rng.normal(size=n)
    ranges = ints(0, 0, 1), ints(0), ints(1), ints(0, 1, 1), ints(1), ints(2)

    def call(threads: int) -> tuple[np.ndarray, ...]:
        sums = _kernels.PairSums("logistic", "auto", None, starts, ints(0, 1), ints(0, 2), *ranges, None, threads)
        slopes = np.empty(n)
        value = sums(scores, slopes, 1.0, True)
        return np.array(value), slopes

    same(call)


def test_lists_and_decaying_sums(rng):
    shape = 400, 75
    n = 400 * 75
    positive = rng.random(shape) < rng.random((400, 1))
    loss, weights, discounts, begins = make_loss("ap"), [], [], ([], [])
    for n_pos, n_neg in _kernels.count_classes(positive, None):
        tables = loss.tables(n_pos, n_neg)
        begins[0].append(sum(map(len, weights)))
        begins[1].append(sum(map(len, discounts)))
        weights.append(tables.weights)
        discounts.append(tables.discount)
    tables = [ints(*begins[0]), np.concatenate(weights), ints(*begins[1]), np.concatenate(discounts)]
    scores, decay = rng.normal(size=n), rng.random(n - 1)

    def call(threads: int) -> tuple[np.ndarray, ...]:
        values, counts, row_weights, sums = np.empty(400), np.empty(400, dtype=bool), np.empty(n), np.empty(4 * n)
        _kernels.solve_lists(
            "bucket", True, "ramp", scores, positive, None, *tables, values, counts, row_weights, threads,
        )  # fmt: skip
        _kernels.decaying_sums(decay, np.tile(scores, 4), sums, 4, 1, True, threads)
        return values, counts, row_weights, sums

    same(call)


def test_a_text(rng):
    text = b"".join(b"%d qid:%d 1:%d 3:0.5\n" % (i % 2, i // 10, i) for i in range(20_000))

    def call(threads: int) -> tuple[np.ndarray, ...]:
        parser = _kernels.SvmlightParser(threads=threads, least_chunk=4096)
        for at in range(0, len(text), 1 << 16):
            parser.feed(text[at : at + (1 << 16)])
        return tuple(part for part in parser.finish() if isinstance(part, np.ndarray))

    same(call)


@pytest.mark.parametrize("rule", ["sgd", "adagrad", "adadelta"])
def test_weights_that_threads_share(rule, rng):
    """No two runs need agree, and nothing is undefined."""
    n, d = 600, 8
    X, w = rng.normal(size=(n, d)), np.zeros(d)
    memory = {"sgd": (0, 0), "adagrad": (d, 0), "adadelta": (d, d)}[rule]
    positives = np.arange(n // 2)
    loop = _kernels.WarpRows(
        w, np.ones(memory[0]), np.ones(memory[1]), ints(*positives), ints(*[0] * (n // 2)), ints(*[n // 2] * (n // 2)),
        ints(*range(n // 2, n)), np.arange(n // 2 + 1.0), "plugin", 1.0, 0, rule, 0.1, 1e-3, 16, 1, THREADS,
    )  # fmt: skip
    S = sp.csr_array(X)
    loop.run_dense(X, ints(*positives))
    loop.run_csr(_kernels.CsrMatrix(S.indptr, S.indices, S.data, n, d), ints(*positives))
    loop.settle()
    assert np.isfinite(w).all()
    assert w.any()
    items, factors = 40, 4
    parameters = rng.normal(size=items * (2 * factors + 1)).astype(np.float32)
    memory = [np.ones(parameters.size if size else 0, np.float32) for size in memory]
    liked = rng.random((200, items)) < 0.2
    indptr = np.r_[0, np.cumsum(liked.sum(axis=1))].astype(np.int32)
    loop = _kernels.WarpItems(
        parameters, *memory, items, factors, np.arange(items + 1.0), "plugin", 1.0, 0, rule, 0.1, 1e-3, 16, 1, THREADS
    )
    loop.run(indptr, np.nonzero(liked)[1].astype(np.int32), ints(*range(200)))
    loop.settle()
    assert np.isfinite(parameters).all()


def test_calls_from_several_threads(rng):
    """Kernels work without Python's lock: each call has memory of its own."""
    scores = rng.normal(size=20_000)
    positive = rng.random(scores.size) < 0.2
    n_pos = int(positive.sum())
    tables = make_loss("ap").tables(n_pos, scores.size - n_pos)
    answers: list[bytes] = []

    def work() -> None:
        row_weights = np.empty(scores.size)
        _kernels.solve_lists(
            "bucket", True, "hinge", scores, positive, None, ints(0), tables.weights, ints(0), tables.discount,
            np.empty(1), np.empty(1, dtype=bool), row_weights, 2,
        )  # fmt: skip
        answers.append(row_weights.tobytes())

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(answers) == 4
    assert len(set(answers)) == 1


def together(work: Callable[[int], None], threads: int = 4) -> None:
    """``work`` of each number, in as many threads of Python at once."""
    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def test_threads_that_share_an_oracle_take_turns(rng):
    loss, n_pos, n_neg = make_loss("ap"), 50, 3000
    oracle = _kernels.RankingOracle("bucket", loss.unimodal, 2)
    oracle.add_tables(n_neg, *loss.tables(n_pos, n_neg))
    oracle.add_tasks(ints(0), ints(0), np.ones(1))
    scores = rng.normal(size=(4, n_pos + n_neg))

    def answer(number: int) -> bytes:
        weights = np.empty(n_pos + n_neg)
        return bytes(str(oracle(scores[number], weights)), "ascii") + weights.tobytes()

    expected, answers = [answer(number) for number in range(4)], [set[bytes]() for _ in range(4)]
    assert len(set(expected)) == 4
    together(lambda number: answers[number].update(answer(number) for _ in range(30)))
    assert answers == [{one} for one in expected]


def test_threads_that_share_a_loop_take_turns(rng):
    n, d, n_pos = 400, 5, 100
    X, w, no_memory = rng.normal(size=(n, d)), np.zeros(d), np.empty(0)
    loop = _kernels.WarpRows(
        w, no_memory, no_memory, np.arange(n_pos), np.zeros(n_pos, np.int64), np.full(n_pos, n - n_pos),
        np.arange(n_pos, n), np.arange(n - n_pos + 1.0), "plugin", 1.0, 50, "sgd", 0.01, 0.1, 16, 1, 1,
    )  # fmt: skip

    def passes(number: int) -> None:
        for _ in range(20):
            loop.run_dense(X, np.arange(n_pos))
            loop.settle()

    together(passes)
    assert np.isfinite(w).all()
    assert w.any()
