"""Outputs: whole or not at all, over nobody else's links, with nothing left behind."""

from __future__ import annotations

import errno
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from apsvm._support import files
from apsvm._support.files import check_writable, open_alone, write_whole
from apsvm.data.folder import open_folder, write_folder
from apsvm.data.svmlight import read_svmlight

LONGEST = 255


def test_it_is_written_and_replaced_with_its_permissions(tmp_path):
    path = tmp_path / "out"
    write_whole(path, b"first")
    path.chmod(0o640)
    write_whole(path, b"second")
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["out"]


def test_the_umask_counts_for_new_files(tmp_path):
    old = os.umask(0o027)
    try:
        write_whole(tmp_path / "out", b"")
    finally:
        os.umask(old)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("length", [1, 240, 242, 250, LONGEST])
def test_names_of_any_legal_length(length, tmp_path):
    path = tmp_path / ("m" * length)
    check_writable(path)
    write_whole(path, b"content")
    assert path.read_bytes() == b"content"


def test_a_folder_of_the_longest_name_is_replaced(tmp_path):
    (tmp_path / "rows").write_text("1 1:2\n-1 2:1\n")
    rows, place = read_svmlight(tmp_path / "rows"), tmp_path / ("d" * LONGEST)
    write_folder(rows, place)
    write_folder(rows, place)
    assert np.array_equal(open_folder(place).relevance, [1.0, -1.0])
    assert sorted(os.listdir(tmp_path)) == ["d" * LONGEST, "rows"]


@pytest.mark.parametrize("write", [write_whole, lambda path, _: check_writable(path)], ids=["write", "check"])
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("m" * (LONGEST + 1), errno.ENAMETOOLONG),
        ("no/out", errno.ENOENT),
        ("file/out", errno.ENOTDIR),
        ("", errno.EISDIR),
    ],
)
def test_what_cannot_be_written_names_the_path(write, name, code, tmp_path):
    (tmp_path / "file").touch()
    path = tmp_path / name
    with pytest.raises(OSError, match=re.escape(str(path))) as failed:
        write(path, b"")
    assert failed.value.errno == code


@pytest.mark.parametrize("target", ["file", "nothing", "/etc/hostname"])
def test_a_link_is_replaced_and_never_followed(target, tmp_path):
    (tmp_path / "file").write_text("precious")
    (tmp_path / "link").symlink_to(target)
    before = {path: path.read_bytes() for path in map(Path, ("/etc/hostname", tmp_path / "file")) if path.exists()}
    check_writable(tmp_path / "link")
    write_whole(tmp_path / "link", b"content")
    assert (tmp_path / "link").read_bytes() == b"content"
    assert not (tmp_path / "link").is_symlink()
    assert {path: path.read_bytes() for path in before} == before
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


def test_a_link_to_a_folder_is_a_folder(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    for act in (check_writable, lambda path: write_whole(path, b"")):
        with pytest.raises(IsADirectoryError):
            act(tmp_path / "link")


def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch):
    write_whole(tmp_path / "out", b"first")
    for name in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
            with pytest.raises(OSError, match="No space left"):
                write_whole(tmp_path / "out", b"second")
        assert (tmp_path / "out").read_bytes() == b"first"
        assert os.listdir(tmp_path) == ["out"]


def test_devices_are_written_in_place():
    check_writable(os.devnull)
    write_whole(os.devnull, b"content")
    assert not os.path.isfile(os.devnull)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_a_pipe_that_only_the_system_has_a_name_for_is_written_to():
    reader, writer = os.pipe()
    try:
        check_writable(f"/proc/self/fd/{writer}")
        write_whole(f"/proc/self/fd/{writer}", b"content")
        assert os.read(reader, 100) == b"content"
    finally:
        os.close(reader)
        os.close(writer)


def open_and_close(path: Path) -> None:
    open_alone(path).close()


@pytest.mark.parametrize("write", [lambda path: write_whole(path, b"new"), open_and_close], ids=["whole", "growing"])
@pytest.mark.parametrize("before", ["nothing", "a file", "a link"])
def test_a_link_that_takes_the_place_of_what_was_looked_at(before, write, tmp_path, monkeypatch):
    """It leads to no other file of the user's."""
    path, victim = tmp_path / "out", tmp_path / "victim"
    victim.write_bytes(b"theirs")
    if before == "a file":
        path.write_bytes(b"old")
    elif before == "a link":
        path.symlink_to(tmp_path / "elsewhere")
    look = files._mode_of_output

    def look_and_swap(name: Path) -> int | None:
        mode = look(name)
        path.unlink(missing_ok=True)
        path.symlink_to(victim)
        return mode

    monkeypatch.setattr(files, "_mode_of_output", look_and_swap)
    write(path)
    assert not path.is_symlink()
    assert victim.read_bytes() == b"theirs"
