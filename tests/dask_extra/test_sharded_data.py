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


def test_means_that_differ_by_rounding_are_those_of_a_constant_column():
    of_shards = np.repeat([0.0, 1.0], 50)
    X = 7.0 + np.column_stack([1e-10 * of_shards, 1e-8 * of_shards])
    _, variance = sharded(X, np.arange(100) % 2.0, [50]).moments()
    assert variance[0] == 0.0
    assert variance[1] == pytest.approx(2.5e-17, rel=1e-6)


def test_what_rounds_cost_is_counted(X):
    """A number takes 8 bytes, and so does what it is sent in."""
    crew, ids = crew_of(X, np.arange(100) % 2.0, [20, 50], qid=np.arange(100)), np.arange(3)
    crew.set_up("read")
    crew.take_traffic()
    for rounds in (1, 2):
        for _ in range(rounds):
            crew.ask("bytes_of_queries", ids)
            crew.ask("bytes_of_queries", each=[(ids,)] * 3, programme=[("forget", [])])
        traffic = crew.take_traffic()
        assert (traffic.rounds, traffic.received) == (2 * rounds, rounds * 2 * 3 * 8)
        common, each, programme = 8 + (8 + 24), 8 + 3 * (8 + 8 + 24), 8 + (8 + (8 + 6) + 8)
        assert traffic.sent == rounds * (3 * (common + 8) + 3 * (8 + programme) + each)
        assert 0.0 < traffic.working_seconds < traffic.seconds < 60.0
