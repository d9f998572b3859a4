"""``apsvm train --one-vs-rest`` and what follows it: info, predict, eval and export of a model of several classes."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import numpy as np
import pytest

from apsvm import load_any_model

#: For what is about the hinge, or needs some model quickly: by default the bound is chosen.
HINGE = ("--bound", "hinge")


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
    assert "3 averaged; 1 of the data's classes are not ranked" in text


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted(number, code, digits, command, environment, tmp_path):
    """The classes at work end with their best so far; those that wait are left out, and that is said."""
    model = tmp_path / "m"
    process = subprocess.Popen(
        [
            *command,
            "train",
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
        assert any("10 classes" in line for line in process.stderr)  # they have been read, and the first two begin
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=0.3)
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == code, said
    assert "Traceback" not in said
    rankers = load_any_model(model)
    assert 1 <= rankers.classes.size < 10
    assert rankers.header.state == "interrupted"
    skipped = rankers.header.classes_skipped
    assert sorted([*rankers.classes, *(one.label for one in skipped)]) == list(range(10))
    assert {one.reason for one in skipped} == {"stopped before its turn"}
    assert "class 9 is left out: stopped before its turn" in said
    assert sorted(os.listdir(tmp_path)) == ["m"]


# ------------------------------------------------------------------------------------------------ using the model
