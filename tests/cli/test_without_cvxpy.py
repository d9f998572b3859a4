"""Where cvxpy is not installed everything works but what asks for it."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest

from apsvm import APSVMClassifier
from apsvm.solvers.qp.active_set import ActiveSet
from apsvm.solvers.qp.auto import Auto
from apsvm.solvers.qp.base import Problem, QPSolution
from apsvm.trainers import fitting


@pytest.fixture
def absent(monkeypatch):
    """cvxpy cannot be imported, nor is it found."""

    def installed(package):
        if package == "cvxpy":
            raise PackageNotFoundError(package)
        return found(package)

    found = fitting.installed
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    monkeypatch.setattr(fitting, "installed", installed)


def test_commands(absent, run, cancer, tmp_path):
    model = tmp_path / "m"
    run("train", "-q", cancer.path, model)
    run("cv", "-q", cancer.path, "-C", ".1x,1x", "--folds", 2, "-o", model)
    assert "cvxpy" not in run("info", model, "--json").stdout.partition('"versions"')[2]
    run("predict", cancer.path, model)
    run("eval", cancer.path, "--model", model)
    run("verify", model, cancer.path)
    done = run("train", cancer.path, model, "--qp", "cvxpy", code=69)
    assert done.stderr.endswith(
        "error: the QP solver cvxpy needs the packages cvxpy and clarabel: pip install cvxpy clarabel\n"
    )


def test_estimators(absent):
    X = np.random.default_rng(0).normal(size=(60, 3))
    assert APSVMClassifier(C=1.0).fit(X, X[:, 0] > 0.5).certificate_.reached
    with pytest.raises(ImportError, match="pip install cvxpy clarabel"):
        APSVMClassifier(C=1.0, bound="hinge", qp="cvxpy").fit(X, X[:, 0] > 0.5)


def test_what_the_first_solver_leaves_is_said(absent, monkeypatch):
    planes = np.random.default_rng(1).normal(size=(6, 4))
    problem = Problem(planes @ planes.T, np.arange(6.0), np.ones(6, dtype=np.bool_), 2.0)
    monkeypatch.setattr(ActiveSet, "solve", lambda self, problem, start, tolerance: QPSolution(start, 1.0, "first"))
    solution = Auto().solve(problem, np.zeros(6), 1e-9)
    assert "active-set left a gap of 1.000e+00" in solution.fell_back
    assert "pip install cvxpy clarabel" in solution.fell_back
