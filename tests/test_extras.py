"""apsvm without the extras ``torch`` and ``dask``."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("extra", "module", "needs"), [("torch", "torch", "PyTorch"), ("dask", "distributed", "dask.distributed")]
)
def test_without_it_the_extra_is_named(extra, module, needs):
    # None in sys.modules: the import system takes the module for one that does not exist.
    done = run(f"import sys; sys.modules['{module}'] = None; import apsvm; import apsvm.{extra}")
    assert done.returncode == 1
    message = f"ImportError: apsvm.{extra} needs {needs}: pip install 'apsvm[{extra}]'"
    assert done.stderr.strip().endswith(message)


@pytest.mark.slow
def test_apsvm_itself_loads_neither():
    done = run(
        "import sys, apsvm, apsvm.cli, apsvm.report; [getattr(apsvm, name) for name in apsvm.__all__]; "
        "loaded = {'torch', 'distributed'} & set(sys.modules); sys.exit(repr(loaded) if loaded else 0)"
    )
    assert done.returncode == 0, done.stderr


def skip_without(*modules: str) -> None:
    if any(find_spec(name) is None for name in modules):
        extra = modules[0]
        pytest.skip(f"tests/{extra}_extra is left out: {extra} is not installed; scripts/test --{extra} installs it")


def test_the_losses_themselves():
    skip_without("torch")
    assert import_module("apsvm.torch").__doc__


def test_the_estimators_themselves():
    skip_without("dask", "distributed")
    package = import_module("apsvm.dask")
    assert all(getattr(package, name).__doc__ for name in package.__all__)


@pytest.mark.slow
def test_no_folder_of_tests_is_taken_for_a_package():
    """tests/ is on the path, where a folder without an ``__init__`` is a package, too."""
    folders = {entry.name for entry in Path(__file__).parent.iterdir() if entry.is_dir()}
    assert not folders & {"torch", "dask", "distributed", *packages_distributions(), *sys.stdlib_module_names}
