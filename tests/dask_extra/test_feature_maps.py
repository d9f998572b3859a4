"""Feature maps on shards: learned on the driver, from all rows or a sample of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from shards import crew_of

from apsvm.dask.data import ShardedData
from apsvm.data.features import learn_map
from apsvm.data.features.scaling import learn_scaling
from apsvm.data.labels import threshold


@pytest.mark.parametrize("name", ["piecewise:3", "rules:10:depth=2"])
def test_of_many_rows_a_sample_is_learned_from(rng, monkeypatch, name):
    """It has all positives, at most as many rows as boosting looks at, and the rows stay beside their labels."""
    n, most = 3000, 1000
    y = (np.arange(n) % 60 == 0).astype(float)
    X = np.column_stack([np.arange(n) + 10_000.0 * y, rng.normal(size=n)])
    looked_at = []

    def watched(name, X, selection=None, *, targets=None, seed=0):
        looked_at.append((X, targets))
        return learn_map(name, X, selection, targets=targets, seed=seed)

    monkeypatch.setattr("apsvm.data.features.binning.MOST_ROWS", most)
    monkeypatch.setattr("apsvm.dask.data.learn_map", watched)
    crew = crew_of(X, y, [700, 2500])
    data = ShardedData.of(crew, "the rows")
    target = threshold(data.labels)
    data.tell(target)
    learned = data.map_features(name, target, 0)
    ((sample, targets),) = looked_at
    assert sample.shape == (most, 2)
    assert np.unique(sample[:, 0]).size == most
    np.testing.assert_array_equal(targets[0] == 1.0, sample[:, 0] >= 10_000.0)
    assert targets.sum() == y.sum()

    scaling = data.scale("maxabs", 1.0)
    mapped = learned.apply(X)
    assert scaling.divisors == pytest.approx(learn_scaling("maxabs", mapped).divisors, rel=1e-12)
    crew.lose(1)
    w = rng.normal(size=learned.n_out + 1)
    scores = [data.crew.ask_surely("extremes", w)]
    whole = mapped @ (w[:-1] / scaling.divisors) + w[-1]
    bounds = [0, 700, 2500, n]
    expected = [(part.min(), part.max()) for part in (whole[a:b] for a, b in itertools.pairwise(bounds))]
    np.testing.assert_allclose(scores[0], expected, rtol=1e-12)
