"""What commands print of files and models made by hand, compared whole."""

from __future__ import annotations

import json
import platform
import re
import signal
import time
from dataclasses import replace
from importlib import metadata
from itertools import count
from types import SimpleNamespace

import expected
import numpy as np
import onnx
import pytest
from detections import Scenes

from apsvm._support.machine import cores
from apsvm._support.shown import as_json
from apsvm.cli import run as command_line
from apsvm.cli.options.training import Signals
from apsvm.cli.output.bar import Bar
from apsvm.cli.output.compared import Results, progress_line
from apsvm.cli.output.progress import Display
from apsvm.cli.output.training_log import TrainingLog
from apsvm.cli.output.written_models import TrainedModel, write_models
from apsvm.cli.shared import Failure
from apsvm.data.dataset import Dataset
from apsvm.data.features.nystroem import Nystroem
from apsvm.data.features.piecewise import Piecewise
from apsvm.data.features.products import Products
from apsvm.data.features.rules import Rules, Size
from apsvm.models.columns import Column, ColumnKind, Columns, DatePart
from apsvm.models.components import ComponentRanker
from apsvm.models.header import (
    Bounds,
    Calibration,
    Data,
    Epochs,
    Features,
    Gradient,
    Header,
    LabelKind,
    Labels,
    Threshold,
    Validation,
)
from apsvm.models.linear import LinearRanker
from apsvm.models.net import Layer, Net, NetRanker
from apsvm.models.sets import RankerSet
from apsvm.report.pictures.base import Picture
from apsvm.selection.average import Average
from apsvm.selection.choice import Candidate
from apsvm.selection.grids import Grid
from apsvm.selection.race import Measured, PathInFold, Task
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


def linear(coef, header=HEADER, intercept=0.5):
    return LinearRanker(np.array(coef), intercept, header)


