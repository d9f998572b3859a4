"""Models with a feature map: their files, and files whose arrays are no such map's."""

from __future__ import annotations

import json
import zipfile
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from apsvm import LinearRanker, ModelError, load_any_model, load_model
from apsvm._support.container import sealed
from apsvm.data.features import learn_map
from apsvm.models.base import ScoreError
from apsvm.models.header import Features, Header

MAPS = ("piecewise", "products", "nystroem:9")


@pytest.fixture
def X(rng):
    return np.where(rng.random((80, 4)) < 0.3, 0.0, rng.normal(size=(80, 4)))


def header_of(feature_map, **more) -> Header:
    return Header(family="structured-svm", loss="ap", C=1.0, features=Features(map=feature_map.name), **more)


def ranker_of(name, X, rng, scale="none") -> LinearRanker:
    learned = learn_map(name, X)
    header = header_of(learned)
    header = replace(header, features=replace(header.features, scale=scale))
    return LinearRanker(rng.normal(size=learned.n_out), 0.5, header, learned)


@pytest.mark.parametrize("scale", ["standard", "l2"])
@pytest.mark.parametrize("name", MAPS)
def test_round_trip(name, scale, X, rng, tmp_path):
    ranker = ranker_of(name, X, rng, scale)
    ranker.save(tmp_path / "m")
    back = load_model(tmp_path / "m")
    assert back.to_bytes() == ranker.to_bytes()
    assert (back.width, back.coef.size) == (4, ranker.feature_map.n_out)
    assert back.header == ranker.header
    mapped = ranker.feature_map.apply(X)
    if scale == "l2":
        mapped = mapped / np.linalg.norm(mapped, axis=1, keepdims=True)
    for form in (X, sp.csr_array(X), X.tolist()):
        np.testing.assert_allclose(back.score(form), mapped @ ranker.coef + 0.5, rtol=1e-7, atol=1e-7)
    with pytest.raises(ValueError, match=r"shape \(n, 4\)"):
        back.score(mapped if mapped.shape[1] != 4 else X[:, :2])
    with zipfile.ZipFile(tmp_path / "m") as archive:
        members = [f"map.{key}.npy" for key in ranker.feature_map.arrays()]
        assert archive.namelist() == ["header.npy", "coef.npy", *members]


def parts_of(ranker):
    """The header's content and the arrays of its file."""
    more = {"kind": "linear", "width": ranker.width, "columns": ranker.coef.size, "intercept": 0.0}
    arrays = {f"map.{key}": array for key, array in ranker.feature_map.arrays().items()}
    return {**ranker.header.to_json(), **more}, {"coef": ranker.coef, **arrays}


def refused(path, content, arrays, message):
    path.write_bytes(sealed(content, arrays))
    with pytest.raises(ModelError, match=message) as caught:
        load_any_model(path)
    assert str(path) in str(caught.value)


