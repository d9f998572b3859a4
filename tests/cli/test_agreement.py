"""``train``, ``eval`` and ``report`` judge a model by the same rows and the same metric: of every loss, kind of labels,
and rows with and without queries, their figures are one number, or all of them refuse."""

from __future__ import annotations

import json
import sys
from contextlib import suppress

import numpy as np
import pytest

from apsvm import load_any_model, read_svmlight
from apsvm.cli import run as command_line
from apsvm.cli.shared import Failure
from apsvm.cli.training import of_training_rows
from apsvm.data.labels import recall
from apsvm.losses import LOSSES, make_loss
from apsvm.losses.graded import GradedLoss
from apsvm.metrics.evaluate import evaluate
from apsvm.models.sets import RankerSet

#: For what is about the hinge, or needs some model quickly: by default the bound is chosen.
HINGE = ("--bound", "hinge")

#: Losses of each form that takes a parameter.
OF_FORM = {
    "ndcg(gain)": ["ndcg(linear)", "ndcg(exponential)"],
    "pauc(beta)": ["pauc(0.3)"],
    "rbp(rho)": ["rbp(0.05)", "rbp(0.95)"],
    "ndcg@k": ["ndcg@3"],
    "p@k": ["p@1", "p@3"],
    "f(beta)": ["f(0.5)", "f(2)"],
    "set-p@k": ["set-p@4"],
    "set-r@k": ["set-r@4"],
}
STRUCTURED = [name for form, loss in LOSSES.items() for name in OF_FORM.get(form, [loss().name])]
#: Options of each training beside the data's; few steps, since no figure depends on them.
TRAININGS = {
    **{(name,): (*HINGE, "--max-iterations", 4, "-C", 1) for name in STRUCTURED},
    ("mine:Loss",): (*HINGE, "--max-iterations", 4),
    ("wmw",): (),
    ("wmw", "--graph", "adjacent"): (),
    ("wmw", "--graph", "bipartite"): (),
    **{("warp", "--tau", tau): ("--epochs", 1) for tau in ("auc", "p@1", "p@3", "harmonic")},
    ("warp", "--preference"): ("--epochs", 1),
}
ROWS, FEATURES = 36, 3
#: What says what the labels mean, of each kind, and whether the labels alone say it to whom two classes are to be told.
KINDS = {
    "+1 and -1": ((), True),
    "1 and 0": ((), True),
    "-1, 0 and 1": ((), False),
    "one of several": (("--positive-label", 3), True),
    "one of those of a row": (("--positive-label", 3, "--multilabel"), True),
    "from a threshold on": (("--relevant-from", 2), True),
    "grades": ((), False),
    "grades above 0": ((), False),
    "real targets": ((), False),
    "real targets from a threshold on": (("--relevant-from", 0.25), True),
    "real targets cut into classes": (("--classes", 3), False),
    "each in turn": (("--one-vs-rest",), True),
    "each of those of a row in turn": (("--one-vs-rest",), True),
}
OWN = """
import numpy as np

class Loss:
    metric = "a metric of mine"

    def weights(self, n_pos):
        return np.full(n_pos, 1.0 / n_pos)

    def discount(self, n):
        return -np.arange(n) / n
"""


def labels_of(kind, noise, rng):
    """A label a row, as the file has it; the higher the noise's first column, the higher the label."""
    graded = np.clip(np.rint(noise + 1.5), 0, 3).astype(int)
    if kind == "+1 and -1":
        return np.where(noise > 0.3, 1, -1)
    if kind == "1 and 0":
        return np.where(noise > 0.3, 1, 0)
    if kind == "-1, 0 and 1":
        return np.clip(graded, 0, 2) - 1
    if kind == "grades above 0":
        return np.clip(graded, 1, 3)
    if kind.startswith("real"):
        return np.round(noise, 3)
    if "of a row" in kind:
        return [",".join(map(str, rng.permutation([1, 2, 3])[: rng.integers(0, 3)])) for _ in range(ROWS)]
    return graded


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """By kind of labels and whether there are queries: a file."""
    folder = tmp_path_factory.mktemp("agreement")
    rng = np.random.default_rng(8)
    X = np.round(rng.normal(size=(ROWS, FEATURES)), 3)
    noise = X[:, 0] + rng.normal(size=ROWS)
    files = {}
    for at, kind in enumerate(KINDS):
        labels = labels_of(kind, noise, rng)
        for queries in (False, True):
            path = folder / f"{at}{'q' * queries}.svm"
            with path.open("w") as stream:
                for row, (label, x) in enumerate(zip(labels, X, strict=True)):
                    qid = f" qid:{row // 12}" if queries else ""
                    stream.write(f"{label}{qid} " + " ".join(f"{j}:{value}" for j, value in enumerate(x, 1)) + "\n")
            files[kind, queries] = path
    return files


@pytest.fixture
def train(capfd):
    """train(data, folder, options) → the exit code, 3 where few iterations were not enough, and what it says."""

    def call(path, folder, options):
        capfd.readouterr()
        code = command_line(["train", str(path), "--run-dir", str(folder), *map(str, options)])
        return code, capfd.readouterr().err

    return call


@pytest.fixture
def reported(run, monkeypatch):
    """reported(folder) → the rankers as the report of that run judges them; no page is drawn."""

    def call(folder):
        runs = []
        monkeypatch.setattr("apsvm.report.build.report", lambda run: runs.append(run) or "")
        run("report", folder)
        judged, failures = runs[0].judged()
        assert failures == []
        return judged

    return call


