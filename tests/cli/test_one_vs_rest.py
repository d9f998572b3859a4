"""``apsvm train --one-vs-rest`` and what follows it: info, predict, eval and export of a model of several classes."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import average_precision_score

from apsvm import load_any_model, load_model

#: For what is about the hinge, or needs some model quickly: by default the bound is chosen.
HINGE = ("--bound", "hinge")


@pytest.mark.slow
def test_the_command(digits, digit_set, command, environment, tmp_path):
    """Started as users start it, it writes the same bytes."""
    words = ["train", *HINGE, "-q", "--one-vs-rest", str(digits.path), str(tmp_path / "m"), "-C", "3"]
    subprocess.run([*command, *words], check=True, timeout=60, env=environment())
    assert (tmp_path / "m").read_bytes() == digit_set.read_bytes()


@pytest.mark.slow
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


@pytest.mark.parametrize("bound", ["hinge", "tight"])
def test_each_label_of_several_is_trained_as_alone(bound, tagged, run, tmp_path):
    path, has = tagged
    run("train", "-q", "--bound", bound, "--one-vs-rest", path, tmp_path / "set")
    rankers = load_any_model(tmp_path / "set")
    assert rankers.classes.tolist() == [1, 4, 7.5, 9]
    for label, column in zip(("1", "4", "7.5", "9"), has.T, strict=True):
        run("train", "-q", "--bound", bound, "--multilabel", path, tmp_path / "alone", "--positive-label", label)
        alone = load_model(tmp_path / "alone")
        assert rankers.ranker(float(label)).to_bytes() == alone.to_bytes()
        assert alone.header.data.positives == column.sum()
        assert alone.header.labels.positive == float(label)
        assert alone.header.labels.several is True


def test_the_bound_is_chosen_once_for_all_labels(tagged, run, tmp_path):
    """By the mean over them; each has a threshold by the rows that the choice held out."""
    path, _ = tagged
    printed = run("train", "--one-vs-rest", path, tmp_path / "set").stderr
    assert printed.count("--bound auto: ") == 1
    assert "(5 folds of rows, of 4 classes)" in printed
    headers = load_any_model(tmp_path / "set").headers
    choices = [header.details["choice"] for header in headers]
    assert choices.count(choices[0]) == len(choices) == 4
    assert {header.certificate.bound for header in headers} == {choices[0]["bound"]}
    assert {(header.settings["bound"], header.settings["C"]) for header in headers} == {("auto", "auto")}
    assert {header.threshold.held_out for header in headers} == {choices[0]["held_out"]}


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
    assert [line.split()[2] for line in told] == ["1:", "4:", "7.5:", "9:"]
    assert all("certificate: off the optimum" in line and "converged after" in line for line in told)
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
    assert done.stderr.endswith(
        ": it has a ranker for each of the classes 0, 1, 2, 3, 4, 5, 6, 7, 8, 9: choose one by --positive-label\n"
    )
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


@pytest.mark.slow
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
        ("1 1:1\n1 1:2\n", ": there are no negative rows (2 positive, 0 negative); a ranking needs both"),
        (" 1:1\n 1:2\n", ": no row has a label"),
        ("1,2 1:1\n1,2 1:2\n", ": there are no negative rows (2 positive, 0 negative); a ranking needs both"),
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
    assert done.stderr.endswith(
        ":1:1: expected one number as the label, found '9,4,7.5'; --multilabel (multilabel=True) reads rows "
        "with several\n"
    )
    done = run("train", path, tmp_path / "m", "--multilabel", code=65)
    assert done.stderr.endswith(
        ": its rows have several labels or none: --positive-label (positive_label=) chooses the one that is "
        "positive, --one-vs-rest trains a ranker for each\n"
    )


# ------------------------------------------------------------------------------------------------ using the model


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
    order, users = "looks at all labels at once", "does not look at labels"
    for refused, reason in (("wmw",), order), (("warp", "--preference"), order), (("warp", "--rows-as-users"), users):
        done = run("train", "--one-vs-rest", path, tmp_path / "no", "--loss", *refused, code=2)
        assert f"--one-vs-rest does not apply: this training {reason}" in done.stderr
