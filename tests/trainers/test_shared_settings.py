"""Trainers that have settings of the same names: each has its own defaults, types and words."""

from __future__ import annotations

import importlib
import json

import click
import pytest
from newcomers import COST, FOLDS, LATENT, LINE, SECOND

from apsvm.cli.options.trainers import trainer_options
from apsvm.trainers import TRAINERS
from apsvm.trainers.settings import declared

#: The first that declares a setting of a name is another trainer each time.
two_newcomers = pytest.mark.parametrize(
    "registered", [({}, LINE | SECOND), ({}, SECOND | LINE), (SECOND, LINE)], indirect=True
)


@two_newcomers
def test_each_has_its_own_defaults(rows, run, info_of, tmp_path):
    _, _, data = rows
    own = {"passes": 3, "margin": 0.625, "C": 2.5, "epochs": 7, "learning_rate": 0.25, "bound": 4}
    run("train", "-q", "--loss", "second", data, tmp_path / "m")
    assert info_of(tmp_path / "m").settings == own
    run("train", "-q", "--loss", "perceptron", data, tmp_path / "m")
    assert info_of(tmp_path / "m").settings == {"margin": 0.1, "passes": 200}
    run("train", "-q", "--loss", "warp", data, tmp_path / "m")
    assert {"epochs": 30, "learning_rate": 0.05}.items() <= info_of(tmp_path / "m").settings.items()
    run("cv", "-q", "--loss", "second", "--folds", 2, data, "-o", tmp_path / "m")
    assert info_of(tmp_path / "m").settings == own


@two_newcomers
def test_each_reads_values_in_its_own_type(rows, run, info_of, tmp_path, monkeypatch):
    _, _, data = rows
    model = tmp_path / "m"
    run("train", "-q", "--loss", "second", "-C", "2", "--bound", "5", data, model)
    assert {"C": 2.0, "bound": 5}.items() <= info_of(model).settings.items()
    run("train", "-q", "--loss", "ap", "-C", "10x", "--bound", "hinge", data, model)
    assert {"C": "10x", "bound": "hinge"}.items() <= info_of(model).settings.items()
    for value, reason in [("10x", "expected a number, found '10x'"), ("1,2", "expected a number, found '1,2'")]:
        said = run("train", "--loss", "second", "-C", value, data, model, code=2)[1]
        assert f": {reason}\n" in said
    said = run("train", "--loss", "second", "--bound", 10, data, model, code=2)[1]
    assert said.startswith("Usage: ")
    assert said.endswith("\n\nError: Invalid value for '--bound': 10 is not in the range 1<=x<=9.\n")
    assert "'5' is not one of 'auto'," in run("train", "--loss", "ap", "--bound", 5, data, model, code=2)[1]
    config = tmp_path / "config.toml"
    config.write_text('loss = "second"\nC = 3\nbound = 6\n')
    run("train", "-q", "--config", config, data, model)
    assert {"C": 3.0, "bound": 6}.items() <= info_of(model).settings.items()
    monkeypatch.setenv("APSVM_TRAIN_BOUND", "7")
    run("train", "-q", "--config", config, data, model)
    assert info_of(model).settings["bound"] == 7
    monkeypatch.delenv("APSVM_TRAIN_BOUND")
    config.write_text('loss = "second"\nC = [1, 2]\n')
    said = run("train", "-q", "--config", config, data, model, code=2)[1]
    assert "Error: Invalid value for '-C' / '--C': expected a number, found (1, 2)\n" in said.replace(
        "'--C' / '-C'", "'-C' / '--C'"
    )
    config.write_text("bound = true\n")
    said = run("train", "-q", "--config", config, data, model, code=2)[1]
    assert "'bound' must be a string or an integer, found True" in said or "an integer or a string, found True" in said