def one_of(label, coef, **more):
    labels = Labels(kind=LabelKind.ONE_LABEL, positive=label, negative=(9.0,))
    return linear(coef, replace(HEADER, labels=labels, **more))


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Rows, scores, runs and models, in the working directory."""
    monkeypatch.chdir(tmp_path)
    X = [(4, 0), (3, 1), (2, 0), (2, 0), (1, 2), (1, -1), (0, 0), (0, 3), (-1, 0), (-2, 5)]
    labels = [1, -1, 1, -1, -1, 1, -1, -1, -1, -1]
    queries = [7, 7, 7, 7, 9, 9, 9, 5, 5, 9]
    classes = [1, 2, 1, 3, 2, 3, 1, 1, 4, 2]

    def write(name, labels, query=lambda at: ""):
        lines = (f"{label}{query(at)} 1:{a} 2:{b}\n" for at, ((a, b), label) in enumerate(zip(X, labels, strict=True)))
        (tmp_path / name).write_text("".join(lines))

    write("rows.svm", labels)
    write("queries.svm", labels, lambda at: f" qid:{queries[at]}")
    write("grades.svm", [2, 0, 1, 0, 3, 1, 0, 0, 0, 1], lambda at: f" qid:{queries[at]}")
    write("classes.svm", classes)
    write("several.svm", ["1,2", 2, "", 3, "1,3", 3, 1, 1, 2, "2,1"])
    (tmp_path / "scores").write_text("".join(f"{score}\n" for score in (3, 3, 2, 1, 0, 5, -1, -1, 2, 0.5)))
    linear((1.0, -0.25)).save("first")
    linear((0.0, 1.0), replace(HEADER, threshold=THRESHOLD, calibration=PLATT)).save("second.model")
    rankers = [
        one_of(1.0, (1.0, 0.0), threshold=THRESHOLD, calibration=PLATT),
        one_of(2.0, (-1.0, 0.5), calibration=ISOTONIC),
        one_of(3.0, (0.0, -1.0)),
        one_of(5.0, (0.0, 0.0)),
    ]
    RankerSet.of(rankers, replace(HEADER, labels=CLASSES)).save("set")
    RankerSet.of(rankers[:2], replace(HEADER, labels=CLASSES)).save("two")
    RankerSet.of(rankers[1:3], replace(HEADER, labels=CLASSES)).save("lacking")
    several = [replace(one, header=replace(one.header, threshold=replace(THRESHOLD, value=0.25))) for one in rankers]
    RankerSet.of(several[:3], replace(HEADER, labels=replace(CLASSES, several=True))).save("several.set")
    (tmp_path / "qrels").write_text("q1 0 a 1\nq1 0 b 0\nq1 0 c 2\nq2 0 a 1\nq3 0 d 1\nq3 0 e 0\n")
    (tmp_path / "run1").write_text(
        "q1 Q0 a 1 3 x\nq1 Q0 b 2 2 x\nq1 Q0 z 3 2 x\nq3 Q0 e 1 1 x\nq3 Q0 d 2 0 x\nq4 Q0 d 1 1 x\n"
    )
    (tmp_path / "run2").write_text("q1 Q0 c 1 3 y\nq1 Q0 b 2 2 y\nq2 Q0 a 1 1 y\nq3 Q0 d 1 1 y\nq3 Q0 e 2 0 y\n")
    scenes = Scenes(
        {"one": (100, 100), "two": (100, 80), "three": (60, 60)},
        [
            ("one", "cat", (10, 10, 50, 50), 0), ("one", "dog", (60, 60, 90, 90), 1), ("two", "cat", (0, 0, 20, 20), 0),
            ("two", "cat", (30, 30, 70, 70), 0), ("three", "dog", (5, 5, 40, 40), 0), ("three", "owl", (1, 1, 9, 9), 1),
        ],
        [
            ("one", "cat", 0.9, (10, 10, 50, 52)), ("one", "cat", 0.9, (70, 10, 90, 40)),
            ("two", "cat", 0.8, (1, 0, 20, 20)), ("two", "cat", 0.7, (2, 0, 20, 20)),
            ("three", "dog", 0.5, (5, 5, 40, 38)), ("one", "dog", 0.6, (60, 60, 90, 90)),
            ("two", "fox", 0.4, (1, 1, 5, 5)), ("two", "fox", 0.3, (6, 6, 9, 9)),
        ],
    )  # fmt: skip
    scenes.write_objects(tmp_path / "objects", "voc")
    scenes.write_detections(tmp_path / "found", "text")
    Scenes(scenes.images, scenes.objects, scenes.detections[::2]).write_detections(tmp_path / "half", "text")
    return tmp_path


BOTH = ("--model", "first", "--model", "second.model")
DETECTIONS = ("eval-detections", "objects", "found", "--format", "voc,text")
TWO = ("eval-detections", "objects", "found", "half", "--format", "voc,text")
LINES = {
    "one": ("eval", "rows.svm", "--model", "first"),
    "one-json": ("eval", "rows.svm", "--model", "second.model", "-m", "F1", "-m", "AP", "--json"),
    "in-first": ("eval", "rows.svm", *BOTH, "--scores", "scores", "-k", 3, "-k", 20),
    "called": ("eval", "rows.svm", *BOTH, "-m", "F1", "-m", "P@2", "-m", "nDCG(exp)@10000"),
    "compared": ("eval", "rows.svm", *BOTH, "--compare", "--confidence", 0.9, "--bootstrap", 50, "--swaps", 40),
    "queries": ("eval", "queries.svm", "--model", "first", "--per-query"),
    "queries-compared": ("eval", "queries.svm", *BOTH, "--compare", "--swaps", 40, "--per-query"),
    "queries-json": ("eval", "queries.svm", *BOTH, "--compare", "--confidence", 0.9, "--bootstrap", 50, "--swaps", 40,
                     "--per-query", "--json"),
    "grades": ("eval", "grades.svm", "--model", "first", "-m", "nDCG", "-m", "AP", "-m", "WMW", "--relevant-from", 2),
    "classes": ("eval", "classes.svm", "--model", "set", "-m", "AP", "-m", "Accuracy"),
    "classes-of-none": ("eval", "classes.svm", "--model", "lacking", "--model", "two", "-m", "F1"),
    "classes-json": ("eval", "classes.svm", "--model", "set", "-m", "F1", "--json"),
    "several": ("eval", "several.svm", "--multilabel", "--model", "several.set", "-m", "F1", "-m", "AP"),
    "runs": ("eval", "--qrels", "qrels", "--run", "run1", "--run", "run2", "--compare", "--swaps", 40),
    "runs-complete": ("eval", "--qrels", "qrels", "--run", "run1", "--complete", "--per-query"),
    "run-json": ("eval", "--qrels", "qrels", "--run", "run1", "--json", "--per-query"),
    "detections": DETECTIONS,
    "detections-of-two": (*TWO, "--compare", "--confidence", 0.8, "--bootstrap", 30, "--nms", 0.5, "-m", "AP50",
                          "-m", "AP(voc2007)", "--ties", "block"),
    "detections-limited": (*DETECTIONS, "--max-detections", 1, "--difficult", "counted", "--iou", "continuous",
                           "-m", "AP(coco)"),
    "detections-json": (*TWO, "--compare", "--confidence", 0.8, "--bootstrap", 30, "--json"),
    "classify": ("predict", "rows.svm", "second.model", "--classify", "--probability"),
    "classify-classes": ("predict", "classes.svm", "set", "--classify"),
    "classify-lacking": ("predict", "rows.svm", "first", "--classify"),
    "probability-lacking": ("predict", "rows.svm", "first", "--probability"),
    "scores-of-classes": ("predict", "classes.svm", "set"),
    "classify-several": ("predict", "several.svm", "--multilabel", "several.set", "--classify"),
    "probability-of-classes": ("predict", "classes.svm", "two", "--classify", "--probability"),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_what_is_printed(name, files, capfd):
    code = command_line([*map(str, LINES[name])])
    out, err = capfd.readouterr()
    out = re.sub(r"\d\.\d{9,}", lambda match: f"{float(match[0]):.6g}", out)
    expected.check(f"printed-{name}.txt", f"{out}--- stderr\n{err}--- exit code {code}\n")


@pytest.fixture
def more_models(files):
    """A table's, one of pooled bags, and one on every kind of feature map."""
    columns = Columns(
        features=(
            Column(name="size", fill=2.0, missing=True, style="comma"),
            Column(name="kind", kind=ColumnKind.CATEGORY, categories=("red",), other=True),
            Column(name="when", kind=ColumnKind.DATE, fill=1.0, order="ymd", newest=10.5, parts=tuple(DatePart)),
        ),
        label="fraud",
        label_words=("no", "yes"),
    )
    features = Features(names=columns.feature_names(), columns=columns, scale="l2")
    labels = Labels(names=("no", "yes"))
    linear(
        np.arange(1.0 * columns.width), replace(HEADER, features=features, labels=labels, calibration=ISOTONIC)
    ).save("table")
    pooled = Features(zero_based=True, pool=("min", "mean"))
    ComponentRanker(np.eye(2, 4), np.arange(2.0), replace(HEADER, features=pooled)).save("components")
    arrays = {
        "starts": np.array([0, 3, 3]),
        "knots": np.array([-1.0, 0.5, 2.0]),
        "ranges": np.array([[-2.0, -1.0], [1.0, 1.0], [4.0, 5.0]]),
        "centre": np.array([1.0, 1.0]),
        "deviation": np.array([2.0, 4.0]),
        "landmarks": np.array([[0.0, 1.0], [1.0, -1.0]]),
        "normalisation": np.array([[1.0, 0.5], [0.5, 2.0]]),
        "gamma": np.array([0.25]),
        "divisors": np.full(5, 2.0),
        "features": np.array([[0, 1, -1]]),
        "thresholds": np.array([[1.5, 0.5, 0.0]]),
        "kept": np.array([[1, 1, 1, 0]]),
        "sums": np.array([[0.5], [-0.5], [0.25]]),
    }
    for kind, parameter in (
        (Piecewise, 3), (Products, None), (Nystroem, 2), (Rules, Size(1, 2)),
    ):  # fmt: skip
        learned = kind.of_arrays(2, parameter, {name: arrays[name] for name in kind.members})
        scale = "l2" if kind is Products else "none"
        header = replace(HEADER, features=Features(map=learned.name, scale=scale), threshold=THRESHOLD)
        LinearRanker(np.arange(1.0, learned.n_out + 1) / 4, 0.5, header, learned).save(kind.stem)
    net = Net((Layer(np.eye(2), np.array([0.5, 0.0])), Layer(np.array([[1.0, -1.0]]), np.array([0.25]))))
    NetRanker(net, HEADER).save("net")


