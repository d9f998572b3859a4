"""Whatever holds a data set: told by content, and the same options mean the same."""

import io
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from over import over

from apsvm.data import DataError, read_data, read_svmlight, write_folder

TEXT = b"1 1:0.5 4:-1.25\n-1 2:3\n1\n-1 1:1 2:2 3:3 4:4\n"
DENSE = np.array([[0.5, 0, 0, -1.25], [0, 3, 0, 0], [0, 0, 0, 0], [1, 2, 3, 4]])
LABELS = np.array([1.0, -1, 1, -1])


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    np.save(tmp_path / "labels.npy", LABELS)
    return tmp_path / "labels.npy"


def made(kind: str, folder: Path, text: bytes = TEXT, **options: Any) -> tuple[Path, dict[str, Any]]:
    """A file or folder of this kind with the rows of the text, and the options that read it."""
    path = folder / "data"
    data = read_svmlight(io.BytesIO(text), **options)
    if kind == "text":
        path.write_bytes(text)
    elif kind in ("csr", "dense"):
        write_folder(data, path, dense=kind == "dense")
    else:
        np.save(folder / "labels.npy", data.relevance)
        with path.open("wb") as stream:
            if kind == "npy":
                np.save(stream, data.X.toarray())
            else:
                sp.save_npz(stream, data.X)
        return path, {"labels": folder / "labels.npy"}
    return path, {}


KINDS = ["text", "csr", "dense", "npz", "npy"]


def rows_of(data: Any) -> Any:
    return data.X.toarray() if sp.issparse(data.X) else data.X


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind: str, tmp_path: Path) -> None:
    path, options = made(kind, tmp_path)
    data = read_data(path, **options)
    assert np.array_equal(rows_of(data), DENSE)
    assert np.array_equal(data.relevance, LABELS)
    assert data.source == str(path)
    assert len(data.fingerprint) == 64
    assert data.n_values == (DENSE.size if kind in ("dense", "npy") else 7)
    assert not data.zero_based
    assert data.X.dtype == np.float64
    assert read_data(path, dtype=np.float32, **options).X.dtype == np.float32


@pytest.mark.parametrize("kind", KINDS)
def test_a_wider_model(kind: str, tmp_path: Path) -> None:
    path, options = made(kind, tmp_path)
    for n_features in (6, 2**31 + 5):
        data = read_data(path, n_features=n_features, **options)
        assert data.X.shape == (4, n_features)
        assert data.X[:, :4].toarray().tolist() == DENSE.tolist()
        assert data.X.has_canonical_format
        assert data.X.indices.dtype == data.X.indptr.dtype == (np.int64 if n_features > 2**31 else np.int32)


@pytest.mark.parametrize("kind", KINDS)
def test_a_narrower_model(kind: str, tmp_path: Path) -> None:
    path, options = made(kind, tmp_path)
    with pytest.raises(DataError, match=r"data.*: feature 4 is unknown \(the model has 2 features\); --ignore-unknown"):
        read_data(path, n_features=2, **options)
    data = read_data(path, n_features=2, ignore_unknown=True, **options)
    assert np.array_equal(rows_of(data), DENSE[:, :2])
    assert data.unknown_features == (8 if kind in ("dense", "npy") else 3)
    if sp.issparse(data.X):
        data.X.check_format(full_check=True)
    assert read_data(path, n_features=0, ignore_unknown=True, **options).X.shape == (4, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_limit(kind: str, tmp_path: Path) -> None:
    path, options = made(kind, tmp_path)
    assert read_data(path, max_features=4, **options).X.shape == (4, 4)
    with pytest.raises(DataError, match=r"feature 4 is beyond the limit of 3 features \(--max-features"):
        read_data(path, max_features=3, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_float32_overflow(kind: str, tmp_path: Path) -> None:
    path, options = made(kind, tmp_path, b"1 1:1e39\n")
    with pytest.raises(DataError, match="overflows float32"):
        read_data(path, dtype=np.float32, **options)


# ------------------------------------------------------------------------------------------------ matrices


@over("layout", ["csr", "csc", "coo"])
@over("dtype", [np.float64, np.float32, np.int64, np.uint8, np.bool_])
def test_sparse_layouts_and_types(layout: str, dtype: Any, tmp_path: Path, labels: Path) -> None:
    matrix = sp.csr_array(np.abs(np.round(DENSE))).asformat(layout)
    matrix.data = matrix.data.astype(dtype)
    path = tmp_path / "x"
    with path.open("wb") as stream:
        sp.save_npz(stream, matrix)
    data = read_data(path, labels=labels)
    assert data.X.dtype == (np.float32 if dtype == np.float32 else np.float64)
    expected = np.abs(np.round(DENSE))
    assert np.array_equal(rows_of(data), expected != 0 if dtype == np.bool_ else expected)
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32


@over("order", ["C", "F"])
@over("dtype", [np.float64, np.float32, np.float16, np.int8, ">f8"])
def test_dense_layouts_and_types(order: Any, dtype: Any, tmp_path: Path, labels: Path) -> None:
    np.save(tmp_path / "x.npy", np.array(np.round(DENSE), dtype=dtype, order=order))
    X = read_data(tmp_path / "x.npy", labels=labels).X
    assert np.array_equal(X, np.round(DENSE))
    assert X.flags.c_contiguous
    assert X.dtype == (np.float32 if dtype == np.float32 else np.float64)
    assert X.dtype.isnative


def test_sparse_is_made_canonical(tmp_path: Path, labels: Path) -> None:
    matrix = sp.csr_array((np.array([1.0, 2, 3, 4]), np.array([3, 0, 3, 1]), np.array([0, 3, 4, 4, 4])), shape=(4, 4))
    sp.save_npz(tmp_path / "x.npz", matrix)
    X = read_data(tmp_path / "x.npz", labels=labels).X
    assert (X.indptr.tolist(), X.indices.tolist(), X.data.tolist()) == ([0, 2, 3, 3, 3], [0, 3, 1], [2, 4, 4])
    X.check_format(full_check=True)


def save_raw(path: Path, layout: str, **arrays: Any) -> None:
    np.savez(path, format=np.array(layout.encode()), **arrays)


GOOD = {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2, 2, 2]), "shape": np.array([4, 4])}


