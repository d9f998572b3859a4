"""Networks as models: scores against the definition, round trips, and damage."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from apsvm import ModelError, load_any_model, load_model
from apsvm._support.container import sealed, unsealed
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


@pytest.mark.parametrize("sizes", SHAPES.values(), ids=SHAPES)
def test_round_trip(sizes, rng, tmp_path):
    model, path = NetRanker(net_of(rng, sizes), HEADER), tmp_path / "m.model"
    model.save(path)
    back = load_any_model(path)
    assert isinstance(back, NetRanker)
    for mine, theirs in zip(model.net.layers, back.net.layers, strict=True):
        np.testing.assert_array_equal(mine.weights, theirs.weights)
        np.testing.assert_array_equal(mine.bias, theirs.bias)
    assert (back.header, back.width, back.zero_based, back.unit_rows) == (HEADER, 7, False, False)
    assert back.to_bytes() == path.read_bytes()
    with pytest.raises(ModelError, match="expected a linear ranker, found a network"):
        load_model(path)


@pytest.mark.slow
def test_every_flipped_byte_and_every_truncation_is_found(rng, tmp_path):
    path, content = tmp_path / "m.model", NetRanker(net_of(rng, [2, 2, 1]), HEADER).to_bytes()
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        for wrong in (bytes(damaged), content[:at]):
            path.write_bytes(wrong)
            with pytest.raises(ModelError, match=r"m\.model: "):
                load_any_model(path)


@pytest.mark.parametrize(
    ("header", "arrays", "message"),
    [
        ({"units": [5]}, {}, "'units' is \\[5\\]"),
        ({"units": []}, {}, "'units' is \\[\\]"),
        ({"units": [True, 1]}, {}, "'units' is"),
        ({"units": [0, 1]}, {}, "'units' is"),
        ({"units": [2.0, 1]}, {}, "'units' is"),
        ({"units": "2,1"}, {}, "'units' is '2,1'"),
        ({"units": [2, 2, 1]}, {}, "expected weights2"),
        ({"units": [3, 1]}, {}, "expected weights1 of float64 and shape \\(3, 4\\)"),
        ({"width": 5}, {}, "expected weights1 of float64 and shape \\(2, 5\\)"),
        ({"width": -1}, {}, "'width' is -1"),
        ({}, {"bias1": np.zeros(3)}, "expected bias1 of float64 and shape \\(2,\\)"),
        ({}, {"bias2": np.zeros(1, dtype=np.float32)}, "found float32"),
        ({}, {"weights2": np.array([[1.0, np.nan]])}, "a number of its weights2 is not finite"),
        ({}, {"more": np.zeros(1)}, "expected the members"),
        ({"colour": 1}, {}, "'colour' is not known"),
        ({"kind": "linear"}, {}, "'units' is not known"),
    ],
)
def test_a_file_that_is_no_net_is_refused(header, arrays, message, rng, tmp_path):
    good, numbers = unsealed(NetRanker(net_of(rng, [4, 2, 1]), HEADER).to_bytes())
    path = tmp_path / "m.model"
    path.write_bytes(sealed({**good, **header}, {**numbers, **arrays}))
    with pytest.raises(ModelError, match=message):
        load_any_model(path)