def test_exported_json(more_models, here):
    names = ("second.model", "set", "table", "components", "nystroem")
    printed = [here("export", "--format", "json", name).stdout for name in names]
    printed.append(here("export", "--format", "json", "set", "--positive-label", 2).stdout)
    expected.check("exported.json", "\n".join(printed))


def test_exported_python(more_models, here):
    """Scores, labels and probabilities, and what is wrong with a row, by the standard library alone."""
    rows = [
        [1.25, 0.75],
        [-0.25, 0.0],
        [0.75, 0.75],
        [-3.0, 9.0],
        {1: 0.5},
        {"2": 3.0},
        {0: 1.0},
        {3: 1.0},
        [0.0],
        [0.0, None],
    ]
    cells = {"size": "1,5", "kind": "red", "when": "1970-01-02"}
    of_table = [cells, {**cells, "size": None, "kind": "blue", "when": ""}, {**cells, "kind": None}, {"size": 1}]
    text = ""
    for name in ("second.model", "set", "several.set", "two", "table", "piecewise", "products", "rules"):
        scorer = {}
        exec(here("export", "--format", "python", name).stdout, scorer)
        for row in of_table if name == "table" else rows:
            text += f"{name} {row}"
            for call in ("score", "label", "probability"):
                try:
                    text += f" | {expected.plain(scorer[call](row))}"
                except ValueError as error:
                    text += f" | {error}"
            text += "\n"
    expected.check("exported-python.txt", text)


