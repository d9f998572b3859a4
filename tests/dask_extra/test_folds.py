"""``apsvm cv --scheduler``: the paths in folds as tasks, to the figures of one machine."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from command import in_process
from sklearn.datasets import dump_svmlight_file

import apsvm.dask.actors
import apsvm.dask.folds
from apsvm import load_model
from apsvm._support.checkpoint import Checkpoint
from apsvm._support.work import WorkError
from apsvm.dask.folds import Folds
from apsvm.selection.cross_validation import CrossValidation, SelectionError
from apsvm.selection.race import Measured, PathInFold, Race, Task


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two parts of rows, the last without the last feature, and the whole."""
    folder, rng = tmp_path_factory.mktemp("folds"), np.random.default_rng(2)
    X = np.round(rng.normal(size=(160, 5)), 3)
    X[80:, 4] = 0.0
    y = np.where(X[:, 0] + rng.normal(size=160) > 1.0, 1, -1)
    for name, rows in (("part-0", slice(80)), ("part-1", slice(80, 160)), ("all", slice(160))):
        dump_svmlight_file(X[rows], y[rows], str(folder / name), zero_based=False)
    return folder


@pytest.fixture
def cv(client, folder, tmp_path):
    def run(data, *options, there=True):
        where = ["--scheduler", client.scheduler.address] if there else []
        words = ["cv", str(folder / data), "--folds", "3", *map(str, options), *where]
        done = in_process(words, env={"PATH": os.environ["PATH"]}, cwd=tmp_path)
        return done.returncode, done.stderr.decode()

    return run


def figures(path):
    """The results but for the times they took."""
    results = json.loads(path.read_text())

    def timeless(value):
        if isinstance(value, dict):
            return {key: timeless(entry) for key, entry in value.items() if "seconds" not in key and key != "data"}
        return [timeless(entry) for entry in value] if isinstance(value, list) else value

    return timeless(results)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ["--loss", "ap,auc", "-C", "1,10", "--scale", "standard"],
        ["--loss", "wmw", "--features", "piecewise:2", "--lambda", "1"],
    ],
)
def test_figures_and_model_are_those_of_one_machine(cv, tmp_path, options):
    for data, name, there in (("part-*", "there", True), ("all", "here", False)):
        code, said = cv(data, *options, "--json", f"{name}.json", "-o", f"{name}.model", there=there)
        assert code == 0, said
    assert figures(tmp_path / "there.json") == figures(tmp_path / "here.json")
    there, here = (load_model(tmp_path / f"{name}.model") for name in ("there", "here"))
    assert there.coef.tobytes() == here.coef.tobytes()
    assert there.header.selection == here.header.selection


@pytest.mark.slow
def test_what_was_finished_is_not_done_again(cv, tmp_path, monkeypatch):
    """A driver that dies after the first path has ended, and another one that goes on."""
    options = ("--loss", "ap,auc", "-C", "1", "--checkpoint", "kept", "--checkpoint-seconds", "0", "--json", "out")
    code, said = cv("all", *options)
    assert code == 0, said
    expected = figures(tmp_path / "out")
    ends = []
    done = apsvm.dask.folds.PathInFold.to_saved

    def dies(path):
        ends.append(path)
        if len(ends) == 3:
            raise KeyboardInterrupt
        return done(path)

    monkeypatch.setattr(apsvm.dask.folds.PathInFold, "to_saved", dies)
    assert cv("all", *options)[0] != 0
    assert (tmp_path / "kept").exists()
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    trained = []
    submit = apsvm.dask.folds.Folds._as_they_end
    monkeypatch.setattr(apsvm.dask.folds.Folds, "_as_they_end", lambda *of: (trained.extend(of[2]), submit(*of))[1])
    code, said = cv("all", *options)
    assert code == 0, said
    assert len(trained) == 10, "of twelve paths two were kept"
    assert figures(tmp_path / "out") == expected


class Ends(Folds):
    """Paths that end from the last to the one behind ``stop``, without a cluster."""

    def __init__(self, stop):
        self.stop, self.begun = stop, []

    def _as_they_end(self, cross, tasks, should_stop):
        self.begun.extend(tasks)
        for number in sorted(tasks, reverse=True)[: None if self.stop is None else -1 - self.stop]:
            yield number, path_of(tasks[number])


def path_of(task):
    return PathInFold(task, [Measured({"C": 1.0}, {"AP": 0.5}, 0.1, "converged", True)], f"failed in fold {task.fold}")


@pytest.mark.parametrize("goes_on", ["there", "here"])
def test_of_a_stopped_driver_the_next_one_goes_on(tmp_path, goes_on):
    """One machine may be the next."""
    tasks, there = [Task(0, None, fold) for fold in range(4)], []

    def run(stop=None):
        kept, folds = Checkpoint(tmp_path / "kept", seconds=0.0), Ends(stop)
        paths = list(folds(None, tasks, lambda: stop is not None, kept.strand))
        kept.break_off()
        assert all(path.to_saved() == path_of(path.task).to_saved() for path in paths)
        return folds.begun, [path.task.fold for path in paths]

    assert run(stop=1) == ([0, 1, 2, 3], [3, 2])
    if goes_on == "there":
        assert run() == ([0, 1], [2, 3, 1, 0])
        assert run() == ([], [0, 1, 2, 3])
        with pytest.raises(WorkError, match="'4 paths in folds', not '3 paths in folds'"):
            list(Ends(None)(None, tasks[:3], lambda: False, Checkpoint(tmp_path / "kept").strand))
        return
    race = SimpleNamespace(limits=nullcontext, ready=lambda *of: (1, None))
    race._done = partial(Race._done, race)
    race.attempted = lambda task, watch, lockstep: there.append(task.fold) or path_of(task)
    strand = Checkpoint(tmp_path / "kept", seconds=0.0).strand
    paths = list(Race.run(race, tasks, 1, lambda: False, strand))
    assert [path.to_saved() for path in paths] == [path_of(task).to_saved() for task in tasks]
    assert there == [0, 1]


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (["1 1:1\n-1 1:2\n", "1 1:x\n"], 65, "part-1:1:"),
        (["1 1:1\n1 1:2\n", "1 1:3\n"], 65, "no negative rows"),
        (["1 qid:1 1:1\n-1 qid:1 1:2\n", "1 1:1\n"], 65, "some have qid and some have none"),
        ([], 66, "part-*: No such file"),
    ],
)
def test_bad_parts(cv, tmp_path, content, code, message):
    for part, text in enumerate(content):
        (tmp_path / f"part-{part}").write_text(text)
    found, said = cv(tmp_path / "part-*", "-C", "1")
    assert found == code, said
    assert message in said


def test_what_a_task_raises_ends_the_command(cv, monkeypatch):
    def undefined(*_):
        raise SelectionError("fold 2: P@1 of nothing")

    monkeypatch.setattr(CrossValidation, "judged", undefined)
    code, said = cv("all", "-C", "1")
    assert code == 65
    assert said.endswith("fold 2: P@1 of nothing\n")


@pytest.mark.slow
def test_nobody_answers(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(apsvm.dask.actors, "CONNECTING", 0.3)
    words = ["cv", str(folder / "all"), "-C", "1", "--scheduler", "tcp://127.0.0.1:9"]
    done = in_process(words, env={"PATH": os.environ["PATH"]}, cwd=tmp_path)
    assert done.returncode == 66
    assert b"no scheduler answers at tcp://127.0.0.1:9" in done.stderr
