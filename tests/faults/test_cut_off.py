"""A mapped file that is cut off in the midst of a pass ends the command with a sentence, and not by a signal."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from apsvm.cli import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="SIGBUS is raised so on Linux")

#: After the n-th look at the files, all of which find nothing, one of them loses its content.
CUT_OFF = """
import os, sys
from apsvm.cli import run
from apsvm.data.mapped_files import MappedFile

name, n, *arguments = sys.argv[1:]
looks, check = 0, MappedFile.check
def check_and_cut_off(file):
    global looks
    check(file)
    looks += file.path.endswith(name)
    if looks == int(n):
        os.truncate(file.path, 0)
MappedFile.check = check_and_cut_off
sys.exit(run(arguments))
"""


def cut_off(folder: Path, name: str, n: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CUT_OFF, name, str(n), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder of rows that are stored sparsely, and a .npy matrix."""
    folder = tmp_path_factory.mktemp("mapped")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 20)) * (rng.random((3000, 20)) < 0.2)
    y = np.where(X.sum(axis=1) > 1, 1, -1)
    lines = [
        f"{label} " + " ".join(f"{j}:{v:.4f}" for j, v in enumerate(x, 1) if v) for label, x in zip(y, X, strict=True)
    ]
    (folder / "rows.svm").write_text("\n".join(lines) + "\n")
    np.save(folder / "rows.npy", X)
    np.save(folder / "labels.npy", y)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("name", "threads", "n"), [("values.npy", 1, 1), ("indices.npy", 3, 6)])
def test_of_a_folder(name, threads, n, folder, tmp_path):
    assert run(["convert", "-q", f"{folder}/rows.svm", f"{tmp_path}/folder"]) == 0
    assert (tmp_path / "folder" / name).exists()
    arguments = ["train", "-q", "--threads", str(threads), "--bound", "hinge", "-C", "1000x", "folder", "m"]
    done = cut_off(tmp_path, name, n, *arguments)
    assert (done.returncode, done.stderr) == (65, f"apsvm: error: folder/{name}: cut off while it was read\n")
    assert not (tmp_path / "m").exists()


@pytest.mark.slow
def test_of_a_matrix(folder, tmp_path):
    for name in ("rows.npy", "labels.npy"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    done = cut_off(
        tmp_path, "rows.npy", 3, "train", "-q", "--bound", "hinge", "--labels", "labels.npy", "rows.npy", "m"
    )
    assert (done.returncode, done.stderr) == (65, "apsvm: error: rows.npy: cut off while it was read\n")


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", "import faulthandler; faulthandler.enable()\n"])
def test_what_is_not_ours_goes_to_who_had_it_before(before, folder, tmp_path):
    """Here to nobody, or to faulthandler: in both cases the signal ends the process in the end."""
    code = before + (
        "import mmap, os, sys\n"
        "from apsvm.cli import run\n"
        "assert run(['train', '-q', '--bound', 'hinge', '--labels', 'labels.npy', 'rows.npy', sys.argv[1]]) == 0\n"
        "open(sys.argv[2], 'wb').write(bytes(10000))\n"
        "stream = open(sys.argv[2], 'rb')\n"
        "view = mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)\n"
        "os.truncate(sys.argv[2], 0)\n"
        "view[5000]\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "m"), str(tmp_path / "theirs")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGBUS
    assert "cut off" not in done.stderr
    assert ("Fatal Python error: Bus error" in done.stderr) == bool(before)
