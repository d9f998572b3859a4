"""``apsvm sorter`` where PyTorch or safetensors is missing; tests/torch_extra has its other tests."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

HAS_TORCH = find_spec("torch") is not None


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["torch", "safetensors"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "--architecture", "neighbours", "--samples", "8", "s"),
        ("eval", "handcrafted(10)"),
        ("info", "s"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_without_it_the_extra_is_named(arguments, missing, tmp_path):
    if missing == "safetensors" and not HAS_TORCH:
        pytest.skip("PyTorch is not installed")
    # None in sys.modules: the import system takes the module for one that does not exist.
    call = f"from apsvm.cli import run; sys.exit(run({['sorter', *arguments]}))"
    code = f"import sys; sys.modules[{missing!r}] = None; {call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 69, done.stderr
    assert done.stderr in (
        "apsvm: error: apsvm.torch needs PyTorch: pip install 'apsvm[torch]'\n",
        "apsvm: error: sorters need safetensors: pip install 'apsvm[torch]'\n",
    )
    assert list(tmp_path.iterdir()) == []
