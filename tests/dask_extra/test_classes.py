"""``--one-vs-rest`` on a cluster: classes as tasks, to the bits of one machine."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import numpy as np
import pytest
from command import in_process

import apsvm.dask.classes
from apsvm import load_any_model
from apsvm._support.log import NoLog
from apsvm.dask.classes import ClassesPlan, about_rows, let_go, train_classes
from apsvm.dask.sources import FilePart
from apsvm.data.labels import LabelOptions
from apsvm.data.read_options import ReadOptions
from apsvm.trainers.fitting import FeatureOptions
from apsvm.trainers.one_vs_rest import OneVsRestTrainer
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three parts of rows of three classes, the last narrower than the others, and the whole; and the same with several
    labels a row, or none."""
    folder = tmp_path_factory.mktemp("classes")
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(240, 5)), 3)
    X[160:, 4] = 0.0
    labels = X[:, :3].argmax(axis=1) + 1
    for kind, several in (("one", False), ("sets", True)):
        lines = []
        for x, label in zip(X, labels, strict=True):
            said = ",".join(str(1 + j) for j in range(3) if x[j] > 0.3) if several else label
            lines.append(f"{said} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x) if v))
        for part in range(3):
            (folder / f"{kind}-{part}").write_text("\n".join(lines[80 * part : 80 * part + 80]) + "\n")
        (folder / f"all_{kind}").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def train(client, folder, tmp_path):
    def run(data, *options, there=False):
        where = ["--scheduler", client.scheduler.address] if there else []
        words = ["train", str(folder / data), *options, "--one-vs-rest", *where]
        done = in_process([str(word) for word in words], env={"PATH": os.environ["PATH"]}, cwd=tmp_path)
        return done.returncode, done.stderr.decode()

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("one", ["-C", "10", "--scale", "standard", "-B", "1"]),
        ("sets", ["-C", "1", "--bound", "tight"]),
        ("one", ["--loss", "warp", "--epochs", "3"]),
        ("one", ["--loss", "f1", "-C", "1", "--features", "piecewise:3"]),
    ],
)
def test_the_rankers_are_those_of_one_machine(train, tmp_path, kind, options):
    code, said = train(f"{kind}-*", "there.model", "-v", "--log", "log", *options, there=True)
    assert code == 0, said
    assert train(f"all_{kind}", "here.model", "-q", *options)[0] == 0
    there, here = (load_any_model(tmp_path / f"{name}.model") for name in ("there", "here"))
    assert there.coef.tobytes() == here.coef.tobytes()
    assert there.intercepts.tobytes() == here.intercepts.tobytes()
    assert there.classes.tolist() == here.classes.tolist() == [1.0, 2.0, 3.0]
    assert there.header.settings == here.header.settings
    assert there.header.data.rows == here.header.data.rows == 240
    assert "class 2" in said
    assert "mean training" in said
    records = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert {record["class"] for record in records if "class" in record} == {1.0, 2.0, 3.0}
    assert not apsvm.dask.classes._HELD, "the workers have let the rows go"


@pytest.mark.parametrize(("loss", "word"), [("ap", "qid"), ("zero-one", "cost")])
def test_of_the_rows_the_driver_knows_no_columns(client, tmp_path, loss, word):
    parts = []
    for number, lines in enumerate((("1 {}:1 1:1", "2 {}:1 1:2 3:1"), ("3 {}:2 2:1", "1 {}:2 2:2"))):
        path = tmp_path / f"part-{number}"
        path.write_text("".join(line.format(word) + "\n" for line in lines))
        parts.append(FilePart(str(path), ReadOptions(multilabel=True)))
    trainer = OneVsRestTrainer(StructuredSVMTrainer(loss, StructuredSettings(bound="hinge", C=(1.0,))))
    plan = ClassesPlan("the rows", parts, trainer, LabelOptions(), FeatureOptions(), None, False)
    try:
        about = about_rows(client, plan)
        stopped = list(train_classes(client, plan, [1.0, 2.0, 3.0], NoLog(), lambda: True))
    finally:
        let_go(client)
    data = about.dataset
    assert about.has_qid == (word == "qid")
    assert (data.X.shape, data.n_values, data.relevance.tolist()) == ((4, 3), 5, [1.0, 2.0, 3.0])
    assert data.groups is data.costs is data.label_sets is None
    assert (data.source, about.remarks) == ("the rows", [])
    assert [(one.label, one.stopped, one.reason) for one in stopped] == [(k, True, "stopped") for k in (1.0, 2.0, 3.0)]


