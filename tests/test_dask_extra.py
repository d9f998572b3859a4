"""What the extra ``dask`` is to those who have not installed it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_without_dask_the_extra_is_named():
    # None in sys.modules: the import system takes the module for one that does not exist.
    done = run("import sys; sys.modules['distributed'] = None; import apsvm; import apsvm.dask")
    assert done.returncode == 1
    assert done.stderr.strip().endswith("ImportError: apsvm.dask needs dask.distributed: pip install 'apsvm[dask]'")


def test_apsvm_itself_never_loads_dask():
    done = run(
        "import sys, apsvm, apsvm.cli, apsvm.report; [getattr(apsvm, name) for name in apsvm.__all__]; "
        "sys.exit('distributed' in sys.modules)"
    )
    assert done.returncode == 0, done.stderr


def test_the_estimators_themselves():
    specs = [find_spec(name) for name in ("dask", "distributed")]
    if any(spec is None or spec.origin is None for spec in specs):  # tests/dask is found as a package, without __init__
        pytest.skip("tests/dask is left out: dask is not installed; scripts/test --dask installs it")
    import apsvm.dask

    assert all(getattr(apsvm.dask, name).__doc__ for name in apsvm.dask.__all__)
