"""Reading svmlight files: the corners of the format, its errors with their places, and the ways bytes come in."""

import hashlib
import io
import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from over import over
from sklearn.datasets import load_svmlight_file
from svmlight_cases import (
    BAD,
    COMPRESSED,
    COMPRESSORS,
    GOOD,
    NO_ROWS,
    Bad,
    Good,
    assert_same_outcome,
    identical,
    outcome,
    read,
)

from apsvm._native import _kernels
from apsvm.data import DataError, Dataset, read_svmlight


def check_good(data: Dataset, case: Good) -> None:
    dtype = case.options.get("dtype", np.float64)
    columns = [list(row) for _, row in case.rows]
    n_columns = case.n_columns
    if n_columns is None:
        n_columns = max(itertools.chain(*columns), default=-1) + 1
    assert identical(data.relevance, np.array([label for label, _ in case.rows], dtype=np.float64))
    assert identical(data.X.indptr, np.cumsum([0, *map(len, columns)], dtype=np.int32))
    assert identical(data.X.indices, np.array(list(itertools.chain(*columns)), dtype=np.int32))
    assert identical(data.X.data, np.array([v for _, row in case.rows for v in row.values()], dtype=dtype))
    assert data.X.shape == (len(case.rows), n_columns)
    assert identical(data.groups, None if case.groups is None else np.array(case.groups, dtype=np.int64))
    assert identical(data.bags, None if case.bags is None else np.array(case.bags, dtype=np.int64))
    assert identical(data.costs, None if case.costs is None else np.array(case.costs, dtype=np.float64))
    assert data.zero_based == case.options.get("zero_based", False)
    assert data.unknown_features == case.unknown
    data.X.check_format(full_check=True)
    assert data.X.has_sorted_indices
    assert data.X.has_canonical_format


def check_bad(call: Callable[[], Dataset], case: Bad, source: str) -> None:
    with pytest.raises(DataError) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(f"{source}:{case.line}:{case.column}: ")
    assert case.message in message
    assert message.isprintable()


CASES: list[Good | Bad] = [*GOOD, *BAD]
each_case = over("case", CASES, ids=lambda case: case.name)


def test_the_table_is_one() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert set(FEW) < set(names)


#: How bytes come in does not depend on what they say: a few cases are enough for each way.
FEW = [
    "two rows",
    "no final newline",
    "BOM and comment",
    "qid",
    "value nan",
    "value without end",
    "qid gone at the end",
]
few_cases = over("case", [case for case in CASES if case.name in FEW], ids=lambda case: case.name)


def check_file(case: Good | Bad, content: bytes, path: Path) -> None:
    path.write_bytes(content)
    if isinstance(case, Bad):
        check_bad(lambda: read_svmlight(path, **case.options), case, str(path))
    else:
        data = read_svmlight(path, **case.options)
        check_good(data, case)
        assert data.source == str(path)
        assert data.fingerprint == hashlib.sha256(content).hexdigest()


@each_case
def test_file(case: Good | Bad, tmp_path: Path) -> None:
    check_file(case, case.text, tmp_path / "data.gz")  # the name must not matter


@over("compression", COMPRESSED)
@few_cases
def test_compressed_file(case: Good | Bad, compression: str, tmp_path: Path) -> None:
    check_file(case, COMPRESSORS[compression](case.text), tmp_path / "data.svm")


@over("compression", ["plain", "xz"])
@few_cases
def test_stdin(case: Good | Bad, compression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.write(writing, COMPRESSORS[compression](case.text))  # short enough for the pipe to hold
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=pipe))
        if isinstance(case, Bad):
            check_bad(lambda: read_svmlight("-", **case.options), case, "<stdin>")
        else:
            data = read_svmlight("-", **case.options)
            check_good(data, case)
            assert data.source == "<stdin>"
        assert not pipe.closed


@each_case
def test_blocks(case: Good | Bad) -> None:
    whole = outcome(case.text, max(len(case.text), 1), case)
    assert len(whole) == (3 if isinstance(case, Bad) else 12)
    for block in (1, 2, 3, 7):
        assert_same_outcome(outcome(case.text, block, case), whole)


@each_case
def test_threads(case: Good | Bad) -> None:
    """Chunks of a line each: alone, and in a longer text of which any line may begin a chunk."""
    texts = (case.text * 3, b"\n" * 9 + case.text, b"1 1:2\n" * 5 + case.text + b"\n-1 2:1 3:4\n" * 4)
    for text, narrow_limit in itertools.product(texts, (2**31 - 1, 2)):
        one = outcome(text, max(len(text), 1), case, narrow_limit=narrow_limit)
        for threads in (2, 3, 7):
            for block in (len(text) + 1, 24):
                assert_same_outcome(outcome(text, block, case, threads, narrow_limit=narrow_limit), one)


