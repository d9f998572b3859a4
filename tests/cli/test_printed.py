"""Output of ``train``, ``cv`` and ``eval``, one text each (``tests/expected``), and their records."""

from __future__ import annotations

import json
import platform
import signal
import time
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import click
import expected
import numpy as np
import pytest

from apsvm._support.machine import cores
from apsvm.cli import run as command_line
from apsvm.cli.output.compared import Results
from apsvm.cli.output.progress import Bar, Display
from apsvm.cli.output.records import TrainingLog
from apsvm.cli.training import Signals, write_model
from apsvm.data.dataset import Dataset
from apsvm.models.header import (
    Bounds,
    Calibration,
    Data,
    Epochs,
    Gradient,
    Header,
    LabelKind,
    Labels,
    SkippedClass,
    Threshold,
    Validation,
)
from apsvm.models.linear import LinearRanker
from apsvm.models.sets import RankerSet
from apsvm.selection.average import Average
from apsvm.selection.choose import Estimate
from apsvm.selection.grids import Grid
from apsvm.selection.race import Candidate, Measured
from apsvm.trainers import trainer_of
from apsvm.trainers.base import Outcome, Progress
from apsvm.trainers.fitting import FeatureOptions
from apsvm.trainers.settings import Multiple

HEADER = Header(
    family="structured-svm",
    loss="ap",
    metric="AP",
    labels=Labels(positive=1.0, negative=(-1.0,)),
    state="converged",
    data=Data(file="rows.svm", rows=10, positives=3),
)
THRESHOLD = Threshold(value=1.25, rule="f1", held_out="5 folds of rows", precision=0.5, recall=1.0)
PLATT = Calibration(method="platt", slope=2.0, offset=-1.0, lower=0.1, upper=0.9, held_out="5 folds", rows=9)
ISOTONIC = Calibration(method="isotonic", scores=(0.0, 1.0), probabilities=(0.25, 0.75), held_out="5 folds", rows=9)
CLASSES = Labels(kind=LabelKind.CLASSES)
X = np.array([(4, 0), (3, 1), (2, 0), (2, 0), (1, 2), (1, -1), (0, 0), (0, 3), (-1, 0), (-2, 5)])


def linear(coef, header=HEADER, intercept=0.5):
    return LinearRanker(np.array(coef), intercept, header)


