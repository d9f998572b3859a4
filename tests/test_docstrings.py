"""Public docstrings name the parameters that there are, each once, in numpydoc's form."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest

MODULES = ["apsvm", "apsvm.torch", "apsvm.dask", "apsvm.detection.measure", "apsvm.detection.boxes",
           "apsvm.detection.matching", "apsvm.detection.readers", "apsvm.detection.writers"]  # fmt: skip
NEEDED = {"apsvm.torch": "torch", "apsvm.dask": "dask"}


def public(module):
    """Name, docstring and signature of each class, method and function that the reference shows."""
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    for name in names:
        one = getattr(module, name)
        if not (inspect.isclass(one) or inspect.isfunction(one)) or not one.__module__.startswith("apsvm"):
            continue
        yield name, one
        if inspect.isclass(one):
            methods = inspect.getmembers(one, inspect.isfunction)
            own = ((at, method) for at, method in methods if method.__module__.startswith("apsvm"))
            yield from ((f"{name}.{at}", method) for at, method in own if not at.startswith("_"))


def documented(text):
    """The names under Parameters."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+$|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    lines = [] if section is None else re.findall(r"^([\w*, ]+?)(?: : .*)?$", section[1], flags=re.MULTILINE)
    return [name.strip("* ") for line in lines for name in line.split(",")]


@pytest.mark.parametrize("name", MODULES)
def test_parameters_are_those_of_the_signature(name):
    pytest.importorskip(NEEDED.get(name, "apsvm"))
    for label, one in public(importlib.import_module(name)):
        named = documented(inspect.getdoc(one) or "")
        try:
            there = list(inspect.signature(one).parameters)
        except ValueError:
            continue
        assert len(set(named)) == len(named), label
        assert set(named) <= set(there), (label, sorted(set(named) - set(there)))
