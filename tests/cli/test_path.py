"""``--warm-start``, and a C that is several."""

from __future__ import annotations

import json
import os

import pytest
from over import over

#: For what is about the hinge, or needs some model quickly: by default the bound is chosen.
HINGE = ("--bound", "hinge")


@over("options", ["m -C 1,2", "m -C 1,2,1", "m -C 1,", "m -C 1,-2"])
def test_several_C(options, cancer, run, tmp_path):
    assert "Error: " in run("train", cancer.path, *options.split(), code=2, cwd=tmp_path).stderr
    assert os.listdir(tmp_path) == []


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
