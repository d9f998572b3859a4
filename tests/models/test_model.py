"""The model file: round trips, and every kind of damage is a ModelError."""

from __future__ import annotations

import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from model_files import GOOD, HEADER, WEIGHTS, Bomb, array_bytes, sealed, text
from over import over

from apsvm import LinearRanker, ModelError, load_any_model, load_model


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


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"coef.npy": WEIGHTS}, "expected the members"),
        ({"header.npy": text(GOOD), "coef.npy": WEIGHTS, "more.npy": WEIGHTS}, "expected the members"),
        ({"header.npy": text({**GOOD, "schema": 3}), "coef.npy": WEIGHTS}, "expected schema 1, found 3"),
        ({"header.npy": text({**GOOD, "schema": True}), "coef.npy": WEIGHTS}, "'schema' is True"),
        (
            {"header.npy": text({**GOOD, "features": {**GOOD["features"], "names": ["a"]}}), "coef.npy": WEIGHTS},
            "names 1 features, and it has 2",
        ),
        ({"header.npy": text({**GOOD, "colour": 1}), "coef.npy": WEIGHTS}, "'colour' is not known"),
        ({"header.npy": text([1, 2]), "coef.npy": WEIGHTS}, "not a JSON object"),
        ({"header.npy": text({**GOOD, "intercept": float("nan")}), "coef.npy": WEIGHTS}, "NaN in its header"),
        ({"header.npy": text({**GOOD, "intercept": "0"}), "coef.npy": WEIGHTS}, "'intercept' is '0'"),
        ({"header.npy": text({**GOOD, "intercept": 10**400}), "coef.npy": WEIGHTS}, "constant is not finite"),
        ({"header.npy": text({**GOOD, "width": True}), "coef.npy": WEIGHTS}, "'width' is True"),
        ({"header.npy": text({k: v for k, v in GOOD.items() if k != "loss"}), "coef.npy": WEIGHTS}, "lacks 'loss'"),
        ({"header.npy": text({**GOOD, "width": 3}), "coef.npy": WEIGHTS}, r"expected coef of float64 and shape \(3,\)"),
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


@over("depth", [101, 900, 10_000])
def test_a_header_that_nests_too_deep_is_refused(depth, tmp_path):
    nested = json.dumps(GOOD).replace('"settings": {}', f'"settings": {{"a": {"[" * depth}{"]" * depth}}}')
    content = array_bytes(np.frombuffer(nested.encode(), dtype=np.uint8))
    (tmp_path / "m.model").write_bytes(sealed({"header.npy": content, "coef.npy": WEIGHTS}))
    with pytest.raises(ModelError, match="more than 100 deep"):
        load_any_model(tmp_path / "m.model")


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
