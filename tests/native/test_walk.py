"""Passes done in one walk: the bits of each alone, over storage, selections and threads."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from over import over

from apsvm._native import _kernels


def passes(n, d, count, rng):
    """Scores and combinations as asked for: of all rows, of positives and then negatives, of some rows, of rows in any
    order; slopes that are mostly 0 and others."""
    scores, combinations = [], []
    for number in range(count):
        positive = rng.random(n) < rng.random()
        rows = [
            None,
            np.r_[np.flatnonzero(positive), np.flatnonzero(~positive)],
            np.flatnonzero(positive),
            rng.permutation(n),
        ][number % 4]
        if rows is not None:
            rows = rows.astype(np.int64 if number % 3 == 0 else np.int32)
        m = n if rows is None else rows.size
        slopes = rng.normal(size=(m, 1)) * (rng.random((m, 1)) < rng.random())
        scores.append((rows, rng.normal(size=(1, d)), np.full((m, 1), np.nan)))
        combinations.append((rows, slopes, np.full((1, d), np.nan)))
    return scores, combinations


def check_walk(n, d, dtype, kind, threads):
    """Compares seven passes of each kind with kernels of one pass."""
    rng = np.random.default_rng(n + threads)
    X = rng.normal(size=(n, d)).astype(dtype)
    X[rng.random(X.shape) < 0.6] = 0.0
    scores, combinations = passes(n, d, 7, rng)
    S = sp.csr_array(X)
    matrix = X if kind == "dense" else _kernels.CsrMatrix(S.indptr, S.indices, S.data, n, d)
    getattr(_kernels, f"walk_{kind}")(matrix, scores, combinations, threads)
    for name, asked in (("scores", scores), ("combine", combinations)):
        for rows, given, out in asked:
            alone = np.empty_like(out)
            getattr(_kernels, f"{name}_{kind}")(matrix, rows, given, alone, 1)
            assert np.array_equal(alone, out)


@pytest.mark.slow
@over("threads", [1, 2, 3])
@over("kind", ["dense", "csr"])
@over("dtype", [np.float32, np.float64])
@over(("n", "d"), [(20_000, 50), (30_000, 3), (50, 2000), (1, 1)])
def test_each_pass_has_the_bits_that_it_has_alone(n, d, dtype, kind, threads):
    check_walk(n, d, dtype, kind, threads)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_a_walk_of_two_threads(kind):
    check_walk(20_000, 8, np.float64, kind, 2)


@pytest.mark.slow
def test_a_walk_beyond_the_caches():
    check_walk(45_000, 50, np.float64, "dense", 2)


def test_nothing_to_do():
    _kernels.walk_dense(np.zeros((3, 2)), [], [], 2)


@pytest.mark.parametrize(
    ("rows", "given", "out", "message"),
    [
        (np.array([0, 3], dtype=np.int32), (1, 2), (2, 1), "rows below 3"),
        (np.array([0, -1], dtype=np.int64), (1, 2), (2, 1), "rows below 3"),
        (None, (1, 3), (3, 1), "expected 2 columns of what is given, found 3"),
        (None, (2, 2), (3, 1), "expected 1 rows of what is given, found 2"),
        (None, (1, 2), (2, 1), "expected 3 rows of the result, found 2"),
        (None, (1, 2), (3, 2), "expected 1 columns of the result, found 2"),
    ],
)
def test_sizes_are_checked(rows, given, out, message):
    with pytest.raises(ValueError, match=message):
        _kernels.walk_dense(np.zeros((3, 2)), [(rows, np.zeros(given), np.zeros(out))], [], 1)


def test_threads_and_parts_are_checked():
    X = np.zeros((3, 2))
    with pytest.raises(ValueError, match="at least one thread"):
        _kernels.walk_dense(X, [], [], 0)
    with pytest.raises(ValueError, match="expected 3 parts of a pass, found 2"):
        _kernels.walk_dense(X, [(None, np.zeros((1, 2)))], [], 1)


def test_other_types_are_refused():
    """They would be converted, and the result lost without a word."""
    with pytest.raises((TypeError, RuntimeError)):
        _kernels.walk_dense(np.zeros((3, 2)), [(None, np.zeros((1, 2), dtype=np.float32), np.zeros((3, 1)))], [], 1)
