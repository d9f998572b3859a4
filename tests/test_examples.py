"""The examples in the docstrings run and print what they say."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from importlib.util import find_spec

import apsvm


def without_torch() -> bool:
    spec = find_spec("torch")
    return spec is None or spec.origin is None  # tests/torch is found as a package without an __init__


def test_docstring_examples():
    names = [
        "apsvm",
        *(module.name for module in pkgutil.walk_packages(apsvm.__path__, "apsvm.", onerror=lambda _: None)),
    ]
    if without_torch():
        names = [name for name in names if not name.startswith("apsvm.torch")]
    results = [doctest.testmod(import_module(name)) for name in names]
    assert sum(result.attempted for result in results) >= 3
    assert sum(result.failed for result in results) == 0
