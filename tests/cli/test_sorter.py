"""``apsvm sorter`` where PyTorch or safetensors is missing; tests/torch has its other tests."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "--architecture", "attention", "--samples", "8", "s"),
        ("eval", "handcrafted(10)"),
        ("info", "s"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_without_torch_the_extra_is_named(arguments, tmp_path):
    # None in sys.modules: the import system takes the module for one that does not exist.
    code = (
        f"import sys; sys.modules['torch'] = None; from apsvm.cli import run; sys.exit(run({['sorter', *arguments]!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 69, done.stderr
    assert done.stderr == "apsvm: error: apsvm.torch needs PyTorch: pip install 'apsvm[torch]'\n"
    assert list(tmp_path.iterdir()) == []
