"""Models of items: there and back, damaged, and their scores against the definition."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from model_files import HEADER, Bomb, array_bytes, sealed, text

from apsvm import ModelError, load_any_model, load_model
from apsvm.models.items import ItemFactors, ItemRanker


@pytest.fixture
def items(rng) -> ItemRanker:
    arrays = (rng.normal(size=(6, 3)), rng.normal(size=(6, 3)), rng.normal(size=6))
    return ItemRanker(ItemFactors(*(array.astype(np.float32) for array in arrays)), HEADER)


def test_item_models_round_trip(items, tmp_path):
    path = tmp_path / "m.model"
    items.save(path)
    back = load_any_model(path)
    assert isinstance(back, ItemRanker)
    for name in ("input", "output", "bias"):
        np.testing.assert_array_equal(getattr(back.factors, name), getattr(items.factors, name))
    assert (back.width, back.zero_based, back.header) == (6, False, HEADER)
    assert back.to_bytes() == items.to_bytes() == path.read_bytes()
    with pytest.raises(ModelError, match=r"m\.model: expected a linear ranker, found a ranker of items"):
        load_model(path)


def test_damage_to_item_models_is_found(items, tmp_path):
    path = tmp_path / "m.model"
    content = items.to_bytes()
    for at in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        with pytest.raises(ModelError, match=r"m\.model: "):
            load_any_model(path)


def test_item_scores_against_their_definition(items, rng):
    X = (rng.random((9, 6)) < 0.4) * rng.choice([-1.0, 0.5, 2.0], size=(9, 6))
    X[0], X[1] = 0.0, 1.0
    expected = np.full((9, 6), -np.inf)
    for user, y in np.ndindex(9, 6):
        liked = np.flatnonzero(X[user] > 0)
        h = items.factors.input[liked].mean(axis=0) if liked.size else np.zeros(3)
        if X[user, y] == 0:
            expected[user, y] = items.factors.bias[y] + items.factors.output[y] @ h
    for form in (X, sp.csr_array(X), sp.csc_array(X), X.astype(np.float32)):
        np.testing.assert_allclose(items.score(form), expected, rtol=1e-5)
        for scores, (best, values) in zip(expected, items.top(form, 3), strict=True):
            order = np.argsort(-scores, kind="stable")[: min(3, np.isfinite(scores).sum())]
            assert best.tolist() == order.tolist()
            np.testing.assert_allclose(values, scores[order], rtol=1e-5)
    with pytest.raises(ValueError, match=r"shape \(n, 6\), found \(9, 5\)"):
        items.score(X[:, :5])
    with pytest.raises(ValueError, match=r"shape \(n, 6\), found \(9, 5\)"):
        items.top(X[:, :5], 2)


ITEM_HEADER = {**HEADER.to_json(), "kind": "item-factors", "width": 2, "factors": 3}
FACTORS, BIASES = array_bytes(np.ones((2, 3), dtype=np.float32)), array_bytes(np.ones(2, dtype=np.float32))
ITEM_MEMBERS = {"header.npy": text(ITEM_HEADER), "input.npy": FACTORS, "output.npy": FACTORS, "bias.npy": BIASES}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"header.npy": text({**ITEM_HEADER, "kind": "forest"})}, "kind 'forest' is not known"),
        ({"header.npy": text({**ITEM_HEADER, "kind": 3})}, "kind 3 is not known"),
        ({"header.npy": text({**ITEM_HEADER, "kind": "linear", "intercept": 0})}, "'factors' is not known"),
        ({"header.npy": text({**ITEM_HEADER, "factors": "3"})}, "'factors' is '3'"),
        ({"header.npy": text({**ITEM_HEADER, "factors": 2})}, "expected input of float32 and shape"),
        ({"bias.npy": FACTORS}, "expected bias of float32"),
        ({"output.npy": array_bytes(np.ones((2, 3)))}, "expected output of float32"),
        ({"input.npy": array_bytes(np.full((2, 3), np.inf, dtype=np.float32))}, "of its input is not finite"),
        ({"more.npy": BIASES}, "expected the members"),
        ({"input.npy": pickle.dumps(Bomb())}, "not an apsvm model"),
    ],
)
def test_a_well_sealed_item_model_with_the_wrong_content_is_refused(change, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.model").write_bytes(sealed(ITEM_MEMBERS | change))
    with pytest.raises(ModelError, match=message):
        load_any_model("m.model")
    assert not (tmp_path / "executed").exists()
    (tmp_path / "m.model").write_bytes(sealed(ITEM_MEMBERS))  # the judge: without the change it is accepted
    assert load_any_model("m.model").width == 2
