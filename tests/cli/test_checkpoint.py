"""``--checkpoint``: a training that was killed at any moment and goes on comes to the same file, byte by byte."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from over import over
from sklearn.datasets import dump_svmlight_file, make_classification

import apsvm._support.checkpoint
from apsvm import load_model
from apsvm.models.linear import LinearRanker

KEPT = ("--checkpoint", "kept", "--checkpoint-seconds", "0")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Files of rows: of two classes, of grades with queries, of classes, of bags, of users."""
    folder = tmp_path_factory.mktemp("data")
    X, y = make_classification(140, 6, n_informative=4, weights=[0.7], flip_y=0.1, random_state=0)
    grades = np.clip((1.2 * X[:, 0] + 1.5).round(), 0, 2)
    dump_svmlight_file(X, np.where(y, 1, -1), str(folder / "two"), zero_based=False)
    dump_svmlight_file(X, grades, str(folder / "grades"), zero_based=False, query_id=np.arange(140) // 20)
    dump_svmlight_file(X, grades, str(folder / "classes"), zero_based=False)
    rng = np.random.default_rng(0)
    bags = [(1 if bag % 3 == 0 else -1, bag, rng.normal(size=4) + 2 * (bag % 3 == 0) * (at == 0))
            for bag in range(30) for at in range(3)]  # fmt: skip
    lines = (f"{label} bag:{bag} " + " ".join(f"{j}:{v:.6f}" for j, v in enumerate(x, 1)) for label, bag, x in bags)
    (folder / "bags").write_text("\n".join(lines) + "\n")
    lists = (sorted(rng.choice(15, 4, replace=False) + 1) for _ in range(30))
    (folder / "users").write_text("".join(f"0 {' '.join(f'{i}:1' for i in items)}\n" for items in lists))
    return folder


class Kills:
    """Remembers a checkpoint as it was written for the ``at``-th time: a process that is killed right then leaves it,
    and no more."""

    def __init__(self, monkeypatch):
        self.at, self.writes = 0, 0
        self.content = None
        monkeypatch.setattr(apsvm._support.checkpoint, "write_whole", self._writing)

    def _writing(self, path, content):
        Path(path).write_bytes(content)  # without the sync, which is what takes long
        self.writes += 1
        if self.writes == self.at:
            self.content = content

    def next(self, at):
        self.at, self.writes, self.content = at, 0, None


@pytest.fixture
def kills(monkeypatch):
    return Kills(monkeypatch)


TRAININGS = {
    "hinge": "two M --bound hinge -C 1,10,100",
    "cutting planes": "two M --bound hinge -C 1,10 --solver cutting-plane",
    "tight, a path": "two M --bound tight -C 0.1,10",
    "bound and C": "two M --threads 2",
    "grades": "grades M --loss ndcg -C 1,10",
    "of the top": "two M --loss p@5 -C 1",
    "approximate": "two M --oracle appx --bound tight -C 1,10",
    "warp": "two M --loss warp --epochs 4 --validation classes --positive-label 1",
    "items": "users M --loss warp --rows-as-users --factors 3 --epochs 4",
    "one against the rest": "classes M --one-vs-rest --threads 2 -C 1 --bound tight",
    "latent": "bags M --latent -C 1,10 --bound tight",
    "components": "two M --components 2 -C 1,10 --bound tight",
    "layer-wise": "grades M --layer-wise 2 -C 1,10 --relevant-from 2",
}
#: They are killed once.
SLOW = ("of the top", "bound and C", "layer-wise")


def models(folder):
    return {path.name: path.read_bytes() for path in folder.glob("M*")}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_killed_at_any_write_it_goes_on_to_the_same_bytes(name, data, kills, run, tmp_path):
    source, *options = TRAININGS[name].split()
    options = [str(data / option) if option == "classes" else option for option in options]
    command = ("train", "-q", data / source, *options)
    run(*command, cwd=tmp_path)
    expected = models(tmp_path)
    assert expected
    kept = tmp_path / "kept"
    run(*command, *KEPT, cwd=tmp_path)
    writes = kills.writes
    assert writes >= 2
    assert models(tmp_path) == expected
    assert not kept.exists(), "a finished run removes it"
    rng = random.Random(name)
    moments = (rng.randint(1, writes), rng.randint(1, max(1, writes // 2)))  # killed, gone on, killed again, gone on
    for at in moments[name in SLOW :]:
        kills.next(at)
        run(*command, *KEPT, cwd=tmp_path)
        if kills.content is not None:
            kept.write_bytes(kills.content)
    kills.next(0)
    run(*command, *KEPT, cwd=tmp_path)
    assert kills.writes <= writes
    assert models(tmp_path) == expected
    assert not kept.exists()


def test_what_is_one_piece_begins_anew(data, kills, run, tmp_path):
    command = ("train", "-q", data / "two", "M", "--loss", "wmw")
    run(*command, cwd=tmp_path)
    expected = models(tmp_path)
    run(*command, *KEPT, cwd=tmp_path)
    assert models(tmp_path) == expected
    assert kills.writes == 0


COMPARISONS = {
    "grids": "two --bound hinge,tight -C 0.1,1 --folds 2 -j 1",
    "several at a time": "two --loss ap,auc --folds 2 -j 2 -C 0.1,1 --bound hinge",
}


def compared(folder):
    """The model, and the results without the seconds that they took."""

    def timeless(value):
        if isinstance(value, dict):
            return {name: timeless(one) for name, one in value.items() if "seconds" not in name}
        return [timeless(one) for one in value] if isinstance(value, list) else value

    return (folder / "M").read_bytes(), timeless(json.loads((folder / "J").read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_goes_on_where_it_was_killed(name, data, kills, run, tmp_path):
    source, *options = COMPARISONS[name].split()
    command = ("cv", "-q", data / source, *options, "-o", "M", "--json", "J")
    run(*command, *KEPT, cwd=tmp_path)
    expected, writes = compared(tmp_path), kills.writes
    run(*command, cwd=tmp_path)
    assert compared(tmp_path) == expected
    rng = random.Random(name)
    kills.next(rng.randint(1, writes - 1))
    run(*command, *KEPT, cwd=tmp_path)
    assert kills.content is not None
    (tmp_path / "kept").write_bytes(kills.content)
    run(*command, *KEPT, cwd=tmp_path)
    assert compared(tmp_path) == expected
    assert not (tmp_path / "kept").exists()


# A process of its own, really killed.

LONG = ("-C", "1e4", "-e", "1e-9", "--bound", "hinge")


def started(command, environment, *arguments, cwd):
    return subprocess.Popen(
        [*command, *map(str, arguments)], cwd=cwd, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def wait_for(path, process):
    began = time.monotonic()
    while not path.exists() and process.poll() is None:
        assert time.monotonic() - began < 60
        time.sleep(0.005)


@pytest.mark.slow
def test_killed_for_good_it_goes_on(data, command, environment, run, tmp_path, monkeypatch):
    arguments = ("train", "-q", data / "two", "M", "--loss", "warp", "--epochs", "150")
    run(*arguments, cwd=tmp_path)
    expected = models(tmp_path)
    (tmp_path / "M").unlink()
    rng, killed = random.Random(0), 0
    for _ in range(3):
        process = started(command, environment, *arguments, *KEPT, cwd=tmp_path)
        wait_for(tmp_path / "kept", process)
        time.sleep(0.1 * rng.random())
        process.kill()
        process.communicate(timeout=60)
        killed += process.returncode == -signal.SIGKILL
    assert killed, "it must be long enough to be killed"
    run(*arguments, *KEPT, cwd=tmp_path)
    assert models(tmp_path) == expected
    left = {name for name in os.listdir(tmp_path) if name != "M"}
    assert all(name.startswith(".apsvm-") and name.endswith(".tmp") for name in left), "what was being written"


@pytest.mark.slow
def test_a_signal_writes_it_whatever_the_interval(data, command, environment, run, tmp_path):
    arguments = ("train", "-v", data / "two", "M", *LONG, "--solver", "cutting-plane", "--checkpoint", "kept")
    process = started(command, environment, *arguments, cwd=tmp_path)
    seen = [line for line, _ in zip(process.stdout, range(6), strict=False)]
    process.send_signal(signal.SIGHUP)
    said = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 143, (seen, said)
    assert "the same command goes on from kept" in said
    assert load_model(tmp_path / "M").header.state == "interrupted"
    said = run(*arguments, cwd=tmp_path).stderr
    assert "goes on from kept" in said
    again = models(tmp_path)
    run(*arguments, cwd=tmp_path)
    assert models(tmp_path) == again


@over("at", ["-C 1", "-C 1,10"])
def test_a_signal_after_the_last_model_is_too_late(at, data, run, tmp_path, monkeypatch):
    """All is done: nothing is left to go on with."""
    save = LinearRanker.save

    def saving(model, name):
        save(model, name)
        if len(list(tmp_path.glob("M*"))) == at.count(",") + 1:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(LinearRanker, "save", saving)
        options = ("--bound", "hinge", *at.split(), "--checkpoint", "kept", "--checkpoint-seconds", "0")
        said = run("train", data / "two", "M", *options, cwd=tmp_path).stderr
    assert "goes on from" not in said
    assert not (tmp_path / "kept").exists()


def test_a_signal_after_the_model_of_a_comparison_is_too_late(data, run, tmp_path, monkeypatch):
    save = LinearRanker.save
    monkeypatch.setattr(LinearRanker, "save", lambda *of: (save(*of), os.kill(os.getpid(), signal.SIGTERM)))
    run("cv", "-q", data / "two", "-o", "M", "--bound", "hinge", "-C", "1", "--checkpoint", "kept", cwd=tmp_path)
    assert os.listdir(tmp_path) == ["M"]


# What is refused.


@pytest.fixture
def kept(data, kills, run, tmp_path):
    """A checkpoint of a training, in the current folder."""
    kills.next(1)
    run("train", "-q", data / "two", "M", "--bound", "hinge", "-C", "1", *KEPT, cwd=tmp_path)
    path = tmp_path / "kept"
    path.write_bytes(kills.content)
    (tmp_path / "M").unlink()
    return path


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("two", ["-C", "2"], "--c was [1.0] and is [2.0]"),
        ("two", ["-C", "1", "--seed", "3"], "--seed was 0 and is 3"),
        ("two", ["-C", "1", "--loss", "auc"], "--loss was ap and is auc"),
        ("classes", ["-C", "1", "--positive-label", "1"], "the data's SHA-256 was "),
    ],
)
def test_another_trainings_is_refused(source, options, words, data, kept, run, tmp_path):
    content = kept.read_bytes()
    done = run("train", "-q", data / source, "M", "--bound", "hinge", *options, *KEPT, code=65, cwd=tmp_path)
    assert "a checkpoint of another training" in done.stderr
    assert words.lower() in done.stderr.lower()
    done = run("cv", "-q", data / source, "-o", "M", "--bound", "hinge", *options, *KEPT, code=65, cwd=tmp_path)
    assert "; the command was train and is cv" in done.stderr
    assert kept.read_bytes() == content
    assert not (tmp_path / "M").exists()


def test_a_table_read_otherwise_is_another_training(kills, run, tmp_path):
    rows = "".join(f"{i % 3 == 0:d},{i * 7 % 11},{'' if i % 5 == 0 else i * 3 % 13}\n" for i in range(40))
    (tmp_path / "rows.csv").write_text(f"label,a,b\n{rows}")
    arguments = ("train", "-q", "rows.csv", "M", "--bound", "hinge", "-C", "1", *KEPT)
    kills.next(1)
    run(*arguments, cwd=tmp_path)
    (tmp_path / "kept").write_bytes(kills.content)
    done = run(*arguments, "--missing", "zero", code=65, cwd=tmp_path)
    assert done.stderr.endswith(
        "error: kept: a checkpoint of another training: reading a table: missing was median and is zero. "
        "Remove it, or name another file\n"
    )


@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: content[:-1], lambda content: b"1 1:2\n"])
def test_a_damaged_one_is_refused(damage, data, kept, run, tmp_path):
    kept.write_bytes(damage(kept.read_bytes()))
    done = run("train", "-q", data / "two", "M", "--bound", "hinge", "-C", "1", *KEPT, code=65, cwd=tmp_path)
    assert done.stderr.startswith("apsvm: error: kept: no checkpoint, or a damaged one (")
    assert done.stderr.count("\n") == 1


def test_a_device_is_refused(data, run, tmp_path):
    os.mkfifo(tmp_path / "kept")
    done = run("train", "-q", data / "two", "M", *KEPT, code=65, cwd=tmp_path)
    assert done.stderr == "apsvm: error: kept: a checkpoint is a file, and this is something else: name another one\n"


@pytest.mark.parametrize("place", ["M", "two", "-", ""])
def test_it_needs_a_place_of_its_own(place, data, run, tmp_path):
    place = str(data / "two") if place == "two" else place
    content = (data / "two").read_bytes()
    run("train", "-q", data / "two", "M", "--checkpoint", place, code=2, cwd=tmp_path)
    assert (data / "two").read_bytes() == content


def test_other_threads_and_words_go_on_all_the_same(data, kept, run, tmp_path):
    done = run("train", data / "two", "M", "--bound", "hinge", "-C", "1", "--threads", "2", "-v", *KEPT, cwd=tmp_path)
    assert "goes on from kept" in done.stderr
    assert Path(tmp_path / "M").exists()
