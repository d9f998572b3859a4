"""Trainers that a newcomer registers, and the command line that finds them there."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
from newcomers import LINE, dumped

from apsvm import load_any_model
from apsvm.trainers import TRAINERS


@pytest.fixture
def registered(monkeypatch, request):
    """The line in the registry, or those that a test has: before those of apsvm, and after them."""
    before, after = getattr(request, "param", ({}, LINE))
    monkeypatch.setattr(TRAINERS, "_places", {**before, **TRAINERS._places, **after})


@pytest.fixture
def cli(registered, monkeypatch):
    """The command line as it is imported when the line is there."""
    import apsvm

    previous = sys.modules.get("apsvm.cli")
    for name in [name for name in sys.modules if name == "apsvm.cli" or name.startswith("apsvm.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    fresh = importlib.import_module("apsvm.cli")
    yield fresh
    for name in [name for name in sys.modules if name == "apsvm.cli" or name.startswith("apsvm.cli.")]:
        del sys.modules[name]
    if previous is not None:
        apsvm.cli = previous
    else:
        del apsvm.cli  # it is imported anew


@pytest.fixture
def run(cli, capfd, monkeypatch):
    """run(argument, …, code=0) → (standard output, standard error)"""

    def call(*arguments, code=0):
        capfd.readouterr()
        found = cli.run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert found == code, err
        assert "Traceback" not in err
        return out, err

    return call


@pytest.fixture
def rows(rng, tmp_path):
    """X (60, 3), relevant (60,), and a file of them."""
    X = rng.normal(size=(60, 3))
    relevant = X[:, 0] - 0.5 * X[:, 1] + 0.4 * rng.normal(size=60) > 0.6
    return X, relevant, dumped(tmp_path / "data.svm", X, np.where(relevant, 1, -1))


@pytest.fixture
def info_of():
    return lambda model: load_any_model(model).header
