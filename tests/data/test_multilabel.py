"""Rows of several labels or none: the text as scikit-learn reads it, folders, and matrices of labels."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from apsvm.data import DataError, Dataset, open_folder, read_data, read_svmlight, write_folder
from apsvm.data.dataset import LabelSets

TEXT = b"1,4 1:2\n# none\n 2:3\n4 1:1 2:1\n3:1 # of no label\n-2.5,1e1,4\n"
ROWS = [[1.0, 4.0], [], [4.0], [], [-2.5, 4.0, 10.0]]


def read(text: bytes, **options: Any) -> Dataset:
    return read_svmlight(io.BytesIO(text), multilabel=True, **options)


def rows_of(data: Dataset) -> list[list[float]]:
    sets = data.label_sets
    assert sets is not None
    assert (sets.classes.dtype, sets.indptr.dtype, sets.indices.dtype) == (np.float64, np.int64, np.int32)
    return [sets.classes[found].tolist() for found in np.split(sets.indices, sets.indptr[1:-1])]


def test_by_hand() -> None:
    data = read(TEXT)
    assert rows_of(data) == ROWS
    assert data.classes().tolist() == [-2.5, 1, 4, 10]
    assert data.have(4).tolist() == [True, False, True, False, True]
    assert data.have(7).tolist() == [False] * 5
    assert data.classes(np.array([True, True, True, False, False])).tolist() == [1, 4]
    assert data.positives(1).tolist() == [True, False, False, False, False]
    assert data.X.toarray().tolist() == [[2, 0, 0], [0, 3, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert data.relevance.tolist() == [0] * 5


def test_one_label_a_row_reads_as_ever() -> None:
    text = b"3 1:2\n-1 2:1\n3\n"
    data = read(text)
    assert data.label_sets is None
    assert np.array_equal(data.relevance, read_svmlight(io.BytesIO(text)).relevance)
    assert (data.classes().tolist(), data.have(3).tolist()) == ([-1, 3], [True, False, True])
    assert data.classes(data.have(3)).tolist() == [3]


def random_rows(rng: np.random.Generator, n: int, k: int) -> tuple[sp.csr_array, list[list[float]]]:
    X = sp.csr_array(np.round(rng.random((n, 20)), 3) * (rng.random((n, 20)) < 0.3))
    labels = [rng.permutation(np.flatnonzero(rng.random(k) < 0.2)).tolist() for _ in range(n)]
    return X, labels


def test_scikit_learn_agrees(rng: np.random.Generator, tmp_path: Path) -> None:
    X, labels = random_rows(rng, 400, 9)
    assert {len(row) for row in labels} >= {0, 1, 2, 3}
    matrix = np.array([[j in row for j in range(9)] for row in labels])
    dump_svmlight_file(X, matrix, str(tmp_path / "theirs"), multilabel=True, zero_based=False)
    ours = read_svmlight(tmp_path / "theirs", multilabel=True)
    theirs, rows = load_svmlight_file(str(tmp_path / "theirs"), multilabel=True)
    assert rows_of(ours) == [list(row) for row in rows] == [sorted(row) for row in labels]
    assert np.array_equal(ours.X.toarray()[:, : theirs.shape[1]], theirs.toarray())
    assert ours.label_sets is not None
    assert np.array_equal(ours.label_sets.matrix(), matrix)
    for j in range(9):
        assert np.array_equal(ours.have(j), matrix[:, j])


def test_several_labels_want_a_choice() -> None:
    data = read(TEXT)
    for how in ({}, {"relevant_from": 1.0}):
        with pytest.raises(DataError, match=r"choose by --positive-label or apsvm train --one-vs-rest"):
            data.positives(**how)
    with pytest.raises(DataError, match=r"no row has the positive label 3: found -2.5, 1, 4, 10"):
        data.positives(3)
    with pytest.raises(DataError, match=r"no negative rows \(2 positive, 0 negative\)"):
        read(b"1 1:1\n1,2\n").positives(1)
    with pytest.raises(DataError, match="--one-vs-rest"):
        read(b"1\n2\n3\n").positives()


# ------------------------------------------------------------------------------------------------ folders


@pytest.mark.parametrize("text", [TEXT, b"1,2 1:1\n", b"1:1\n", TEXT * 100])
@pytest.mark.parametrize("dense", [False, True])
def test_folder_round_trip(text: bytes, dense: bool, tmp_path: Path) -> None:
    data = read(text)
    write_folder(data, tmp_path / "out", dense=dense)
    for back in (open_folder(tmp_path / "out"), read_data(tmp_path / "out", n_features=7)):
        assert rows_of(back) == rows_of(data)
        assert back.classes().tolist() == data.classes().tolist()
        assert back.relevance.tolist() == data.relevance.tolist()
    write_folder(read(b"1 1:1\n2 1:1\n"), tmp_path / "out")  # one label a row in its place
    assert open_folder(tmp_path / "out").label_sets is None


def test_damaged_folders(tmp_path: Path) -> None:
    """Every wrong member is refused, though the header is sealed anew: none may lead outside an array."""

    def write(**changes: Any) -> None:
        parts = {"classes": [1.0, 2.0], "indptr": [0, 1, 3], "indices": [0, 0, 1]} | changes
        sets = LabelSets(
            np.array(parts["classes"], np.float64),
            np.array(parts["indptr"], np.int64),
            np.array(parts["indices"], "i4"),
        )
        data = read(b"1 1:1\n1,2 1:1\n")
        object.__setattr__(data, "label_sets", sets)
        write_folder(data, tmp_path / "out")

    write()
    assert rows_of(open_folder(tmp_path / "out")) == [[1], [1, 2]]
    for name, content in (
        ("classes", [2.0, 1.0]),
        ("classes", [1.0, 1.0]),
        ("classes", [1.0, np.nan]),
        ("indptr", [0, 4, 3]),
        ("indptr", [1, 1, 3]),
        ("indptr", [0, 1, 2]),
        ("indptr", [0, 1, 9]),
        ("indices", [0, 0, 2]),
        ("indices", [0, 0, -1]),
    ):
        write(**{name: content})
        with pytest.raises(DataError, match="damaged"):
            open_folder(tmp_path / "out")
    write()
    (tmp_path / "out" / "classes.npy").unlink()
    with pytest.raises(DataError, match="missing"):
        open_folder(tmp_path / "out")


# ------------------------------------------------------------------------------------------------ matrices

MATRIX = np.array([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]])


@pytest.mark.parametrize("matrix", [MATRIX, MATRIX.astype(bool), MATRIX.astype(np.float32), 2 * MATRIX - 1], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("sparse", [False, True])
def test_matrices_of_labels(matrix: Any, order: Any, sparse: bool, tmp_path: Path) -> None:
    X = np.arange(6.0).reshape(3, 2)
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(X)) if sparse else np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", np.array(matrix, order=order))
    data = read_data(tmp_path / ("x.npz" if sparse else "x.npy"), labels=tmp_path / "y.npy")
    assert rows_of(data) == [[0, 3], [], [0, 1]]
    assert data.classes().tolist() == [0, 1, 2, 3]  # 2 too, though no row has it
    write_folder(data, tmp_path / "out")
    assert open_folder(tmp_path / "out").classes().tolist() == [0, 1, 2, 3]
    with pytest.raises(DataError, match="no positive rows"):
        data.positives(2)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (MATRIX[:2], "expected 3 rows of labels, one for each row of .*, found 2"),
        (MATRIX + 1, "0 and 1 or of -1 and 1, found 2 in row 0, column 0"),
        (MATRIX - np.eye(3, 4), "found -1.0 in row 1, column 1"),
        (MATRIX * 0.5, "found 0.5 in row 0, column 0"),
        (np.where(MATRIX, 1, np.nan), "found nan"),
        (MATRIX.astype(str), "found the type <U"),
        (MATRIX[None], "expected a vector of finite numbers"),
    ],
)
def test_matrices_that_are_wrong(matrix: Any, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((3, 2)))
    np.save(tmp_path / "y.npy", matrix)
    with pytest.raises(DataError, match=message):
        read_data(tmp_path / "x.npy", labels=tmp_path / "y.npy")
