"""The data folder: what is written comes back, damage never reaches a kernel, and a place is whole or as it was."""

import hashlib
import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from apsvm.data import DataError, Dataset, open_folder, read_svmlight, write_folder
from apsvm.data.folder import checks, checksums, replacing
from apsvm.data.folder.header import checksum
from apsvm.data.rows import Rows

TEXT = b"1 qid:1 cost:2 1:0.5 4:-1.25\n-1 qid:1 2:3\n1 qid:2\n-1 qid:2 cost:0.5 1:1 2:2 3:3 4:4\n"


def read(text: bytes, **options: Any) -> Dataset:
    return read_svmlight(io.BytesIO(text), **options)


def assert_same(a: Dataset, b: Dataset) -> None:
    def bits(array: Any) -> Any:
        return None if array is None else (array.dtype, array.shape, array.tobytes())

    assert sp.issparse(a.X) == sp.issparse(b.X)
    assert a.X.shape == b.X.shape
    for name in ("indptr", "indices", "data") if sp.issparse(a.X) else ():
        assert bits(getattr(a.X, name)) == bits(getattr(b.X, name)), name
    if not sp.issparse(a.X):
        assert bits(a.X) == bits(b.X)
    for name in ("relevance", "groups", "costs"):
        assert bits(getattr(a, name)) == bits(getattr(b, name)), name
    assert (a.zero_based, a.fingerprint) == (b.zero_based, b.fingerprint)


