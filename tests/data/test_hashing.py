"""SHA-256 while others work."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from apsvm.data import hashing


@pytest.mark.parametrize("worthwhile", [0, 100, 1 << 18])
def test_it_is_that_of_all_blocks(worthwhile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "_WORTHWHILE", worthwhile)
    blocks = [bytes([i]) * (i * i) for i in range(40)]
    with hashing.Hash() as digest:
        for block in blocks:
            digest.update(block)
    assert digest.hexdigest() == hashlib.sha256(b"".join(blocks)).hexdigest()


@pytest.mark.parametrize("worthwhile", [0, 1 << 18])
def test_it_is_that_of_a_file(worthwhile: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "_WORTHWHILE", worthwhile)
    monkeypatch.setattr(hashing, "_BLOCK", 7)
    (tmp_path / "file").write_bytes(bytes(range(100)))
    with hashing.hash_of_file(tmp_path / "file") as digest:
        assert digest() == hashlib.sha256(bytes(range(100))).hexdigest()
    with pytest.raises(FileNotFoundError), hashing.hash_of_file(tmp_path / "none"):
        pass


def test_a_hash_that_nobody_waits_for_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "_WORTHWHILE", 0)
    with pytest.raises(ZeroDivisionError), hashing.hash_of_file("/dev/zero"):
        raise ZeroDivisionError