@over(
    ("layout", "arrays", "message"),
    [
        ("csr", {"indices": np.array([0, 9])}, "indices|index"),
        ("csr", {"indices": np.array([0, -9])}, "indices|index"),
        ("csr", {"indptr": np.array([0, 3, 1, 2, 2])}, "indptr|index"),
        ("csr", {"indptr": np.array([0, 1, 9, 9, 9])}, "size|length|index"),
        ("csr", {"indptr": np.array([0, 1])}, "index"),
        ("csc", {"indices": np.array([0, 9])}, "indices|index"),
        ("csr", {"data": np.array([1, np.nan])}, "finite"),
        ("csr", {"data": np.array([1, np.inf])}, "finite"),
        ("csr", {"data": np.array([1, 2j])}, "real numbers"),
        ("csr", {"data": np.array(["a", "b"])}, ""),
        ("csr", {"data": np.array([None, 1])}, ""),
        ("csr", {"shape": np.array([4])}, ""),
        ("csr", {"shape": np.array([4, -4])}, ""),
        ("dia", {"offsets": np.array([0]), "data": np.ones((1, 4))}, "csr, csc or coo, found dia"),
        ("coo", {"row": np.array([0, 9]), "col": np.array([0, 1])}, ""),
        ("coo", {"row": np.array([0, -9]), "col": np.array([0, 1])}, ""),
        ("coo", {"row": np.array([0]), "col": np.array([0, 1])}, ""),
        ("xyz", {}, ""),
    ],
)
def test_sparse_that_is_wrong(layout: str, arrays: dict[str, Any], message: str, tmp_path: Path, labels: Path) -> None:
    path = tmp_path / "x.npz"
    save_raw(path, "csr", **GOOD)
    read_data(path, labels=labels)
    save_raw(path, layout, **(GOOD | arrays))
    with pytest.raises(DataError, match=rf"^{path}: .*({message})"):
        read_data(path, labels=labels)


@over(
    ("array", "message"),
    [
        (np.ones(4), r"two dimensions, found the shape \(4,\)"),
        (np.ones((4, 1, 1)), "two dimensions"),
        (np.full((4, 2), np.nan), "finite"),
        (np.full((4, 2), 1j), "real numbers"),
        (np.full((4, 2), "a"), "real numbers"),
        (np.full((4, 2), None), "not a .npy file"),
        (np.ones((0, 2)), "at least one row"),
        (np.ones((3, 2)), "expected 3 numbers, one for each row of .*, found 4"),
    ],
)
def test_dense_that_is_wrong(array: Any, message: str, tmp_path: Path, labels: Path) -> None:
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(DataError, match=message):
        read_data(tmp_path / "x.npy", labels=labels)


class Trap:
    def __reduce__(self) -> Any:
        return os.mkdir, ("/tmp/must-not-appear",)


