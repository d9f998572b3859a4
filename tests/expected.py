"""Output of ``train``, ``cv`` and ``eval``, compared whole with ``tests/expected/``.

``APSVM_WRITE_EXPECTED=1 pytest …`` writes the files anew; their difference is what has changed.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

FOLDER = Path(__file__).parent / "expected"


def check(name, text):
    """``text`` is that of the file ``name``."""
    path = FOLDER / name
    if os.environ.get("APSVM_WRITE_EXPECTED"):
        path.write_text(text, encoding="utf-8")
    lines = path.read_text(encoding="utf-8").splitlines(), text.splitlines()
    difference = "\n".join(difflib.unified_diff(*lines, "expected", "found", lineterm="", n=0))
    assert not difference, difference
