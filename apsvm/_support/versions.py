"""Versions of apsvm, the packages in use and the compiled core, for bug reports."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator

from apsvm import __version__
from apsvm._support.machine import cores, memory

REQUIRED = ("numpy", "scipy", "scikit-learn", "click", "cvxpy", "clarabel", "joblib", "threadpoolctl", "pyarrow")
#: Package → the extra that installs it.
OPTIONAL = {"matplotlib": "plot", "torch": "torch", "onnx": "onnx", "distributed": "dask"}


def versions() -> Iterator[tuple[str, str]]:
    """Name and version of each part of this installation. Raises ImportError if the compiled core does not load."""
    from importlib.metadata import PackageNotFoundError, version

    from apsvm._native import _kernels

    yield "apsvm", __version__
    yield "Python", f"{platform.python_version()} ({sys.executable})"
    core = _kernels.build_info()
    yield "compiled core", f"{core['compiler']}, SIMD {core['clone']} of {core['clones']}"
    yield "machine", f"{platform.platform()}, {cores()} cores for this process, {memory() / 2**30:.1f} GiB"
    for name in (*REQUIRED, *OPTIONAL):
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, f"not installed: pip install {f'apsvm[{OPTIONAL[name]}]' if name in OPTIONAL else name}"


def show_versions() -> None:
    """Prints the versions of apsvm, Python, the compiled core and the packages, and the machine, a line each."""
    sys.stdout.write("".join(f"{name:<14} {value}\n" for name, value in versions()))