def test_files_that_are_sealed_well_and_wrong(X, rng, tmp_path):
    path = tmp_path / "m"
    content, arrays = parts_of(ranker_of("piecewise", X, rng))
    path.write_bytes(sealed(content, arrays))
    assert load_model(path).width == 4
    knots, starts = arrays["map.knots"], arrays["map.starts"]
    refused(path, content, {**arrays, "map.knots": np.where(knots == knots[0], np.nan, knots)}, "knots is not finite")
    refused(path, content, {**arrays, "map.knots": knots[::-1].copy()}, "do not ascend")
    refused(path, content, {**arrays, "map.knots": knots[:-1]}, "does not divide")
    refused(path, content, {**arrays, "map.starts": starts[:-1]}, r"expected the array starts of int64 and shape \(5\)")
    refused(
        path,
        content,
        {"coef": arrays["coef"]},
        "expected the arrays knots, ranges, starts of the feature map piecewise:4",
    )
    refused(path, content, {**arrays, "map.more": knots}, "expected the arrays knots, ranges, starts")
    refused(path, content, {**arrays, "coef": arrays["coef"][:-1]}, "expected coef of float64 and shape")
    refused(path, {**content, "columns": 10**12}, arrays, "found 1000000000000")
    refused(path, {**content, "columns": True}, arrays, "in 'columns', found True")
    refused(path, {**content, "width": 10**12}, arrays, "expected the array starts")
    refused(path, {**content, "width": -1}, arrays, "in 'width', found -1")
    lacks = {key: value for key, value in content.items() if key != "columns"}
    refused(path, lacks, arrays, "in 'columns', found None")
    for name, message in (
        ("linear", "expected the arrays none of the feature map linear, found knots, ranges, starts"),
        ("Piecewise:4", "expected 'piecewise:4' in 'features.map', found 'Piecewise:4'"),
        ("products", "expected the arrays centre, deviation"),
        ("cubes", "unknown feature map 'cubes'"),
        ("piecewise:0", "bad parameter"),
    ):
        refused(path, {**content, "features": {**content["features"], "map": name}}, arrays, message)
    linear = {**content, "features": {**content["features"], "map": "linear"}}
    refused(path, linear, {"coef": arrays["coef"]}, r"expected coef of float64 and shape \(4,\)")


def test_a_ranker_of_items_has_no_map(tmp_path):
    header = Header(loss="warp", features=Features(map="products"))
    content = {**header.to_json(), "kind": "item-factors", "width": 2, "columns": 5, "factors": 1}
    factors = {"input": np.ones((2, 1), "<f4"), "output": np.ones((2, 1), "<f4"), "bias": np.ones(2, "<f4")}
    more = {"map.centre": np.zeros(2), "map.deviation": np.ones(2)}
    refused(tmp_path / "m", content, {**factors, **more}, "no feature map for a ranker of items")
    plain = {**Header(loss="warp").to_json(), "kind": "item-factors", "width": 2, "factors": 1}
    refused(tmp_path / "m", plain, {**factors, **more}, "expected the arrays none of the feature map linear")


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=60)
def test_whatever_the_arrays_are_it_is_a_model_or_a_ModelError(data, tmp_path_factory):
    rng = np.random.default_rng(0)
    ranker = ranker_of(data.draw(st.sampled_from(MAPS)), rng.normal(size=(30, 4)), rng)
    content, arrays = parts_of(ranker)
    key = data.draw(st.sampled_from(sorted(arrays)))
    array = arrays[key].copy()
    change = data.draw(st.sampled_from(["value", "type", "shape", "length"]))
    if change == "value":
        value = data.draw(st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, -1e308]))
        if array.dtype == np.int64:
            value = data.draw(st.sampled_from([-1, 2**62, -(2**63), 1, 3]))
        array.flat[data.draw(st.integers(0, array.size - 1))] = value
    elif change == "type":
        array = array.astype(data.draw(st.sampled_from(["<f4", ">f8", "<i8", "<f8", "|b1"])))
    elif change == "shape":
        array = array.reshape(data.draw(st.sampled_from([(-1,), (1, -1), (-1, 1)])))
    else:
        array = array[: data.draw(st.integers(0, array.shape[0]))]
    path = tmp_path_factory.mktemp("hostile") / "m"
    path.write_bytes(sealed(content, {**arrays, key: array}))
    try:
        model = load_any_model(path)
    except ModelError:
        return
    with suppress(ScoreError), np.errstate(over="ignore", invalid="ignore"):
        assert model.score(rng.normal(size=(5, 4))).shape == (5,)


def test_names_of_columns(X, rng):
    ranker = ranker_of("products", X, rng)
    assert ranker.columns()[:6] == ["1", "2", "3", "4", "1²", "1·2"]
    named = replace(ranker, header=replace(ranker.header, features=Features(map="products", names=tuple("abcd"))))
    assert named.columns()[:6] == ["a", "b", "c", "d", "a²", "a·b"]
    assert json.dumps(named.header.to_json())
