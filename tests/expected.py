"""Texts that are compared whole with ``tests/expected/``: ``APSVM_WRITE_EXPECTED=1 pytest …`` writes them anew, and the
difference of the files is what has changed."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "expected"


def check(name, text):
    """``text`` is that of the file ``name``."""
    path = FOLDER / name
    if os.environ.get("APSVM_WRITE_EXPECTED"):
        path.write_text(text, encoding="utf-8")
    lines = path.read_text(encoding="utf-8").splitlines(), text.splitlines()
    difference = "\n".join(difflib.unified_diff(*lines, "expected", "found", lineterm="", n=0))
    assert not difference, difference


def plain(value):
    """Data in words: a dataclass by its fields, numbers of six digits, rounding errors as 0."""
    if is_dataclass(value) and not isinstance(value, type):
        held = ", ".join(f"{field.name}={plain(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__name__}({held})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {plain(one)}" for key, one in value.items()) + "}"
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(plain, value)) + "]"
    if isinstance(value, float):
        return "0" if abs(value) < 1e-12 else f"{value:.6g}"
    return str(value)
