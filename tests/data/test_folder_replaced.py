"""A data folder is replaced whole, or left as it was."""

import os
from pathlib import Path
from typing import Any

import pytest
from data_folders import TEXT, assert_same, read
from over import over

from apsvm.data import open_folder, write_folder

OTHER = b"1 2:2\n-1 1:1\n"


def test_a_data_folder_is_replaced_whole(tmp_path: Path) -> None:
    write_folder(read(TEXT), tmp_path / "out")
    mapped = open_folder(tmp_path / "out")
    write_folder(read(OTHER), tmp_path / "out")
    assert_same(open_folder(tmp_path / "out"), read(OTHER))
    assert_same(mapped, read(TEXT))  # whoever has it open keeps it
    assert os.listdir(tmp_path) == ["out"]
    write_folder(mapped, tmp_path / "out")
    assert_same(open_folder(tmp_path / "out"), read(TEXT))


@over("fails", ["mkdir", "fsync", "rename"])
def test_a_failure_leaves_what_was_there(fails: str, tmp_path: Path) -> None:
    write_folder(read(TEXT), tmp_path / "out")

    def fail(*arguments: Any, **options: Any) -> Any:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os if fails == "fsync" else Path, fails, fail)
        with pytest.raises(OSError, match="No space left"):
            write_folder(read(OTHER), tmp_path / "out")
    assert_same(open_folder(tmp_path / "out"), read(TEXT))
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
        patch.setattr(Path, "rename", second_fails)
        with pytest.raises(OSError, match="Input/output"):
            write_folder(read(OTHER), tmp_path / "out")
    assert len(calls) == 3
    assert_same(open_folder(tmp_path / "out"), read(TEXT))
    assert os.listdir(tmp_path) == ["out"]


def test_anything_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "no" / "where")
    write_folder(read(TEXT), tmp_path / "mixed")
    (tmp_path / "mixed" / "thesis.tex").write_text("precious")
    for name in ("file", "empty", "mixed", "dangling"):
        with pytest.raises(FileExistsError, match="no data folder"):
            write_folder(read(OTHER), tmp_path / name)
    with pytest.raises(FileNotFoundError):
        write_folder(read(OTHER), tmp_path / "no" / "out")
    assert (tmp_path / "mixed" / "thesis.tex").read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["dangling", "empty", "file", "mixed"]


def test_a_link_is_replaced(tmp_path: Path) -> None:
    write_folder(read(TEXT), tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_folder(read(OTHER), tmp_path / "link")
    assert not (tmp_path / "link").is_symlink()
    assert_same(open_folder(tmp_path / "link"), read(OTHER))
    assert_same(open_folder(tmp_path / "real"), read(TEXT))
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]


def test_no_room_is_told_at_once(tmp_path: Path) -> None:
    data = read(b"1 100000000000:1\n" * 100)
    with pytest.raises(OSError, match="No space left"):
        write_folder(data, tmp_path / "out", dense=True)
    assert os.listdir(tmp_path) == []


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
