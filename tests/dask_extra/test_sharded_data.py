"""What rows in shards are as a whole, against the same rows in one place."""

from __future__ import annotations

import numpy as np
import pytest
from shards import crew_of, sharded

from apsvm.dask.data import ShardedData
from apsvm.data.features.scaling import learn_scaling
from apsvm.data.moments import column_moments


@pytest.fixture
def X(rng):
    """The shards of these rows have other means; a column is constant in each of them, and one in all."""
    parts = np.repeat([0.0, 5.0, -3.0], [20, 30, 50])
    return np.column_stack([rng.normal(size=100) + parts, 3.0 * rng.normal(size=100), parts, np.full(100, 7.0)])


@pytest.mark.parametrize("name", ["none", "l2", "maxabs", "standard"])
def test_scalings_are_learned_from_all_rows(X, name):
    data = ShardedData.of(crew_of(X, np.arange(100) % 2.0, [20, 50]), "the rows")
    found, expected = data.scale(name, 1.0), learn_scaling(name, X)
    assert (found.name, found.unit_rows) == (expected.name, expected.unit_rows) == (name, name == "l2")
    for one, other in ((found.divisors, expected.divisors), (found.centre, expected.centre)):
        assert (one is None) == (other is None)
        assert one is None or one == pytest.approx(other, rel=1e-12)


def test_moments_are_those_of_all_rows(X):
    qid = np.repeat(np.arange(10), 10)
    data = sharded(X, np.arange(100) % 2.0, [20, 50], qid=qid)
    mean, variance = data.moments()
    assert mean == pytest.approx(X.mean(axis=0), rel=1e-12)
    assert variance == pytest.approx(X.var(axis=0), rel=1e-12)
    assert data.moments(within_queries=True).variance == pytest.approx(column_moments(X, groups=qid).variance, rel=1e-9)


def test_its_size_is_that_of_all_rows(X):
    extent = sharded(X, np.arange(100) % 2.0, [20, 50]).of_labels().X
    assert (extent.shape, extent.size) == (X.shape, X.size)
