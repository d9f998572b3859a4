"""The real console script, real data written at run time, and models trained once for all tests.

Two data sets of scikit-learn: ``cancer`` (569 rows, standardised, labels +1 and -1) and ``digits`` (1797 rows, the
labels 0 to 9; the positives are the eights).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from command import in_process
from numpy.typing import NDArray
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_digits, load_svmlight_file
from sklearn.preprocessing import scale

from apsvm import load_model
from apsvm.cli.output.progress import Bar
from apsvm.trainers import trainer_of
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

SCRIPT = Path(sys.executable).with_name("apsvm")
#: A hang is a failure, not a wait.
TIMEOUT = 60


@dataclass(frozen=True)
class Table:
    """The rows of ``path``: X (n, d) float64 CSR, exactly the file's numbers; labels (n,) float64; positive (n,) bool;
    ``options`` train on it."""

    path: Path
    X: sp.csr_array
    labels: NDArray[np.float64]
    positive: NDArray[np.bool_]
    options: tuple[str, ...] = ()


Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what would be read as an option."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("APSVM")}
    return {**kept, **(extra or {})}


@pytest.fixture(scope="session")
def command() -> list[str]:
    """Command line for tests that need pipes or signals of their own."""
    assert SCRIPT.exists(), "the package is not installed beside this interpreter"
    return [str(SCRIPT)]


@pytest.fixture(scope="session")
def environment() -> Callable[..., dict[str, str]]:
    return clean_environment


def checked(done: Any, code: int) -> Any:
    """``done``, if it is what was expected and no surprise."""
    assert done.returncode == code, f"exit code {done.returncode}, not {code}: {done.stderr!r}"
    stderr = done.stderr or ""
    assert ("Traceback" if isinstance(stderr, str) else b"Traceback") not in stderr
    return done


@pytest.fixture(scope="session")
def script(command: list[str]) -> Run:
    """script(argument, ..., code=0) → what the console script printed, as text (``text=False``: bytes); any other exit
    code fails. For what only a process of its own can show: ``run`` takes a hundredth of the time."""

    def call(
        *arguments: Any,
        code: int = 0,
        text: bool = True,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        **more: Any,
    ) -> Any:
        if "input" not in more:
            more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        encoding = {"encoding": "utf-8"} if text else {}
        done: Any = subprocess.run(
            [*command, *map(str, arguments)],
            check=False,
            timeout=TIMEOUT,
            env=clean_environment(env),
            cwd=cwd,
            **encoding,
            **more,
        )
        return checked(done, code)

    return call


@pytest.fixture(scope="session")
def run() -> Run:
    """As ``script``, inside this process, which has loaded all that is slow to load."""

    def call(
        *arguments: Any,
        code: int = 0,
        text: bool = True,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        input: str | bytes = b"",
    ) -> Any:
        content = input.encode() if isinstance(input, str) else input
        done: Any = in_process([*map(str, arguments)], input=content, env=clean_environment(env), cwd=cwd)
        if text:
            done = Done(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
        return checked(done, code)

    return call


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The beginnings of the lines that ``output.progress`` would draw on a terminal, in order."""
    shown: list[str] = []

    def reach(bar: Bar, done: int, what: str | None = None) -> None:
        as_it_is(bar, done, what)
        shown.append(bar.text(0.0).rpartition(",")[0])

    def enter(bar: Bar) -> Bar:
        shown.append(bar.text(0.0).rpartition(",")[0])
        bar.is_shown = True
        return bar

    as_it_is = Bar.reach
    monkeypatch.setattr(Bar, "reach", reach)
    monkeypatch.setattr(Bar, "__enter__", enter)
    return shown


@pytest.fixture(scope="session")
def info() -> Callable[[Path], Mapping[str, Any]]:
    """Reads the header of a model; test_info compares ``apsvm info`` with it."""
    return lambda model: load_model(model).header


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that session fixtures write and tests only read."""
    return tmp_path_factory.mktemp("cli")


def dump(path: Path, X: Any, labels: NDArray[np.float64], **more: Any) -> Path:
    rows = X.toarray() if sp.issparse(X) else X
    dump_svmlight_file(rows, labels, str(path), **{"zero_based": False, **more})
    return path


@pytest.fixture(scope="session")
def write_rows() -> Callable[..., Path]:
    """write_rows(path, X, labels, zero_based=False, query_id=None) → path"""
    return dump


def table(path: Path, positive_label: float, *options: str) -> Table:
    """The file read back: its numbers have 16 digits."""
    X, labels = load_svmlight_file(str(path))
    return Table(path, sp.csr_array(X), labels, labels == positive_label, options)


@pytest.fixture(scope="session")
def cancer(folder: Path) -> Table:
    X, benign = load_breast_cancer(return_X_y=True)
    labels = np.where(benign == 0, 1.0, -1.0)
    return table(dump(folder / "cancer.svm", scale(X), labels), 1.0)


@pytest.fixture(scope="session")
def digits(folder: Path) -> Table:
    X, labels = load_digits(return_X_y=True)
    return table(dump(folder / "digits.svm", X / 16, labels), 8.0, "--positive-label", "8")


@pytest.fixture(scope="session")
def tables(cancer: Table, digits: Table) -> dict[str, Table]:
    return {"cancer": cancer, "digits": digits}


@pytest.fixture(scope="session")
def trained(run: Run, folder: Path) -> Callable[..., Path]:
    """trained(table, option, ...) → the model; the same training is done once a session. Where no bound is named it is
    the hinge's: choosing one takes longer than training."""
    models: dict[tuple[str, ...], Path] = {}

    def train(table: Table, *options: str) -> Path:
        loss = options[options.index("--loss") + 1] if "--loss" in options else "ap"
        if "--bound" not in options and trainer_of(loss) is StructuredSVMTrainer:
            options = ("--bound", "hinge", *options)
        key = (table.path.name, *table.options, *options)
        if key not in models:
            model = folder / f"{len(models)}.model"
            run("train", "--quiet", table.path, model, *table.options, *options)
            models[key] = model
        return models[key]

    return train


@pytest.fixture(scope="session")
def scored() -> Callable[[str], NDArray[np.float64]]:
    """The numbers of predict's output."""

    def read(text: str) -> NDArray[np.float64]:
        assert text.endswith("\n")
        return np.array([float(line) for line in text.splitlines()])

    return read


@pytest.fixture(scope="session")
def digit_set(run, digits, folder) -> Path:
    """A ranker for each digit."""
    model = folder / "digits-set.model"
    run("train", "--bound", "hinge", "-q", "--one-vs-rest", digits.path, model, "-C", "3")
    return model


@pytest.fixture(scope="session")
def tagged(folder) -> tuple[Path, NDArray[np.bool_]]:
    """300 rows of five features, each with some of the labels 1, 4, 7.5 and 9, or none"""
    rng = np.random.default_rng(11)
    X = np.round(rng.normal(size=(300, 5)), 3)
    has = X @ rng.normal(size=(5, 4)) + rng.normal(size=(300, 4)) > 1.0
    path = folder / "tagged.svm"
    lines = []
    for x, row in zip(X, has, strict=True):
        labels = [label for label, one in zip(("9", "1", "4", "7.5"), row, strict=True) if one]
        lines.append(",".join(labels) + "".join(f" {j}:{value}" for j, value in enumerate(x, start=1)))
    path.write_text("\n".join(lines) + "\n")
    assert {len(line.split()[0].split(",")) for line in lines if ":" not in line.split()[0]} >= {1, 2, 3}
    assert any(":" in line.split()[0] for line in lines)
    return path, has[:, [1, 2, 3, 0]]
