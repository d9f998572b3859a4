"""Folders of ``apsvm convert`` as one: what their rows become, and which do not go together."""

from __future__ import annotations

import hashlib

import pytest
import scipy.sparse as sp
from over import over

from apsvm.data import DataError, read_data, write_folder
from apsvm.data.joining import in_columns_of
from apsvm.data.read_options import TableOptions


@pytest.fixture
def joined(tmp_path):
    """joined(text, text …): a folder made of each, read as one."""

    def read(*texts, qid=None, dense=None, **options):
        for number, text in enumerate(texts):
            if "y\n" in text or "y," in text:
                (tmp_path / "text.csv").write_text(text)
                data = read_data(
                    tmp_path / "text.csv", table=TableOptions(missing="refuse", positive_label="yes", qid=qid)
                )
            else:
                (tmp_path / "text").write_text(text)
                data = read_data(tmp_path / "text", **options)
            write_folder(data, tmp_path / f"part-{number}", dense=dense)
        return read_data(tmp_path / "part-*")

    return read


def dense(data):
    return data.X.toarray().tolist() if sp.issparse(data.X) else data.X.tolist()


@pytest.mark.parametrize("is_dense", [True, False])
def test_columns_are_found_by_their_names(is_dense, joined, tmp_path):
    texts = ["a,b,y\n1,2,yes\n3,4,no\n", "y,b,a\nno,5,6\nyes,0,8\n"]
    data = joined(*texts, dense=is_dense)
    assert dense(data) == [[1, 2], [3, 4], [6, 5], [8, 0]]
    assert data.X.flags.c_contiguous if is_dense else data.X.has_sorted_indices
    assert data.relevance.tolist() == [1, 0, 0, 1]
    first, last = (read_data(tmp_path / f"part-{number}") for number in range(2))
    assert data.table.columns == first.table.columns
    assert data.unknown_features == 0
    assert in_columns_of(last, first.table.columns, first.source).table.columns == first.table.columns
    digests = "".join(hashlib.sha256(text.encode()).hexdigest() + "\n" for text in texts)
    assert data.fingerprint == hashlib.sha256(digests.encode()).hexdigest()


@over(
    "second, message",
    [
        ("a,y\n1,yes\n2,no\n", "part-1: expected the columns of .*part-0, found no column b$"),
        (
            "a,b,y\n1,u,yes\n2,v,no\n",
            "part-1: column 'b' does not hold what it holds in .*part-0 .numbers, the same words, or dates that end on "
            "the same one.: one machine learns the features of such parts, from all rows .apsvm convert.$",
        ),
        (
            "a,b,y\n1,2,yes\n3,4,maybe\n",
            "part-1: column 'y': expected the labels of .*part-0, no, yes, found maybe, yes: words are the same in "
            "every part, in one order .--positive-label.$",
        ),
        ("a,b,y\n1,2,0\n3,4,1\n", "expected the labels of .*part-0, no, yes, found numbers: "),
        ("1 1:1\n", "part-1: the columns of .*part-0 have names, and those of .*part-1 have none$"),
    ],
)
def test_parts_of_other_columns(joined, second, message):
    with pytest.raises(DataError, match=message):
        joined("a,b,y\n1,2,yes\n3,4,no\n", second)


@over(
    "texts, message",
    [
        (
            ("1 1:1\n0 1:2\n", "a,y\n1,0\n"),
            "part-1: the columns of .*part-1 have names, and those of .*part-0 have none$",
        ),
        (("1 qid:1 1:1\n", "0 1:1\n"), "part-[*]: of the parts, some have qid and some have none$"),
    ],
)
def test_parts_that_do_not_go_together(joined, texts, message):
    with pytest.raises(DataError, match=message):
        joined(*texts, qid="q" if "q,a" in texts[0] else None)


def test_nothing_in_any_part(tmp_path):
    for number in range(2):
        (tmp_path / f"part-{number}").write_text("")
    with pytest.raises(DataError, match=r"part-[*]: there are no rows$"):
        read_data(tmp_path / "part-*")


def test_features_from_0_and_from_1(tmp_path):
    for number, zero_based in enumerate((True, False)):
        (tmp_path / "text").write_text("1 1:1\n0 2:1\n")
        write_folder(read_data(tmp_path / "text", zero_based=zero_based), tmp_path / f"part-{number}")
    with pytest.raises(DataError, match=r"of the parts, some count features from 0 and some from 1 \(--zero-based\)$"):
        read_data(tmp_path / "part-*")
