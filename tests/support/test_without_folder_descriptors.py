"""Systems where names cannot be looked up in an open folder (Windows): outputs are whole or not there all the same."""

from __future__ import annotations

import os

import numpy as np
import pytest

from apsvm._support import files, places
from apsvm.data.folder import check_replaceable, open_folder, write_folder
from apsvm.data.svmlight import read_svmlight


@pytest.fixture(autouse=True)
def without_descriptors(monkeypatch):
    """As on Windows, where ``dir_fd=`` is refused."""

    def refuse(*arguments, **options):
        raise AssertionError("a folder was opened")

    monkeypatch.setattr(places, "HAS_FOLDER_DESCRIPTORS", False)
    monkeypatch.setattr(places, "place_of", refuse)
    monkeypatch.setattr(files, "place_of", refuse)


def test_a_file_is_written_whole_and_replaced(tmp_path, monkeypatch):
    path = tmp_path / "a"
    for content in (b"first", b"second"):
        files.check_writable(path)
        files.write_whole(path, content)
        assert path.read_bytes() == content
    monkeypatch.setattr(os, "replace", lambda *names: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OSError, match="No space left"):
        files.write_whole(path, b"third")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]
    assert path.read_bytes() == b"second"


def test_what_cannot_be_written(tmp_path):
    for act in (files.check_writable, lambda path: files.write_whole(path, b"")):
        with pytest.raises(IsADirectoryError):
            act(tmp_path)
        with pytest.raises(FileNotFoundError):
            act(tmp_path / "no" / "a")
    files.write_whole(os.devnull, b"to a device")
    assert not os.path.isfile(os.devnull)


def test_a_data_folder(tmp_path):
    for lines in (b"1 1:2\n-1 2:3\n", b"1 1:5\n"):
        (tmp_path / "rows.svm").write_bytes(lines)
        check_replaceable(tmp_path / "folder")
        dataset = read_svmlight(tmp_path / "rows.svm")
        write_folder(dataset, tmp_path / "folder", dense=True)
        assert np.array_equal(open_folder(str(tmp_path / "folder"), verify=True).X, dataset.X.toarray())
    assert sorted(os.listdir(tmp_path)) == ["folder", "rows.svm"]
