"""The timing log of ``--log`` and what is said while training."""

from __future__ import annotations

import fcntl
import json
import os

import pytest
from command import OLD_MODEL

import apsvm.cli.training
from apsvm import load_model

#: For what is about the hinge, or needs some model quickly: by default the bound is chosen.
HINGE = ("--bound", "hinge")

PARTS = ("scores", "oracle", "gradient")


def no_constant(name):
    pytest.fail(f"{name} is not JSON")


def records(text):
    return [json.loads(line, parse_constant=no_constant) for line in text.splitlines()]


def of(event, log):
    return [record for record in log if record["event"] == event]


@pytest.fixture(scope="module")
def training(digits, run, tmp_path_factory):
    """A training of some length, its log and what it said."""
    folder = tmp_path_factory.mktemp("log")
    done = run("train", "-v", *HINGE, digits.path, folder / "m", *digits.options, "-C", "100", "--log", folder / "log")
    return done, records((folder / "log").read_text()), folder / "m"


def test_the_records_of_an_iteration(training, digits):
    """An iteration is some oracle calls, then its own record."""
    _, log, model = training
    n = load_model(model).header.iterations
    assert n > 5
    assert log[0]["event"] == "start"
    assert log[-1]["event"] == "end"
    assert [record["iteration"] for record in of("iteration", log)] == list(range(1, n + 1))
    calls = finished = 0
    for record in log[1:-1]:
        if record["event"] == "oracle":
            calls += 1
            assert record["iteration"] == finished + 1
        else:
            assert record["oracle_calls"] == calls > 0
            calls, finished = 0, finished + 1


def test_the_oracle_records(training, digits):
    _, log, _ = training
    n_pos = int(digits.positive.sum())
    for record in of("oracle", log):
        assert record["oracle"] == "bucket"
        assert (record["n_pos"], record["n_neg"], record["queries"]) == (n_pos, 1797 - n_pos, 1)
        assert 0 <= record["violating"] <= record["n_neg"]
        assert 0 < record["ranks_evaluated"] <= record["n_neg"]
        assert 0 <= record["loss"] <= 1
        assert record["risk"] >= 0
        assert record["oracle_wall_ns"] > 0
        assert record["oracle_cpu_ns"] >= 0
    assert len({record["violating"] for record in of("oracle", log)}) > 5


def test_the_iteration_records(training):
    _, log, model = training
    iterations = of("iteration", log)
    final = load_model(model).header.certificate
    primals, duals = [r["primal"] for r in iterations], [r["dual"] for r in iterations]
    assert primals == sorted(primals, reverse=True)
    assert duals == sorted(duals)
    assert primals[0] > primals[-1] == final.primal
    assert duals[0] < duals[-1] == final.dual
    assert max(duals) <= final.primal * (1 + 1e-12)
    for record in iterations:
        assert record["gap"] == record["primal"] - record["dual"]
        for part in PARTS:
            assert isinstance(record[f"{part}_wall_ns"], int)
            assert record[f"{part}_wall_ns"] > 0
            assert isinstance(record[f"{part}_cpu_ns"], int)
            assert record[f"{part}_cpu_ns"] >= 0
        assert record["planes"] >= 1
    assert [r["seconds"] for r in iterations] == sorted(r["seconds"] for r in iterations)


def test_start_and_end(training):
    _, log, model = training
    header = load_model(model).header
    start, end = log[0], log[-1]
    assert (start["loss"], start["C"], start["n_rows"]) == ("ap", 100.0, 1797)
    assert start["sha256"] == header.data.sha256
    assert (end["state"], end["model"]) == ("converged", str(model))
    assert all(end[key] == getattr(header.certificate, key) for key in ("primal", "dual", "gap", "tolerance"))


def test_log_on_standard_output(cancer, trained, run, tmp_path):
    done = run("train", *HINGE, cancer.path, tmp_path / "m", "--log", "-")
    assert {record["event"] for record in records(done.stdout)[1:-1]} == {"oracle", "iteration"}
    assert records(done.stdout)[0]["event"] == "start"
    assert records(done.stdout)[-1]["event"] == "end"
    assert (tmp_path / "m").read_bytes() == trained(cancer).read_bytes()
    assert "model written" in done.stderr


@pytest.mark.parametrize(
    ("data", "options", "code"),
    [
        ("1 1:1\n-1 1:x\n", (), 65),
        ("1 1:1\n1 1:2\n", (), 65),
        ("1 1:1\n2 1:2\n", (), 65),
        ("1 qid:1 1:1\n-1 qid:2 1:2\n", (), 65),
        ("1 1:1\n-1 1:2\n", ("--loss", "zero-one", "--oracle", "qs"), 2),
        ("1 1:1\n-1 1:2\n", ("--loss", "zero-one", "--oracle", "appx"), 2),
        ("1 1:1\n-1 1:2\n", ("--positive-label", "9"), 65),
        (None, (), 66),
    ],
    ids=["syntax", "one class", "labels", "no pair", "oracle", "appx", "positive label", "no file"],
)
def test_a_failed_run_leaves_old_files_alone(data, options, code, run, tmp_path):
    source, log, model = tmp_path / "data", tmp_path / "log", tmp_path / "m"
    if data is not None:
        source.write_text(data)
    log.write_text("the log of yesterday\n")
    model.write_text(OLD_MODEL)
    run("train", source, model, "--log", log, *options, code=code)
    assert model.read_text() == OLD_MODEL
    assert log.read_text() == "the log of yesterday\n"


def test_one_training_at_a_time_has_the_log(cancer, run, tmp_path):
    log = tmp_path / "log"
    with open(log, "w") as stream:
        stream.write("of another training\n")
        stream.flush()
        fcntl.flock(stream, fcntl.LOCK_EX)
        said = run("train", cancer.path, tmp_path / "m", *HINGE, "-C", "1", "--log", log, code=74).stderr
    assert said.splitlines()[-1] == f"apsvm: error: cannot write {log}: another process is writing it"
    assert log.read_text() == "of another training\n"
    assert os.listdir(tmp_path) == ["log"]


def test_one_training_has_a_new_run_folder(cancer, run, tmp_path, monkeypatch):
    """Another one may begin it after this one has looked, while it reads its data."""
    log = tmp_path / "run" / "log.jsonl"
    describe = apsvm.cli.training.describe

    def begun_by_another(*rows):
        log.parent.mkdir()
        log.write_text("{}\n")
        return describe(*rows)

    monkeypatch.setattr(apsvm.cli.training, "describe", begun_by_another)
    said = run("train", cancer.path, *HINGE, "-C", "1", "--run-dir", tmp_path / "run", code=74).stderr
    assert f"cannot write {log}: another process has created it" in said
    assert log.read_text() == "{}\n"


def test_a_link_of_the_logs_name_is_replaced(cancer, run, tmp_path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "log").symlink_to("precious")
    run("train", "-q", cancer.path, tmp_path / "m", *HINGE, "-C", "1", "--log", tmp_path / "log")
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (tmp_path / "log").is_symlink()
