"""Options from a file and from the environment."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data"
    path.write_text("1 1:1\n-1 1:2\n1 1:1.5\n-1 1:1.2\n")
    return path


@pytest.fixture
def train(data, run, info, tmp_path):
    """train(content of the file, option, ..., code=0, env=None) → the model's header, or what was said."""

    def call(content, *options, code=0, env=None):
        config, model = tmp_path / "c.toml", tmp_path / "m"
        if content is not None:
            config.write_bytes(content.encode() if isinstance(content, str) else content)
            options = ("--config", config, *options)
        done = run("train", data, model, *options, code=code, env=env)
        return info(model) if code in (0, 3) else done.stderr

    return call


def test_the_order_of_precedence(train):
    content = "C = 2\nepsilon = 0.02\nseed = 2\n"
    env = {"APSVM_TRAIN_EPSILON": "0.03", "APSVM_TRAIN_SEED": "3"}
    found = train(content, "--seed", 4, env=env)
    # default, file, environment, flag
    assert [found.features.bias, found.C, found.settings["epsilon"], found.seed] == [None, 2.0, 0.03, 4]


@pytest.mark.parametrize("key", ["max-iterations", "max_iterations"])
def test_dashes_or_underscores(key, train):
    assert train(f"{key} = 2\nepsilon = 1e-9", code=3).iterations == 2


def test_flags_and_choices(train):
    found = train('oracle = "search"\nbias = 1\nquiet = true\nzero_based = true\npositive-label = -1\n')
    assert (found.settings["oracle"], found.features.bias, found.features.zero_based, found.labels.positive) == (
        "search",
        1.0,
        True,
        -1.0,
    )


def test_a_file_named_in_the_environment(train, tmp_path):
    (tmp_path / "other.toml").write_text("C = 5\n")
    assert train(None, env={"APSVM_TRAIN_CONFIG": str(tmp_path / "other.toml")}).C == 5.0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("epsiln = 1\n", ["c.toml", "unknown key 'epsiln'", "did you mean 'epsilon'?"]),
        ("maxiterations = 1\n", ["unknown key 'maxiterations'", "did you mean 'max"]),
        ("config = 'x'\n", ["unknown key 'config'"]),
        ("data = 'x'\n", ["unknown key 'data'"]),
        ("[train]\nC = 2\n", ["unknown key 'train'"]),
        ("max-iterations = 2\nmax_iterations = 3\n", ["given twice"]),
        ("C = \n", ["c.toml", "not a TOML file", "line 1"]),
        (b"C = '\xff'\n", ["c.toml", "not a TOML file"]),
        ("epsilon = [1]\n", ["'epsilon' must be a number, found [1]"]),
        ("C = 'much'\n", ["'C' must be a number or a list of numbers", "found 'much'"]),
        ("C = nan\n", ["'--C'", "finite"]),
        ("C = -2\n", ["'--C'", "above 0"]),
        ("C = 2024-01-01\n", ["'C'"]),
        ("oracle = 'qsort'\n", ["'--oracle'", "'qsort'"]),
        ("oracle = 3\n", ["'oracle' must be a string"]),
        ("quiet = 'perhaps'\n", ["'quiet' must be true or false"]),
        # Of the wrong type, though something could be made of them.
        ("C = true\n", ["C"]),
        ("max-iterations = 2.5\n", ["max-iterations"]),
        ("quiet = 7\n", ["quiet"]),
        ("log = true\n", ["log"]),
        ("log = 3\n", ["log"]),
        ("threads = true\n", ["threads"]),
    ],
)
def test_refused(content, words, train, tmp_path):
    (tmp_path / "m").write_text("old")
    before = set(os.listdir("."))
    try:
        said = train(content, code=2)
    finally:
        for stray in (set(os.listdir(".")) - before) & {"True", "3"}:
            os.unlink(stray)
    assert not [word for word in words if word not in said]
    assert (tmp_path / "m").read_text() == "old"


def test_missing_file(train, data, run, tmp_path):
    done = run("train", data, tmp_path / "m", "--config", tmp_path / "nowhere.toml", code=66)
    assert "nowhere.toml: No such file" in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("APSVM_TRAIN_EPSILN", "1", ["unknown environment variable APSVM_TRAIN_EPSILN", "'APSVM_TRAIN_EPSILON'"]),
        ("APSVM_TRAIN_ONE_BASED", "1", ["unknown environment variable APSVM_TRAIN_ONE_BASED"]),
        ("APSVM_TRAIN_C", "many", ["'--C'", "'many'"]),
        ("APSVM_TRAIN_QUIET", "perhaps", ["'--quiet'"]),
    ],
)
def test_a_bad_environment(name, value, words, train):
    said = train(None, code=2, env={name: value})
    assert not [word for word in words if word not in said]


@pytest.mark.parametrize("value", ["0.1.0", "1", ""])
@pytest.mark.parametrize("name", ["APSVM_VERSION", "APSVM_HELP"])
def test_variables_that_are_no_options_of_train_change_nothing(name, value, train):
    """Build scripts and images like to export PROJECT_VERSION."""
    assert train(None, env={name: value}).state == "converged"


def test_from_standard_input(cancer, run, info, tmp_path):
    run("train", "-q", cancer.path, tmp_path / "m", "--config", "-", input="C = 3\n")
    assert info(tmp_path / "m").C == 3.0
