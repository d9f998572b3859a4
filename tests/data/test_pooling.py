"""Bags as rows: against loops over the bags, sparse as dense, in blocks of any size."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from apsvm.data import DataError, Dataset
from apsvm.data import pooling as module
from apsvm.data.bags import Bags
from apsvm.data.dataset import LabelSets
from apsvm.data.pooling import pooled, pooled_rows
from apsvm.models.header import POOLS, parse_pool

EVERY = ("max", "min", "mean")


def by_loops(X: np.ndarray, ids: np.ndarray, pool: tuple[str, ...]) -> np.ndarray:
    rows = []
    for bag in dict.fromkeys(ids.tolist()):
        members = X[ids == bag].astype(np.float64)
        of = {"min": members.min(axis=0), "max": members.max(axis=0), "mean": members.sum(axis=0) / len(members)}
        rows.append(np.concatenate([of[name] for name in pool]))
    return np.array(rows).reshape(len(rows), -1).astype(X.dtype)


def bags_for(ids: np.ndarray) -> Bags:
    return Bags.of_rows(ids, np.zeros(ids.size))


@pytest.mark.slow
@settings(max_examples=300)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 30),
    d=st.integers(0, 5),
    share=st.sampled_from([0.02, 0.15, 0.5, 1.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
    together=st.booleans(),
    pool=st.permutations(EVERY).flatmap(lambda names: st.integers(1, 3).map(lambda k: tuple(names[:k]))),
    block=st.sampled_from([1, 7, 1 << 22]),
)
def test_as_loops_over_bags(
    seed: int, n: int, d: int, share: float, dtype: Any, together: bool, pool: tuple[str, ...], block: int
) -> None:
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < share, rng.integers(-4, 5, (n, d)), 0).astype(dtype)  # sums are exact
    ids = rng.integers(0, 6, n)
    bags = bags_for(np.sort(ids) if together else ids)
    ids = np.sort(ids) if together else ids
    expected = by_loops(X, ids, pool)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        dense = pooled_rows(X, bags, pool)
        sparse = pooled_rows(sp.csr_array(X), bags, pool)
    assert dense.dtype == sparse.dtype == dtype
    assert np.array_equal(dense, expected)
    assert np.array_equal(sparse.toarray(), expected)
    sparse.check_format(full_check=True)
    assert sparse.has_sorted_indices
    assert (sparse.data != 0).all()


def test_zeros_that_are_not_stored_count() -> None:
    X = sp.csr_array(np.array([[1.0, -2, 0, 3], [0, 0, 0, 5], [2, -1, 0, 0]]))
    result = pooled_rows(X, bags_for(np.array([4, 4, 9])), POOLS)
    assert result.toarray().tolist() == [
        [0, -2, 0, 3, 0.5, -1, 0, 4, 1, 0, 0, 5],
        [2, -1, 0, 0, 2, -1, 0, 0, 2, -1, 0, 0],
    ]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_sum_beyond_float64_has_a_mean(sparse: bool) -> None:
    X: Any = np.zeros((4, 12))
    X[:3, 0] = 1.5e308
    X[:, 1] = [1, 2, 4, 8]
    bags = bags_for(np.array([1, 1, 1, 2]))
    result = pooled_rows(sp.csr_array(X) if sparse else X, bags, ("mean",))
    result = result.toarray() if sparse else result
    np.testing.assert_allclose(result[:, :2], [[1.5e308, 7 / 3], [0, 8]], rtol=1e-15)


@pytest.mark.parametrize("X", [np.ones((3, 2)), sp.csr_array(np.ones((3, 2)))], ids=["dense", "sparse"])
def test_bags_without_features(X: Any) -> None:
    assert pooled_rows(X, bags_for(np.array([1, 2, 1])), ()).shape == (2, 0)


def test_a_huge_width() -> None:
    X = sp.csr_array((np.array([2.0, -3.0]), np.array([2**30, 5]), np.array([0, 1, 2])), shape=(2, 2**31 - 1))
    result = pooled_rows(X, bags_for(np.array([0, 0])), ("max", "min"))
    assert result.shape == (1, 2 * (2**31 - 1))
    assert dict(zip(result.indices.tolist(), result.data.tolist(), strict=True)) == {2**30: 2.0, 2**31 - 1 + 5: -3.0}


def data(**more: Any) -> Dataset:
    return Dataset(
        X=np.arange(8.0).reshape(4, 2), relevance=np.array([1.0, 0, 1, 0]), groups=np.array([5, 6, 5, 6]),
        costs=np.array([2.0, 3, 2, 3]), zero_based=False, source="here", fingerprint="", unknown_features=0, **more,
    )  # fmt: skip


def test_what_else_a_bag_has() -> None:
    sets = LabelSets(np.array([1.0, 2.0]), np.array([0, 2, 2, 4, 4]), np.array([0, 1, 0, 1], dtype=np.int32))
    result = pooled(data(bags=np.array([7, 8, 7, 8]), label_sets=sets), ("mean",))
    assert result.X.tolist() == [[2, 3], [4, 5]]
    assert result.relevance.tolist() == [1, 0]
    assert result.groups is not None
    assert result.groups.tolist() == [5, 6]
    assert result.costs is not None
    assert result.costs.tolist() == [2, 3]
    assert result.label_sets is not None
    assert result.label_sets.matrix().tolist() == [[True, True], [False, False]]
    assert (result.bags, result.instances) == (None, 4)


def test_rows_in_no_bags() -> None:
    with pytest.raises(DataError, match=r"here: --pool \(pool=\) is for rows in bags, and these are in none"):
        pooled(data(), ("mean",))


def test_names() -> None:
    assert parse_pool(" Max,mean") == ("max", "mean")
    for wrong in ("", "mean,", "mean,mean", "median", "min mean"):
        with pytest.raises(ValueError, match=r"expected some of min, mean, max, with commas between them, found"):
            parse_pool(wrong)
