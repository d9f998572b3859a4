"""The row kernels against numpy: CSR and dense, float32 and float64, both index widths, selections, bias, threads."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from over import over

from apsvm.data.features.scaling import learn_scaling
from apsvm.data.rows import Rows


def wide(X: np.ndarray) -> sp.csr_array:
    stored = sp.csr_array(X)
    stored.indices, stored.indptr = stored.indices.astype(np.int64), stored.indptr.astype(np.int64)
    return stored


FORMS = {
    "dense": np.asarray,
    "Fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csr matrix": sp.csr_matrix,
    "csr int64": wide,
    "coo": sp.coo_array,
}


def forms(X: np.ndarray) -> dict[str, object]:
    return {name: store(X) for name, store in FORMS.items()}


@over("dtype", [np.float32, np.float64, np.int64])
@over("shape", [(1, 1), (37, 19), (900, 700), (3, 0)])
def test_against_numpy(shape, dtype, rng):
    X = (rng.normal(size=shape) * 8).astype(dtype)
    X[rng.random(shape) < 0.6] = 0
    exact = X.astype(np.float64)
    which = rng.permutation(shape[0])[: max(1, shape[0] // 2)].astype(np.int64)
    w = rng.normal(size=shape[1])
    c = rng.normal(size=which.size) * (rng.random(which.size) < 0.5)
    for name, form in forms(X).items():
        results = []
        for threads in (1, 2, 5):
            rows = Rows(form, threads=threads).select(which)
            assert len(rows) == which.size
            scores, combined = rows.scores(w), rows.combine(c)
            np.testing.assert_allclose(scores, exact[which] @ w, rtol=1e-12, atol=1e-10, err_msg=name)
            np.testing.assert_allclose(combined, exact[which].T @ c, rtol=1e-12, atol=1e-10, err_msg=name)
            results.append((scores, combined))
        for scores, combined in results[1:]:
            np.testing.assert_array_equal(scores, results[0][0])
            np.testing.assert_array_equal(combined, results[0][1])


#: As in the kernels: with fewer multiply-adds there is one block, and one thread does it all.
WORK_OF_A_BLOCK = 2**18


@pytest.fixture(scope="module")
def large():
    """Rows enough for several blocks and several threads, even of those that are selected and have a weight; no two
    blocks weigh nearly the same. X (n, d) float64 with zeros; which (m,) int64; w (d + 1,), c (m,) float64."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2500, 600)) * np.linspace(1.0, 3.0, 2500)[:, None] + rng.normal(size=600)
    X[rng.random(X.shape) < 0.2] = 0.0
    X = X.astype(np.float32).astype(np.float64)
    which = rng.permutation(2500)[:2000].astype(np.int64)
    c = np.where(rng.random(2000) < 0.7, rng.random(2000) + 0.5, 0.0)
    assert np.count_nonzero(X[which[c != 0.0]]) > 2 * WORK_OF_A_BLOCK
    return X, which, rng.normal(size=601), c


@pytest.fixture(scope="module", params=["none", "maxabs", "standard", "l2"])
def large_scaled(request, large):
    """The scaling, and the selected rows as numpy has them: scaled, and with the bias as a column."""
    X, which, _, _ = large
    scaling = learn_scaling(request.param, X, which)
    scaled = X[which]
    if scaling.centre is not None:
        scaled = scaled - scaling.centre
    if scaling.divisors is not None:
        scaled = scaled / scaling.divisors
    if scaling.unit_rows:
        scaled = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaling, np.column_stack([scaled, np.full(which.size, 2.0)])


@pytest.mark.slow
@over("dtype", [np.float32, np.float64])
@over("form", ["dense", "csr", "csr int64"])
def test_every_block_and_every_thread_counts(form, dtype, large, large_scaled):
    X, which, w, c = large
    scaling, expected = large_scaled
    stored = FORMS[form](X.astype(dtype))
    judge_of_scores, judge_of_sum = expected @ w, expected.T @ c
    alone = None
    for threads in (1, 2, 5):
        rows = Rows(stored, bias=2.0, threads=threads, selection=which, scaling=scaling)
        found = rows.scores(w), rows.combine(c)
        np.testing.assert_allclose(found[0], judge_of_scores, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found[1], judge_of_sum, rtol=1e-9, atol=1e-7)
        alone = alone or found
        np.testing.assert_array_equal(found[0], alone[0])
        np.testing.assert_array_equal(found[1], alone[1])


def test_no_rows(rng):
    rows = Rows(rng.normal(size=(4, 3))).select(np.empty(0, dtype=np.int64))
    assert rows.scores(np.ones(3)).size == 0
    np.testing.assert_array_equal(rows.combine(np.empty(0)), np.zeros(3))


