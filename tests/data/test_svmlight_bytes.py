"""Where the bytes of svmlight text come from: compressed, cut off, in pieces, through pipes; and how large they are."""

import gzip
import io
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from over import over
from svmlight_cases import COMPRESSED, COMPRESSORS, assert_same, identical, read

from apsvm._native import _kernels
from apsvm.data import DataError, read_svmlight, svmlight

TEXT = b"1 1:2 3:0.25\n-1 2:5 # comment\n1 1:7 2:8 4:9e-3\n"


@pytest.mark.parametrize("compression", COMPRESSED)
def test_truncated_anywhere(compression: str) -> None:
    packed = COMPRESSORS[compression](TEXT)
    read(packed)
    for length in range(len(packed)):
        with pytest.raises(DataError):
            read(packed[:length])


@pytest.mark.parametrize("compression", COMPRESSED)
def test_one_byte_corrupt(compression: str) -> None:
    packed = COMPRESSORS[compression](TEXT)
    intact = read(packed)
    n_refused = 0
    for at in range(len(packed)):
        for flip in (0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF):
            corrupt = packed[:at] + bytes([packed[at] ^ flip]) + packed[at + 1 :]
            try:
                data = read(corrupt)
            except DataError:
                n_refused += 1
            else:
                assert_same(data, intact)
    assert n_refused > 4 * len(packed)


@pytest.mark.parametrize("compression", COMPRESSED)
def test_members(compression: str) -> None:
    pack = COMPRESSORS[compression]
    intact = read(TEXT)
    for cut in (0, 1, 5, 13, 20, len(TEXT)):
        packed = pack(TEXT[:cut]) + pack(TEXT[cut:])
        assert_same(read(packed), intact)
        assert_same(read_svmlight(Dribble(packed)), intact)  # type: ignore[arg-type]


@pytest.mark.parametrize("compression", COMPRESSED)
def test_what_follows_a_stream(compression: str) -> None:
    pack = COMPRESSORS[compression]
    packed = pack(TEXT)
    for tail in (b"x", b"\n", TEXT, b"\0x", b"\x1f\x8c", b"BZx", b"\xfd7zXY", bytes(4) + b"1 1:2\n"):
        for stream in (io.BytesIO(packed + tail), Dribble(packed + tail)):
            with pytest.raises(DataError, match=r"^<stream>: .*(corrupt|too early)"):
                read_svmlight(stream)  # type: ignore[arg-type]
    for padded in (packed + bytes(512), packed + bytes(8) + packed, packed + bytes(4)):
        assert read(padded).relevance.size in (3, 6)
        assert read_svmlight(Dribble(padded)).relevance.size in (3, 6)  # type: ignore[arg-type]


