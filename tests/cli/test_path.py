"""``-C`` with several values, and ``--warm-start``."""

from __future__ import annotations

import json
import os

import pytest
from over import over

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


@over("options", ["m -C 1,2,1", "- -C 1,2", "m -C 1,", "m -C 1,-2"])
def test_refused_paths(options, cancer, run, tmp_path):
    assert "Error: " in run("train", cancer.path, *options.split(), code=2, cwd=tmp_path).stderr
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


def test_refused_warm_starts(cancer, run, tmp_path):
    run("train", "-q", *HINGE, cancer.path, tmp_path / "m")
    for content, options, code, word in (
        ("1 1:1\n-1 1:2\n", (), 65, "30 features"),
        ("1 0:1 40:1\n-1 0:2\n", ("--zero-based",), 65, "bases"),
        ("1 1:1\n-1 1:2\n", ("--oracle", "appx"), 2, "--warm-start"),
        ("1 1:1\n-1 1:2\n", ("--warm-start", tmp_path / "nowhere"), 66, "nowhere"),
    ):
        (tmp_path / "rows.svm").write_text(content)
        done = run("train", tmp_path / "rows.svm", tmp_path / "n", "--warm-start", tmp_path / "m", *options, code=code)
        assert word in done.stderr
        assert not (tmp_path / "n").exists()
