"""Trainers that have settings of the same names: each has its own defaults and words."""

from __future__ import annotations

import importlib
import json

import pytest
from newcomers import COST, FOLDS, LATENT, LINE, SECOND, SEEDED

#: The first that declares a setting of a name is another trainer each time.
two_newcomers = pytest.mark.parametrize(
    "registered", [({}, LINE | SECOND), ({}, SECOND | LINE), (SECOND, LINE)], indirect=True
)


@two_newcomers
def test_each_has_its_own_defaults(rows, run, info_of, tmp_path):
    _, _, data = rows
    own = {"passes": 3, "margin": 0.625, "epochs": 7, "learning_rate": 0.25}
    run("train", "-q", "--loss", "second", data, tmp_path / "m")
    assert info_of(tmp_path / "m").settings == own
    run("train", "-q", "--loss", "perceptron", data, tmp_path / "m")
    assert info_of(tmp_path / "m").settings == {"margin": 0.1, "passes": 200}
    run("train", "-q", "--loss", "warp", data, tmp_path / "m")
    assert {"epochs": 30, "learning_rate": 0.05}.items() <= info_of(tmp_path / "m").settings.items()
    run("cv", "-q", "--loss", "second", "--folds", 2, data, "-o", tmp_path / "m")
    assert info_of(tmp_path / "m").settings == own


@two_newcomers
def test_each_is_tried_with_values_of_its_own(rows, run):
    _, _, data = rows
    out, _ = run("cv", "--loss", "second,perceptron", "--folds", 2, "--passes", 2, "--json", "-", data)
    tried = {}
    for one in json.loads(out)["settings"]:
        tried.setdefault(one["loss"], []).append(one)
    assert {0.01, 0.1, 1.0} <= {one["margin"] for one in tried["perceptron"]}
    assert len(tried["second"]) == 1


@pytest.mark.parametrize("registered", [({}, LATENT)], indirect=True)
def test_a_flag_is_no_value(registered):
    with pytest.raises(TypeError, match="structured-svm and latent declare latent and read it differently"):
        importlib.import_module("apsvm.cli.options.trainers").trainer_options()


@pytest.mark.parametrize(
    ("registered", "command", "flag"),
    [(({}, COST), "train", "-C"), (({}, FOLDS), "cv", "--folds")],
    indirect=["registered"],
)
def test_a_flag_of_another_option_is_warned_of(cli, run, command, flag):
    """By click, to the trainer's author; here warnings are errors."""
    assert f"The parameter {flag} is used more than once" in run(command, "--help", code=1)[1]


@pytest.mark.parametrize("registered", [({}, SEEDED)], indirect=True)
def test_a_setting_of_all_trainers_may_be_declared_anew(rows, run, info_of, tmp_path):
    _, _, data = rows
    run("train", "-q", "--loss", "seeded", "--seed", 7, data, tmp_path / "m")
    assert info_of(tmp_path / "m").seed == 7
    run("train", "-q", "-C", 1, "--bound", "hinge", "--seed", 3, data, tmp_path / "m")
    assert info_of(tmp_path / "m").seed == 3
