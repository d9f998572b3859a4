"""Files of every kind of model: there and back, and whatever is wrong with one is a ModelError that names the file."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from over import over

from apsvm import ComponentRanker, LinearRanker, ModelError, RankerSet, load_any_model, load_model
from apsvm._support.container import sealed, unsealed
from apsvm.data.features import learn_map
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


def numbers(*shape: int, dtype: str = "f8") -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


def components(header: Header) -> ComponentRanker:
    return ComponentRanker(numbers(2, 3), numbers(2), header)


MODELS: dict[str, Model] = {
    "linear": LinearRanker(numbers(3), 0.25, HEADER),
    "mapped": LinearRanker(
        numbers(PRODUCTS.n_out), 0.5, replace(HEADER, features=Features(map=PRODUCTS.name)), PRODUCTS
    ),
    "components": components(HEADER),
    "net": NetRanker(Net((Layer(numbers(2, 3), numbers(2)), Layer(numbers(1, 2), numbers(1)))), HEADER),
    "items": ItemRanker(
        ItemFactors(numbers(3, 2, dtype="f4"), numbers(3, 2, dtype="f4"), numbers(3, dtype="f4")), HEADER
    ),
    "set": RankerSet([LinearRanker(numbers(3), 1.5, one) for one in CLASSES], HEADER),
    "set of components": RankerSet([components(one) for one in CLASSES], HEADER),
}


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
    X = numbers(9, 3)
    np.testing.assert_array_equal(back.score(X), model.score(X))
    if not isinstance(model, LinearRanker):
        with pytest.raises(ModelError, match="expected a linear ranker, found a"):
            load_model(path)
    for wrong in (numbers(9, 4), numbers(3)):
        with pytest.raises(ValueError, match=r"shape \(n, 3\), found"):
            model.score(wrong)


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
