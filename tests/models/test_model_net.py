"""Networks as models: scores against the definition, round trips, and damage."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from apsvm.data.features.scaling import learn_scaling
from apsvm.data.rows import Rows
from apsvm.models.header import Header
from apsvm.models.net import Layer, Net, NetRanker

HEADER = Header(family="structured-svm", loss="ap")
SHAPES = {"linear": [7, 1], "one hidden": [7, 5, 1], "two hidden": [7, 5, 3, 1], "one unit": [7, 1, 1]}


def net_of(rng: np.random.Generator, sizes: list[int]) -> Net:
    return Net(tuple(Layer(rng.normal(size=(out, into)), rng.normal(size=out)) for into, out in pairwise(sizes)))


def by_definition(net: Net, X: np.ndarray) -> np.ndarray:
    h = X
    for number, (weights, bias) in enumerate(net.layers):
        h = (np.maximum(h, 0.0) if number else h) @ weights.T + bias
    return h[:, 0]


@pytest.mark.parametrize("sizes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_those_of_the_definition(sizes, dtype, rng):
    model = NetRanker(net_of(rng, sizes), HEADER)
    X = rng.normal(size=(40, 7)).astype(dtype)
    X[rng.random(X.shape) < 0.4] = 0
    expected = by_definition(model.net, X.astype(np.float64))
    for form in (X, np.asfortranarray(X), sp.csr_array(X), X.tolist()):
        np.testing.assert_allclose(model.score(form), expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(model.score(X, threads=2), model.score(X))
    np.testing.assert_array_equal(model.score(X[::-1])[::-1], model.score(X))  # equal rows tie wherever they stand
    assert model.score(X[:0]).shape == (0,)
    with pytest.raises(ValueError, match=r"shape \(n, 7\), found \(40, 6\)"):
        model.score(X[:, :6])


@pytest.mark.parametrize("scale", ["none", "maxabs", "standard"])
def test_behind_a_scaling(scale, rng):
    net, X = net_of(rng, [7, 5, 1]), rng.normal(3.0, 2.0, size=(40, 7))
    scaling = learn_scaling(scale, X)
    np.testing.assert_allclose(net.behind(scaling).scores(Rows(X)), net.scores(Rows(X, scaling=scaling)), rtol=1e-10)
