"""The model file: round trips, and every kind of damage is a ModelError."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st

from apsvm import LinearRanker, ModelError, RankerSet, load_any_model, load_model
from apsvm.header import Bounds, Data, Features, Header, LabelKind, Labels, SkippedClass
from apsvm.model import ItemFactors, ItemRanker
from apsvm.model_file import unsealed

HEADER = Header(family="structured-svm", loss="ap", C=1.0)
#: What every header of schema 1 had.
OLD_HEADER = {"loss": "ap", "zero_based": False, "positive_label": None, "C": 1.0}


@pytest.fixture
def ranker(rng) -> LinearRanker:
    return LinearRanker(rng.normal(size=7), 0.25, HEADER)


def test_round_trip(ranker, tmp_path):
    path = tmp_path / "m.model"
    ranker.save(path)
    back = load_model(path)
    np.testing.assert_array_equal(back.coef, ranker.coef)
    assert back.intercept == ranker.intercept
    assert back.header == HEADER
    assert (back.width, back.zero_based, back.unit_rows) == (7, False, False)
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


GOOD = {**HEADER.to_json(), "width": 2, "intercept": 0.0}
OLD = {**OLD_HEADER, "schema": 1, "width": 2, "intercept": 0.0}
WEIGHTS = array_bytes(np.array([1.0, 2.0]))


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("executed",))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"coef.npy": WEIGHTS}, "expected the members"),
        ({"header.npy": text(GOOD), "coef.npy": WEIGHTS, "more.npy": WEIGHTS}, "expected the members"),
        ({"header.npy": text({**GOOD, "schema": 3}), "coef.npy": WEIGHTS}, "schema 3 is not known"),
        ({"header.npy": text({**GOOD, "schema": True}), "coef.npy": WEIGHTS}, "'schema' is True"),
        ({"header.npy": text({**GOOD, "colour": 1}), "coef.npy": WEIGHTS}, "'colour' is not known"),
        ({"header.npy": text([1, 2]), "coef.npy": WEIGHTS}, "not a JSON object"),
        ({"header.npy": text({**GOOD, "intercept": float("nan")}), "coef.npy": WEIGHTS}, "NaN in its header"),
        ({"header.npy": text({**GOOD, "intercept": "0"}), "coef.npy": WEIGHTS}, "'intercept' is '0'"),
        ({"header.npy": text({**GOOD, "intercept": 10**400}), "coef.npy": WEIGHTS}, "constant is not finite"),
        ({"header.npy": text({**GOOD, "width": True}), "coef.npy": WEIGHTS}, "'width' is True"),
        ({"header.npy": text({k: v for k, v in GOOD.items() if k != "loss"}), "coef.npy": WEIGHTS}, "lacks 'loss'"),
        ({"header.npy": text({**GOOD, "width": 3}), "coef.npy": WEIGHTS}, "expected 3 float64 weights"),
        ({"header.npy": text(GOOD), "coef.npy": array_bytes(np.ones(2, dtype=np.float32))}, "float32"),
        ({"header.npy": text(GOOD), "coef.npy": array_bytes(np.array([1.0, np.nan]))}, "not finite"),
        ({"header.npy": text(GOOD), "coef.npy": b"rubbish"}, "not an apsvm model"),
        ({"header.npy": text(GOOD), "coef": WEIGHTS}, "expected the members"),
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
    for header in (GOOD, OLD):
        (tmp_path / "m.model").write_bytes(sealed({"header.npy": text(header), "coef.npy": WEIGHTS}))
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
        Header(
            loss="ap",
            features=Features(zero_based=True),
            labels=Labels(kind=LabelKind.ONE_LABEL, positive=label),
            C=1.0,
            data=Data(rows=5, positives=n, counts={"a": 1, "b": n}),
            settings=settings,
        )
        for n, (label, settings) in enumerate([(-1.5, {"note": None, "x": 1}), (0.0, {"x": 1.0}), (7.0, {"x": True})])
    ]
    return [LinearRanker(rng.normal(size=4), float(j), header) for j, header in enumerate(headers)]


def whole_of(rankers, **more) -> RankerSet:
    header = replace(rankers[0].header, labels=Labels(kind=LabelKind.CLASSES), data=Data(rows=5), settings={"x": 1})
    return RankerSet.of(rankers, replace(header, **more))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_set_gives_each_ranker_back(rankers, count, tmp_path):
    rankers = rankers[:count]
    made = whole_of(rankers, classes_skipped=(SkippedClass(label=3.0, reason="why"),))
    made.save(tmp_path / "m")
    back = load_any_model(tmp_path / "m")
    assert isinstance(back, RankerSet)
    assert back.to_bytes() == made.to_bytes() == (tmp_path / "m").read_bytes()
    assert back.classes.tolist() == made.classes.tolist() == [-1.5, 0.0, 7.0][:count]
    assert (back.width, back.zero_based) == (made.width, made.zero_based) == (4, True)
    assert back.header == made.header
    assert back.header.classes_skipped == (SkippedClass(label=3.0, reason="why"),)
    for ranker in rankers:
        for each in (back, made):
            assert each.ranker(ranker.header.labels.positive).to_bytes() == ranker.to_bytes()
    with pytest.raises(KeyError):
        back.ranker(3.0)


def test_what_classes_share_is_kept_once(rankers):
    content = content_of(whole_of(rankers, classes_skipped=(SkippedClass(label=3.0, reason="why"),)))
    assert (content["C"], content["data"]["rows"]) == (1.0, 5)
    settings = [str(of_class.get("settings")) for of_class in content["classes"]]
    assert settings == ["{'note': None, 'x': 1}", "{'x': 1.0}", "{'x': True}"]  # as text: 1 == 1.0 == True
    assert [set(of_class["data"]) for of_class in content["classes"]] == [{"positives", "counts"}] * 3
    assert {name for of_class in content["classes"] for name in of_class} == {"labels", "data", "settings", "intercept"}


def content_of(model) -> dict:
    with np.load(io.BytesIO(model.to_bytes()), allow_pickle=False) as archive:
        return json.loads(archive["header"].tobytes())


#: Few keys and values, so that classes share some and lack others.
mappings = st.dictionaries(
    st.sampled_from("abc"),
    st.sampled_from([0, 0.0, False, None, "", "\x00\n", [], [1], {}, {"a": 1}, {"a": 1.0}, {"a": 1, "b": {"c": None}}]),
)
numbers = st.sampled_from([0.0, 1.5])
any_headers = st.builds(
    Header,
    loss=st.sampled_from(["ap", "auc"]),
    settings=mappings,
    details=mappings,
    selection=st.none() | mappings,
    versions=st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "1"])),
    C=st.none() | numbers,
    certificate=st.none() | st.builds(Bounds, primal=numbers, dual=numbers, gap=numbers, tolerance=numbers),
    labels=st.builds(Labels, kind=st.sampled_from(LabelKind), cuts=st.sampled_from([None, (), (1.0,)])),
    data=st.builds(Data, file=st.sampled_from(["", "x"]), counts=st.dictionaries(st.sampled_from("ab"), st.just(1))),
)


@example(whole=Header(loss="ap", settings={"a": 0}), headers=[Header(loss="ap", settings={"a": 0.0})])
@example(whole=Header(loss="ap", details={"a": {"b": 1}}), headers=[Header(loss="ap", details={"a": {}})])
@given(whole=any_headers, headers=st.lists(any_headers, min_size=1, max_size=4))
def test_the_headers_of_any_set_survive(whole, headers):
    """Each class's as it was, key by key, whatever the whole or the others have in common with it."""
    headers = [
        replace(header, labels=replace(header.labels, positive=float(label))) for label, header in enumerate(headers)
    ]
    rankers = [LinearRanker(np.ones(1), 0.0, header) for header in headers]
    made = RankerSet.of(rankers, whole)
    back = read(made)
    assert back.to_bytes() == made.to_bytes()
    assert back.header == whole
    for ranker in rankers:
        assert back.ranker(ranker.header.labels.positive).to_bytes() == ranker.to_bytes()


