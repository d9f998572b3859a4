"""Bags: from the files that say them to rows in order, and every way in which a bag's rows may be at odds."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apsvm.data import DataError, Dataset, open_folder, read_svmlight, write_folder
from apsvm.data.bags import Bags, bags_of
from apsvm.data.reading import read_data

# Bags 7 and 9 alternate, and 8 stands together.
TEXT = b"1 bag:7 1:1\n0 bag:9 1:2\n1 bag:7 2:3\n# none\n1 bag:8 1:4\n1 bag:8 1:5\n0 bag:9 1:6\n"
IDS = [7, 9, 7, 8, 8, 9]


def read(text: bytes, **options: Any) -> Dataset:
    return read_svmlight(io.BytesIO(text), **options)


def test_rows_by_bag() -> None:
    data = read(TEXT)
    assert data.bags is not None
    assert data.bags.tolist() == IDS
    bags = bags_of(data)
    assert bags is not None
    assert bags.n_bags == 3
    assert bags.ids.tolist() == [7, 9, 8]
    assert bags.offsets.tolist() == [0, 2, 4, 6]
    assert bags.order is not None
    assert bags.order.tolist() == [0, 2, 1, 5, 3, 4]
    assert bags.labels.tolist() == [1.0, 0.0, 1.0]
    assert bags.qid is None
    assert bags.first.tolist() == [0, 1, 3]
    assert bags.bag_of_row.tolist() == [0, 1, 0, 2, 2, 1]


@settings(deadline=None)
@given(st.lists(st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63)]), min_size=1, max_size=30))
def test_any_ids(ids: list[int]) -> None:
    array = np.array(ids, dtype=np.int64)
    bags = Bags.of_rows(array, array.astype(np.float64), array)
    order = np.arange(array.size) if bags.order is None else bags.order
    assert bags.ids.tolist() == list(dict.fromkeys(ids))
    assert sorted(order.tolist()) == list(range(array.size))
    for b, (start, end) in enumerate(zip(bags.offsets[:-1], bags.offsets[1:], strict=True)):
        members = order[start:end].tolist()
        assert members == [row for row, one in enumerate(ids) if one == bags.ids[b]]  # as they stood
        assert bags.first[b] == members[0]
    assert np.array_equal(bags.ids[bags.bag_of_row], array)
    assert bags.qid is not None
    assert np.array_equal(bags.qid, bags.ids)
    together = (order == np.arange(array.size)).all()
    assert (bags.order is None) == together
    for attribute in (bags.offsets, bags.first, bags.bag_of_row):
        assert attribute.dtype == np.int64


AT_ODDS = [
    (
        "labels",
        b"1 bag:3 1:1\n\n0 bag:4\n0 bag:3 1:1\n",
        {},
        ":4: bag 3 has label 0 here and label 1 in line 1; --bag-l",
    ),
    ("queries", b"1 bag:3 qid:1\n1 bag:3 qid:2\n", {}, ":2: bag 3 has qid 2 here and qid 1 in line 1"),
    ("costs", b"1 bag:3 cost:2\n1 bag:3\n", {}, ":2: bag 3 has cost 1 here and cost 2 in line 1"),
    (
        "label sets",
        b"1,2 bag:3\n2 bag:3\n",
        {"multilabel": True},
        ":2: bag 3 has labels 2 here and labels 1,2 in line 1",
    ),
    ("as many", b"1,2 bag:3\n2,5 bag:3\n", {"multilabel": True}, "has labels 2,5 here and labels 1,2 in line 1"),
    ("no label", b"1,2 bag:3\n bag:3\n", {"multilabel": True}, "has no label here and labels 1,2 in line 1"),
    ("the first row", b"1 bag:3\n1 bag:3\n0 bag:3\n2 bag:3\n", {}, ":3: bag 3 has label 0 here and label 1 in line 1"),
    (
        "queries, any",
        b"1 bag:3 qid:1\n0 bag:3 qid:2\n",
        {"bag_label": "any"},
        "bag 3 has qid 2 here and qid 1 in line 1",
    ),
]


@pytest.mark.parametrize(("text", "options", "message"), [case[1:] for case in AT_ODDS], ids=[c[0] for c in AT_ODDS])
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_at_odds(text: bytes, options: dict[str, Any], message: str, threads: int) -> None:
    with pytest.raises(DataError) as caught:
        read(text, threads=threads, **options)
    assert message in str(caught.value)
    assert str(caught.value).startswith("<stream>:")


def test_lines_are_those_of_the_file_whatever_the_threads() -> None:
    """Far into a file with comments, the rows of many chunks."""
    lines = [b"# c\n" if i % 7 == 3 else b"%d bag:%d 1:1\n" % (i % 2, i) for i in range(200_000)]
    assert sum(map(len, lines)) > 2 << 20
    lines.append(b"1 bag:150000 1:1\n")
    for threads in (1, 2, 5):
        with pytest.raises(DataError, match=r":200001: bag 150000 has label 1 here and label 0 in line 150001;"):
            read(b"".join(lines), threads=threads)


def test_the_highest_label() -> None:
    text = b"0 bag:3\n-1 bag:4\n1 bag:3\n0 bag:4\n"
    assert read(text, bag_label="any").relevance.tolist() == [1, 0, 1, 0]
    assert read(text, bag_label="own").relevance.tolist() == [0, -1, 1, 0]
    sets = read(b"1,2 bag:3\n5 bag:4\n bag:4\n2,7 bag:3\n", multilabel=True, bag_label="any").label_sets
    assert sets is not None
    assert sets.classes.tolist() == [1, 2, 5, 7]
    assert sets.matrix().astype(int).tolist() == [[1, 1, 0, 1], [0, 0, 1, 0], [0, 0, 1, 0], [1, 1, 0, 1]]
    with pytest.raises(ValueError, match="same, any, own"):
        read(text, bag_label="all")


def test_label_sets_that_agree_are_read() -> None:
    data = read(b"1,2 bag:3\n bag:4\n2,1 bag:3\n bag:4\n", multilabel=True)
    assert data.label_sets is not None
    assert data.label_sets.matrix().astype(int).tolist() == [[1, 1], [0, 0], [1, 1], [0, 0]]


# ------------------------------------------------------------------------------------------------- files of bags


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    np.save(tmp_path / "X.npy", np.arange(12.0).reshape(6, 2))
    np.save(tmp_path / "y.npy", np.array([1.0, 0, 1, 1, 1, 0]))
    return tmp_path / "X.npy"


def bags_in(matrix: Path, bags: Path, **more: Any) -> list[int]:
    data = read_data(matrix, labels=matrix.parent / "y.npy", bags=bags, **more)
    assert data.bags is not None
    assert data.bags.dtype == np.int64
    result: list[int] = data.bags.tolist()
    return result


def test_bags_of_a_matrix(matrix: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.array(IDS, dtype=np.int32))
    assert bags_in(matrix, tmp_path / "ids.npy") == IDS
    (tmp_path / "ids.txt").write_text("".join(f"{one}\n" for one in IDS))
    assert bags_in(matrix, tmp_path / "ids.txt") == IDS


def test_bags_of_text_and_of_a_folder_without(tmp_path: Path) -> None:
    (tmp_path / "rows.svm").write_text("1 1:1\n0 1:2\n1 2:3\n")
    (tmp_path / "ids.txt").write_text("4\n5\n4\n")
    write_folder(read_svmlight(tmp_path / "rows.svm"), tmp_path / "folder")
    for source in ("rows.svm", "folder"):
        data = read_data(tmp_path / source, bags=tmp_path / "ids.txt")
        assert data.bags is not None
        assert data.bags.tolist() == [4, 5, 4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0\n3\n5\n", "bags.txt: expected 6 numbers, one for each row of"),
        ("", "bags.txt:1: expected one integer"),
        ("0\n2.5\n6\n", "bags.txt:2: expected one integer of 64 bits, found '2.5'"),
        ("a\n", "bags.txt:1: expected one integer of 64 bits, found 'a'"),
        ("7\n7\n7\n8\n8\n9\n", "bags.txt: row 2: bag 7 has label 0 here and label 1 in row 1; --bag-label any"),
        (np.array(IDS) / 2, "expected a vector of integers, found float64"),
        (np.array([IDS]), "expected a vector of integers, found int64 of shape (1, 6)"),
    ],
)
def test_files_of_bags_that_are_wrong(content: Any, message: str, matrix: Path, tmp_path: Path) -> None:
    if isinstance(content, str):
        path = tmp_path / "bags.txt"
        path.write_text(content)
    else:
        path = tmp_path / "bags.npy"
        np.save(path, content)
    with pytest.raises(DataError) as caught:
        bags_in(matrix, path)
    assert message in str(caught.value)


# ------------------------------------------------------------------------------------------------- folders


@pytest.mark.parametrize("several", [False, True])
def test_a_folder_keeps_bags(several: bool, tmp_path: Path) -> None:
    text = TEXT.replace(b"1 bag:7", b"1,2 bag:7") if several else TEXT
    data = read(text, multilabel=several)
    write_folder(data, tmp_path / "out")
    header = json.loads((tmp_path / "out" / "header.json").read_text())
    assert "bags.npy" in header["files"]
    assert ("classes.npy" in header["files"]) == several
    back = open_folder(tmp_path / "out")
    assert back.bags is not None
    assert back.bags.dtype == np.int64
    assert back.bags.tolist() == IDS
    assert (back.label_sets is None) != several


def test_rows_of_a_folder_at_odds(tmp_path: Path) -> None:
    write_folder(read(b"1 bag:3\n0 bag:3\n", bag_label="own"), tmp_path / "out")
    with pytest.raises(DataError, match=r"out: row 2: bag 3 has label 0 here and label 1 in row 1"):
        read_data(tmp_path / "out")
    assert read_data(tmp_path / "out", bag_label="any").relevance.tolist() == [1, 1]


def test_damaged_bags(tmp_path: Path) -> None:
    write_folder(read(TEXT), tmp_path / "out")
    np.save(tmp_path / "out" / "bags.npy", np.array(IDS[:-1]))
    with pytest.raises(DataError, match=r"bags\.npy: damaged"):
        open_folder(tmp_path / "out")
    (tmp_path / "out" / "bags.npy").unlink()
    with pytest.raises(DataError, match=r"bags\.npy: missing"):
        open_folder(tmp_path / "out")
