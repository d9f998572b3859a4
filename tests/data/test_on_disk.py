"""Text that becomes a folder block by block: the same as what is read at once."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from apsvm.cli import run
from apsvm.data import DataError, Dataset, on_disk, open_folder, read_svmlight
from apsvm.data import svmlight as reader
from apsvm.data.folder import write_folder
from apsvm.data.on_disk import gathered
from apsvm.data.read_options import ReadOptions
from apsvm.data.svmlight import TextBlocks

FULL = "1 1:0.5 2:1.5 3:-2\n-1 1:1 2:2 3:3\n" * 20
SPARSE = "1 1:0.5 3:1.5 # a comment\n\n-1 2:2.25 4:1e-3\n-1\n" * 20
TEXTS = {
    "full": FULL,
    "sparse": SPARSE,
    "full, then sparse": FULL + SPARSE,
    "full, then wider": FULL + "1 1:1 2:2 3:3 4:4\n" * 9,
    "sparse, then full": SPARSE + FULL,
    "no features first": "1\n-1\n" * 30 + FULL,
    "queries": "".join(f"{i % 3 - 1} qid:{i // 4} {1 + i % 5}:{i}\n" for i in range(90)),
    "late costs": FULL + "1 cost:0.25 1:1 2:2 3:3\n" + FULL,
    "wide": SPARSE + f"1 {2**31 + 5}:1\n" + SPARSE,
    "bags": "".join(f"{1 if i // 3 % 2 else -1} bag:{i // 3} {1 + i % 5}:{i}\n" for i in range(90)),
    "no end of line": FULL + "1 1:7 2:8 3:9",
}
SEVERAL = "1,4 1:1 2:2\n 1:3 2:4\n4 2:1\n" * 20


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_BLOCK", 61)
    monkeypatch.setattr(reader, "_BLOCK_OF_SEVERAL", 61)
    monkeypatch.setattr(reader, "BYTES_OF_ROWS", 200)
    monkeypatch.setattr(on_disk, "_BLOCK", 7)


def assert_same(found: Dataset, expected: Dataset) -> None:
    assert found.X.shape == expected.X.shape
    mine, theirs = sp.csr_array(found.X), sp.csr_array(expected.X)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
        assert getattr(mine, name).dtype == getattr(theirs, name).dtype
    for name in ("relevance", "groups", "costs", "bags"):
        mine, theirs = getattr(found, name), getattr(expected, name)
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            np.testing.assert_array_equal(mine, theirs)
            assert mine.dtype == theirs.dtype
    if expected.label_sets is not None:
        np.testing.assert_array_equal(found.label_sets.matrix(), expected.label_sets.matrix())
        np.testing.assert_array_equal(found.label_sets.classes, expected.label_sets.classes)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_blocks_are_what_is_read_at_once(text: str, dtype: type, tmp_path: Path) -> None:
    path = tmp_path / "data.svm"
    path.write_text(text)
    expected = read_svmlight(path, dtype=dtype, bag_label="own")
    for threads in (1, 3):
        options = ReadOptions(dtype=np.dtype(dtype).name, threads=threads)
        blocks = TextBlocks([path], options)
        n_blocks = sum(1 for _ in blocks)
        assert n_blocks > 1
        with gathered(TextBlocks([path], options), tmp_path, "data") as found:
            assert_same(found, expected)
        assert blocks.fingerprint == expected.fingerprint
        assert [other.name for other in tmp_path.iterdir()] == ["data.svm"]


@pytest.mark.parametrize("late", [False, True])
def test_rows_of_several_labels(late: bool, tmp_path: Path) -> None:
    path = tmp_path / "data.svm"
    path.write_text((FULL if late else "") + SEVERAL)
    with gathered(TextBlocks([path], ReadOptions(multilabel=True)), tmp_path, "data") as found:
        assert_same(found, read_svmlight(path, multilabel=True))


def test_a_folder_of_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.svm").write_text(SPARSE)
    Path("b.svm").write_text(FULL)
    Path("both.svm").write_text(SPARSE + FULL)
    assert run(["convert", "-q", "?.svm", "out"]) == 0
    found, expected = open_folder("out"), read_svmlight("both.svm")
    assert_same(found, expected)
    assert found.fingerprint == hashlib.sha256((SPARSE + FULL).encode()).hexdigest()
    write_folder(expected, "at_once")
    for member in Path("at_once").iterdir():
        if member.name != "header.json":
            assert member.read_bytes() == Path("out", member.name).read_bytes(), member.name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svm", "at_once", "b.svm", "both.svm", "out"]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([FULL, "1 qid:1 1:1\n"], "b0.svm: expected rows with qid: as in all of 2 files"),
        ([FULL + "1 qid:1 1:1\n"], "a0.svm:41:3: expected no qid, as in the rows before (since line 1), found 'qid:1'"),
        ([FULL, FULL + "1 x\n"], "b0.svm:41:3: expected index:value, found 'x'"),
        ([FULL, "# nothing\n"], "b0.svm: expected at least one row, found none"),
        ([""], "a0.svm: the file is empty"),
    ],
)
def test_bad_files(
    texts: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"{letter}0.svm" for letter, _ in zip("ab", texts, strict=False)]
    for name, text in zip(names, texts, strict=True):
        Path(name).write_text(text)
    assert run(["convert", "?0.svm", "out"]) == 65
    assert message in capfd.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_blocks_of_any_width(tmp_path: Path, rng: np.random.Generator) -> None:
    """From whoever has them."""
    wide = sp.csr_array(rng.normal(size=(5, 3)))
    one = Dataset(wide, np.ones(5), source="a")
    two = replace(one, X=sp.csr_array([[0.0, 2.0], [3.0, 0.0]]), relevance=np.zeros(2), costs=np.array([2.0, 3.0]))
    with gathered([one, two, one], tmp_path, "all") as found:
        expected = np.vstack([wide.toarray(), [[0.0, 2.0, 0.0], [3.0, 0.0, 0.0]], wide.toarray()])
        np.testing.assert_array_equal(found.X.toarray(), expected)
        np.testing.assert_array_equal(found.costs, [1.0] * 5 + [2.0, 3.0] + [1.0] * 5)
        np.testing.assert_array_equal(found.relevance, [1.0] * 5 + [0.0] * 2 + [1.0] * 5)
    mixed = gathered([one, replace(one, bags=np.zeros(5, dtype=np.int64))], tmp_path, "mixed")
    with pytest.raises(DataError, match="expected rows with bag: as in all of mixed"), mixed:
        pass
    assert not list(tmp_path.iterdir())