def read(model):
    header, arrays = unsealed(model.to_bytes())
    return type(model).from_parts(header, arrays)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_a_set(rankers, rng, dtype):
    X = rng.normal(size=(20, 4)).astype(dtype)
    X[rng.random(X.shape) < 0.4] = 0
    made = whole_of(rankers)
    for form in (X, sp.csr_array(X)):
        scores = made.score(form, threads=2)
        for j, ranker in enumerate(rankers):
            np.testing.assert_array_equal(scores[:, j], ranker.score(form))
    with pytest.raises(ValueError, match=r"shape \(n, 4\), found \(20, 3\)"):
        made.score(X[:, :3])


def test_every_flipped_byte_of_a_set_is_found(rankers, tmp_path):
    content = whole_of(rankers).to_bytes()
    for at in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        (tmp_path / "m").write_bytes(damaged)
        with pytest.raises(ModelError, match="m: "):
            load_any_model(tmp_path / "m")


NEW_SET = {
    **GOOD,
    "kind": "one-vs-rest",
    "classes": [
        {"intercept": 0, "labels": {"kind": "one-label", "positive": 1}},
        {"intercept": 0.5, "labels": {"kind": "one-label", "positive": 2}},
    ],
}
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
        ({"zero_based": 1}, TWO, "expected true or false in 'features.zero_based', found 1"),
        ({"kind": "linear", "intercept": 0}, TWO, r"expected 2 float64 weights, found float64 of shape \(2, 2\)"),
    ],
)
def test_a_set_with_the_wrong_content_is_refused(header, coef, message, tmp_path):
    (tmp_path / "m").write_bytes(sealed({"header.npy": text({**SET, **header}), "coef.npy": array_bytes(coef)}))
    with pytest.raises(ModelError, match=message):
        load_any_model(tmp_path / "m")
    (tmp_path / "m").write_bytes(sealed({"header.npy": text(SET), "coef.npy": array_bytes(TWO)}))
    assert load_any_model(tmp_path / "m").ranker(2).intercept == 0.5


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"classes": {}}, "'classes' is {}"),
        ({"classes": [5, 6]}, "not a JSON object"),
        ({"classes": [{"labels": {"positive": 1}}, {"labels": {"positive": 2}}]}, "lacks 'intercept'"),
        ({"classes": [{"intercept": 1}, {"intercept": 2}]}, "labels that increase"),
        ({"classes": NEW_SET["classes"][::-1]}, "labels that increase"),
        ({"classes": [{"intercept": 1, "schema": 2}] * 2}, "'schema' is not known"),
        ({"classes": [{"intercept": 1, "labels": 5}] * 2}, "expected an object in 'labels', found 5"),
        ({"classes": [{"intercept": 1, "labels": {"colour": 1}}] * 2}, "'labels.colour' is not known"),
        (
            {"classes": [{"intercept": 1, "data": {"rows": True}}] * 2},
            "expected a whole number in 'data.rows', found True",
        ),
    ],
)
def test_a_set_of_now_with_the_wrong_content_is_refused(header, message, tmp_path):
    (tmp_path / "m").write_bytes(sealed({"header.npy": text({**NEW_SET, **header}), "coef.npy": array_bytes(TWO)}))
    with pytest.raises(ModelError, match=message):
        load_any_model(tmp_path / "m")
    (tmp_path / "m").write_bytes(sealed({"header.npy": text(NEW_SET), "coef.npy": array_bytes(TWO)}))
    assert load_any_model(tmp_path / "m").ranker(2).intercept == 0.5


def test_a_file_of_before_there_were_kinds(tmp_path):
    (tmp_path / "m").write_bytes(sealed({"header.npy": text(OLD), "coef.npy": WEIGHTS}))
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
        h = items.factors.input[liked].mean(axis=0) if liked.size else np.zeros(3)
        if y not in liked:
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


ITEM_HEADER = {**OLD_HEADER, "schema": 1, "kind": "item-factors", "width": 2, "factors": 3}
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
