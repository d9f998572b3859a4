"""``apsvm train --one-vs-rest`` and what follows it: info, predict, eval and export of a model of several classes."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.metrics import average_precision_score, roc_auc_score

from apsvm import ModelError, RankerSet, load_any_model, load_model
from apsvm.cli import run as apsvm_run

#: For what is about the hinge, or needs some model quickly: by default the bound is chosen.
HINGE = ("--bound", "hinge")


@dataclass(frozen=True)
class Done:
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def run() -> Callable[..., Done]:
    """As the ``run`` of all, in this process, which spares the starts; the real script is started by
    ``test_the_command`` and ``test_interrupted``."""

    def call(*arguments: Any, code: int = 0) -> Done:
        out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            found = apsvm_run([str(argument) for argument in arguments])
        out.flush()
        assert found == code, err.getvalue()
        return Done(out.buffer.getvalue().decode(), err.getvalue())  # type: ignore[attr-defined]

    return call


@pytest.fixture(scope="module")
def digit_set(run, digits, folder) -> Path:
    """A ranker for each digit."""
    model = folder / "digits-set.model"
    run("train", *HINGE, "-q", "--one-vs-rest", digits.path, model, "-C", "3")
    return model


@pytest.fixture(scope="module")
def tagged(folder) -> tuple[Path, np.ndarray]:
    """300 rows of five features, each with some of the labels 1, 4, 7.5 and 9, or none"""
    rng = np.random.default_rng(11)
    X = np.round(rng.normal(size=(300, 5)), 3)
    has = X @ rng.normal(size=(5, 4)) + rng.normal(size=(300, 4)) > 1.0
    path = folder / "tagged.svm"
    lines = []
    for x, row in zip(X, has, strict=True):
        labels = [label for label, one in zip(("9", "1", "4", "7.5"), row, strict=True) if one]
        lines.append(",".join(labels) + "".join(f" {j}:{value}" for j, value in enumerate(x, start=1)))
    path.write_text("\n".join(lines) + "\n")
    assert {len(line.split()[0].split(",")) for line in lines if ":" not in line.split()[0]} >= {1, 2, 3}
    assert any(":" in line.split()[0] for line in lines)
    return path, has[:, [1, 2, 3, 0]]


def table(text: str) -> np.ndarray:
    return np.array([[float(word) for word in line.split("\t")] for line in text.splitlines()])


# ------------------------------------------------------------------------------------------------ training


def test_the_command(digits, digit_set, command, environment, tmp_path):
    """Started as users start it, it writes the same bytes."""
    words = ["train", *HINGE, "-q", "--one-vs-rest", str(digits.path), str(tmp_path / "m"), "-C", "3"]
    subprocess.run([*command, *words], check=True, timeout=60, env=environment())
    assert (tmp_path / "m").read_bytes() == digit_set.read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        ("-C", "3", *HINGE),
        ("-C", "3", *HINGE, "--threads", "1"),
        ("-C", "10x", *HINGE, "--scale", "l2"),
        (*HINGE, "--scale", "standard"),
        ("-C", "3", *HINGE, "--threads", "25"),
        ("-C", "30", *HINGE, "--loss", "ndcg", "--bias", "2"),
        ("-C", "1", "--loss", "zero-one", "--bias", "1", "--dtype", "float32"),
        ("-C", "1", "--loss", "ap", "--oracle", "appx"),
        ("-C", "1", "--bound", "tight", "--solver", "cutting-plane", "-e", "0.1"),
    ],
    ids=lambda options: " ".join(options),
)
def test_each_class_is_trained_as_alone(options, digits, run, tmp_path):
    """To the last byte of the model that --positive-label alone would write."""
    run("train", *HINGE, "-q", "--one-vs-rest", digits.path, tmp_path / "set", *options)
    rankers = load_any_model(tmp_path / "set")
    assert rankers.classes.tolist() == list(range(10))
    for label in (0, 8):
        alone = tmp_path / f"{label}.model"
        run("train", *HINGE, "-q", digits.path, alone, "--positive-label", label, *options)
        assert rankers.ranker(label).to_bytes() == alone.read_bytes()
    assert (abs(rankers.intercepts) > 1e-3).all() == ("zero-one" in options or "standard" in options)


def test_each_label_of_several_is_trained_as_alone(tagged, run, tmp_path):
    path, has = tagged
    run("train", "-q", "--one-vs-rest", path, tmp_path / "set")
    rankers = load_any_model(tmp_path / "set")
    assert rankers.classes.tolist() == [1, 4, 7.5, 9]
    for label, column in zip(("1", "4", "7.5", "9"), has.T, strict=True):
        run("train", "-q", "--multilabel", path, tmp_path / "alone", "--positive-label", label)
        alone = load_model(tmp_path / "alone")
        assert rankers.ranker(float(label)).to_bytes() == alone.to_bytes()
        assert alone.header.data.positives == column.sum()
        assert alone.header.labels.positive == float(label)
        assert alone.header.labels.several is True


def test_queries(run, write_rows, tmp_path):
    """Classes and queries: each class as alone, one without a query of both kinds left out; eval by hand."""
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, 60)
    queries = np.repeat(np.arange(6), 10)
    labels[queries == 0] = 3  # a query of one label
    X = rng.normal(size=(60, 4)) + labels[:, None]
    data = write_rows(tmp_path / "data", X, labels, query_id=queries)
    done = run("train", "--one-vs-rest", data, tmp_path / "set", "-C", "5")
    assert "class 3 is left out: no query has both a positive and a negative row" in done.stderr
    assert "left out: 3" in done.stderr
    rankers = load_any_model(tmp_path / "set")
    assert rankers.header.classes_skipped[0].label == 3
    found = json.loads(run("eval", data, "--model", tmp_path / "set", "--json").stdout)
    for label in (0, 1, 2):
        run("train", "-q", data, tmp_path / "alone", "-C", "5", "--positive-label", label)
        assert rankers.ranker(label).to_bytes() == (tmp_path / "alone").read_bytes()
        alone = json.loads(run("eval", data, "--model", tmp_path / "alone", "--json").stdout)
        assert found["per_class"][str(label)] == alone["metrics"]
    assert found["metrics"]["AP"] == pytest.approx(np.mean([row["AP"] for row in found["per_class"].values()]))
    assert (found["classes"], found["classes_skipped"], found["classes_unranked"]) == (3, 0, 1)
    text = run("eval", data, "--model", tmp_path / "set").stdout
    assert (
        "3 averaged, 0 without both positive and negative rows left out; 1 of the data's classes are not ranked" in text
    )


@pytest.mark.parametrize("kind", ["folder", "npz", "npy"])
def test_other_data(kind, tagged, run, tmp_path):
    """A folder and saved matrices of the same rows give the same weights; a column without a label is left out."""
    path, has = tagged
    run("train", *HINGE, "-q", "--one-vs-rest", path, tmp_path / "text")
    X = load_svmlight_file(str(path), multilabel=True)[0]
    options = ()
    if kind == "folder":
        data = tmp_path / "folder"
        run("convert", "--multilabel", path, data, "--dense")
    else:
        np.save(tmp_path / "labels.npy", np.column_stack([has, np.zeros(300)]).astype(np.int8))
        data, options = tmp_path / f"x.{kind}", ("--labels", tmp_path / "labels.npy")
        sp.save_npz(data, sp.csr_array(X)) if kind == "npz" else np.save(data, X.toarray())
    done = run("train", *HINGE, "--one-vs-rest", data, tmp_path / "m", *options)
    ours, text = load_any_model(tmp_path / "m"), load_any_model(tmp_path / "text")
    assert ours.classes.tolist() == ([1, 4, 7.5, 9] if kind == "folder" else [0, 1, 2, 3])
    assert np.array_equal(ours.coef, text.coef)
    assert ("class 4 is left out: there are no positive rows" in done.stderr) == (kind != "folder")
    found = run("eval", data, "--model", tmp_path / "m", "--json", *options).stdout
    expected = json.loads(run("eval", path, "--model", tmp_path / "text", "--json").stdout)
    assert json.loads(found)["metrics"] == pytest.approx(expected["metrics"], rel=1e-12)
    assert list(json.loads(found)["per_class"].values()) == list(expected["per_class"].values())
    run("train", *HINGE, "-q", data, tmp_path / "one", "--positive-label", "4" if kind == "folder" else "1", *options)
    assert np.array_equal(load_model(tmp_path / "one").coef, text.coef[1])


def test_a_path_of_C(tagged, run, tmp_path):
    path, _ = tagged
    done = run("train", *HINGE, "--one-vs-rest", path, tmp_path / "p.model", "-C", "1,10", "--log", tmp_path / "log")
    assert sorted(os.listdir(tmp_path)) == ["log", "p.C1.model", "p.C10.model"]
    run("train", *HINGE, "-q", "--multilabel", path, tmp_path / "alone.model", "-C", "1,10", "--positive-label", "4")
    for C in (1, 10):
        rankers = load_any_model(tmp_path / f"p.C{C}.model")
        assert rankers.ranker(4).to_bytes() == (tmp_path / f"alone.C{C}.model").read_bytes()
        assert f"class 4 C={C}: converged after" in done.stderr
    records = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    *classes, _, _ = records
    assert {record["class"] for record in classes} == {1, 4, 7.5, 9}
    assert {record["event"] for record in classes} == {"start", "oracle", "iteration"}
    ends = [record for record in records if record["event"] == "end"]
    assert [(end["C"], end["state"], [one["class"] for one in end["classes"]]) for end in ends] == [
        (1, "converged", [1, 4, 7.5, 9]),
        (10, "converged", [1, 4, 7.5, 9]),
    ]
    for end in ends:
        rankers = load_any_model(end["model"])
        for one in end["classes"]:
            iterations = [
                record for record in classes
                if (record["event"], record["class"], record.get("C")) == ("iteration", one["class"], end["C"])
            ]  # fmt: skip
            header = rankers.ranker(one["class"]).header
            assert len(iterations) == header.iterations
            assert (one["primal"], one["gap"]) == (iterations[-1]["primal"], iterations[-1]["gap"])
            assert one["primal"] == header.certificate.primal


def test_what_is_said(tagged, run, tmp_path):
    path, has = tagged
    done = run("train", *HINGE, "--one-vs-rest", "-v", path, tmp_path / "m", "--threads", "2")
    lines = done.stderr.splitlines()
    assert lines[0] == f"apsvm: {path}: 300 rows, 4 classes, 5 features, 1500 values"
    told = [line for line in lines if line.startswith("apsvm: class ")]
    assert [line.split()[2] for line in told] == ["1", "4", "7.5", "9"]
    assert all("certificate: primal" in line and "converged after" in line for line in told)
    assert "apsvm: 4 classes: 4 converged" in lines
    iterations = [line for line in lines if line.startswith(" class 4: ")]
    assert len(iterations) == load_any_model(tmp_path / "m").ranker(4).header.iterations
    assert "primal" in iterations[0]
    mean = next(line for line in lines if "mean training AP" in line).split()[-1]
    scores = load_any_model(tmp_path / "m").score(load_svmlight_file(str(path), multilabel=True)[0])
    assert float(mean) == pytest.approx(average_precision_score(has, scores, average="macro"), abs=1e-6)
    assert run("train", *HINGE, "-q", "--one-vs-rest", path, tmp_path / "m").stderr == ""


def test_warm_start(digits, digit_set, run, tmp_path):
    """A class starts from its own ranker, as alone; a single training may start from its class of a set."""
    run("train", *HINGE, "-q", "--one-vs-rest", digits.path, tmp_path / "set", "-C", "4", "--warm-start", digit_set)
    run(
        "train",
        *HINGE,
        "-q",
        digits.path,
        tmp_path / "one",
        "-C",
        "4",
        "--warm-start",
        digit_set,
        "--positive-label",
        "7",
    )
    assert load_any_model(tmp_path / "set").ranker(7).to_bytes() == (tmp_path / "one").read_bytes()
    cold = tmp_path / "cold"
    run("train", *HINGE, "-q", digits.path, cold, "-C", "4", "--positive-label", "7")
    assert load_model(tmp_path / "one").header.iterations < load_model(cold).header.iterations
    done = run(
        "train", *HINGE, digits.path, tmp_path / "no", "--relevant-from", "7", "--warm-start", digit_set, code=65
    )
    assert "it has a ranker for each of the classes 0, 1, 2" in done.stderr
    assert not (tmp_path / "no").exists()


def test_time_limit(digits, run, tmp_path):
    """It is for all classes, and every class gets its share."""
    run("train", "-q", "--one-vs-rest", digits.path, tmp_path / "m", "--time-limit", "0", code=3)
    rankers = load_any_model(tmp_path / "m")
    assert [rankers.ranker(label).header.iterations for label in range(10)] == [1] * 10
    assert rankers.header.state == "time limit"


def test_iteration_limit(digits, run, tmp_path):
    done = run(
        "train", *HINGE, "--one-vs-rest", digits.path, tmp_path / "m", "--max-iterations", "5", "-C", "3", code=3
    )
    states = [load_any_model(tmp_path / "m").ranker(label).header.state for label in range(10)]
    assert set(states) == {"converged", "iteration limit"}
    assert f"{states.count('iteration limit')} iteration limit" in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted(number, code, digits, command, environment, tmp_path):
    """The classes at work end with their best so far; those that wait are left out, and that is said."""
    model = tmp_path / "m"
    process = subprocess.Popen(
        [
            *command,
            "train",
            "-v",
            "--one-vs-rest",
            str(digits.path),
            str(model),
            *(*HINGE, "-C", "1e6", "-e", "1e-12", "--threads", "2"),
        ],
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        for line in process.stderr:
            if "iter 12," in line:
                break
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == code, said
    assert "Traceback" not in said
    rankers = load_any_model(model)
    assert 1 <= rankers.classes.size <= 2
    assert rankers.header.state == "interrupted"
    skipped = rankers.header.classes_skipped
    assert sorted([*rankers.classes, *(one.label for one in skipped)]) == list(range(10))
    assert {one.reason for one in skipped} == {"stopped before its turn"}
    assert "class 9 is left out: stopped before its turn" in said
    assert sorted(os.listdir(tmp_path)) == ["m"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:1\n1 1:2\n", "no negative rows"),
        (" 1:1\n 1:2\n", "no row has a label"),
        ("1,2 1:1\n1,2 1:2\n", "no negative rows"),
        ("1 1:1\n1,1 1:2\n", "data:2:3: label '1' is given twice in this row"),
        ("1 1:1\n1,x 1:2\n", "data:2:3: expected a number as the label, found 'x'"),
    ],
)
def test_data_that_cannot_be_trained_on(text, message, run, tmp_path):
    (tmp_path / "data").write_text(text)
    (tmp_path / "log").write_text("old")
    done = run("train", "--one-vs-rest", tmp_path / "data", tmp_path / "m", "--log", tmp_path / "log", code=65)
    assert message in done.stderr
    assert (tmp_path / "log").read_text() == "old"
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("options", [("--positive-label", "1"), ("--relevant-from", "1"), ("--oracle", "brute-force")])
def test_options_that_do_not_go_with_it(options, digits, run, tmp_path):
    run("train", "--one-vs-rest", digits.path, tmp_path / "m", *options, code=2)
    assert os.listdir(tmp_path) == []


def test_several_labels_want_to_be_asked_for(tagged, run, tmp_path):
    path, _ = tagged
    done = run("train", path, tmp_path / "m", "--positive-label", "1", code=65)
    assert "--multilabel" in done.stderr
    done = run("train", path, tmp_path / "m", "--multilabel", code=65)
    assert "--one-vs-rest trains a ranker for each" in done.stderr


# ------------------------------------------------------------------------------------------------ using the model


def test_predict(digits, digit_set, run, tmp_path):
    rankers = load_any_model(digit_set)
    text = run("predict", digits.path, digit_set).stdout
    scores = table(text)
    assert np.array_equal(scores, rankers.score(digits.X))
    for label in (0, 9):
        assert np.array_equal(scores[:, label], rankers.ranker(label).score(digits.X))
    named = run("predict", "--header", digits.path, digit_set).stdout
    assert named == "\t".join(map(str, range(10))) + "\n" + text
    assert (np.argmax(scores, axis=1) == digits.labels).mean() > 0.8
    run("train", *HINGE, "-q", digits.path, tmp_path / "one", "--positive-label", "1", "--max-iterations", "1", code=3)
    assert "--header names the classes" in run("predict", "--header", digits.path, tmp_path / "one", code=2).stderr


def test_predict_reads_rows_of_any_labels(tagged, run, tmp_path):
    path, _ = tagged
    run("train", *HINGE, "-q", "--one-vs-rest", path, tmp_path / "m")
    run("train", *HINGE, "-q", "--multilabel", "--positive-label", "4", path, tmp_path / "one")
    scores = table(run("predict", path, tmp_path / "m").stdout)
    assert np.array_equal(scores[:, 1], table(run("predict", path, tmp_path / "one").stdout)[:, 0])
    np.save(tmp_path / "x.npy", load_svmlight_file(str(path), multilabel=True)[0].toarray())
    assert np.allclose(table(run("predict", tmp_path / "x.npy", tmp_path / "m").stdout), scores, rtol=1e-12)


def test_eval_agrees_with_scikit_learn(digits, digit_set, run):
    scores = load_any_model(digit_set).score(digits.X)
    truth = digits.labels[:, None] == np.arange(10)
    found = json.loads(run("eval", digits.path, "--model", digit_set, "--json").stdout)
    assert found["metrics"]["AP"] == pytest.approx(average_precision_score(truth, scores, average="macro"), rel=1e-12)
    assert found["metrics"]["AUC"] == pytest.approx(roc_auc_score(truth, scores, average="macro"), rel=1e-12)
    assert list(found["per_class"]) == [str(label) for label in range(10)]
    for label, values in found["per_class"].items():
        one = json.loads(
            run("eval", digits.path, "--model", digit_set, "--positive-label", label, "--json").stdout
        ) if label in "38" else {"metrics": values}  # fmt: skip
        assert one["metrics"] == values
        expected = average_precision_score(truth[:, int(label)], scores[:, int(label)])
        assert values["AP"] == pytest.approx(expected, rel=1e-12)
    assert (found["rows"], found["positives"], found["classes"], found["classes_skipped"]) == (1797, 1797, 10, 0)


def test_eval_of_several_labels(tagged, run, tmp_path):
    path, has = tagged
    run("train", *HINGE, "-q", "--one-vs-rest", path, tmp_path / "m")
    scores = load_any_model(tmp_path / "m").score(load_svmlight_file(str(path), multilabel=True)[0])
    found = json.loads(run("eval", path, "--model", tmp_path / "m", "--json", "-m", "AP", "-m", "nDCG").stdout)
    assert found["metrics"]["AP"] == pytest.approx(average_precision_score(has, scores, average="macro"), rel=1e-12)
    assert list(found["per_class"]) == ["1", "4", "7.5", "9"]
    lines = run("eval", path, "--model", tmp_path / "m", "-m", "AP").stdout.splitlines()
    assert lines[0].split() == ["class", "AP"]
    assert [line.split()[0] for line in lines[1:5]] == ["1", "4", "7.5", "9"]
    assert float(lines[6].split()[1]) == pytest.approx(found["metrics"]["AP"], abs=1e-6)
    assert f"300 ({has.sum()} labels)" in lines[7]


def test_eval_of_a_class_that_the_test_rows_lack(digit_set, digits, run, write_rows, tmp_path):
    some = np.isin(digits.labels, (2, 5))
    data = write_rows(tmp_path / "data", digits.X[some], digits.labels[some])
    found = json.loads(run("eval", data, "--model", digit_set, "--json").stdout)
    assert (found["classes"], found["classes_skipped"]) == (10, 8)
    assert [label for label, values in found["per_class"].items() if values["AP"] is not None] == ["2", "5"]
    scores, truth = load_any_model(digit_set).score(digits.X[some])[:, [2, 5]], digits.labels[some][:, None] == [2, 5]
    assert found["metrics"]["AP"] == pytest.approx(average_precision_score(truth, scores, average="macro"))


def test_systems_side_by_side(digits, digit_set, run, tmp_path):
    """Models of classes, and files of scores with a line of labels or without."""
    other, scores, named = tmp_path / "other", tmp_path / "scores", tmp_path / "named"
    run("train", "-q", "--one-vs-rest", digits.path, other, "--loss", "zero-one", "--bias", "1", "-C", "0.1")
    run("predict", digits.path, digit_set, scores)
    run("predict", "--header", digits.path, digit_set, named)
    columns = [line.split("\t") for line in named.read_text().splitlines()]
    named.write_text("".join(" ".join(line[::-1]) + "\n" for line in columns))
    words = ("--scores", scores, "--scores", named, "--model", digit_set, "--model", other)
    found = json.loads(run("eval", digits.path, *words, "--compare", "--confidence", "0.9", "--json").stdout)["systems"]
    first, second, alike, same = found.values()
    assert first["metrics"] == alike["metrics"] == same["metrics"] != second["metrics"]
    assert {name: dict(values) for name, values in same["per_class"].items()} == first["per_class"]
    d = [second["per_class"][str(c)]["AP"] - first["per_class"][str(c)]["AP"] for c in range(10)]
    against = second["against_first"]["AP"]
    assert against["effect"] == pytest.approx(np.mean(d))
    assert (against["better"], against["worse"]) == (sum(x > 0 for x in d), sum(x < 0 for x in d))
    picked = run("eval", digits.path, "--scores", named, "--positive-label", "3", "--json").stdout
    assert json.loads(picked)["metrics"] == first["per_class"]["3"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1 2", "3 4", "5 6"], "expected a column for each of the 3 classes of .*, found 2; .*--header"),
        (["1 2 3", "3 4", "5 6 7"], "s:2: expected 3 finite numbers, found '3 4'"),
        (["1 2 3", "3 4 x", "5 6 7"], "s:2: expected 3 finite numbers, found '3 4 x'"),
        (["1 2 3"] * 5, "expected 3 scores, one for each row of .*, found 5"),
        (["1 1 2", "1 2 3", "1 2 3", "1 2 3"], "s:1: expected the label of each column, each once"),
    ],
)
def test_scores_of_classes_that_are_wrong(lines, message, run, tmp_path):
    (tmp_path / "data").write_text("1,2 1:1\n3 1:2\n1:4\n")
    (tmp_path / "s").write_text("\n".join(lines) + "\n")
    done = run("eval", tmp_path / "data", "--scores", tmp_path / "s", code=65)
    assert re.search(message, done.stderr), done.stderr


def test_what_eval_refuses(digits, digit_set, trained, run):
    one = trained(digits)
    message = run("eval", digits.path, "--model", digit_set, "--model", one, code=2).stderr
    assert "ranks several classes and" in message
    for options in (("--relevant-from", "3"), ("--all-queries",), ("--per-query",)):
        run("eval", digits.path, "--model", digit_set, *options, code=2)
    done = run("eval", digits.path, "--model", digit_set, "--positive-label", "12", code=65)
    assert "none of them is 12" in done.stderr


def test_info(digit_set, run):
    rankers = load_any_model(digit_set)
    told = json.loads(run("info", digit_set, "--json").stdout)
    assert (told["kind"], told["loss"], told["classes_skipped"]) == ("one-vs-rest", "ap", [])
    for label, own in enumerate(told["classes"]):
        ranker = rankers.ranker(label)
        assert own["labels"]["positive"] == label
        assert own["weights"]["norm"] == pytest.approx(np.linalg.norm(ranker.coef))
        assert own["certificate"]["primal"] == ranker.header.certificate.primal
    lines = run("info", digit_set).stdout.splitlines()
    names = next(line for line in lines if line.startswith("class  ")).replace("gap / C", "gap/C").split()
    rows = [dict(zip(names, line.split(), strict=False)) for line in lines[-10:]]
    for label, row in enumerate(rows):
        header = rankers.ranker(label).header
        assert float(row["class"]) == label
        assert (row["state"], int(row["iterations"])) == (header.state, header.iterations)
        assert float(row["C"]) == pytest.approx(header.C, rel=1e-5)
        assert float(row["gap/C"]) == pytest.approx(header.certificate.gap / header.C, rel=0.1)
        assert int(row["positives"]) == header.data.positives


@pytest.mark.parametrize("options", [(), ("--loss", "zero-one", "--bias", "0.5")], ids=["", "with a bias"])
def test_liblinear_classifies_as_we_do(options, digits, run, tmp_path):
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    model, out = tmp_path / "m", tmp_path / "out"
    run("train", *HINGE, "-q", "--one-vs-rest", digits.path, model, *options)
    run("export", model, out, "--format", "liblinear")
    labels, _, values = liblinear.predict([], digits.X.toarray(), liblinear.load_model(str(out)), "-q")
    ours = load_any_model(model).score(digits.X)
    assert np.allclose(values, ours, rtol=1e-10, atol=1e-10)
    assert np.array_equal(labels, np.argmax(ours, axis=1))


def test_export_of_one_class(digits, digit_set, run, tmp_path):
    for layout in ("liblinear", "svmlight"):
        picked = run("export", digit_set, "--format", layout, "--positive-label", "8").stdout
        run("train", *HINGE, "-q", digits.path, tmp_path / "m", "-C", "3", "--positive-label", "8")
        assert picked == run("export", tmp_path / "m", "--format", layout).stdout
    assert "choose one by --positive-label" in run("export", digit_set, "--format", "svmlight", code=65).stderr
    done = run("export", digit_set, "--format", "liblinear", "--positive-label", "0.5", code=65)
    assert "none of them is 0.5" in done.stderr


def test_export_of_labels_that_liblinear_has_not(tagged, run, tmp_path):
    path, _ = tagged
    run("train", *HINGE, "-q", "--one-vs-rest", path, tmp_path / "m")
    assert "7.5 is none" in run("export", tmp_path / "m", "--format", "liblinear", code=65).stderr


def test_a_set_is_no_linear_ranker(digit_set):
    with pytest.raises(ModelError, match="expected a linear ranker, found a set of rankers"):
        load_model(digit_set)
    assert isinstance(load_any_model(digit_set), RankerSet)


def test_scikit_learn_s_own_file(run, tmp_path):
    """dump_svmlight_file(multilabel=True) → train → eval, against scikit-learn throughout."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 6))
    has = (X @ rng.normal(size=(6, 3)) > 0.8) & (rng.random((200, 3)) < 0.9)
    dump_svmlight_file(X, has, str(tmp_path / "data"), multilabel=True, zero_based=False)
    run("train", *HINGE, "-q", "--one-vs-rest", tmp_path / "data", tmp_path / "m", "-C", "10")
    scores = table(run("predict", tmp_path / "data", tmp_path / "m").stdout)
    found = json.loads(run("eval", tmp_path / "data", "--model", tmp_path / "m", "--json").stdout)
    assert found["metrics"]["AP"] == pytest.approx(average_precision_score(has, scores, average="macro"), rel=1e-12)
    assert found["metrics"]["AP"] > 0.9


@pytest.mark.parametrize("validated", [False, True])
def test_other_trainers(validated, digits, tagged, run, tmp_path):
    """WARP, too, is trained a class at a time as alone; it looks for its validation rows' labels itself."""
    path, _ = tagged
    options = ("--loss", "warp", "--epochs", "3")
    if validated:
        options += ("--validation", path)
    run("train", "-q", "--one-vs-rest", path, tmp_path / "set", *options)
    run("train", "-q", "--multilabel", path, tmp_path / "alone", *options, "--positive-label", "7.5")
    assert load_any_model(tmp_path / "set").ranker(7.5).to_bytes() == (tmp_path / "alone").read_bytes()
    for refused in (("--loss", "wmw"), ("--loss", "warp", "--preference"), ("--loss", "warp", "--rows-as-users")):
        done = run("train", "--one-vs-rest", path, tmp_path / "no", *refused, code=2)
        assert "looks at all labels at once" in done.stderr