@pytest.mark.parametrize("compression", COMPRESSED)
def test_much_text_from_few_bytes(compression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One compressed block gives several blocks of text."""
    monkeypatch.setattr(svmlight, "_BLOCK", 1 << 16)
    n = 100_000
    data = read(COMPRESSORS[compression](b"1 1:2\n" * n))
    assert data.X.shape == (n, 1)
    assert data.X.data.sum() == 2 * n


def test_the_first_fault_is_reported() -> None:
    with pytest.raises(DataError, match=r":1:3: "):
        read(gzip.compress(b"1 x\n" + TEXT)[:-1])
    with pytest.raises(DataError, match="too early"):
        read(gzip.compress(TEXT)[:-1])


@pytest.mark.parametrize(("magic", "name"), [(b"\x28\xb5\x2f\xfd", "zstd data"), (b"PK\x03\x04", "zip archive")])
def test_damaged_compression(magic: bytes, name: str) -> None:
    with pytest.raises(DataError, match=f"^<stream>: the {name} (are corrupt|cannot be unpacked)"):
        read(magic + bytes(30))


class Dribble(io.RawIOBase):
    """A stream that gives one byte at a time."""

    def __init__(self, data: bytes) -> None:
        self.data = iter(data)

    def read(self, size: int = -1, /) -> bytes:
        return bytes(itertools.islice(self.data, 1))


def test_closed_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(OSError, match="standard input"):
        read_svmlight("-")


def test_stream_keeps_its_name_and_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(TEXT)
    with path.open("rb") as stream:
        assert read_svmlight(stream).source == str(path)
        assert not stream.closed


def test_text_stream() -> None:
    with pytest.raises(TypeError, match="binary mode"):
        read_svmlight(io.StringIO("1 1:2\n"))  # type: ignore[arg-type]


@pytest.mark.parametrize("sort_features", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_indices_widen_once_needed(sort_features: bool, dtype: Any) -> None:
    text = b"1 1:1 7:2\n-1 2147483647:3\n"
    narrow = read(text, dtype=dtype, sort_features=sort_features)
    assert narrow.X.indices.dtype == narrow.X.indptr.dtype == np.int32
    assert narrow.X.shape == (2, 2**31 - 1)
    more = text + (
        b"1 2:4 9223372036854775807:6 2147483648:5\n1 3:1\n"
        if sort_features
        else b"1 2:4 2147483648:5 9223372036854775807:6\n1 3:1\n"
    )
    wide = read(more, dtype=dtype, sort_features=sort_features)
    assert wide.X.indices.dtype == wide.X.indptr.dtype == np.int64
    assert wide.X.indices.tolist() == [0, 6, 2**31 - 2, 1, 2**31 - 1, 2**63 - 2, 2]
    assert wide.X.indptr.tolist() == [0, 2, 3, 6, 7]
    assert wide.X.data.tolist() == [1, 2, 3, 4, 5, 6, 1]
    assert wide.X.data.dtype == dtype
    assert wide.X.shape == (4, 2**63 - 1)


def test_indices_are_wide_for_a_wide_model() -> None:
    data = read(b"1 1:2\n", n_features=2**31)
    assert data.X.shape == (1, 2**31)
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int64


@pytest.mark.parametrize(
    ("text", "is_wide"),
    [
        (b"1 1:1 2:1 3:1\n1 1:1 2:1\n", False),  # 5 entries, 3 columns
        (b"1 1:1 2:1 3:1\n1 1:1 2:1 3:1\n1 5:1\n", True),  # 7 entries
        (b"1 5:1\n", False),
        (b"1 6:1\n", True),
        (b"1\n1\n1 1:1\n1\n1\n", False),
        (b"1\n1\n1 1:1\n1\n1\n1\n", True),  # 6 rows
    ],
)
def test_indices_widen_for_columns_entries_and_rows(text: bytes, is_wide: bool) -> None:
    """The limit of 2^31 - 1, moved to 5 where a test can reach it."""
    parser = _kernels.SvmlightParser(narrow_limit=5)
    parser.feed(text)
    indptr, indices, values, *_ = parser.finish()
    assert indptr.dtype == indices.dtype == (np.int64 if is_wide else np.int32)
    expected = read(text).X
    assert np.array_equal(indptr, expected.indptr)
    assert np.array_equal(indices, expected.indices)
    assert identical(values, expected.data)


def test_no_copies_are_made() -> None:
    """scipy keeps the very arrays of the parser."""
    data = read(TEXT)
    assert all(array.base is not None for array in (data.X.indices, data.X.indptr))
    assert data.X.data.flags.writeable
    assert data.relevance.flags.writeable
    assert isinstance(data.X, sp.csr_array)


@over(
    ("options", "error", "message"),
    [
        ({"n_features": -1}, ValueError, "n_features"),
        ({"max_features": -1}, ValueError, "max_features"),
        ({"max_features": 2**63}, ValueError, "max_features"),
        ({"n_features": 1.5}, TypeError, "integer"),
        ({"n_features": 5, "max_features": 4}, ValueError, "beyond"),
        ({"ignore_unknown": True}, ValueError, "n_features"),
        ({"dtype": np.int32}, ValueError, "dtype"),
        ({"dtype": np.float16}, ValueError, "dtype"),
        ({"threads": 0}, ValueError, "thread"),
    ],
)
def test_bad_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        read(TEXT, **options)
    assert not isinstance(caught.value, DataError)


def test_numpy_counts_as_options() -> None:
    assert read(TEXT, n_features=np.int64(9), max_features=np.int32(9)).X.shape == (3, 9)
    assert read(b"1\n", n_features=0).X.shape == (1, 0)


def test_rows_of_labels_without_features_are_read():
    assert read_svmlight(io.BytesIO(b"1,4\n2\n4,1\n"), multilabel=True).X.shape == (3, 0)
