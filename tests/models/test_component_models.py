"""Files of models of several components: round trips, scores, and every kind of damage is a ModelError."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from apsvm import ComponentRanker, ModelError, RankerSet, load_any_model, load_model
from apsvm._support.container import sealed, unsealed
from apsvm.models.header import Header, LabelKind, Labels

HEADER = Header(family="structured-svm", loss="ap", C=1.0, settings={"components": 3})


@pytest.fixture
def ranker(rng) -> ComponentRanker:
    return ComponentRanker(rng.normal(size=(3, 5)), rng.normal(size=3), HEADER)


@pytest.fixture
def ranker_set(rng) -> RankerSet:
    headers = [
        replace(HEADER, C=float(label), labels=Labels(kind=LabelKind.ONE_LABEL, positive=float(label)))
        for label in (1, 2, 5)
    ]
    rankers = [ComponentRanker(rng.normal(size=(3, 4)), rng.normal(size=3), header) for header in headers]
    return RankerSet.of(rankers, replace(HEADER, labels=Labels(kind=LabelKind.CLASSES)))


@pytest.fixture(params=["ranker", "ranker_set"])
def model(request) -> ComponentRanker | RankerSet:
    result: ComponentRanker | RankerSet = request.getfixturevalue(request.param)
    return result


def test_round_trip(model, tmp_path):
    path = tmp_path / "m.model"
    model.save(path)
    back = load_any_model(path)
    assert type(back) is type(model)
    np.testing.assert_array_equal(back.coef, model.coef)
    np.testing.assert_array_equal(back.intercepts, model.intercepts)
    assert (back.header, back.width, back.components) == (model.header, model.width, 3)
    assert back.to_bytes() == model.to_bytes() == path.read_bytes()
    with pytest.raises(ModelError, match=r"m\.model: expected a linear ranker, found "):
        load_model(path)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.coef, model.coef)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores(ranker, rng, dtype):
    X = rng.normal(size=(20, 5)).astype(dtype)
    X[rng.random(X.shape) < 0.4] = 0
    expected = X.astype(np.float64) @ ranker.coef.T + ranker.intercepts
    for form in (X, np.asfortranarray(X), sp.csr_array(X), X.tolist()):
        np.testing.assert_allclose(ranker.score_components(form), expected, rtol=1e-12)
        np.testing.assert_allclose(ranker.score(form), expected.max(axis=1), rtol=1e-12)
        np.testing.assert_array_equal(ranker.leading(form), expected.argmax(axis=1))
        np.testing.assert_array_equal(ranker.score(form, threads=2), ranker.score(form))
    for h in range(3):
        given = ranker.contributions(X, h)[:].sum(axis=1) + ranker.intercepts[h]
        np.testing.assert_allclose(given, expected[:, h], rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match=r"shape \(n, 5\), found \(20, 4\)"):
        ranker.score(X[:, :4])


def test_a_class_of_a_set_scores_as_alone(ranker_set, rng):
    X = rng.normal(size=(20, 4))
    scores = ranker_set.score(X)
    for j, label in enumerate(ranker_set.classes.tolist()):
        alone = ranker_set.ranker(label)
        np.testing.assert_array_equal(scores[:, j], alone.score(X))
        assert label == alone.header.C
    with pytest.raises(KeyError):
        ranker_set.ranker(3.0)


def test_damage_is_found(model, tmp_path):
    path = tmp_path / "m.model"
    content = model.to_bytes()
    for at in range(0, len(content), 11):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        with pytest.raises(ModelError, match=r"m\.model: "):
            load_any_model(path)
    path.write_bytes(content[:-100])
    with pytest.raises(ModelError):
        load_any_model(path)


@pytest.mark.parametrize(
    ("header", "arrays", "message"),
    [
        ({"components": 1}, {}, "'components' is 1, expected at least 2"),
        ({"components": "3"}, {}, "'components' is '3'"),
        ({"components": 2}, {}, "expected coef of float64 and shape"),
        ({"width": 4}, {}, "expected coef of float64 and shape"),
        ({"kind": "linear"}, {}, "'components' is not known"),
        ({}, {"intercepts": np.ones((3, 1))}, "expected intercepts of float64"),
        ({}, {"intercepts": np.ones(3, dtype=np.float32)}, "expected intercepts of float64"),
        ({}, {"intercepts": np.array([1.0, np.nan, 1.0])}, "of its intercepts is not finite"),
        ({}, {"coef": np.full((3, 5), np.inf)}, "of its coef is not finite"),
        ({}, {"coef": np.ones((3, 4))}, "expected coef of float64"),
        ({}, {"more": np.ones(1)}, "expected the members"),
    ],
)
def test_a_well_sealed_file_with_the_wrong_content_is_refused(header, arrays, message, ranker, tmp_path):
    content, stored = unsealed(ranker.to_bytes())
    path = tmp_path / "m.model"
    path.write_bytes(sealed(content, stored))  # the judge: without the change it is accepted
    assert load_any_model(path).width == 5
    path.write_bytes(sealed({**content, **header}, {**stored, **arrays}))
    with pytest.raises(ModelError, match=message):
        load_any_model(path)
