"""``--warm-start``, and a C that is several."""

from __future__ import annotations

import json

import pytest

#: For what is about the hinge, or needs some model quickly: by default the bound is chosen.
HINGE = ("--bound", "hinge")


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