def test_pictures_of_detections(files, here, monkeypatch):
    monkeypatch.setattr(Picture, "render", lambda picture, format, size: expected.plain(picture).encode())
    text = ""
    for command in (DETECTIONS, TWO):
        here(*command, "--picture", "curves.svg")
        text += (files / "curves.svg").read_text() + "\n"
    expected.check("curves-of-detections.txt", text)


def described(graph):
    """A graph of ONNX in lines."""
    constants = {one.name: onnx.numpy_helper.to_array(one) for one in graph.graph.initializer}
    for value in (*graph.graph.input, *graph.graph.output):
        kind = value.type.tensor_type
        shape = [axis.dim_param or axis.dim_value for axis in kind.shape.dim]
        yield f"{value.name}: {onnx.TensorProto.DataType.Name(kind.elem_type)} {expected.plain(shape)}"
    for node in graph.graph.node:
        given = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        inputs = [f"{name}={expected.plain(constants[name])}" if name in constants else name for name in node.input]
        yield f"{node.output[0]} = {node.domain}{node.op_type}({', '.join(inputs)}) {expected.plain(given)}"
    yield from sorted(f"{one.key}: {one.value}" for one in graph.metadata_props)
    yield f"{graph.producer_name} {graph.ir_version} {[(one.domain, one.version) for one in graph.opset_import]}"


