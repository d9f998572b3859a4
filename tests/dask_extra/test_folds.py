"""``apsvm cv --scheduler``: the paths in folds as tasks, to the figures of one machine."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from command import in_process
from sklearn.datasets import dump_svmlight_file

import apsvm.dask.actors
import apsvm.dask.folds
from apsvm import load_model
from apsvm.selection.cross_validation import CrossValidation, SelectionError


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
def test_what_was_finished_is_kept_for_one_machine_too(cv, tmp_path, monkeypatch):
    options = ("--loss", "ap,auc", "-C", "1", "--cache", "kept", "--json", "out")
    code, said = cv("all", *options)
    assert code == 0, said
    expected = figures(tmp_path / "out")
    monkeypatch.setattr(CrossValidation, "attempted", None)
    code, said = cv("all", *options, there=False)
    assert code == 0, said
    assert figures(tmp_path / "out") == expected


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