@two_newcomers
def test_each_is_tried_with_values_of_its_own(rows, run, tmp_path):
    _, _, data = rows
    options = ("--loss", "second,ap,perceptron", "--folds", 2, "--passes", 2, "--bound", 3)
    said = run("cv", *options, data, code=2)[1]
    assert "'3' is not one of 'auto', 'hinge', 'tight'" in said
    out, _ = run("cv", *options[:-2], "-C", 1, "--json", "-", data)
    tried = {}
    for one in json.loads(out)["settings"]:
        tried.setdefault(one["loss"], []).append(one)
    assert [one["C"] for one in tried["ap"] if one["bound"] == "hinge"] == [1.0]
    assert [one["margin"] for one in tried["perceptron"]] == [0.01, 0.1, 1.0]
    assert len(tried["second"]) == 1


@two_newcomers
def test_help_tells_them_apart(cli, run):
    options = {
        option.name: option for option in importlib.import_module("apsvm.cli.options.trainers").trainer_options()
    }
    passes = {"perceptron": "Corrections of each query, at most.", "second": "Corrections, at most."}
    settings = declared(TRAINERS["structured-svm"].Settings)
    C, bound = ({"structured-svm": settings[name][1].help, "second": "Of no use."} for name in ("C", "bound"))
    several = " Several values: a model each, MODEL with .C<value> in its name; each starts from those before."
    for name, texts, defaults, more in [
        ("margin", {}, {"perceptron": "0.1", "second": "0.625"}, ""),
        ("passes", passes, {"perceptron": "200", "second": "3"}, ""),
        ("C", C, {"structured-svm": "auto", "second": "2.5"}, several),
        ("bound", bound, {"structured-svm": "auto", "second": "4"}, ""),
    ]:
        order = [trainer.family for trainer in options[name].takers]
        said = (
            " ".join(f"{family}: {texts[family]}" for family in order) if texts else "How far ahead a positive must be."
        )
        by_default = "; ".join(f"{family} {defaults[family]}" for family in order)
        assert options[name].help == f"{said} [default: {by_default}]{more}"
        assert (options[name].default, options[name].show_default, options[name].metavar) == (None, False, None)
    text = "".join(run("train", "--help-all")[0].split())
    assert "[auto|hinge|tight]|INTEGERRANGE" in text or "INTEGERRANGE|[auto|hinge|tight]" in text


def test_help_of_options_that_several_trainers_share():
    context = click.Context(click.Command("train"))
    options = {option.name: option for option in trainer_options()}
    assert options["query_weights"].opts == ["--query-weights"]
    shown = {name: (options[name].default, options[name].show_default) for name in ("C", "max_iterations", "epsilon")}
    assert shown == {"C": ("auto", True), "max_iterations": (10000, True), "epsilon": (None, False)}
    names = ("C", "epsilon", "tau", "query_weights", "learning_rate", "bound", "components")
    assert [options[name].make_metavar(context) for name in names] == [
        "NUMBER[,NUMBER…]", "NUMBER|EPS", "auc|p@1|p@K|harmonic", "FILE", "NUMBER", "[auto|hinge|tight]",
        "INTEGER RANGE",
    ]  # fmt: skip
    lists = {option.name: option for option in trainer_options(as_lists=True)}
    assert [lists[name].make_metavar(context) for name in names] == [
        "NUMBER[,NUMBER…]", "NUMBERS|EPS", "auc|p@1|p@K|harmonic", "FILE", "NUMBERS", "[auto|hinge|tight],…",
        "INTEGER RANGE,…",
    ]  # fmt: skip
    assert lists["bound"].default == ("hinge", "tight")


@pytest.mark.parametrize("registered", [({}, LATENT)], indirect=True)
def test_a_flag_is_no_value(registered):
    with pytest.raises(TypeError, match="'structured-svm' and 'latent' both declare latent, the one as a flag"):
        importlib.import_module("apsvm.cli.options.trainers").trainer_options()


@pytest.mark.parametrize(
    ("registered", "command", "message"),
    [
        (({}, COST), "train", "-C is an option of the setting C of structured-svm, and of the setting cost of cost"),
        (({}, FOLDS), "cv", "folds is an option of the command, and of the setting folds of folds"),
    ],
    indirect=["registered"],
)
def test_a_name_or_flag_of_another_option_is_refused(cli, run, command, message):
    """To the trainer's author: nobody's option is taken away."""
    said = run(command, "--help", code=1)[1]
    assert message in said
    assert "one needs another name or flag" in said