def test_exported_graphs(more_models, here):
    names = (
        *("first", "second.model", "set", "two", "table", "components", "net"),
        *("piecewise", "products", "nystroem", "rules"),
    )
    text = ""
    for name in names:
        here("export", "--format", "onnx", name, "graph.onnx")
        text += f"== {name}\n" + "\n".join(described(onnx.load("graph.onnx"))) + "\n"
    expected.check("onnx.txt", text)


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
    """What of a search ``Results`` looks at."""
    dataset = Dataset(np.ones((9, 2)), np.ones(9), None, None, False, "folder/rows.svm", "0123", 0)
    return SimpleNamespace(
        grids=grids,
        fits=[SimpleNamespace(features=one, trainer=grid.trainer) for one, grid in zip(features, grids, strict=True)],
        folds=[SimpleNamespace(test=np.arange(5)), SimpleNamespace(test=np.arange(4))],
        dataset=dataset,
        description=lambda: {"folds": 2, "metric": "AP"},
        edges=lambda candidates, chosen: ["C"] if chosen is candidates[0] else [],
        gained_by_choice=lambda candidates, metric: 0.0625,
    )


def grid(loss, features=None, **values):
    kind = trainer_of(loss)
    return Grid.of(lambda settings: kind(loss, settings), kind.Settings(), values, features=features)


def results(grids, options, candidates, **more):
    return Results(
        search_of(grids, options), candidates, more.pop("chosen", candidates[0]), {"AP": 0, "AUC": 0}, **more
    )


def test_the_tables_of_cv():
    """Of several losses; of C in multiples, with a model beside; and of features, with an average."""
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
    members = [SimpleNamespace(features=name) for name in ("linear", "rules")]
    average = candidate(0, "ap", (0.75, 1.0), kind=Average, members=members)
    every = [
        results(losses, [plain, plain], several, beside=beside),
        results(one, [plain], multiples, beside=beside[:1]),
        results(one, [plain], multiples[:1]),
        results(maps, options, of_features, average=average, chosen=of_features[1]),
        results(maps[1:], options[::-1][:2], [replace(one, grid=at) for at, one in enumerate(of_features[:2])]),
    ]
    text = "\n\n".join("\n".join([*one.table(), as_json(one.to_json())]) for one in every)
    paths = [
        (losses, 0, several[:2]), (losses, 1, several[2:]), (one, 0, multiples), (maps, 2, of_features[2:]),
    ]  # fmt: skip
    for grids, at, candidates in paths:
        measured = [replace(found.folds[0], choice=found.choice) for found in candidates]
        path = PathInFold(Task(at, next(grids[at].variants()), 1), measured)
        text += "\n" + progress_line(path, grids, "AP")
    expected.check("cv-tables.txt", text + "\n")


def outcome(state="converged", **more):
    seconds = more.pop("seconds", {"scores": 0.25, "qp": 0.5})
    return Outcome(w=np.ones(2), state=state, settings=trainer_of("ap").Settings(), seconds=seconds, **more)


class Told:
    """A log, as a list."""

    def __init__(self):
        self.records = []

    def write(self, event, **fields):
        self.records.append({"event": event, **fields})


