"""The data folder: what is written comes back, damage never reaches a kernel, and a place is whole or as it was."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_folders import TEXT, assert_same, read
from over import over

from apsvm.data import DataError, open_folder, write_folder
from apsvm.data import folder as module
from apsvm.data.rows import Rows


@pytest.mark.parametrize("options", [{}, {"dtype": np.float32}, {"zero_based": True}, {"n_features": 2**31}])
def test_round_trip(options: dict[str, Any], tmp_path: Path) -> None:
    data = read(TEXT, **options)
    write_folder(data, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    back = open_folder(tmp_path / "out")
    assert_same(back, data)
    assert back.source == str(tmp_path / "out")
    assert back.X.has_canonical_format
    assert not back.X.data.flags.writeable


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_round_trip(dtype: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = read(TEXT, dtype=dtype)
    monkeypatch.setattr(module, "BLOCK", 4)  # a row at a time
    write_folder(data, tmp_path / "out", dense=True)
    back = open_folder(tmp_path / "out")
    assert isinstance(back.X, np.ndarray)
    assert back.X.flags.c_contiguous
    assert back.X.dtype == dtype
    assert np.array_equal(back.X, data.X.toarray())
    write_folder(back, tmp_path / "again")
    assert_same(open_folder(tmp_path / "again"), back)
    write_folder(back, tmp_path / "sparse", dense=False)
    assert np.array_equal(open_folder(tmp_path / "sparse").X.toarray(), back.X)


# ------------------------------------------------------------------------------------------------ damage


@pytest.fixture(params=[False, True], ids=["csr", "dense"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    write_folder(read(TEXT), tmp_path / "out", dense=request.param)
    return tmp_path / "out"


def test_every_member_truncated_longer_or_missing(made: Path) -> None:
    names = sorted(path.name for path in made.iterdir())
    assert len(names) >= 5
    for name in names:
        content = (made / name).read_bytes()
        longer = content + (b"}" if name == "header.json" else b"0")
        for damaged in (*(content[:length] for length in range(0, len(content) - 1, 9)), content[:-2], longer):
            (made / name).write_bytes(damaged)
            with pytest.raises(DataError, match=name):
                open_folder(made)
        (made / name).unlink()
        with pytest.raises(IsADirectoryError if name == "header.json" else DataError):
            open_folder(made)
        (made / name).write_bytes(content)
    open_folder(made)


@pytest.mark.slow
def test_every_byte_flipped(made: Path, rng: np.random.Generator) -> None:
    """Every one in an array is noticed; without the check what is opened cannot lead a kernel astray."""
    n_unnoticed = 0
    for path in sorted(made.glob("*.npy")):
        content = path.read_bytes()
        for at in range(len(content)):
            flip = 1 << int(rng.integers(8))
            path.write_bytes(content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :])
            with pytest.raises(DataError, match=f"^{made}"):
                open_folder(made)
            try:
                data = open_folder(made, check=False)
            except DataError:
                continue
            n_unnoticed += 1
            rows = Rows(data.X)
            with np.errstate(all="ignore"):
                rows.scores(np.ones(rows.dimension))
                rows.combine(np.ones(len(rows)))
        path.write_bytes(content)
    assert n_unnoticed > 0


def forge(made: Path, name: str, array: Any, **header: Any) -> None:
    """Puts another array with its checksum, or other header entries, in."""
    content = json.loads((made / "header.json").read_text())
    if name:
        np.save(made / name, array)
        raw = (made / name).read_bytes()
        content["files"][name] = hashlib.sha256(raw).hexdigest()
    (made / "header.json").write_text(json.dumps(content | header))


INDPTR, INDICES = [0, 2, 3, 3, 7], [0, 3, 1, 0, 1, 2, 3]


@over(
    "name, array, message",
    [
        ("indptr.npy", np.array([0, 2, 3, 3, 8], np.int32), "rise from 0 to 7"),
        ("indptr.npy", np.array([1, 2, 3, 3, 7], np.int32), "rise from 0 to 7"),
        ("indptr.npy", np.array([0, 9, 3, 3, 7], np.int32), "rise from 0 to 7"),
        ("indptr.npy", np.array([0, 2, 3, -3, 7], np.int32), "rise from 0 to 7"),
        ("indices.npy", np.array(INDICES, np.int64), "int32 as in indptr"),
        ("indptr.npy", np.array(INDPTR[:-1], np.int32), "5 row pointers"),
        ("indices.npy", np.array([0, 4, 1, 0, 1, 2, 3], np.int32), "indices from 0 to 3"),
        ("indices.npy", np.array([0, 3, -1, 0, 1, 2, 3], np.int32), "indices from 0 to 3"),
        ("values.npy", np.ones(6, np.float32), "7 entries, found 6"),
        ("values.npy", np.ones((7, 1)), "of 1 dimensions"),
        ("values.npy", np.ones(7, ">f8"), "expected float64"),
        ("values.npy", np.array([None] * 7), "not a .npy file"),
        ("relevance.npy", np.array([1, 2, np.inf, 4]), "finite labels"),
        ("costs.npy", np.array([1, 2, -1, 4.0]), "costs of at least 0"),
        ("groups.npy", np.ones(4), "expected int64"),
    ],
)
def test_arrays_that_are_wrong(name: str, array: Any, message: str, tmp_path: Path) -> None:
    write_folder(read(TEXT), tmp_path / "out", dense=False)
    forge(tmp_path / "out", "indices.npy", np.array(INDICES, np.int32))
    open_folder(tmp_path / "out")  # the forger's work is not what is found
    forge(tmp_path / "out", name, array)
    with pytest.raises(DataError, match=f"out/{name}: damaged: .*{message}"):
        open_folder(tmp_path / "out", check=False)


def test_a_folder_of_another_version(tmp_path: Path) -> None:
    write_folder(read(TEXT), tmp_path / "out")
    forge(tmp_path / "out", "", None, version=1)
    with pytest.raises(DataError, match="version 2 of the format, found 1: convert the data again"):
        open_folder(tmp_path / "out")


@over(
    "header",
    [
        {"version": 1.5},
        {"format": "other"},
        {"layout": "coo"},
        {"shape": [4]},
        {"shape": [4, 5, 6]},
        {"shape": [0, 4]},
        {"shape": [4, -1]},
        {"shape": [4, 4.0]},
        {"shape": [4, True]},
        {"shape": [4, 2**70]},
        {"shape": [4, 2**40]},
        {"shape": [2**40, 4]},
        {"shape": [5, 4]},
        {"zero_based": 0},
        {"source": {}},
        {"source": {"name": 1, "sha256": ""}},
        {"files": {}},
        {"files": {"../../etc/passwd": ""}},
        {"files": dict.fromkeys(["relevance.npy", "indptr.npy", "indices.npy", "values.npy"], 7)},
        {"files": dict.fromkeys(["relevance.npy", "indptr.npy", "indices.npy", "values.npy"], "7")},
        {"files": dict.fromkeys(["relevance.npy", "X.npy"], "7")},
        {"columns": 3},
        {"queries": [1]},
        {"extra": 1},
    ],
    ids=str,
)
def test_headers_that_are_wrong(header: dict[str, Any], tmp_path: Path) -> None:
    write_folder(read(TEXT), tmp_path / "out", dense=False)
    forge(tmp_path / "out", "", None, **header)
    with pytest.raises(DataError, match=r"^.*out/[a-z]+\.(json|npy): "):
        open_folder(tmp_path / "out")


@over("text", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"format": "apsvm data"}', b"1" * 5000])
def test_headers_that_are_none(text: bytes, tmp_path: Path) -> None:
    write_folder(read(TEXT), tmp_path / "out")
    (tmp_path / "out" / "header.json").write_bytes(text)
    with pytest.raises(DataError, match=r"header\.json"):
        open_folder(tmp_path / "out")
