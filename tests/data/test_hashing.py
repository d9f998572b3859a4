"""SHA-256 while others work."""

from __future__ import annotations

import hashlib

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
