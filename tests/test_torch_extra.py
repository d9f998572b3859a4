"""What the extra ``torch`` is to those who have not installed it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_without_torch_the_extra_is_named():
    # None in sys.modules: the import system takes the module for one that does not exist.
    done = run("import sys; sys.modules['torch'] = None; import apsvm; import apsvm.torch")
    assert done.returncode == 1
    assert done.stderr.strip().endswith("ImportError: apsvm.torch needs PyTorch: pip install 'apsvm[torch]'")


def test_apsvm_itself_never_loads_torch():
    done = run(
        "import sys, apsvm, apsvm.cli, apsvm.report; [getattr(apsvm, name) for name in apsvm.__all__]; "
        "sys.exit('torch' in sys.modules)"
    )
    assert done.returncode == 0, done.stderr


def test_the_losses_themselves():
    spec = find_spec("torch")
    if spec is None or spec.origin is None:  # this folder's torch/ is found as a package without an __init__
        pytest.skip("tests/torch is left out: PyTorch is not installed; scripts/test --torch installs it")
    import apsvm.torch

    assert apsvm.torch.__doc__
