"""Outputs: whole or not at all, over nobody else's links, with nothing left behind."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from apsvm._support import temporary
from apsvm._support.files import check_writable, write_whole
from apsvm._support.places import may_be_followed, settled
from apsvm.data.folder import open_folder, write_folder
from apsvm.data.svmlight import read_svmlight

LONGEST = 255


@pytest.fixture(autouse=True)
def folders_unseen(monkeypatch):
    """As in a process that has written nothing yet."""
    monkeypatch.setattr(temporary, "_SWEPT", set())


@pytest.fixture(scope="module")
def abandoned():
    """The name of something that a process has left which has ended."""
    child = subprocess.run(
        [sys.executable, "-c", "from apsvm._support.temporary import temporary_name; print(temporary_name())"],
        check=True,
        capture_output=True,
        text=True,
    )
    return child.stdout.strip()


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


def test_what_a_link_points_at_is_replaced_and_not_the_link(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "again").symlink_to("deep/../link")
    (tmp_path / "link").symlink_to(tmp_path / "deep" / ".." / "deep" / "new")
    write_whole(tmp_path / "again", b"content")
    assert (tmp_path / "deep" / "new").read_bytes() == b"content"
    assert (tmp_path / "again").is_symlink()
    assert (tmp_path / "link").is_symlink()
    assert settled(tmp_path / "again") == (tmp_path / "again").resolve()


def test_links_in_a_circle_end(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        write_whole(tmp_path / "a", b"")


ME, STRANGER, ROOT = 1000, 2000, 0


@pytest.mark.parametrize(
    ("owner", "folder_owner", "mode", "followed"),
    [
        (ME, ROOT, 0o41777, True),
        (ROOT, ROOT, 0o41777, True),
        (STRANGER, ROOT, 0o41777, False),
        (ROOT, STRANGER, 0o41777, False),
        (STRANGER, ROOT, 0o40755, True),
        (STRANGER, ROOT, 0o41775, True),
    ],
)
def test_whose_links_are_followed(owner, folder_owner, mode, followed):
    assert may_be_followed(owner, folder_owner, mode, ME) is followed


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a link of another user's")
@pytest.mark.parametrize("part", ["out", "folder/out"])
def test_a_strangers_link_in_a_shared_folder_is_refused(part, tmp_path):
    mine, shared = tmp_path / "mine", tmp_path / "shared"
    mine.mkdir()
    shared.mkdir()
    shared.chmod(0o1777)
    (mine / "out").write_text("precious")
    link = shared / part.split("/")[0]
    link.symlink_to(mine / "out" if part == "out" else mine)
    os.chown(link, 54321, 54321, follow_symlinks=False)
    for attempt in (write_whole, lambda path, _: check_writable(path), lambda path, _: settled(path)):
        with pytest.raises(PermissionError, match="another user's link"):
            attempt(shared / part, b"content")
    assert (mine / "out").read_text() == "precious"
    shared.chmod(0o755)
    write_whole(shared / part, b"content")
    assert (mine / "out").read_text() == "content"


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


def test_what_a_process_that_ended_left_is_removed(abandoned, tmp_path):
    mine = temporary.temporary_name()
    elsewhere = abandoned.replace(abandoned.split("-")[1], "0" * 8)
    folder, strange = [abandoned[:-1] + digit for digit in "abc" if digit != abandoned[-1]][:2]
    for name in (abandoned, mine, elsewhere, ".apsvm-something", "data"):
        (tmp_path / name).write_text("")
    for name, member in ((folder, "X.npy"), (strange, "thesis.tex")):
        (tmp_path / name).mkdir()
        (tmp_path / name / member).write_text("")
    write_whole(tmp_path / "out", b"")
    left = {mine, elsewhere, strange, ".apsvm-something", "data", "out"}
    assert set(os.listdir(tmp_path)) == left, "a link, or what is no data folder, may not go"


def test_convert_removes_the_folders_of_killed_ones(abandoned, tmp_path):
    (tmp_path / "rows").write_text("1 1:2\n-1 2:1\n")
    (tmp_path / abandoned).mkdir()
    (tmp_path / abandoned / "X.npy").write_text("half of it")
    write_folder(read_svmlight(tmp_path / "rows"), tmp_path / "folder")
    assert sorted(os.listdir(tmp_path)) == ["folder", "rows"]


def test_a_link_that_has_such_a_name_leads_to_nothing_removed(abandoned, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "X.npy").write_text("precious")
    (tmp_path / abandoned).symlink_to("data")
    write_whole(tmp_path / "out", b"")
    assert (tmp_path / "data" / "X.npy").read_text() == "precious"
