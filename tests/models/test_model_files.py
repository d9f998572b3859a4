"""Every kind of model: scores by the definition, files there and back, and whatever is wrong with one is a ModelError
that names the file."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from dataclasses import replace

import model_files
import numpy as np
import pytest
import scipy.sparse as sp
from model_files import GOOD, WEIGHTS, Bomb, array_bytes, text
from over import over

from apsvm import ComponentRanker, LinearRanker, ModelError, RankerSet, load_any_model, load_model
from apsvm._support.container import sealed, unsealed
from apsvm.data.features import learn_map
from apsvm.data.features.scaling import learn_scaling
from apsvm.data.rows import Rows
from apsvm.models.base import Model
from apsvm.models.header import Features, Header, LabelKind, Labels
from apsvm.models.items import ItemFactors, ItemRanker
from apsvm.models.net import Layer, Net, NetRanker

RNG = np.random.default_rng(5)
HEADER = Header(family="structured-svm", loss="ap", C=1.0)
CLASSES = [
    replace(HEADER, C=float(label), labels=Labels(kind=LabelKind.ONE_LABEL, positive=float(label)))
    for label in (1, 2, 5)
]
PRODUCTS = learn_map("products", RNG.normal(size=(20, 3)))
MAPPED = Features(map=PRODUCTS.name)


def numbers(*shape: int, dtype: str = "f8") -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


def components(header: Header) -> ComponentRanker:
    return ComponentRanker(numbers(2, 3), numbers(2), header)


MODELS: dict[str, Model] = {
    "linear": LinearRanker(numbers(3), 0.25, HEADER),
    "mapped": LinearRanker(numbers(PRODUCTS.n_out), 0.5, replace(HEADER, features=MAPPED), PRODUCTS),
    "components": components(HEADER),
    "net": NetRanker(Net((Layer(numbers(2, 3), numbers(2)), Layer(numbers(1, 2), numbers(1)))), HEADER),
    "items": ItemRanker(
        ItemFactors(numbers(3, 2, dtype="f4"), numbers(3, 2, dtype="f4"), numbers(3, dtype="f4")), HEADER
    ),
    "set": RankerSet([LinearRanker(numbers(3), 1.5, one) for one in CLASSES], HEADER),
    "set of components": RankerSet([components(one) for one in CLASSES], HEADER),
    "mapped set": RankerSet(
        [LinearRanker(numbers(PRODUCTS.n_out), 0.5, replace(one, features=MAPPED), PRODUCTS) for one in CLASSES],
        replace(HEADER, features=MAPPED),
    ),
}


def by_definition(model: Model, X: np.ndarray) -> np.ndarray:
    match model:
        case LinearRanker():
            mapped = X if model.feature_map is None else model.feature_map.apply(X)
            return mapped @ model.coef + model.intercept
        case ComponentRanker():
            return (X @ model.coef.T + model.intercepts).max(axis=1)
        case NetRanker():
            for number, (weights, bias) in enumerate(model.net.layers):
                X = (np.maximum(X, 0.0) if number else X) @ weights.T + bias
            return X[:, 0]
        case RankerSet():
            return np.stack([by_definition(ranker, X) for ranker in model.each], axis=1)
        case ItemRanker():
            input, output, bias = model.factors.input, model.factors.output, model.factors.bias
            scores = [bias + output @ (input[x > 0].mean(axis=0) if (x > 0).any() else np.zeros(2)) for x in X]
            return np.where(X == 0, scores, -np.inf)
    raise AssertionError(model)


@over("model", MODELS.values(), ids=MODELS)
@over("dtype", [np.float32, np.float64])
def test_scores_are_those_of_the_definition(model, dtype):
    X = numbers(40, 3).astype(dtype)
    X[RNG.random(X.shape) < 0.4] = 0.0
    X[:2] = [[0, 0, 0], [1, 2, 1]]
    expected, exact = by_definition(model, X.astype(np.float64)), model.score(X)
    single = isinstance(model, ItemRanker) or model.feature_map is not None
    for form in (X, np.asfortranarray(X), sp.csr_array(X), sp.csc_array(X), X.tolist()):
        np.testing.assert_allclose(model.score(form), expected, rtol=1e-5 if single else 1e-11, atol=1e-12)
    np.testing.assert_array_equal(model.score(X, threads=2), exact)
    np.testing.assert_array_equal(model.score(X[::-1])[::-1], exact)  # equal rows tie wherever they stand
    assert len(model.score(X[:0])) == 0
    for wrong in (numbers(9, 4), numbers(3)):
        with pytest.raises(ValueError, match=r"shape \(n, 3\), found"):
            model.score(wrong)


def test_components_and_what_they_give():
    ranker, X = MODELS["components"], numbers(20, 3)
    each = X @ ranker.coef.T + ranker.intercepts
    np.testing.assert_array_equal(ranker.leading(X), each.argmax(axis=1))
    for h in range(2):
        given = ranker.contributions(X)[h][:].sum(axis=1) + ranker.intercepts[h]
        np.testing.assert_allclose(given, each[:, h], rtol=1e-9, atol=1e-9)


def test_the_best_items():
    X = numbers(9, 3) * (RNG.random((9, 3)) < 0.4)
    for scores, (best, values) in zip(MODELS["items"].score(X), MODELS["items"].top(X, 2), strict=True):
        order = np.argsort(-scores, kind="stable")[: min(2, np.isfinite(scores).sum())]
        assert best.tolist() == order.tolist()
        np.testing.assert_array_equal(values, scores[order])


@over("scale", ["none", "maxabs", "standard"])
def test_a_net_behind_a_scaling(scale):
    net, X = MODELS["net"].net, 3.0 + 2.0 * numbers(40, 3)
    scaling = learn_scaling(scale, X)
    np.testing.assert_allclose(net.behind(scaling).scores(Rows(X)), net.scores(Rows(X, scaling=scaling)), rtol=1e-9)


@over("name", ["set", "set of components"])
def test_a_class_scores_as_alone(name):
    model, X = MODELS[name], numbers(20, 3)
    for column, label in zip(model.score(X).T, (1.0, 2.0, 5.0), strict=True):
        np.testing.assert_array_equal(column, model.ranker(label).score(X))
        assert label == model.ranker(label).header.C
    with pytest.raises(KeyError):
        model.ranker(3.0)


def refused(path, content, message=None):
    path.write_bytes(content)
    with pytest.raises(ModelError, match=message) as caught:
        load_any_model(path)
    assert str(path) in str(caught.value)


@over("model", MODELS.values(), ids=MODELS)
def test_round_trip(model, tmp_path):
    path = tmp_path / "m.model"
    model.save(path)
    back = load_any_model(path)
    assert type(back) is type(model)
    assert back.to_bytes() == model.to_bytes() == pickle.loads(pickle.dumps(back)).to_bytes() == path.read_bytes()
    assert (back.header, back.width, back.components) == (model.header, 3, model.components)
    assert os.listdir(tmp_path) == ["m.model"]  # no temporary file is left
    with np.load(path, allow_pickle=False) as archive:
        assert json.loads(archive["header"].tobytes())["width"] == 3
    if not isinstance(model, LinearRanker):
        with pytest.raises(ModelError, match="expected a linear ranker, found a"):
            load_model(path)


def test_a_failed_save_leaves_the_old_model(tmp_path, monkeypatch):
    path = tmp_path / "m.model"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        MODELS["linear"].save(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.model"]


def test_other_files_are_refused(tmp_path):
    for content in (b"", b"1 1:0.5\n", pickle.dumps(Bomb())):
        refused(tmp_path / "m", content)
    with pytest.raises(FileNotFoundError):
        load_any_model(tmp_path / "missing")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"coef.npy": WEIGHTS}, "expected the members"),
        ({"header.npy": text(GOOD), "coef": WEIGHTS}, "expected the members"),
        ({"header.npy": text({**GOOD, "schema": True}), "coef.npy": WEIGHTS}, "expected schema 1, found True"),
        ({"header.npy": text([1, 2]), "coef.npy": WEIGHTS}, "a JSON object as its header"),
        ({"header.npy": text({**GOOD, "intercept": float("nan")}), "coef.npy": WEIGHTS}, "NaN in its header"),
        ({"header.npy": text({**GOOD, "intercept": 10**400}), "coef.npy": WEIGHTS}, "finite number in 'intercept'"),
        ({"header.npy": text(GOOD), "coef.npy": b"rubbish"}, "not an apsvm model"),
        ({"header.npy": WEIGHTS, "coef.npy": WEIGHTS}, "not text"),
        (
            {"header.npy": text(GOOD), "coef.npy": array_bytes(np.array([Bomb()], dtype=object), allow_pickle=True)},
            "not an apsvm model",
        ),
        ({"header.npy": text(GOOD), "coef.npy": pickle.dumps(Bomb())}, "not an apsvm model"),
    ],
)
def test_a_well_sealed_file_with_the_wrong_content_is_refused(members, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = {"header.npy": text(GOOD), "coef.npy": WEIGHTS}
    (tmp_path / "m").write_bytes(model_files.sealed(good))
    np.testing.assert_array_equal(load_model(tmp_path / "m").coef, [1.0, 2.0])
    refused(tmp_path / "m", model_files.sealed(good, zipfile.ZIP_DEFLATED), "uncompressed")
    refused(tmp_path / "m", model_files.sealed(members), message)
    assert not (tmp_path / "executed").exists()


@over("depth", [101, 900, 10_000])
def test_a_header_that_nests_too_deep_is_refused(depth, tmp_path):
    nested = json.dumps(GOOD).replace('"settings": {}', f'"settings": {{"a": {"[" * depth}{"]" * depth}}}')
    content = array_bytes(np.frombuffer(nested.encode(), dtype=np.uint8))
    refused(tmp_path / "m", model_files.sealed({"header.npy": content, "coef.npy": WEIGHTS}), "more than 100 deep")


@over("model", MODELS.values(), ids=MODELS)
def test_flipped_bytes_and_truncations_are_found(model, tmp_path):
    content = model.to_bytes()
    for at in range(0, len(content), 13):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        refused(tmp_path / "m", bytes(damaged))
        refused(tmp_path / "m", content[:at])


@over("model", MODELS.values(), ids=MODELS)
def test_other_arrays_are_refused(model, tmp_path):
    content, arrays = unsealed(model.to_bytes())
    load = tmp_path / "m"
    load.write_bytes(sealed(content, arrays))
    assert load_any_model(load).to_bytes() == model.to_bytes()
    assert arrays
    for name, array in arrays.items():
        nan = array.astype(np.float64)
        nan.flat[0] = np.nan
        others = [("float16", array.astype("f2")), ("shape", array[None]), ("shape", array[:-1])]
        others += [("not finite", nan.astype(array.dtype))] if array.dtype.kind == "f" else []
        for message, other in others:
            refused(load, sealed(content, {**arrays, name: other}), message)
        refused(load, sealed(content, {key: one for key, one in arrays.items() if key != name}))
    refused(load, sealed(content, {**arrays, "more": np.ones(1)}), "more")


#: By model: fields of its header that no writer gives it.
WRONG = {
    "linear": [("intercept", "0"), ("intercept", None), ("units", [1]), ("width", 4), ("width", True), ("kind", "net")],
    "mapped": [("columns", 4), ("columns", True), ("columns", None), ("width", 4), ("width", -1)],
    "components": [("components", 1), ("components", "2"), ("components", 3), ("kind", "linear"), ("width", 4)],
    "net": [("units", one) for one in ([2], [], [True, 1], [0, 1], [2.0, 1], "2,1", [2, 2, 1], [3, 1])]
    + [("width", 5), ("width", -1), ("kind", "linear"), ("colour", 1)],
    "items": [("factors", "2"), ("factors", 3), ("kind", "forest"), ("kind", 3), ("kind", "linear")],
    "set": [("classes", one) for one in ({}, [], [5, 6], [{"intercept": 1}] * 3)]
    + [("width", 4), ("kind", "linear"), ("features", {"zero_based": 1})],
    "mapped set": [("columns", 4), ("columns", None), ("width", 4)],
    "set of components": [("components", 1), ("components", 3), ("classes", []), ("kind", "one-vs-rest")],
}


@over("name", MODELS)
def test_other_fields_are_refused(name, tmp_path):
    content, arrays = unsealed(MODELS[name].to_bytes())
    for field, value in WRONG[name]:
        changed = {**content, field: value}
        if value is None:
            del changed[field]
        refused(tmp_path / "m", sealed(changed, arrays))


def test_classes_are_labels_that_increase(tmp_path):
    content, arrays = unsealed(MODELS["set"].to_bytes())
    first, *others = content["classes"]
    for classes in (
        [*others, first],
        [first, first, *others[1:]],
        [first],
        *([{**first, **change}, *others] for change in ({"schema": 2}, {"labels": 5}, {"labels": {"colour": 1}})),
        [{**first, "data": {"rows": True}}, *others],
        [{key: value for key, value in first.items() if key != "intercept"}, *others],
    ):
        refused(tmp_path / "m", sealed({**content, "classes": classes}, arrays))
