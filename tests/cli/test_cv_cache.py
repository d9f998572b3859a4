"""``apsvm cv --cache``: a command that was stopped goes on, to what one that was not stopped comes to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from joblib._store_backends import FileSystemStoreBackend

from apsvm.selection.cross_validation import CrossValidation
from apsvm.selection.race import Measurements

OPTIONS = ("--loss", "ap,auc", "--bound", "hinge,tight", "-C", "0.1,1", "--folds", 3, "-j", 1)


@pytest.fixture
def data(rng, tmp_path, write_rows):
    X = rng.normal(size=(150, 3))
    return write_rows(tmp_path / "rows.svm", X, np.where(X[:, 0] + rng.normal(size=150) > 0.9, 1.0, -1.0))


@pytest.fixture
def trained(monkeypatch):
    """How often paths were trained in folds since the list was cleared."""
    tasks = []
    attempted = CrossValidation.attempted

    def counted(self, task, *more):
        tasks.append(task)
        return attempted(self, task, *more)

    monkeypatch.setattr(CrossValidation, "attempted", counted)
    return tasks


@pytest.fixture
def cv(run, data, tmp_path):
    """cv(option, …) → what it prints and writes, without the times that it took."""

    def call(*options, code=0):
        done = run("cv", data, *OPTIONS, "--json", tmp_path / "json", "-o", tmp_path / "model", *options, code=code)
        if code:
            return done.stderr
        text = json.dumps(timeless(json.loads((tmp_path / "json").read_text())))
        return text, (tmp_path / "model").read_bytes(), done.stderr

    return call


def timeless(value):
    if isinstance(value, dict):
        return {key: timeless(entry) for key, entry in value.items() if "seconds" not in key}
    return [timeless(entry) for entry in value] if isinstance(value, list) else value


def test_what_is_finished_is_not_trained_again(cv, trained, tmp_path):
    expected = cv()
    n_paths = len(trained)
    assert cv("--cache", tmp_path / "kept") == expected
    assert len(trained) == 2 * n_paths
    assert cv("--cache", tmp_path / "kept", "-j", 2, "-C", "0.10,1.0") == expected
    assert len(trained) == 2 * n_paths


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_was_interrupted_goes_on(number, cv, trained, tmp_path, monkeypatch):
    expected = cv()
    n_paths = len(trained)
    trained.clear()
    added, previous = Measurements.add, signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupted(self, path):
        if len(trained) == 5:
            os.kill(os.getpid(), number)
        added(self, path)

    monkeypatch.setattr(Measurements, "add", interrupted)
    try:
        cv("--cache", tmp_path / "kept", code=128 + number)
    finally:
        signal.signal(signal.SIGINT, previous)
    monkeypatch.setattr(Measurements, "add", added)
    assert len(trained) == 5
    assert cv("--cache", tmp_path / "kept") == expected
    assert len(trained) == n_paths


@pytest.mark.slow
def test_a_command_that_was_killed_goes_on(cv, data, trained, command, environment, tmp_path):
    expected = cv()
    n_paths = len(trained)
    words = [*command, "cv", "-v", data, *OPTIONS, "--cache", tmp_path / "kept"]
    process = subprocess.Popen([*map(str, words)], stderr=subprocess.PIPE, encoding="utf-8", env=environment())
    assert any("3/" in line[:5] for line in process.stderr)
    process.kill()
    process.communicate()
    trained.clear()
    assert cv("--cache", tmp_path / "kept") == expected
    assert len(trained) <= n_paths - 2


@pytest.mark.parametrize(
    "change",
    [("--seed", 1), ("-e", 1e-4), ("-C", "0.1,2"), ("--scale", "maxabs"), ("--features", "piecewise:2"), ("-m", "AUC"),
     ("--folds", 4), ("--positive-label", -1), ("--bias", 1)],
)  # fmt: skip
def test_other_settings_have_their_own_results(change, cv, trained, tmp_path):
    cv("--cache", tmp_path / "kept")
    trained.clear()
    changed = cv("--cache", tmp_path / "kept", *change)
    assert trained
    assert cv(*change) == changed


def test_other_rows_and_other_code_of_a_loss_have_their_own_results(run, data, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def trained_anew():
        trained.clear()
        run("cv", data, "--loss", "halved:Half", "--bound", "hinge", "-C", 1, "--folds", 2, "-j", 1, "--cache", "kept")
        return len(trained)

    source = (
        "import numpy as np\n\nclass Half:\n    def weights(self, n_pos):\n        return np.full(n_pos, 1 / n_pos)\n\n"
        "    def discount(self, n):\n        return 1 / np.arange(1.0, n + 1)\n"
    )
    Path("halved.py").write_text(source)
    assert (trained_anew(), trained_anew()) == (2, 0)
    data.write_text(data.read_text().replace("1:", "1:1", 1))
    assert (trained_anew(), trained_anew()) == (2, 0)
    Path("halved.py").write_text(source.replace("1 / np.arange(1.0, n + 1)", "1 / np.arange(2.0, n + 2)"))
    monkeypatch.delitem(__import__("sys").modules, "halved")
    assert (trained_anew(), trained_anew()) == (2, 0)


def test_a_damaged_entry_is_as_good_as_none(run, data, trained, tmp_path):
    def trained_anew():
        trained.clear()
        options = ("--loss", "auc", "--bound", "hinge", "-C", 1, "--folds", 2, "-j", 1, "-q", "--json", "-")
        done = run("cv", data, *options, "--cache", tmp_path / "kept")
        return timeless(json.loads(done.stdout)), done.stderr

    expected = trained_anew()
    entries = sorted((tmp_path / "kept").rglob("output.pkl"))
    assert len(entries) == 2
    whole = entries[0].read_bytes()
    damages = [b"", whole[:-1], whole[: len(whole) // 2], b"cnot\nthere\n.", b"\x00" * len(whole), whole + whole]
    for at in np.linspace(0, len(whole) - 1, 60).astype(int).tolist():
        damages.append(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
    for content in [*damages, entries[1].read_bytes()]:
        entries[0].write_bytes(content)
        assert trained_anew() == expected
        assert len(trained) in (0, 1)  # 0 where nothing reads the byte
        assert trained_anew() == expected
        assert not trained
    for other in (tmp_path / "kept").rglob("*"):
        if other.is_file():
            other.write_bytes(b"\xff\xfe damaged")
    assert trained_anew() == expected


def test_a_folder_that_cannot_be_written(run, data, tmp_path, monkeypatch):
    options = ("--loss", "auc", "-C", 1, "--folds", 2, "--cache", tmp_path / "kept")
    assert "is the data file" in run("cv", data, *options[:-1], data, code=2).stderr
    (tmp_path / "kept").write_text("")
    assert f"cannot write {tmp_path / 'kept'}" in run("cv", data, *options, code=74).stderr
    (tmp_path / "kept").unlink()

    def full(self, *_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FileSystemStoreBackend, "_concurrency_safe_write", full)
    done = run("cv", data, *options)
    assert "some results could not be written" in done.stderr
    assert "chosen" in done.stdout
