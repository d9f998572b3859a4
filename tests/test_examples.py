"""The examples in the docstrings run and print what they say."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from importlib.util import find_spec

import pytest

import apsvm

#: Extras, and the module that each needs.
EXTRAS = {"apsvm.torch": "torch", "apsvm.dask": "distributed"}


def is_installed(name: str) -> bool:
    return find_spec(name) is not None


@pytest.mark.slow
def test_docstring_examples():
    names = [
        "apsvm",
        *(module.name for module in pkgutil.walk_packages(apsvm.__path__, "apsvm.", onerror=lambda _: None)),
    ]
    left_out = tuple(extra for extra, needed in EXTRAS.items() if not is_installed(needed))
    names = [name for name in names if not name.startswith(left_out)]
    results = [doctest.testmod(import_module(name)) for name in names]
    assert sum(result.attempted for result in results) >= 3
    assert sum(result.failed for result in results) == 0