@pytest.mark.parametrize("options", [{}, {"dtype": np.float32}, {"zero_based": True}, {"n_features": 2**31}])
def test_round_trip(options: dict[str, Any], tmp_path: Path) -> None:
    data = read(TEXT, **options)
    write_folder(data, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    back = open_folder(tmp_path / "out", verify=True)
    assert_same(back, data)
    assert back.source == str(tmp_path / "out")
    assert back.X.has_canonical_format
    assert not back.X.data.flags.writeable


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_round_trip(dtype: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = read(TEXT, dtype=dtype)
    monkeypatch.setattr(checks, "BLOCK", 4)  # a row at a time
    write_folder(data, tmp_path / "out", dense=True)
    back = open_folder(tmp_path / "out", verify=True)
    assert isinstance(back.X, np.ndarray)
    assert back.X.flags.c_contiguous
    assert back.X.dtype == dtype
    assert np.array_equal(back.X, data.X.toarray())
    write_folder(back, tmp_path / "again")
    assert_same(open_folder(tmp_path / "again"), back)
    write_folder(back, tmp_path / "sparse", dense=False)
    assert np.array_equal(open_folder(tmp_path / "sparse", verify=True).X.toarray(), back.X)


@pytest.mark.parametrize(("text", "dense"), [(b"1 1:1 2:1 5:1\n", True), (b"1 1:1 5:1\n", False), (b"1\n", False)])
def test_layout_by_density(text: bytes, dense: bool, tmp_path: Path) -> None:
    write_folder(read(text), tmp_path / "out")
    assert sp.issparse(open_folder(tmp_path / "out", verify=True).X) != dense


def test_rows_take_what_is_mapped(tmp_path: Path, rng: np.random.Generator) -> None:
    data = read(TEXT)
    w, c = rng.standard_normal(4), rng.standard_normal(4)
    expected = Rows(data.X)
    for dense in (False, True):
        write_folder(data, tmp_path / f"{dense}", dense=dense)
        rows = Rows(open_folder(tmp_path / f"{dense}").X)
        np.testing.assert_allclose(rows.scores(w), expected.scores(w), rtol=1e-14)
        np.testing.assert_allclose(rows.combine(c), expected.combine(c), rtol=1e-14)


values = st.floats(allow_nan=False, allow_infinity=False)
sparse_rows = st.lists(st.dictionaries(st.integers(0, 12) | st.integers(0, 2**33), values, max_size=6), min_size=1)


@settings(max_examples=60, deadline=None)
@given(rows=sparse_rows, with_groups=st.booleans(), with_costs=st.booleans(), zero_based=st.booleans(), data=st.data())
def test_random_round_trip(
    rows: list[dict[int, float]],
    with_groups: bool,
    with_costs: bool,
    zero_based: bool,
    data: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    lines = []
    for row in rows:
        label = data.draw(values)
        qid = f" qid:{data.draw(st.integers(-(2**63), 2**63 - 1))}" if with_groups else ""
        cost = f" cost:{data.draw(st.floats(0, 1e9))!r}" if with_costs else ""
        entries = "".join(f" {column + (not zero_based)}:{row[column]!r}" for column in sorted(row))
        lines.append(f"{label!r}{qid}{cost}{entries}\n")
    original = read("".join(lines).encode(), zero_based=zero_based)
    out = tmp_path_factory.mktemp("folder") / "out"
    write_folder(original, out, dense=False)
    assert_same(open_folder(out, verify=True), original)


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
        for damaged in (*(content[:length] for length in range(0, len(content) - 1, 9)), content[:-2], content + b"0"):
            (made / name).write_bytes(damaged)
            with pytest.raises(DataError, match=name):
                open_folder(made)
        (made / name).unlink()
        with pytest.raises(IsADirectoryError if name == "header.json" else DataError):
            open_folder(made)
        (made / name).write_bytes(content)
    open_folder(made, verify=True)


def test_every_byte_flipped(made: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check tells, and so does an opening of small members; one of large members may not notice, but what it gives
    cannot lead a kernel astray, and its labels are right."""
    n_unnoticed = 0
    labels = open_folder(made).relevance.copy()
    for path in sorted(made.iterdir()):
        content = path.read_bytes()
        for at in range(len(content)):
            flip = 1 << int(rng.integers(8))
            path.write_bytes(content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :])
            try:
                open_folder(made, verify=True)
            except DataError as error:
                assert str(error).startswith(str(made))  # noqa: PT017
            else:
                assert path.name == "header.json", (path.name, at)  # only blanks between its words may change
            if path.name != "header.json":
                with pytest.raises(DataError, match="damaged"):
                    open_folder(made)
            try:
                with monkeypatch.context() as context:
                    context.setattr(checksums, "SMALL", -1)
                    data = open_folder(made)
            except DataError:
                continue
            n_unnoticed += 1
            np.testing.assert_array_equal(data.relevance, labels)
            rows = Rows(data.X)
            with np.errstate(all="ignore"):
                rows.scores(np.ones(rows.dimension))
                rows.combine(np.ones(len(rows)))
        path.write_bytes(content)
    assert n_unnoticed > 0


def forge(made: Path, name: str, array: Any, **header: Any) -> None:
    """Puts another array, or other header entries, in and makes the header true again."""
    content = json.loads((made / "header.json").read_text())
    if name:
        np.save(made / name, array)
        raw = (made / name).read_bytes()
        content["members"][name] = {"size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    content |= header
    content.pop("sha256", None)
    content["sha256"] = checksum(content)
    (made / "header.json").write_text(json.dumps(content))


INDPTR, INDICES = [0, 2, 3, 3, 7], [0, 3, 1, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("name", "array", "message", "only_verify"),
    [
        ("indptr.npy", np.array([0, 2, 3, 3, 8], np.int32), "rise from 0 to 7", False),
        ("indptr.npy", np.array([1, 2, 3, 3, 7], np.int32), "rise from 0 to 7", False),
        ("indptr.npy", np.array([0, 9, 3, 3, 7], np.int32), "rise from 0 to 7", False),
        ("indptr.npy", np.array([0, 2, 3, -3, 7], np.int32), "rise from 0 to 7", False),
        ("indptr.npy", np.array(INDPTR, np.int64), "expected int32", False),
        ("indptr.npy", np.array(INDPTR[:-1], np.int32), "expected int32 of shape", False),
        ("indices.npy", np.array([0, 4, 1, 0, 1, 2, 3], np.int32), "indices from 0 to 3", False),
        ("indices.npy", np.array([0, 3, -1, 0, 1, 2, 3], np.int32), "indices from 0 to 3", False),
        ("indices.npy", np.array([0, 3, 1, 0, 2, 1, 3], np.int32), "increase within each row", True),
        ("indices.npy", np.array([0, 3, 1, 0, 2, 2, 3], np.int32), "increase within each row", True),
        ("values.npy", np.ones(7, np.float32), "expected float64", False),
        ("values.npy", np.array([1, 2, 3, np.nan, 5, 6, 7.0]), "finite", True),
        ("values.npy", np.ones((7, 1)), "of shape", False),
        ("values.npy", np.ones(7, ">f8"), "expected float64", False),
        ("values.npy", np.array([None] * 7), "expected float64", False),
        ("relevance.npy", np.array([1, 2, np.inf, 4]), "finite labels", False),
        ("costs.npy", np.array([1, 2, -1, 4.0]), "costs of at least 0", False),
        ("groups.npy", np.ones(4), "expected int64", False),
    ],
)
def test_arrays_that_are_wrong(name: str, array: Any, message: str, only_verify: bool, tmp_path: Path) -> None:
    write_folder(read(TEXT), tmp_path / "out", dense=False)
    forge(tmp_path / "out", "indices.npy", np.array(INDICES, np.int32))
    open_folder(tmp_path / "out", verify=True)  # the forger's work is not what is found
    forge(tmp_path / "out", name, array)
    if only_verify:
        open_folder(tmp_path / "out")
    with pytest.raises(DataError, match=f"out/{name}: damaged: .*{message}"):
        open_folder(tmp_path / "out", verify=only_verify)


def test_indices_are_checked_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    indptr, indices = np.array(INDPTR), np.array(INDICES)
    for block in range(1, 9):
        monkeypatch.setattr(checks, "BLOCK", block)
        assert checks.all_rise(indptr, indices)
        for at in (1, 4, 5, 6):
            wrong = indices.copy()
            wrong[at] = wrong[at - 1]
            assert not checks.all_rise(indptr, wrong)


@pytest.mark.parametrize(
    "header",
    [
        {"version": 2},
        {"version": 3},
        {"version": 2, "label_sets": [1]},
        {"version": 2, "label_sets": [1, True]},
        {"version": 2, "label_sets": [1, 1]},
        {"label_sets": [1, 1]},
        {"format": "other"},
        {"layout": "coo"},
        {"layout": "dense"},
        {"shape": [4]},
        {"shape": [4, 5, 6]},
        {"shape": [0, 4]},
        {"shape": [4, -1]},
        {"shape": [4, 4.0]},
        {"shape": [4, True]},
        {"shape": [4, 2**70]},
        {"shape": [2**40, 4]},
        {"shape": [4, 2**40]},
        {"shape": [5, 4]},
        {"nnz": 6},
        {"nnz": "7"},
        {"dtype": "int64"},
        {"dtype": "object"},
        {"index_dtype": "int8"},
        {"index_dtype": "int64"},
        {"zero_based": 0},
        {"source": {}},
        {"source": {"name": 1, "sha256": ""}},
        {"members": {}},
        {"members": {"../../etc/passwd": {"size": 1, "sha256": ""}}},
        {"members": dict.fromkeys(["relevance.npy", "indptr.npy", "indices.npy", "values.npy"], 7)},
        {"extra": 1},
    ],
    ids=str,
)
def test_headers_that_are_wrong(header: dict[str, Any], tmp_path: Path) -> None:
    write_folder(read(TEXT), tmp_path / "out", dense=False)
    forge(tmp_path / "out", "", None, **header)
    with pytest.raises(DataError, match=r"^.*out/[a-z]+\.(json|npy): "):
        open_folder(tmp_path / "out")


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"format": "apsvm data"}', b"1" * 5000])
def test_headers_that_are_none(text: bytes, tmp_path: Path) -> None:
    write_folder(read(TEXT), tmp_path / "out")
    (tmp_path / "out" / "header.json").write_bytes(text)
    with pytest.raises(DataError, match=r"header\.json"):
        open_folder(tmp_path / "out")


# ------------------------------------------------------------------------------------------------ the place


OTHER = b"1 2:2\n-1 1:1\n"


def test_a_data_folder_is_replaced_whole(tmp_path: Path) -> None:
    write_folder(read(TEXT), tmp_path / "out")
    mapped = open_folder(tmp_path / "out")
    write_folder(read(OTHER), tmp_path / "out")
    assert_same(open_folder(tmp_path / "out", verify=True), read(OTHER))
    assert_same(mapped, read(TEXT))  # whoever has it open keeps it
    assert os.listdir(tmp_path) == ["out"]
    write_folder(mapped, tmp_path / "out")
    assert_same(open_folder(tmp_path / "out", verify=True), read(TEXT))


def test_replaced_where_names_cannot_be_swapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacing, "_exchange", lambda a, b: False)
    write_folder(read(TEXT), tmp_path / "out")
    write_folder(read(OTHER), tmp_path / "out")
    assert_same(open_folder(tmp_path / "out", verify=True), read(OTHER))
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize(
    ("fails", "swap"), [("mkdir", True), ("fsync", True), ("_exchange", True), ("fsync", False), ("rename", False)]
)
def test_a_failure_leaves_what_was_there(
    fails: str, swap: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(read(TEXT), tmp_path / "out")

    def fail(*arguments: Any, **options: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if not swap:
            patch.setattr(replacing, "_exchange", lambda a, b: False)
        if fails == "fsync":
            patch.setattr(os, "fsync", fail)
        elif fails == "_exchange":
            patch.setattr(replacing, "_exchange", fail)
        else:
            patch.setattr(Path, fails, fail)
        with pytest.raises(OSError, match="No space left"):
            write_folder(read(OTHER), tmp_path / "out")
    assert_same(open_folder(tmp_path / "out", verify=True), read(TEXT))
    assert os.listdir(tmp_path) == ["out"]


def test_the_second_rename_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(read(TEXT), tmp_path / "out")
    rename = Path.rename
    calls = []

    def second_fails(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == 2:
            raise OSError(5, "Input/output error")
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(replacing, "_exchange", lambda a, b: False)
        patch.setattr(Path, "rename", second_fails)
        with pytest.raises(OSError, match="Input/output"):
            write_folder(read(OTHER), tmp_path / "out")
    assert len(calls) == 3
    assert_same(open_folder(tmp_path / "out", verify=True), read(TEXT))
    assert os.listdir(tmp_path) == ["out"]


def test_anything_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "no" / "where")
    write_folder(read(TEXT), tmp_path / "mixed")
    (tmp_path / "mixed" / "thesis.tex").write_text("precious")
    for name in ("file", "empty", "mixed"):
        with pytest.raises(FileExistsError, match="no data folder"):
            write_folder(read(OTHER), tmp_path / name)
    for name in ("dangling", "no/out"):
        with pytest.raises(FileNotFoundError):
            write_folder(read(OTHER), tmp_path / name)
    assert (tmp_path / "mixed" / "thesis.tex").read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["dangling", "empty", "file", "mixed"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    write_folder(read(TEXT), tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_folder(read(OTHER), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert_same(open_folder(tmp_path / "real"), read(OTHER))


def test_no_room_is_told_at_once(tmp_path: Path) -> None:
    data = read(b"1 100000000000:1\n" * 100)
    with pytest.raises(OSError, match="No space left"):
        write_folder(data, tmp_path / "out", dense=True)
    assert os.listdir(tmp_path) == []


def test_a_moved_folder_opens(tmp_path: Path) -> None:
    write_folder(read(TEXT), tmp_path / "out")
    shutil.move(tmp_path / "out", tmp_path / "there")
    assert_same(open_folder(tmp_path / "there", verify=True), read(TEXT))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("replaced", [False, True])
def test_all_of_it_is_synced_before_it_is_there(
    dense: bool, replaced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every member whole, the folder that lists them, and, once it has its name, the folder that lists it."""
    out = tmp_path / "out"
    if replaced:
        write_folder(read(TEXT), out)
    synced: list[tuple[int, int]] = []
    unsynced_name: list[bool] = []

    def record(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synced.append((status.st_ino, status.st_size))
        unsynced_name.append(out.exists() and status.st_ino == out.stat().st_ino)

    monkeypatch.setattr(os, "fsync", record)
    write_folder(read(TEXT), out, dense=dense)
    members = {(path.stat().st_ino, path.stat().st_size) for path in out.iterdir()}
    assert len(members) == (5 if dense else 7)
    assert members <= set(synced)
    inodes = [inode for inode, _ in synced]
    assert inodes[-2:] == [out.stat().st_ino, tmp_path.stat().st_ino]
    assert not any(unsynced_name), "it had its name before it was synced"


@pytest.fixture
def blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose members are all large, of blocks of 64 bytes."""
    monkeypatch.setattr(checksums, "SMALL", 0)
    monkeypatch.setattr(checksums, "BLOCK", 64)
    write_folder(read(TEXT * 40), tmp_path / "out")
    return tmp_path / "out"


def test_blocks_of_large_members(blocks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = json.loads((blocks / "header.json").read_text())
    assert header["version"] == 4
    values = blocks / "values.npy"
    assert len(header["members"]["values.npy"]["blocks"]) == 8 * -(-values.stat().st_size // 64)
    assert_same(open_folder(blocks), open_folder(blocks, verify=True))
    content = bytearray(values.read_bytes())
    content[1000] ^= 1
    values.write_bytes(content)
    noticed = 0
    for _ in range(300):  # 8 of some 40 blocks are looked at each time
        try:
            open_folder(blocks)
        except DataError as error:
            noticed += 1
            assert str(error) == f"{values}: damaged: bytes 960 to 1023 are not what was written"  # noqa: PT017
    assert 10 < noticed < 200
    monkeypatch.setattr(checksums, "_BLOCKS_LOOKED_AT", 10**6)
    with pytest.raises(DataError, match="damaged: bytes 960 to 1023"):
        open_folder(blocks)


@pytest.mark.parametrize("text", ["", "0", "0" * 8, "z" * 8])
def test_checksums_of_blocks_that_are_none(text: str, blocks: Path) -> None:
    content = json.loads((blocks / "header.json").read_text())
    content["members"]["values.npy"]["blocks"] = text
    del content["sha256"]
    (blocks / "header.json").write_text(json.dumps({**content, "sha256": checksum(content)}))
    with pytest.raises(DataError, match="damaged"):
        open_folder(blocks)


@pytest.mark.parametrize("dense", [False, True])
def test_a_file_that_changes_while_it_is_mapped(dense: bool, tmp_path: Path) -> None:
    """An error before the next pass, where it would have been SIGBUS; a folder that is replaced is no change."""

    def rows() -> Rows:
        write_folder(read(TEXT), tmp_path / "out", dense=dense)
        return Rows(open_folder(tmp_path / "out").X)

    w, c = np.ones(4), np.ones(4)
    member = tmp_path / "out" / ("X.npy" if dense else "values.npy")
    before = rows()
    expected = before.scores(w)
    after = rows()  # the folder is another one now
    np.testing.assert_array_equal(before.scores(w), expected)
    content = member.read_bytes()
    member.write_bytes(content[:-8])
    for call in (lambda: after.scores(w), lambda: after.combine(c), after.moments):
        with pytest.raises(DataError, match=f"{member.name}: cut off while it was in use: {len(content) - 8} bytes"):
            call()
    np.testing.assert_array_equal(before.scores(w), expected)
    changed = rows().select(np.array([0, 2]))
    os.utime(member, ns=(0, 12345))
    with pytest.raises(DataError, match="changed while it was in use"):
        changed.scores(w)
