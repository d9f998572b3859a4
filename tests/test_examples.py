"""The examples in the docstrings run and print what they say."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import apsvm


def test_docstring_examples():
    names = ["apsvm", *(module.name for module in pkgutil.walk_packages(apsvm.__path__, "apsvm."))]
    results = [doctest.testmod(import_module(name)) for name in names]
    assert sum(result.attempted for result in results) >= 3
    assert sum(result.failed for result in results) == 0
