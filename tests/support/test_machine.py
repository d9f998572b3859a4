"""Cores and memory on other systems."""

from __future__ import annotations

import ctypes
import os
import struct
from types import SimpleNamespace

import pytest

from apsvm._support import machine


def test_memory_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    def answered(status: ctypes.Array[ctypes.c_char]) -> None:
        length, *_ = struct.unpack("<II7Q", status.raw)
        assert length == len(status)
        struct.pack_into("<II7Q", status, 0, length, 60, 10, 4, *range(5))

    monkeypatch.setattr(
        ctypes, "windll", SimpleNamespace(kernel32=SimpleNamespace(GlobalMemoryStatusEx=answered)), raising=False
    )
    monkeypatch.delattr(os, "sysconf")
    assert machine.memory() == 10