def test_how_trainings_end(files, capfd, monkeypatch):
    """Messages, records of the log and exit codes, whole; each look at the clock is three seconds later."""
    clock = count(0.0, 3.0)
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    bounds = Bounds(primal=2.0, dual=1.5, gap=0.5, tolerance=1.0)
    validation = Validation(file="v", sha256="", metric="AP", value=0.75)
    epochs = Epochs(count=4, best=2, estimated_loss=0.5)
    certified = outcome(C=2.0, iterations=7, certificate=bounds)
    gradient = Gradient(value=1.0, gradient_norm=0.5, target=0.25, evaluations=9)
    plain, late = Signals(), Signals([signal.SIGINT])
    limited = outcome("time limit", as_asked=False, cautions=["take care"])
    of_classes = outcome(C=3.0, classes=[(1.0, certified), (2.0, limited)], skipped=[(5.0, "too few")])
    runs = {
        "two": ([certified, limited], plain, {}),
        "quiet": ([certified, limited], plain, {"quiet": True}),
        "nothing ranked": ([outcome(ranks=False)], plain, {"quiet": True}),
        "epochs": ([outcome(epochs=epochs), outcome(epochs=replace(epochs, validation=validation))], plain, {}),
        "gradient": ([outcome(iterations=3, gradient=gradient)], plain, {}),
        "classes": ([of_classes], plain, {}),
        "interrupted": ([outcome("interrupted", interrupted=True), certified], late, {}),
        "none": ([], late, {}),
        "refused": ([certified], plain, {"guard": SimpleNamespace(refuses=lambda model, name: name == "AP")}),
        "late": ([certified], Signals([signal.SIGTERM]), {}),
    }  # fmt: skip
    text = ""
    for name, (outcomes, signals, more) in runs.items():
        told, header = Told(), replace(HEADER, threshold=THRESHOLD)
        log = TrainingLog("log", told)
        trained = [
            TrainedModel(one, linear((1.0, 0.0), replace(header, state=one.state, as_asked=one.as_asked)), ["a figure"])
            for one in outcomes
        ]
        names = [f"written{at}" for at in range(2)][: max(1, len(trained))]
        try:
            code = write_models(names, trained, log, signals, read_seconds=0.125, **{"quiet": False, **more})
        except Failure as failure:
            code = f"{failure.exit_code} {failure.message}"
        written = ", ".join(name for name in names if (files / name).exists())
        text += f"== {name}: exit code {code}; late {signals.are_late}; written {written}\n{capfd.readouterr().err}"
        text += "".join(f"{json.dumps(one)}\n" for one in told.records)
        for one in names:
            (files / one).unlink(missing_ok=True)
    log = TrainingLog("log", SimpleNamespace(write=raising(OSError(28, "No space left on device"))))
    code = write_models(
        ["m"], [TrainedModel(certified, linear((1.0, 0.0)), [])], log, plain, read_seconds=0, quiet=True
    )
    text += f"== a full disk: exit code {code}\n{capfd.readouterr().err}"
    expected.check("trainings-end.txt", text)


def raising(error):
    def write(*given, **fields):
        raise error

    return write


def test_progress_of_a_training(capfd, monkeypatch):
    """By default lines that come ever more rarely, with --verbose tables or lines, with --quiet nothing."""
    clock = count(0.0, 4.0)
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    columns = {"iteration": ">9d", "gap": ">8.2e", "planes": "<7", "loss": ".3f"}
    values = [{"iteration": at, "gap": 0.5 / (at + 1), "planes": None, "loss": 0.25 + at} for at in range(12)]
    stages = ["train"] * 8 + ["tight"] * 3 + [""]
    bars = {"verbose": None, "lines": Bar("training"), "in one line": Bar("classes", 3), "quiet": Bar("quiet")}
    displays = {
        "verbose": Display(verbose=True, quiet=False),
        "lines": Display(verbose=False, quiet=False, bar=bars["lines"]),
        "in one line": Display(verbose=True, quiet=False, one_line=True, bar=bars["in one line"]),
        "quiet": Display(verbose=True, quiet=True, bar=bars["quiet"]),
    }
    text = ""
    for name, display in displays.items():
        for value, stage in zip(values, stages, strict=True):
            display.show(Progress(stage=stage, columns=columns, values=value))
        bar = bars[name]
        text += f"== {name}: {None if bar is None else bar.text(0.0)}\n{capfd.readouterr().err}"
    expected.check("progress.txt", text)


def test_the_record_of_a_run(files, here):
    before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    here("train", "-q", "queries.svm", "--run-dir", "run", "-C", "1,10x", "--bound", "hinge", "--epsilon", 0.5)
    record = json.loads((files / "run" / "log.jsonl").read_text().splitlines()[0])
    assert before <= record.pop("began") <= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    assert 0.0 < record.pop("seconds") < 60.0
    assert record.pop("machine") == f"{platform.system()} {platform.machine()}, {cores()} cores"
    versions = {"python": platform.python_version(), **{name: metadata.version(name) for name in ("apsvm", "numpy")}}
    assert record.pop("versions") == versions
    assert record.pop("data") == str(files / "queries.svm")
    expected.check("record-of-a-run.json", json.dumps(record, indent=1) + "\n")