def joined(parts: list[Any]) -> list[Any]:
    """Joins the parts of ``take()`` as ``finish()`` does."""
    indptr, indices, values, relevance, qids, costs, n_columns, unknown, labels, label_ends, bags, lines = zip(
        *parts, strict=True
    )

    def ends(of_parts: list[Any]) -> Any:
        before = itertools.accumulate((int(part[-1]) if part.size else 0 for part in of_parts), initial=0)
        return np.concatenate([part + more for part, more in zip(of_parts, before, strict=False)])

    def of_rows(of_parts: list[Any]) -> Any:
        there = [part for part in of_parts if part is not None]
        if not there:
            return None
        ones = [np.ones(rows.size, there[0].dtype) for rows in relevance]
        return np.concatenate([one if part is None else part for part, one in zip(of_parts, ones, strict=True)])

    return [
        np.r_[0, ends([part[1:] for part in indptr])], *map(np.concatenate, (indices, values, relevance)),
        of_rows(qids), of_rows(costs), max(n_columns), sum(unknown),
        np.concatenate(labels), ends(label_ends), of_rows(bags),
        np.concatenate(lines),
    ]  # fmt: skip


@each_case
def test_rows_taken_block_by_block_are_the_whole(case: Good | Bad) -> None:
    whole = outcome(case.text, max(len(case.text), 1), case)
    for block, threads in ((7, 1), (24, 3)):
        parts = outcome(case.text, block, case, threads, taken=True)
        if isinstance(case, Bad):
            assert parts == whole
            continue
        assert parts[-1][3].size <= 1  # of the last line
        for part, of_whole in zip(joined(parts), whole, strict=True):
            np.testing.assert_array_equal(part, of_whole)


def test_the_first_error_of_all_chunks() -> None:
    """Every chunk has faults; the one that is told comes first in the file, with the place it has there."""
    good, bad, qid, bag = b"1 1:2\n", b"1 x\n", b"1 qid:3 1:2\n", b"1 bag:3 1:2\n"
    case = Bad("", b"", 0, 0, "")
    for lines, line in (
        ([good] * 20 + [bad] * 20, 21),
        ([good] * 20 + [qid] * 10 + [bad] * 10, 21),
        ([qid] * 20 + [bad] * 3, 21),
        ([qid] * 20 + [good] * 3 + [bad], 21),
        ([b"# a\n"] * 30 + [good, qid], 32),
        ([b"\n"] * 30 + [qid] + [b"\n"] * 30 + [good], 62),
        ([bag] * 20 + [good] * 3 + [bad], 21),
        ([qid] * 20 + [bag] * 3, 21),
    ):
        text = b"".join(lines)
        one = outcome(text, len(text), case)
        assert one[0] == line
        for threads, block in itertools.product((2, 3, 7), (1, 17, 60, len(text))):
            assert outcome(text, block, case, threads) == one


def test_errors_of_the_stream_come_after_those_of_the_text() -> None:
    """The parser may still be at the text when the stream fails; the fault that stands first is the one told."""

    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if block := super().read(size):
                return block
            raise OSError("the disk is on fire")

    text = b"1 1:2\n" * 400_000
    with pytest.raises(OSError, match="on fire"):
        read_svmlight(Failing(text), threads=2)
    with pytest.raises(DataError, match=r"^<stream>:400001:3: "):
        read_svmlight(Failing(text + b"1 x\n"), threads=2)


def test_a_parser_let_go_at_work() -> None:
    """As after an interrupt: nothing is left running, nothing is read that is gone."""
    parser = _kernels.SvmlightParser(threads=2, least_chunk=1)
    parser.feed(b"1 1:2\n" * 300_000)
    del parser


@over("case", [case for case in GOOD if case.judged], ids=lambda case: case.name)
def test_scikit_learn_agrees(case: Good) -> None:
    data = read(case.text, **case.options)
    X, y, *qid = load_svmlight_file(
        io.BytesIO(case.text),
        zero_based=case.options.get("zero_based", False),
        dtype=case.options.get("dtype", np.float64),
        n_features=case.options.get("n_features"),
        query_id=case.groups is not None,
    )
    assert identical(data.X.data, X.data)
    assert np.array_equal(data.X.indices, X.indices)
    assert np.array_equal(data.X.indptr, X.indptr)
    if data.X.nnz > 0:  # scikit-learn makes one column of none
        assert data.X.shape == X.shape
    assert np.array_equal(data.relevance, y)
    if data.groups is not None:
        assert np.array_equal(data.groups, qid[0])


@over("text", NO_ROWS)
@over("compression", COMPRESSORS)
def test_no_rows(text: bytes, compression: str) -> None:
    with pytest.raises(DataError, match=r"^<stream>: expected at least one row, found none$"):
        read(COMPRESSORS[compression](text))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("stored", "is_dense"), [(3, True), (1, False)])
def test_rows_with_most_columns_are_dense(stored, is_dense, dtype):
    """More of them than become dense in one go; the first has all columns, the last none."""
    rows = [[1.0, 2.0, 3.0, 4.0], *([[0.0] * (4 - stored) + [5.0] * stored] * 20_000), [0.0] * 4]
    text = "\n".join("1 " + " ".join(f"{j}:{x:g}" for j, x in enumerate(row, 1) if x) for row in rows)
    X = read_svmlight(io.BytesIO(text.encode()), dtype=dtype, dense=True).X
    assert isinstance(X, np.ndarray) == is_dense
    assert X.dtype == dtype
    assert np.array_equal(X if is_dense else X.toarray(), rows)
    wider = read_svmlight(io.BytesIO(text.encode()), dtype=dtype, dense=True, n_features=5).X
    assert wider.shape == (20_002, 5)
    assert np.array_equal((wider if isinstance(wider, np.ndarray) else wider.toarray())[:, :4], rows)
