"""Every call that writes, syncs, renames or makes a file, of every command that leaves one, fails once.

The k-th, for every k (``--every-fault``; else for some; ``-rP`` counts them), or, of a disk that is full, all from then
on. What was there before is there still, or the new one is, whole; and the exit code says which. A write that is cut
short is no fault: the rest is written by another. A process that is killed at the call leaves the old or the new, and
its unfinished files; the same command then comes to the new.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import OLD_MODEL
from sklearn.datasets import dump_svmlight_file

from apsvm import load_any_model
from apsvm._support.log import read_log
from apsvm.cli import run
from apsvm.data.folder import open_folder

HERE = Path(__file__).parent
EIO, ENOSPC, SHORT, KILL, FULL = range(5)
NEVER = 1 << 30
OLD = OLD_MODEL.encode()  # as models begin, which replace nothing else
OLD_LOG = b'{"event": "what was there before"}\n'  # a log replaces no model
COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(COMPILER is None or sys.platform != "linux", reason="needs a C compiler and Linux")


class Faulty:
    """The driver's process, and what it is asked."""

    def __init__(self, shim: Path) -> None:
        environment = {"LD_PRELOAD": str(shim), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
        # What a child is the first to import would be compiled and renamed, and Python goes on where that fails.
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        self._process = subprocess.Popen(
            [sys.executable, HERE / "driver.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def run(self, folder: Path, arguments: list[str], at: int, kind: int) -> dict[str, Any]:
        case = {"folder": str(folder), "arguments": arguments, "at": at, "kind": kind}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.communicate()


@dataclass(frozen=True)
class Command:
    """A command, and of each file or folder that it writes, in the order it does, how a whole new one is told."""

    arguments: str
    outputs: dict[str, Callable[[Path], object]]


def is_model(path: Path) -> None:
    load_any_model(path)


def is_json(path: Path) -> None:
    json.loads(path.read_bytes())


def is_log(path: Path) -> None:
    """The lines that were written are whole, but for the last: a log grows, it is not replaced."""
    if b"\n" in path.read_bytes():
        read_log(path)


def has_scores(path: Path) -> None:
    assert len(np.loadtxt(path)) == N_ROWS


def is_page(path: Path) -> None:
    assert path.read_bytes().rstrip().endswith(b"</html>")


def is_folder(path: Path) -> None:
    """The old folder has one row more."""
    assert len(open_folder(path).relevance) in (N_ROWS, N_ROWS + 1)


N_ROWS = 30
COMMANDS = {
    "train": Command("train -q --bound hinge rows.svm out.model", {"out.model": is_model}),
    "run": Command("train -q --bound hinge --run-dir new rows.svm", {"new/ranker.model": is_model}),
    "one-vs-rest": Command("train -q --bound hinge --one-vs-rest rows.svm out.model", {"out.model": is_model}),
    "predict": Command("predict rows.svm good.model out.scores", {"out.scores": has_scores}),
    "cv": Command(
        "cv -q --bound hinge -C 1,10 --folds 2 rows.svm -o out.model --json out.json",
        {"out.json": is_json, "out.model": is_model},
    ),
    "log": Command(
        "train -q --bound hinge --log out.jsonl rows.svm out.model", {"out.jsonl": is_log, "out.model": is_model}
    ),
    "page": Command("predict --top 5 --explain --html out.html rows.svm good.model", {"out.html": is_page}),
    "export": Command("export good.model out.json --format json", {"out.json": is_json}),
    "convert": Command("convert -q rows.svm folder", {"folder": is_folder}),
    "report": Command("report -q run -o out.html", {"out.html": is_page}),
}
KINDS = {"EIO": EIO, "ENOSPC": ENOSPC, "short": SHORT, "killed": KILL, "full": FULL}
#: Without --every-fault.
FEW = {("train", "killed"), ("log", "full"), ("run", "ENOSPC"), ("run", "killed"), ("predict", "ENOSPC"),
       ("convert", "killed"), ("convert", "full"), ("page", "full")}  # fmt: skip


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    shim = tmp_path_factory.mktemp("shim") / "shim.so"
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-O1", "-o", shim, HERE / "shim.c", "-ldl"], check=True)
    process = Faulty(shim)
    yield process
    process.close()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands read and what stands where they write."""
    folder = tmp_path_factory.mktemp("prepared")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS + 1, 3))
    y = np.where(X[:, 0] + rng.normal(size=N_ROWS + 1) > 0.5, 1, -1)
    dump_svmlight_file(X[1:], y[1:], str(folder / "rows.svm"), zero_based=False)
    dump_svmlight_file(X, y, str(folder / "more.svm"), zero_based=False)
    assert run(["train", "-q", "--bound", "hinge", f"{folder}/rows.svm", f"{folder}/good.model"]) == 0
    assert run(["train", "-q", "--bound", "hinge", f"{folder}/rows.svm", "--run-dir", f"{folder}/run"]) == 0
    assert run(["convert", "-q", f"{folder}/more.svm", f"{folder}/folder"]) == 0
    for command in COMMANDS.values():
        for name in command.outputs:
            if name not in ("folder",) and "/" not in name:
                (folder / name).write_bytes(old_of(name))
    return folder


def old_of(name: str) -> bytes:
    return OLD_LOG if name.endswith(".jsonl") else OLD


def leftovers(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob(".apsvm-*")]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", COMMANDS)
def test_the_old_or_the_new_stands_there_whole(name, kind, faulty, prepared, tmp_path, request):
    every = request.config.getoption("--every-fault")
    if name == "report":
        pytest.importorskip("matplotlib")
    if not every and (name, kind) not in FEW:
        pytest.skip("--every-fault")
    command = COMMANDS[name]
    outcomes = Counter[str]()
    for at in range(0, 1000, 1 if every else 3 + 8 * (name == "run")):
        folder = tmp_path / str(at)
        shutil.copytree(prepared, folder)
        answer = faulty.run(folder, command.arguments.split(), at, KINDS[kind])
        where = f"{name}, call {at}: {answer}"
        assert "Traceback" not in answer["stderr"], where
        new = []
        for output, check in command.outputs.items():
            path = folder / output
            if ("/" in output or kind == "killed") and not path.exists():
                continue
            if path.is_file() and path.read_bytes() == old_of(output):
                continue
            check(path)
            new.append(output)
        for log in folder.glob("new/*.jsonl"):
            is_log(log)
        if not answer["hit"]:
            assert at > 1, where
            assert answer["code"] == 0, where
            counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
            sys.stdout.write(f"{name}, {kind}: {outcomes.total()} faults, {counts}\n")
            return
        outcomes["all of it new" if len(new) == len(command.outputs) else "some new" if new else "old"] += 1
        if kind == "killed":
            assert answer["code"] == -9, where
            again = command.arguments.replace("new", "newer")  # a folder is of one run
            assert faulty.run(folder, again.split(), NEVER, EIO)["code"] == 0, where
            for output, check in command.outputs.items():
                path = folder / output.replace("new", "newer")
                assert not path.is_file() or path.read_bytes() != old_of(output), where
                check(path)
        elif kind == "short":
            assert answer["code"] == 0, where
            assert new == list(command.outputs), where
        else:
            assert answer["code"] == 74, where
            reason = "Input/output error" if kind == "EIO" else "No space left on device"
            assert reason in answer["stderr"], where
        assert kind == "killed" or not leftovers(folder), where
        shutil.rmtree(folder)
    raise AssertionError("there is no end of calls")