def test_x_is_not_copied(rng):
    X = rng.normal(size=(5, 3))
    rows = Rows(X)
    X[0, 0] = 100.0
    assert rows.scores(np.array([1.0, 0.0, 0.0]))[0] == 100.0


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_rows_in_memory(make, rng):
    X = rng.normal(size=(6, 3))
    matrix, selection = Rows(make(X), bias=2.0).select(np.array([4, 1])).in_memory()
    assert selection.tolist() == [4, 1]
    np.testing.assert_array_equal(matrix.toarray() if sp.issparse(matrix) else matrix, X)
    for scaling in ("maxabs", "standard", "l2"):
        with pytest.raises(ValueError, match=f"scaled rows .{scaling}."):
            Rows(make(X), scaling=learn_scaling(scaling, make(X))).in_memory()


def test_all_rows_are_those_that_are_listed(large):
    X, _, w, _ = large
    c = np.random.default_rng(2).normal(size=X.shape[0])
    for threads in (1, 3):
        every = Rows(X, threads=threads)
        for dtype in (np.int32, np.int64):
            listed = Rows(X, threads=threads, selection=np.arange(X.shape[0], dtype=dtype))
            np.testing.assert_array_equal(every.scores(w[:600]), listed.scores(w[:600]))
            np.testing.assert_array_equal(every.combine(c), listed.combine(c))
        np.testing.assert_array_equal(every.select(np.array([5, 3])).scores(w[:600]), every.scores(w[:600])[[5, 3]])
        np.testing.assert_array_equal(every.moments().mean, listed.moments().mean)


@over("d", [*range(1, 18), 31, 100])
def test_every_width(d, rng):
    """The kernels take columns eight, four and one at a time, and several rows at once."""
    X = rng.integers(-9, 9, size=(23, d)).astype(np.float32)
    w, c = rng.integers(-9, 9, size=d).astype(float), rng.integers(-3, 3, size=23).astype(float)
    for dtype in (np.float32, np.float64):
        rows = Rows(X.astype(dtype))
        np.testing.assert_array_equal(rows.scores(w), X.astype(float) @ w)
        np.testing.assert_array_equal(rows.combine(c), X.astype(float).T @ c)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_passes_beyond_the_caches_come_to_the_same_bits(dtype, rng):
    """Rows that follow one another in memory are then taken one by one, with the gaps that negatives have; scattered
    ones several at a time, as all are where they are few."""
    X = rng.normal(size=(45_000, 50)).astype(dtype)
    positive = rng.random(len(X)) < 0.1
    order = np.r_[np.flatnonzero(positive), np.flatnonzero(~positive)]
    w, c = rng.normal(size=50), rng.normal(size=len(X))
    many = Rows(X).select(order)
    few = [Rows(X).select(part) for part in np.array_split(order, 7)]
    assert np.array_equal(many.scores(w), np.concatenate([rows.scores(w) for rows in few]))
    assert np.allclose(many.combine(c), X[order].astype(np.float64).T @ c)
    assert np.array_equal(many.combine(c), many.with_threads(2).combine(c))


@over("missing", [0.0, 0.3])
def test_runs_that_share_ranges_are_summed_in_the_order_of_the_matrix(missing, rng):
    """Beyond the caches: of ranges without gaps one row after another, of those that a run has nearly alone or whose
    factors are mostly 0 run by run. Rows that are not selected may be anything."""
    X = rng.normal(size=(45_000, 50))
    run = rng.integers(0, 3, len(X)) * (np.arange(len(X)) < 30_000)
    run[rng.random(len(X)) < missing] = 9
    order = np.concatenate([np.flatnonzero(run == number) for number in range(3)])
    order = np.r_[order, order[order % 7 == 0][:50]]  # some twice
    c = rng.normal(size=order.size) * (order > 10_000)
    expected = X[order].T @ c
    X[run == 9] = np.inf
    rows = Rows(X).select(order)
    np.testing.assert_allclose(rows.combine(c), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(rows.combine(c), rows.with_threads(2).combine(c))


@pytest.mark.parametrize("scale", ["none", "maxabs", "standard", "l2"])
def test_copied_rows_are_the_same(scale, rng):
    """Means of 1e9 deviations would leave no digit in float32 before they are subtracted."""
    X = rng.normal(size=(50, 4)) + np.array([1e9, 0.0, -1e3, 1.0])
    which = rng.permutation(50)[:20]
    w, c = rng.normal(size=5), rng.normal(size=20)
    for matrix in (X, sp.csr_matrix(X)):
        scaling = learn_scaling(scale, matrix)
        rows = Rows(matrix, bias=2.0, selection=np.arange(50), scaling=scaling).select(which)
        copied = rows.copied()
        np.testing.assert_allclose(copied.scores(w), rows.scores(w), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(copied.combine(c), rows.combine(c), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(copied.select([3, 1]).scores(w), rows.scores(w)[[3, 1]], rtol=1e-5, atol=1e-5)