def one_of(label, coef, **more):
    labels = Labels(kind=LabelKind.ONE_LABEL, positive=label, negative=(9.0,))
    return linear(coef, replace(HEADER, labels=labels, **more))


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Rows and models, in the working directory."""
    monkeypatch.chdir(tmp_path)
    queries = [7, 7, 7, 7, 9, 9, 9, 5, 5, 9]

    def write(name, labels, query=lambda at: ""):
        lines = (
            f"{label}{query(at)} 1:{a} 2:{b}\n"
            for at, ((a, b), label) in enumerate(zip(X.tolist(), labels, strict=True))
        )
        (tmp_path / name).write_text("".join(lines))

    labels = [1, -1, 1, -1, -1, 1, -1, -1, -1, -1]
    write("rows.svm", labels)
    write("queries.svm", labels, lambda at: f" qid:{queries[at]}")
    write("classes.svm", [1, 2, 1, 3, 2, 3, 1, 1, 4, 2])
    write("several.svm", ["1,2", 2, "", 3, "1,3", 3, 1, 1, 2, "2,1"])
    linear((1.0, -0.25)).save("first")
    linear((0.0, 1.0), replace(HEADER, threshold=THRESHOLD, calibration=PLATT)).save("second.model")
    rankers = [
        one_of(1.0, (1.0, 0.0), threshold=THRESHOLD, calibration=PLATT),
        one_of(2.0, (-1.0, 0.5), calibration=ISOTONIC),
        one_of(3.0, (0.0, -1.0)),
        one_of(5.0, (0.0, 0.0)),
    ]
    RankerSet(rankers, replace(HEADER, labels=CLASSES)).save("set")
    RankerSet(rankers[:2], replace(HEADER, labels=CLASSES)).save("two")
    several = [replace(one, header=replace(one.header, threshold=replace(THRESHOLD, value=0.25))) for one in rankers]
    RankerSet(several[:3], replace(HEADER, labels=replace(CLASSES, several=True))).save("several.set")
    (tmp_path / "qrels").write_text("q1 0 a 1\nq1 0 b 0\nq1 0 c 2\nq2 0 a 1\nq3 0 d 1\nq3 0 e 0\n")
    (tmp_path / "run1").write_text("q1 Q0 a 1 3 x\nq1 Q0 b 2 2 x\nq3 Q0 e 1 1 x\nq3 Q0 d 2 0 x\nq4 Q0 d 1 1 x\n")
    (tmp_path / "run2").write_text("q1 Q0 c 1 3 y\nq1 Q0 b 2 2 y\nq2 Q0 a 1 1 y\nq3 Q0 d 1 1 y\nq3 Q0 e 2 0 y\n")
    return tmp_path


BOTH = ("--model", "first", "--model", "second.model")
EVALUATED = [
    ("rows.svm", *BOTH, "--compare", "--confidence", "0.9"),
    ("rows.svm", *BOTH, "-m", "F1", "-m", "P@2"),
    ("queries.svm", *BOTH, "--compare", "--per-query"),
    ("classes.svm", "--model", "set", "-m", "AP", "-m", "Accuracy"),
    ("several.svm", "--multilabel", "--model", "several.set", "-m", "F1", "-m", "AP"),
    ("--qrels", "qrels", "--run", "run1", "--run", "run2", "--compare", "-m", "AP", "-m", "nDCG"),
]


def test_what_eval_prints(files, capfd):
    text = ""
    for arguments in EVALUATED:
        assert command_line(["eval", *arguments]) == 0
        out, err = capfd.readouterr()
        assert err == ""
        text += f"$ apsvm eval {' '.join(arguments)}\n{out}"
    expected.check("eval.txt", text)


def test_the_json_of_eval_has_the_figures_that_are_printed(files, run):
    printed = (expected.FOLDER / "eval.txt").read_text(encoding="utf-8")
    for arguments in EVALUATED:
        found = json.loads(run("eval", *arguments, "--json").stdout)
        systems = found.get("systems") or {"": found}
        for system in systems.values():
            assert all(f"{value:.6f}" in printed for value in system["metrics"].values())


def test_what_predict_calls(files, run):
    """Labels and probabilities of one ranker and of several, by their thresholds and calibrations."""

    def rows(*arguments):
        return [line.split("\t") for line in run("predict", *arguments).stdout.splitlines()]

    second = np.array([0, 1, 0, 0, 2, -1, 0, 3, 0, 5]) + 0.5
    probability = np.clip(1 / (1 + np.exp(1.0 - 2.0 * second)), 0.1, 0.9)  # of PLATT
    found = rows("rows.svm", "second.model", "--classify", "--probability")
    assert [row[0] for row in found] == ["1" if score > 1.25 else "-1" for score in second]
    np.testing.assert_allclose([float(row[1]) for row in found], probability, rtol=1e-5)
    scores = np.array(rows("classes.svm", "set"), dtype=float)
    assert scores.shape == (10, 4)
    best = np.argmax(scores - [1.25, 0, 0, 0], axis=1)
    assert [row[0] for row in rows("classes.svm", "set", "--classify")] == [f"{[1, 2, 3, 5][at]}" for at in best]
    of_two = np.array(rows("classes.svm", "two", "--probability"), dtype=float)
    assert of_two.shape == (10, 2)
    called = X @ np.array([[1, -1, 0], [0, 0.5, -1]]) + 0.5 > 0.25
    several = rows("several.svm", "--multilabel", "several.set", "--classify")
    assert [row[0] for row in several] == [",".join("123"[at] for at in np.flatnonzero(one)) for one in called]
    for option in ("--classify", "--probability"):
        assert "first" in run("predict", "rows.svm", "first", option, code=65).stderr


def candidate(grid, loss, values, C=(), *, as_asked=True, kind=Candidate, **more):
    """One that was measured in two folds."""
    metrics = [{"AP": value, "AUC": value / 2} for value in values]
    state = "converged" if as_asked else "time limit"
    folds = [
        Measured(more.get("choice", {}), values, 0.25, state, as_asked, C[at] if C else None)
        for at, values in enumerate(metrics)
    ]
    return kind(grid, loss, more.pop("choice", {}), folds, **more)


def search_of(grids, features):
    """The part of a search that ``Results`` reads."""
    dataset = Dataset(np.ones((9, 2)), np.ones(9), None, None, False, "folder/rows.svm", "0123", 0)
    return SimpleNamespace(
        grids=grids,
        alive=range(len(grids)),
        fits=[SimpleNamespace(features=one, trainer=grid.trainer) for one, grid in zip(features, grids, strict=True)],
        folds=[SimpleNamespace(test=np.arange(5)), SimpleNamespace(test=np.arange(4))],
        units=dataset,
        averages=False,
        description=lambda: {"folds": 2, "metric": "AP"},
        estimate=lambda chosen, candidates, metric: chosen.mean(metric) - 0.0625,
        expected_ap=lambda chosen, candidates: Estimate(0.5, 0.25, 0.75),
    )


def grid(loss, features=None, **values):
    kind = trainer_of(loss)
    return Grid.of(lambda settings: kind(loss, settings), kind.Settings(), values, features=features)


def results(grids, options, candidates, **more):
    return Results(
        search_of(grids, options), candidates, more.pop("chosen", candidates[0]), {"AP": 0, "AUC": 0}, **more
    )


def test_the_tables_of_cv():
    """Several losses; C in multiples, with a rival; features, with an average."""
    plain = FeatureOptions()
    losses = [grid("ap", C=(1.0, 10.0), bound=("hinge", "tight")), grid("warp", epochs=(5, 50))]
    last = {axis.name: axis.values[-1] for axis in losses[1].axes}
    several = [
        candidate(0, "ap", (0.5, 0.75), (1.0, 1.0), choice={"bound": "tight", "C": 1.0}),
        candidate(0, "ap", (0.25, 0.5), (10.0, 10.0), choice={"bound": "hinge", "C": 10.0}, as_asked=False),
        candidate(1, "warp", (0.125, 0.5), choice=last),
    ]
    beside = [candidate(1, "SVM-light", (0.5, 0.5), choice={"C": 0.25}), candidate(1, "none", (0.0, 0.5))]
    one = [grid("ap", C=(Multiple(1.0), Multiple(10.0)), bound=("hinge",))]
    multiples = [
        candidate(0, "ap", (0.5, 0.75), (1.5, 2.5), choice={"bound": "hinge", "C": Multiple(1.0)}),
        candidate(0, "ap", (0.25, 0.5), choice={"bound": "hinge", "C": Multiple(10.0)}),
    ]
    options = [plain, FeatureOptions(features="rules"), FeatureOptions(scale="standard", pool=("min", "max"))]
    maps = [grid("ap", one, C=(1.0,), bound=("hinge",)) for one in options]
    of_features = [candidate(at, "ap", (0.5, 0.75), (1.0, 1.0), choice={"bound": "hinge", "C": 1.0}) for at in range(3)]
    average = candidate(0, "ap", (0.75, 1.0), kind=Average, members=of_features[:2], maps=("linear", "rules"))
    every = [
        results(losses, [plain, plain], several, references=beside),
        results(one, [plain], multiples, references=beside[:1]),
        results(one, [plain], multiples[:1]),
        results(maps, options, of_features, average=average, chosen=of_features[1]),
    ]
    for found in every:
        told = found.to_json()
        assert told["metric"] == "AP"
        assert [one["metrics"]["AP"]["folds"] for one in told["settings"]] == [
            [fold.values["AP"] for fold in one.folds] for one in found.candidates
        ]
        assert [one["chosen"] for one in told["settings"]] == [
            found.average is None and one is found.chosen for one in found.candidates
        ]
    expected.check("cv.txt", "\n\n".join("\n".join(one.table()) for one in every) + "\n")


def outcome(state="converged", **more):
    seconds = more.pop("seconds", {"scores": 0.25, "qp": 0.5})
    return Outcome(w=np.ones(2), state=state, settings=trainer_of("ap").Settings(), seconds=seconds, **more)


def context(**flags):
    """The command that is running, with these flags."""
    running = click.Context(click.Command("train"))
    running.params = flags
    return running


class Told:
    """A log, as a list."""

    def __init__(self):
        self.records = []

    def write(self, event, **fields):
        self.records.append({"event": event, **fields})


def test_how_trainings_end(files, capfd, monkeypatch):
    """The whole output, the records of the log and the exit codes of runs that took three seconds."""
    monkeypatch.setattr("time.perf_counter", lambda: 3.0)
    bounds = Bounds(primal=2.0, dual=1.5, gap=0.5, tolerance=1.0)
    validation = Validation(file="v", sha256="", metric="AP", value=0.75)
    epochs = Epochs(count=4, best=2, estimated_loss=0.5)
    certified = outcome(C=2.0, iterations=7, certificate=bounds)
    gradient = Gradient(value=1.0, gradient_norm=0.5, target=0.25, evaluations=9)
    plain = Signals()
    limited = outcome("time limit", as_asked=False, cautions=["take care"])
    of_classes = outcome(
        C=3.0, classes=[(1.0, certified), (2.0, limited)], skipped=[SkippedClass(label=5.0, reason="too few")]
    )
    runs = {
        "certified": (0, certified, plain, {}),
        "limited": (3, limited, plain, {}),
        "quiet": (3, limited, plain, {"quiet": True}),
        "nothing ranked": (3, outcome(ranks=False), plain, {"quiet": True}),
        "epochs": (0, outcome(epochs=epochs), plain, {}),
        "validation": (0, outcome(epochs=replace(epochs, validation=validation)), plain, {}),
        "gradient": (0, outcome(iterations=3, gradient=gradient), plain, {}),
        "classes": (0, of_classes, plain, {}),
        "interrupted": (130, outcome("interrupted", interrupted=True), Signals([signal.SIGINT]), {}),
        "late": (0, certified, Signals([signal.SIGTERM]), {}),
    }  # fmt: skip
    text, records = "", {}
    for name, (code, end, signals, more) in runs.items():
        told, header = Told(), replace(HEADER, threshold=THRESHOLD)
        model = linear((1.0, 0.0), replace(header, state=end.state, as_asked=end.as_asked))
        log = TrainingLog("log", told)
        with context(**more):
            assert write_model("written", None, end, model, log, signals, began=0.0, read_seconds=0.125) == code
        assert signals.are_late == (name != "interrupted")
        text += f"== {name}\n{capfd.readouterr().err}"
        records[name] = told.records
        (files / "written").unlink(missing_ok=True)
    expected.check("train.txt", text)
    (first,), (second,) = records["certified"], records["limited"]
    assert first.items() >= {"event": "end", "state": "converged", "C": 2.0, "primal": 2.0, "gap": 0.5}.items()
    assert first["seconds"] == {"reading": 0.125, "scores": 0.25, "qp": 0.5, "other": 2.25}
    assert (second["state"], second["model"]) == ("time limit", "written")
    assert records["epochs"][0]["best_epoch"] == 2
    assert records["gradient"][0]["gradient_norm"] == 0.5
    assert [one["class"] for one in records["classes"][0]["classes"]] == [1.0, 2.0]
    assert records["classes"][0]["classes_skipped"] == [{"label": 5.0, "reason": "too few"}]

    def full(*given, **fields):
        raise OSError(28, "No space left on device")

    log = TrainingLog("log", SimpleNamespace(write=full))
    with context(quiet=True):
        assert write_model("m", None, certified, linear((1.0, 0.0)), log, plain, began=0.0, read_seconds=0) == 74
    assert "log" in capfd.readouterr().err


def test_progress_of_a_training(capfd, monkeypatch):
    """By default lines that come ever more rarely, with --verbose tables."""
    columns = {"iteration": ">9d", "gap": ">8.2e", "planes": "<7", "loss": ".3f"}
    values = [{"iteration": at, "gap": 0.5 / (at + 1), "planes": None, "loss": 0.25 + at} for at in range(12)]
    stages = ["train"] * 8 + ["tight"] * 3 + [""]

    def lines(bar, verbose=False):
        clock = count(0.0, 4.0)
        monkeypatch.setattr("time.monotonic", lambda: next(clock))
        display = Display(bar, verbose=verbose)
        for value, stage in zip(values, stages, strict=True):
            display.show(Progress(stage=stage, columns=columns, values=value))
        return capfd.readouterr().err.splitlines()

    table = lines(Bar("training"), verbose=True)
    assert len(table) == 12 + 3  # a heading a stage
    assert table[1].split() == ["0", "5.00e-01", "0.250"]
    rare = Bar("training")
    assert [line.split()[-1] for line in lines(rare)] == ["2", "4", "9"]
    assert rare.text(0.0).startswith("tight 11")
    of_classes = Bar("classes", 3)
    assert len(lines(of_classes, verbose=True)) == 3
    assert "3/3 classes" in of_classes.text(0.0)


def test_the_record_of_a_run(files, run):
    before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    run("train", "-q", "queries.svm", "--run-dir", "run", "-C", "10x", "--bound", "hinge", "--epsilon", 0.5)
    record = json.loads((files / "run" / "log.jsonl").read_text().splitlines()[0])
    assert before <= record.pop("began") <= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    assert 0.0 < record.pop("seconds") < 60.0
    assert record.pop("machine") == f"{platform.system()} {platform.machine()}, {cores()} cores"
    assert record["data"] == str(files / "queries.svm")
    assert (record["rows"], record["features"], record["values"]) == (10, 2, 20)
    assert record["options"] == {"quiet": True, "C": ["10x"], "bound": "hinge", "epsilon": 0.5}
    assert record["reading"]["dtype"] == "float64"
