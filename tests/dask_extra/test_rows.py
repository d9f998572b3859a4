"""Rows in parts on workers are the operator that rows in memory are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from apsvm.dask.cluster import Cluster
from apsvm.dask.rows import DistributedRows, How, PartedMatrix
from apsvm.data.features import learn_map
from apsvm.data.features.scaling import learn_scaling
from apsvm.data.moments import largest_magnitudes
from apsvm.data.rows import Rows


def parted(client, X, cuts):
    """X in parts between ``cuts``."""
    bounds = [0, *sorted(cuts), X.shape[0]]
    pieces = [X[begin:end] for begin, end in itertools.pairwise(bounds)]
    sizes = np.array([piece.shape[0] for piece in pieces])
    stored = int(X.nnz if sp.issparse(X) else X.size)
    parts = client.scatter(pieces, hash=False)
    return PartedMatrix(Cluster(client, print), parts, sizes, X.shape[1], stored, stores_zeros=not sp.issparse(X))


@pytest.mark.parametrize("kind", ["dense", "sparse", "mapped", "l2"])
@pytest.mark.parametrize("selected", [None, "some", "all", "twice", "one"])
def test_the_same_operator(client, rng, kind, selected):
    n, cuts = 90, [1, 30, 70]
    X = np.round(rng.normal(size=(n, 4)) * [1.0, 100.0, 0.0, 1.0] + [0.0, 5.0, 7.0, 0.0], 2)
    X = sp.csr_array(np.where(rng.random((n, 4)) < 0.6, 0.0, X)) if kind == "sparse" else X
    feature_map = learn_map("piecewise:3", X) if kind == "mapped" else None
    scaling = learn_scaling({"l2": "l2", "mapped": "none"}.get(kind, "standard"), X)
    which = {
        None: None, "some": rng.permutation(n)[:40], "all": rng.permutation(n),
        "twice": rng.integers(0, n, 100), "one": np.array([35]),
    }[selected]  # fmt: skip
    here = Rows(X, bias=2.0, selection=which, feature_map=feature_map, scaling=scaling)
    there = DistributedRows(parted(client, X, cuts), How(2.0, 1, feature_map, scaling))
    there = there if which is None else there.select(which)
    assert (len(there), there.dimension, there.features) == (len(here), here.dimension, here.features)
    W, C = rng.normal(size=(3, here.dimension)), rng.normal(size=(len(here), 2))
    np.testing.assert_array_equal(there.scores_of_all(W), here.scores_of_all(W))
    out = np.empty(len(here))
    assert np.shares_memory(there.scores(W[0], out), out)
    np.testing.assert_array_equal(out, here.scores(W[0]))
    np.testing.assert_allclose(there.combine_all(C), here.combine_all(C), rtol=1e-12, atol=1e-12)
    c = C[:, 0].copy()
    np.testing.assert_allclose(there.combine(c), here.combine(c), rtol=1e-12, atol=1e-12)
    for groups in (None, rng.integers(0, 7, len(here))):
        for found, expected in zip(there.moments(groups), here.moments(groups), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    few = np.array([0, len(here) - 1])
    np.testing.assert_array_equal(there.select(few).scores(W[0]), here.select(few).scores(W[0]))
    np.testing.assert_allclose(there.copied().scores(W[0]), here.scores(W[0]), rtol=1e-12, atol=1e-12)
    runs = np.array([0, 1, 2])
    np.testing.assert_allclose(
        there.means(few, runs).scores(W[0]), here.means(few, runs).scores(W[0]), rtol=1e-9, atol=1e-9
    )


def test_rows_that_are_indexed_are_here(client, rng):
    X = rng.normal(size=(50, 3))
    there = parted(client, X, [10, 11])
    for rows in (np.array([40, 3, 3, 10]), slice(None), slice(5, 45, 7)):
        np.testing.assert_array_equal(there[rows], X[rows])
    largest = DistributedRows(there, How()).select(np.array([2, 30])).largest()
    np.testing.assert_array_equal(largest, largest_magnitudes(X, np.array([2, 30])))


def test_a_constant_column_has_no_variance_in_any_cut(client):
    X = np.full((40, 2), 0.1) + np.array([0.0, 1e6])
    rows = DistributedRows(parted(client, X, [7, 20]), How())
    assert (rows.moments().variance == 0.0).all()