def is_refused(loss, kind):
    """True if nothing can be trained: the labels do not fit the loss, or the loss is not of one label."""
    name = loss[0]
    in_order = name == "wmw" or "--preference" in loss
    graded = isinstance(optimised(name), GradedLoss)
    options, two_classes = KINDS[kind]
    if "--classes" in options:
        return name != "wmw"
    if in_order:
        asked = options[:1]
        return asked in (("--positive-label",), ("--one-vs-rest",)) or (asked == ("--relevant-from",) and name == "wmw")
    return not (two_classes or graded)


def optimised(name):
    """The loss that a trainer takes by this name, if it is a registered one."""
    return None if name in ("wmw", "warp", "mine:Loss") else make_loss(name)


def same(found, expected):
    return found == pytest.approx(expected, rel=0, abs=1e-12)


def test_every_loss_is_here():
    refused = [is_refused(loss, kind) for loss in TRAININGS for kind in KINDS]
    assert 0.1 < np.mean(refused) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("loss", TRAININGS, ids=" ".join)
def test_train_eval_and_report_agree(loss, data, train, run, reported, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    trained = 0
    odd = list(TRAININGS).index(loss) % 2
    for at, ((kind, queries), path) in enumerate(data.items()):
        if (
            at // 2 + queries
        ) % 2 != odd:  # this kind of labels with queries or without; the next loss has it the other way
            continue
        folder = tmp_path / f"run{at}"
        options = ("--loss", *loss, *TRAININGS[loss], *KINDS[kind][0])
        code, said = train(path, folder, options)
        assert code in ((2, 65) if is_refused(loss, kind) else (0, 3)), (kind, queries, said)
        if code in (2, 65):
            continue
        trained += 1
        model = load_any_model(folder / "ranker.model")
        several = "of a row" in kind
        rows = read_svmlight(path, multilabel=several)
        own = {}
        with suppress(Failure):
            own = of_training_rows(rows, model).values
        evaluated = json.loads(run("eval", path, "--model", folder / "ranker.model", "--json").stdout)
        assert same({name: evaluated["metrics"][name] for name in own}, own), (kind, queries)
        judged = reported(folder)
        if isinstance(model, RankerSet):
            check_classes(judged, evaluated, own)
        else:
            values = judged[0].evaluation.values
            assert same({name: values[name] for name in evaluated["metrics"]}, evaluated["metrics"]), (kind, queries)
            assert "AP" not in values if not own else next(iter(values)) == next(iter(own))
            check_the_meaning(kind, rows, model, values)
    assert trained >= 2


def check_classes(judged, evaluated, own):
    values = {}
    for part in judged:
        label = part.title.removeprefix("class ")
        of_class = evaluated["per_class"][label]
        assert same({name: part.evaluation.values[name] for name in of_class}, of_class)
        for name in own:
            values.setdefault(name, []).append(part.evaluation.values[name])
    assert len(values) > 0
    assert same({name: np.mean(several) for name, several in values.items()}, own)


def check_the_meaning(kind, rows, model, values):
    """The rows are judged as the user said, whatever the loss."""
    target = recall(rows, model.header.labels)
    assert not target.relevant.all() or kind == "grades above 0"
    if KINDS[kind][0][:1] == ("--relevant-from",) and model.header.family != "warp":
        assert target.grades is None
        binary = evaluate(["nDCG"], model.score(rows.X), rows.relevance >= KINDS[kind][0][1], rows.groups)
        assert same(values["nDCG"], binary.values["nDCG"])


@pytest.mark.parametrize("queries", [False, True])
def test_an_explicit_threshold_reads_the_grades(queries, data, run, tmp_path):
    path = data["from a threshold on", queries]
    run("train", "-q", path, tmp_path / "m", "--loss", "ndcg", "--relevant-from", 2)
    rows, model = read_svmlight(path), load_any_model(tmp_path / "m")
    for options, target in (
        ((), {"relevant": rows.relevance >= 2}),
        (("--relevant-from", 2), {"relevant": rows.relevance, "relevant_from": 2}),
        (("--relevant-from", 3), {"relevant": rows.relevance, "relevant_from": 3}),
    ):
        found = json.loads(run("eval", path, "--model", tmp_path / "m", "--json", *options).stdout)["metrics"]
        expected = evaluate(list(found), model.score(rows.X), groups=rows.groups, **target)
        assert same(found, expected.values)
        assert list(found) == ["nDCG(exp)", "AP", "AUC", "P@5", "P@10", "nDCG"]


def test_models_that_describe_the_same_labels_differently(data, run, tmp_path):
    """+1 and -1 as two classes, as what is above the lowest, and as one label of two."""
    path = data["+1 and -1", True]
    trainings = {"ap": (), "wmw": ("--loss", "wmw"), "one": ("--positive-label", 1)}
    for name, options in trainings.items():
        run("train", "-q", path, tmp_path / name, *options)
    models = [word for name in trainings for word in ("--model", tmp_path / name)]
    found = json.loads(run("eval", path, *models, "--json").stdout)["systems"]
    for name in trainings:
        alone = json.loads(run("eval", path, "--model", tmp_path / name, "--json").stdout)
        together = found[str(tmp_path / name)]
        assert same({metric: together["metrics"][metric] for metric in alone["metrics"]}, alone["metrics"])
    run("train", "-q", path, tmp_path / "other", "--positive-label", -1)
    done = run("eval", path, *models, "--model", tmp_path / "other", code=2)
    assert done.stderr.endswith(
        "error: the models have different positive labels: choose by --positive-label or --relevant-from\n"
    )