@pytest.mark.parametrize("option", ["--warm-start", "--time-limit", "--validation"])
def test_what_does_not_go_is_refused(train, folder, option):
    value = "9" if option == "--time-limit" else folder / "all_one" if option == "--validation" else "file"
    code, said = train("one-*", "m", option, value, there=True)
    assert code == 2, said
    assert f"{option} " in said


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (["", ""], ": there are no rows"),
        (["1 1:1\n", "1 1:2\n"], ": there are no negative rows (2 positive, 0 negative); a ranking needs both"),
        (["1 qid:1 1:1\n-1 qid:1 1:2\n", "1 1:1\n"], ": of the parts, some have qid and some have none"),
        (["1 1:1\n-1 1:2\n", "1 1:x\n"], "part-1:1:"),
        (["1 bag:1 1:1\n-1 bag:1 1:2\n", "1 bag:2 1:1\n"], "bag"),
    ],
)
def test_bad_parts(train, tmp_path, content, message):
    for part, text in enumerate(content):
        (tmp_path / f"part-{part}").write_text(text)
    code, said = train(tmp_path / "part-*", "m", there=True)
    assert code == 65, said
    assert message in said
    assert not (tmp_path / "m").exists()


def test_workers_that_are_gone_have_let_the_rows_go():
    asked = []

    def run(function):
        asked.append(function)
        raise OSError("the scheduler is gone")

    let_go(SimpleNamespace(run=run))
    assert len(asked) == 1


def test_a_class_that_is_left_out(train, tmp_path):
    """With the reason that one machine gives; others by the weights of their queries."""
    lines = [f"{1 + row % 2} qid:{1 + row % 3} 1:{row % 7} 2:{row % 5}\n" for row in range(60)]
    lines = sorted(lines, key=lambda line: line.split()[1]) + [f"3 qid:4 1:{row}\n" for row in range(5)]
    (tmp_path / "weights").write_text("1 5\n2 0.25\n")
    (tmp_path / "whole").write_text("".join(lines))
    (tmp_path / "part-0").write_text("".join(lines))
    options = ("-C", "1", "--bound", "hinge", "--query-weights", "weights")
    here, there = (
        [
            line
            for line in train(tmp_path / data, data[0], *options, there=is_there)[1].splitlines()
            if "class 3" in line
        ]
        for data, is_there in (("whole", False), ("part-*", True))
    )
    assert here == there == ["apsvm: class 3 is left out: no query has both a positive and a negative row"]
    assert load_any_model(tmp_path / "w").coef.tobytes() == load_any_model(tmp_path / "p").coef.tobytes()
    assert train(tmp_path / "whole", "u", *options[:-2])[0] == 0
    assert load_any_model(tmp_path / "w").coef.tobytes() != load_any_model(tmp_path / "u").coef.tobytes()


def test_what_it_says(train, tmp_path):
    """As on one machine, but for the iterations; and its record of the run."""
    rows = [f"{row % 3},{row * row % 3 + row % 7},{'uv'[row % 2]},{'abc'[row % 3]}\n" for row in range(60)]
    for name, of_part in (("whole", rows), ("t-0", rows[:30]), ("t-1", rows[30:])):
        (tmp_path / f"{name}.csv").write_text("x,y,z,kind\n" + "".join(of_part))
    options = ("--bound", "hinge", "-C", "1", "--label-column", "kind", "--missing", "zero")
    told = {}
    for name, there in (("t-*", True), ("whole", False)):
        data = tmp_path / f"{name}.csv"
        code, said = train(data, "-v", "--run-dir", tmp_path / name[0], *options, there=there)
        assert code == 0, said
        lines = [line.replace(f"{data}", "DATA").replace(f"{tmp_path / name[0]}", "RUN") for line in said.splitlines()]
        apart = (
            " iter ",
            " s: ",
            "seconds: ",
            ": a number (",
            ": words (",
            "model written",
        )  # the cluster does not say why a column is what
        told[there] = [line for line in lines if not any(text in line for text in apart)]
        quiet = train(data, "-q", tmp_path / "m", *options, there=there)
        assert quiet == (0, "")
        record = json.loads((tmp_path / name[0] / "log.jsonl").read_text().splitlines()[0])
        assert (record["event"], record["data"], record["rows"]) == ("run", str(data), 60)
    described = "apsvm: DATA: 60 rows, 3 classes, 4 features"
    assert told[True][0] == "apsvm: DATA: words, each a feature: z (2)"
    assert [line for line in told[True] if not line.startswith(described)] == [
        line for line in told[False] if line != described
    ]
    assert len(told[True]) == len(told[False]) > 4
    assert f"{described}, 240 values, on each of 2 workers" in told[True]


def test_the_tasks_of_a_process_share_one_blas_thread(monkeypatch):
    events = []

    class Limits:
        def __init__(self, limits, user_api):
            events.append((limits, user_api))

        def restore_original_limits(self):
            events.append("restored")

    monkeypatch.setattr("threadpoolctl.threadpool_limits", Limits)
    tasks = apsvm.dask.classes.one_blas_thread
    for _ in range(2):
        with tasks():
            with tasks():
                pass
            assert events[-1] == (1, "blas")
        assert events[-2:] == [(1, "blas"), "restored"]
    assert len(events) == 4
