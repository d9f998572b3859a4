"""Data folders whose members are looked at block by block, and that change while they are mapped."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from data_folders import TEXT, assert_same, read

from apsvm.data import DataError, open_folder, write_folder
from apsvm.data.folder import checksums
from apsvm.data.folder.header import checksum
from apsvm.data.rows import Rows


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
