"""The model file: round trips, and every kind of damage is a ModelError."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from apsvm import LinearRanker, ModelError, RankerSet, load_any_model, load_model
from apsvm.model import ItemRanker

HEADER = {"loss": "ap", "zero_based": False, "positive_label": None, "C": 1.0}


@pytest.fixture
def ranker(rng) -> LinearRanker:
    return LinearRanker(rng.normal(size=7), 0.25, HEADER)


def test_round_trip(ranker, tmp_path):
    path = tmp_path / "m.model"
    ranker.save(path)
    back = load_model(path)
    np.testing.assert_array_equal(back.coef, ranker.coef)
    assert back.intercept == ranker.intercept
    assert back.header["loss"] == "ap"
    assert (back.width, back.zero_based, back.positive_label) == (7, False, None)
    assert back.to_bytes() == ranker.to_bytes() == path.read_bytes()
    assert os.listdir(tmp_path) == ["m.model"]  # no temporary file is left


def test_numpy_reads_it_without_pickles(ranker, tmp_path):
    path = tmp_path / "m.npz"
    ranker.save(path)
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["coef"], ranker.coef)
        assert json.loads(archive["header"].tobytes())["width"] == 7


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores(ranker, rng, dtype):
    X = rng.normal(size=(20, 7)).astype(dtype)
    X[rng.random(X.shape) < 0.4] = 0
    expected = X.astype(np.float64) @ ranker.coef + 0.25
    for form in (X, np.asfortranarray(X), sp.csr_array(X), sp.csc_array(X), X.tolist()):
        np.testing.assert_allclose(ranker.score(form), expected, rtol=1e-12)
    np.testing.assert_array_equal(ranker.score(X, threads=2), ranker.score(X, threads=1))
    with pytest.raises(ValueError, match=r"shape \(n, 7\), found \(20, 6\)"):
        ranker.score(X[:, :6])


def test_every_flipped_byte_is_found(ranker, tmp_path):
    path = tmp_path / "m.model"
    content = ranker.to_bytes()
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        with pytest.raises(ModelError, match=r"m\.model: "):
            load_model(path)


def test_every_truncation_and_any_addition_is_found(ranker, tmp_path):
    path = tmp_path / "m.model"
    content = ranker.to_bytes()
    for end in range(len(content)):
        path.write_bytes(content[:end])
        with pytest.raises(ModelError):
            load_model(path)
    for extra in (b"\0", b"\n", content):
        path.write_bytes(content + extra)
        with pytest.raises(ModelError):
            load_model(path)


def sealed(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A file whose checksum is right, whatever is in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = b"0" * 64
    content = buffer.getvalue()[:-64]
    return content + hashlib.sha256(content).hexdigest().encode()


def array_bytes(array: np.ndarray, *, allow_pickle: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


def text(header: object) -> bytes:
    return array_bytes(np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))


GOOD = {**HEADER, "schema": 1, "width": 2, "intercept": 0.0}
WEIGHTS = array_bytes(np.array([1.0, 2.0]))


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("executed",))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"coef.npy": WEIGHTS}, "expected the members"),
        ({"header.npy": text(GOOD), "coef.npy": WEIGHTS, "more.npy": WEIGHTS}, "expected the members"),
        ({"header.npy": text({**GOOD, "schema": 2}), "coef.npy": WEIGHTS}, "schema 2 is not known"),
        ({"header.npy": text([1, 2]), "coef.npy": WEIGHTS}, "not a JSON object"),
        ({"header.npy": text({**GOOD, "intercept": float("nan")}), "coef.npy": WEIGHTS}, "NaN in its header"),
        ({"header.npy": text({**GOOD, "intercept": "0"}), "coef.npy": WEIGHTS}, "'intercept' is '0'"),
        ({"header.npy": text({**GOOD, "width": True}), "coef.npy": WEIGHTS}, "'width' is True"),
        ({"header.npy": text({k: v for k, v in GOOD.items() if k != "loss"}), "coef.npy": WEIGHTS}, "lacks 'loss'"),
        ({"header.npy": text({**GOOD, "width": 3}), "coef.npy": WEIGHTS}, "expected 3 float64 weights"),
        ({"header.npy": text(GOOD), "coef.npy": array_bytes(np.ones(2, dtype=np.float32))}, "float32"),
        ({"header.npy": text(GOOD), "coef.npy": array_bytes(np.array([1.0, np.nan]))}, "not finite"),
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
    (tmp_path / "m.model").write_bytes(sealed(members))
    with pytest.raises(ModelError, match=message):
        load_model("m.model")
    assert not (tmp_path / "executed").exists()


def test_a_sealed_good_file_is_accepted(tmp_path):
    """The judge of the test above: it is the content that was refused there."""
    (tmp_path / "m.model").write_bytes(sealed({"header.npy": text(GOOD), "coef.npy": WEIGHTS}))
    np.testing.assert_array_equal(load_model(tmp_path / "m.model").coef, [1.0, 2.0])


def test_compressed_members_are_refused(tmp_path):
    content = sealed({"header.npy": text(GOOD), "coef.npy": WEIGHTS}, zipfile.ZIP_DEFLATED)
    (tmp_path / "m.model").write_bytes(content)
    with pytest.raises(ModelError, match="uncompressed"):
        load_model(tmp_path / "m.model")


# ------------------------------------------------------------------------------------------------ sets


@pytest.fixture
def rankers(rng) -> list[LinearRanker]:
    """Three, whose headers differ in places of every depth; 1, 1.0 and true are told apart."""
    headers = [
        {
            "loss": "ap",
            "zero_based": True,
            "C": 1,
            "data": {"rows": 5, "positives": n, "deep": {"a": 1, "b": n}},
            **more,
        }
        for n, more in enumerate([{"note": None, "x": 1}, {"x": 1.0}, {"x": True, "data2": {}}])
    ]
    return [
        LinearRanker(rng.normal(size=4), float(j), {**header, "positive_label": label})
        for j, (header, label) in enumerate(zip(headers, [-1.5, 0.0, 7.0], strict=True))
    ]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_set_gives_each_ranker_back(rankers, count, tmp_path):
    rankers = rankers[:count]
    made = RankerSet.of(rankers, classes_skipped=[{"label": 3.0, "reason": "why"}])
    made.save(tmp_path / "m")
    back = load_any_model(tmp_path / "m")
    assert isinstance(back, RankerSet)
    assert back.to_bytes() == made.to_bytes() == (tmp_path / "m").read_bytes()
    assert back.classes.tolist() == made.classes.tolist() == [-1.5, 0.0, 7.0][:count]
    assert (back.width, back.zero_based) == (made.width, made.zero_based) == (4, True)
    assert back.header["classes_skipped"] == [{"label": 3.0, "reason": "why"}]
    for ranker in rankers:
        for each in (back, made):
            assert each.ranker(ranker.positive_label).to_bytes() == ranker.to_bytes()
    with pytest.raises(KeyError):
        back.ranker(3.0)


def test_what_classes_share_is_kept_once(rankers):
    made = RankerSet.of(rankers)
    assert made.header["C"] == 1
    assert made.header["data"] == {"rows": 5, "deep": {"a": 1}}
    assert "x" not in made.header
    assert [header["x"] for header in made.class_headers] == [1, 1.0, True]
    assert all("rows" not in header["data"] for header in made.class_headers)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_a_set(rankers, rng, dtype):
    X = rng.normal(size=(20, 4)).astype(dtype)
    X[rng.random(X.shape) < 0.4] = 0
    made = RankerSet.of(rankers)
    for form in (X, sp.csr_array(X)):
        scores = made.score(form, threads=2)
        for j, ranker in enumerate(rankers):
            np.testing.assert_array_equal(scores[:, j], ranker.score(form))
    with pytest.raises(ValueError, match=r"shape \(n, 4\), found \(20, 3\)"):
        made.score(X[:, :3])


def test_every_flipped_byte_of_a_set_is_found(rankers, tmp_path):
    content = RankerSet.of(rankers).to_bytes()
    for at in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        (tmp_path / "m").write_bytes(damaged)
        with pytest.raises(ModelError, match="m: "):
            load_any_model(tmp_path / "m")


SET = {
    "schema": 1, "kind": "one-vs-rest", "loss": "ap", "width": 2, "zero_based": False, "positive_label": None,
    "classes": [{"positive_label": 1, "intercept": 0}, {"positive_label": 2, "intercept": 0.5}],
}  # fmt: skip
TWO = np.array([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("header", "coef", "message"),
    [
        ({"kind": "other"}, TWO, "kind 'other' is not known"),
        ({"kind": 5}, TWO, "kind 5 is not known"),
        ({"classes": {}}, TWO, "'classes' is {}"),
        ({"classes": []}, TWO[:0], "at least one class"),
        ({"classes": SET["classes"][:1]}, TWO, r"found float64 of shape \(2, 2\)"),
        ({"classes": [5, 6]}, TWO, "not a JSON object"),
        ({"classes": [{"positive_label": 1}, {"positive_label": 2}]}, TWO, "lacks 'intercept'"),
        ({"classes": [{"intercept": 1}, {"intercept": 2}]}, TWO, "lacks 'positive_label'"),
        ({"classes": SET["classes"][::-1]}, TWO, "labels that increase"),
        ({"classes": [SET["classes"][0]] * 2}, TWO, "labels that increase"),
        ({}, np.array([[1.0, 2.0], [np.inf, 4.0]]), "not finite"),
        ({}, TWO.astype(np.float32), "float32"),
        ({}, TWO.ravel(), r"shape \(4,\)"),
        ({"width": 3}, TWO, "expected 3 float64 weights for each"),
        ({"zero_based": 1}, TWO, "'zero_based' is 1"),
        ({"kind": "linear", "intercept": 0}, TWO, r"expected 2 float64 weights, found float64 of shape \(2, 2\)"),
    ],
)
def test_a_set_with_the_wrong_content_is_refused(header, coef, message, tmp_path):
    (tmp_path / "m").write_bytes(sealed({"header.npy": text({**SET, **header}), "coef.npy": array_bytes(coef)}))
    with pytest.raises(ModelError, match=message):
        load_any_model(tmp_path / "m")
    (tmp_path / "m").write_bytes(sealed({"header.npy": text(SET), "coef.npy": array_bytes(TWO)}))
    assert load_any_model(tmp_path / "m").ranker(2).intercept == 0.5


def test_a_file_of_before_there_were_kinds(tmp_path):
    (tmp_path / "m").write_bytes(sealed({"header.npy": text(GOOD), "coef.npy": WEIGHTS}))
    assert isinstance(load_any_model(tmp_path / "m"), LinearRanker)


def test_other_files_are_refused(tmp_path):
    for name, content in {"empty": b"", "text": b"1 1:0.5\n", "pickle": pickle.dumps(Bomb())}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelError, match=name):
            load_model(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "missing")


def test_a_failed_save_leaves_the_old_model(ranker, tmp_path, monkeypatch):
    path = tmp_path / "m.model"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        ranker.save(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.model"]


@pytest.fixture
def items(rng) -> ItemRanker:
    arrays = (rng.normal(size=(6, 3)), rng.normal(size=(6, 3)), rng.normal(size=6))
    return ItemRanker(*(array.astype(np.float32) for array in arrays), HEADER)


def test_item_models_round_trip(items, tmp_path):
    path = tmp_path / "m.model"
    items.save(path)
    back = load_any_model(path)
    assert isinstance(back, ItemRanker)
    for name in ("input", "output", "bias"):
        np.testing.assert_array_equal(getattr(back, name), getattr(items, name))
    assert (back.width, back.zero_based, back.header["factors"]) == (6, False, 3)
    assert back.to_bytes() == items.to_bytes() == path.read_bytes()
    with pytest.raises(ModelError, match=r"m\.model: expected a linear ranker, found a ranker of items"):
        load_model(path)


def test_any_model_may_be_linear(ranker, tmp_path):
    ranker.save(tmp_path / "m.model")
    assert isinstance(load_any_model(tmp_path / "m.model"), LinearRanker)


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
        h = items.input[liked].mean(axis=0) if liked.size else np.zeros(3)
        if y not in liked:
            expected[user, y] = items.bias[y] + items.output[y] @ h
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


ITEM_HEADER = {**HEADER, "schema": 1, "kind": "item-factors", "width": 2, "factors": 3}
FACTORS, BIASES = array_bytes(np.ones((2, 3), dtype=np.float32)), array_bytes(np.ones(2, dtype=np.float32))
ITEM_MEMBERS = {"header.npy": text(ITEM_HEADER), "input.npy": FACTORS, "output.npy": FACTORS, "bias.npy": BIASES}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"header.npy": text({**ITEM_HEADER, "kind": "forest"})}, "kind 'forest' is not known"),
        ({"header.npy": text({**ITEM_HEADER, "kind": 3})}, "kind 3 is not known"),
        ({"header.npy": text({**ITEM_HEADER, "kind": "linear", "intercept": 0})}, "header.npy, coef.npy, found"),
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