def test_nothing_is_unpickled(tmp_path: Path, labels: Path) -> None:
    trap = pickle.dumps(np.array([Trap()]))
    np.save(tmp_path / "x.npy", np.array([[Trap()]] * 4))
    np.savez(tmp_path / "x.npz", **(GOOD | {"format": b"csr", "data": np.array([Trap(), Trap()])}))
    (tmp_path / "y.npy").write_bytes(b"\x93NUMPY\1\0\x02\0{}" + trap)
    for name in ("x.npy", "x.npz", "y.npy"):
        with pytest.raises(DataError):
            read_data(tmp_path / name, labels=labels)
    assert not os.path.exists("/tmp/must-not-appear")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["npz", "npy"])
def test_damage(kind: str, tmp_path: Path, rng: np.random.Generator) -> None:
    """Cut off or flipped anywhere: refused, or read without harm."""
    path, options = made(kind, tmp_path)
    content = path.read_bytes()
    n_refused = 0
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(DataError):
            read_data(path, **options)
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :])
        try:
            read_data(path, **options)
        except DataError:
            n_refused += 1
    assert n_refused > 20


@pytest.mark.parametrize("text", [b"1\n-1\n1\n-1\n", b"1\r\n-1.0\r\n+1e0\r\n-1", b" 1 \n-1\t\n1\n-1\n"])
def test_labels_as_text(text: bytes, tmp_path: Path) -> None:
    path, _ = made("npz", tmp_path)
    (tmp_path / "y").write_bytes(text)
    (tmp_path / "g").write_bytes(b"7\n7\n-8\n9223372036854775807\n")
    data = read_data(path, labels=tmp_path / "y", groups=tmp_path / "g")
    assert np.array_equal(data.relevance, LABELS)
    assert data.groups is not None
    assert data.groups.tolist() == [7, 7, -8, 2**63 - 1]
    assert data.groups.dtype == np.int64
    # Sizes, as LightGBM has them; of text without qid: as well.
    (tmp_path / "g").write_text("1\n3\n")
    (tmp_path / "t").write_text("1 1:1\n0 1:2\n1 1:3\n0 1:4\n")
    for rows, labels in ((path, tmp_path / "y"), (tmp_path / "t", None)):
        assert read_data(rows, labels=labels, groups=tmp_path / "g").groups.tolist() == [1, 2, 2, 2]
    (tmp_path / "t").write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    with pytest.raises(DataError, match="its rows have queries of their own"):
        read_data(tmp_path / "t", groups=tmp_path / "g")


@over(
    ("what", "content", "message"),
    [
        ("labels", b"1\nx\n1\n1\n", "y:2: expected one finite number, found 'x'"),
        ("labels", b"1\nnan\n1\n1\n", "y:2: expected one finite number"),
        ("labels", b"1\n\n1\n1\n", "y:2: expected one finite number"),
        ("labels", b"1 2\n1\n1\n1\n", "y:1: "),
        ("labels", b"1_0\n1\n1\n1\n", "y:1: "),
        ("labels", b"1\n1\n1\n", "y: expected 4 numbers, one for each row of .*, found 3"),
        ("labels", np.ones((4, 1)), "y: expected a vector of finite numbers"),
        ("labels", np.array([1, 2, np.inf, 3]), "finite"),
        ("labels", np.array(["a"] * 4), "vector of finite numbers"),
        ("labels", np.array([None] * 4), "not a .npy file"),
        ("groups", b"1\n1.5\n1\n1\n", "y:2: expected one integer of 64 bits, found '1.5'"),
        ("groups", b"1\n9223372036854775808\n1\n1\n", "y:2: "),
        ("groups", b"1\n2\n", "y: expected 4 integers, .* or the sizes of the groups, which add up to 4; found"),
        ("groups", b"5\n-1\n", "y: expected 4 integers, "),
        ("groups", np.ones(4), "vector of integers"),
        ("groups", np.full(4, 2**63, np.uint64), "64 bits"),
    ],
)
def test_labels_and_groups_that_are_wrong(what: str, content: Any, message: str, tmp_path: Path, labels: Path) -> None:
    path, options = made("npy", tmp_path)
    with (tmp_path / "y").open("wb") as stream:
        if isinstance(content, bytes):
            stream.write(content)
        else:
            np.save(stream, content)
    with pytest.raises(DataError, match=message):
        read_data(path, **(options | {what: tmp_path / "y"}))


def test_labels_belong_to_matrices(tmp_path: Path, labels: Path) -> None:
    of = {"labels": "of its own; --labels", "groups": "is for svmlight text and for .npz"}
    for kind, what in (("text", "labels"), ("csr", "labels"), ("csr", "groups")):
        folder = tmp_path / f"{kind}{what}"
        folder.mkdir()
        path, _ = made(kind, folder)
        with pytest.raises(DataError, match=of[what]):
            read_data(path, **{what: labels})  # type: ignore[arg-type]
    path, _ = made("npz", tmp_path)
    with pytest.raises(DataError, match="name their file by --labels"):
        read_data(path)
