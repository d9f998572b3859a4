"""``-C`` with several values, and ``--warm-start``."""

from __future__ import annotations

import json
import os

import pytest

from apsvm import load_model

#: For what is about the hinge, or needs some model quickly: by default the bound is chosen.
HINGE = ("--bound", "hinge")


def test_a_model_for_each_C(cancer, run, info, tmp_path):
    done = run("train", *HINGE, cancer.path, tmp_path / "p.model", "-C", "0.5,5,50", "--log", tmp_path / "log")
    assert sorted(os.listdir(tmp_path)) == ["log", "p.C0.5.model", "p.C5.model", "p.C50.model"]
    assert done.stderr.count("apsvm: converged after") == 3
    path_iterations = single_iterations = 0
    for C in (0.5, 5.0, 50.0):
        facts = info(tmp_path / f"p.C{C:g}.model")
        run("train", "-q", *HINGE, cancer.path, tmp_path / "single", "-C", C)
        single = info(tmp_path / "single")
        assert (facts.C, facts.state) == (C, "converged")
        assert facts.certificate.primal == pytest.approx(single.certificate.primal, abs=1.01e-3 * C)
        path_iterations += facts.iterations
        single_iterations += single.iterations
    assert path_iterations < single_iterations
    records = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert records[0]["C"] == [0.5, 5.0, 50.0]
    assert [record["C"] for record in records if record["event"] == "end"] == [0.5, 5.0, 50.0]


def test_names_without_the_usual_ending(cancer, run, tmp_path):
    run("train", "-q", *HINGE, cancer.path, tmp_path / "m", "-C", "1,2")
    assert sorted(os.listdir(tmp_path)) == ["m.C1", "m.C2"]


def test_a_path_of_the_approximation(cancer, run, info, tmp_path):
    run("train", "-q", *HINGE, cancer.path, tmp_path / "m", "-C", "1,2", "--oracle", "appx")
    assert [info(tmp_path / name).C for name in ("m.C1", "m.C2")] == [1.0, 2.0]


def test_a_path_in_a_configuration_file(cancer, run, tmp_path):
    (tmp_path / "c.toml").write_text("C = [1, 2.5]\n")
    run("train", "-q", *HINGE, cancer.path, tmp_path / "m", "--config", tmp_path / "c.toml")
    assert sorted(os.listdir(tmp_path)) == ["c.toml", "m.C1", "m.C2.5"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-", "-C", "1,2"), "Error: several models cannot all go to standard output: name a MODEL"),
        (("m", "-C", "1,1"), "Error: values of C that give the same file name: .C1, .C1"),
        (
            ("m", "-C", "1,,2"),
            "Error: Invalid value for '-C' / '--C': expected a finite number above 0, auto or a multiple "
            "such as 10x, found ''",
        ),
        (
            ("m", "-C", "1,-2"),
            "Error: Invalid value for '-C' / '--C': expected a finite number above 0, auto or a multiple "
            "such as 10x, found '-2'",
        ),
        (
            ("m", "-C", ""),
            "Error: Invalid value for '-C' / '--C': expected a finite number above 0, auto or a multiple "
            "such as 10x, found ''",
        ),
    ],
)
def test_refused_paths(options, message, cancer, run, tmp_path):
    done = run("train", cancer.path, *options, code=2, cwd=tmp_path)
    assert done.stderr.endswith(f"{message}\n")
    assert os.listdir(tmp_path) == []


def test_a_time_limit_is_for_the_whole_path(cancer, run, info, tmp_path):
    run("train", "-q", *HINGE, cancer.path, tmp_path / "m", "-C", "1,10", "--time-limit", 0, code=3)
    assert [info(tmp_path / name).iterations for name in ("m.C1", "m.C10")] == [1, 1]


@pytest.mark.parametrize("options", [(), ("--bias", "2"), ("--loss", "zero-one", "--bias", "0.5")])
def test_warm_start(options, cancer, run, info, tmp_path):
    """From its own solution a training starts at its objective; from a model of another width too."""
    model = tmp_path / "m"
    run("train", "-q", *HINGE, cancer.path, model, "-C", 10, "-e", 1e-4, *options)
    run(
        "train", "-q", *HINGE, cancer.path, tmp_path / "again", "-C", 10, *options, "--warm-start", model, "--log",
        tmp_path / "log",
    )  # fmt: skip
    records = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    first = next(record for record in records if record["event"] == "iteration")
    assert first["primal"] == pytest.approx(info(model).certificate.primal, rel=1e-9)
    assert info(tmp_path / "again").state == "converged"


def test_a_model_may_replace_the_one_it_started_from(cancer, run, tmp_path):
    run("train", "-q", *HINGE, cancer.path, tmp_path / "m", "-C", 10)
    before = load_model(tmp_path / "m").header.C
    run("train", "-q", *HINGE, cancer.path, tmp_path / "m", "-C", 20, "--warm-start", tmp_path / "m")
    assert (before, load_model(tmp_path / "m").header.C) == (10.0, 20.0)


def test_refused_warm_starts(cancer, run, tmp_path):
    model = tmp_path / "m"
    run("train", "-q", *HINGE, cancer.path, model)
    narrow = tmp_path / "narrow.svm"
    narrow.write_text("1 1:1\n-1 1:2\n")
    done = run("train", narrow, tmp_path / "n", "--warm-start", model, code=65)
    assert done.stderr.endswith(": it has weights for 30 features, the data has 1\n")
    zero = tmp_path / "zero.svm"
    zero.write_text("1 0:1 40:1\n-1 0:2\n")
    done = run("train", zero, tmp_path / "n", "--zero-based", "--warm-start", model, code=65)
    assert done.stderr.endswith(": its features and the data's count from different bases\n")
    done = run("train", cancer.path, tmp_path / "n", "--oracle", "appx", "--warm-start", model, code=2)
    assert done.stderr.endswith("Error: --warm-start does not apply: --oracle appx starts from its own binary SVM\n")
    run("train", cancer.path, tmp_path / "n", "--warm-start", tmp_path / "nowhere", code=66)
    assert not (tmp_path / "n").exists()
