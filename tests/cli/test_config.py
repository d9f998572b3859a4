"""Options from a file and from the environment."""

from __future__ import annotations

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


NO_C = "Invalid value for '-C' / '--C': expected a finite number above 0, auto or a multiple such as 10x, found "
HUGE = str(10**400)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("epsiln = 1\n", "unknown key 'epsiln'; did you mean 'epsilon'?"),
        ("maxiterations = 1\n", "unknown key 'maxiterations'; did you mean 'max_iterations'?"),
        ("config = 'x'\n", "unknown key 'config'"),
        ("help_all = true\n", "unknown key 'help_all'"),
        ("data = 'x'\n", "unknown key 'data'"),
        ("[train]\nC = 2\n", "unknown key 'train'"),
        ("max-iterations = 2\nmax_iterations = 3\n", "'max_iterations' is given twice"),
        ("C = \n", "not a TOML file: Invalid value (at line 1, column 5)"),
        (b"C = '\xff'\n", "not a TOML file: 'utf-8' codec can't decode byte 0xff in position 5: invalid start byte"),
        ("epsilon = [1]\n", "'epsilon' must be a number, found [1]"),
        ("C = 'much'\n", "'C' must be a number or a list of numbers, found 'much'"),
        ("C = []\n", "'C' must be a number or a list of numbers, found []"),
        ("C = nan\n", f"{NO_C}nan"),
        ("C = -2\n", f"{NO_C}-2"),
        ("C = 2024-01-01\n", "'C' must be a number or a list of numbers, found datetime.date(2024, 1, 1)"),
        ("C = true\n", "'C' must be a number or a list of numbers, found True"),
        ("oracle = 3\n", "'oracle' must be a string, found 3"),
        ("positive-label = [1]\n", "'positive-label' must be a number or a word, found [1]"),
        ("bias = true\n", "'bias' must be a number or a word, found True"),
        ("quiet = 'perhaps'\n", "'quiet' must be true or false, found 'perhaps'"),
        ("quiet = 7\n", "'quiet' must be true or false, found 7"),
        ("max-iterations = 2.5\n", "'max-iterations' must be an integer, found 2.5"),
        ("threads = true\n", "'threads' must be an integer, found True"),
        ("log = true\n", "'log' must be a string, found True"),
        ("log = 3\n", "'log' must be a string, found 3"),
        # Whole numbers beyond float64.
        (f"C = {HUGE}\n", f"{NO_C}{HUGE}"),
        (
            f"bias = {HUGE}\n",
            f"Invalid value for '-B' / '--bias': expected a finite number, auto or none, found {HUGE}",
        ),
        (
            f"positive-label = {HUGE}\n",
            f"Invalid value for '--positive-label': expected a finite number or a word, found {HUGE}",
        ),
        (
            f"time-limit = {HUGE}\n",
            f"Invalid value for '--time-limit': expected a finite number of at least 0, found {HUGE}",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_refused(content, message, train, tmp_path):
    (tmp_path / "m").write_text("old")
    place = "" if message.startswith("Invalid") else f"{tmp_path}/c.toml: "
    assert train(content, code=2).endswith(f"\n\nError: {place}{message}\n")
    assert (tmp_path / "m").read_text() == "old"


def test_missing_file(train, data, run, tmp_path):
    done = run("train", data, tmp_path / "m", "--config", tmp_path / "nowhere.toml", code=66)
    assert done.stderr == f"apsvm: error: cannot read {tmp_path}/nowhere.toml: No such file or directory\n"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("EPSILN", "1", "unknown environment variable APSVM_TRAIN_EPSILN; did you mean 'APSVM_TRAIN_EPSILON'?"),
        (
            "ONE_BASED",
            "1",
            "unknown environment variable APSVM_TRAIN_ONE_BASED; did you mean 'APSVM_TRAIN_ZERO_BASED'?",
        ),
        ("Q7Q7", "1", "unknown environment variable APSVM_TRAIN_Q7Q7"),
        ("C", "many", f"{NO_C}'many'"),
        ("QUIET", "perhaps", "Invalid value for '-q' / '--quiet': 'perhaps' is not a valid boolean."),
    ],
)
def test_a_bad_environment(name, value, message, train):
    assert f"\n\nError: {message}" in train(None, code=2, env={f"APSVM_TRAIN_{name}": value})


@pytest.mark.parametrize("value", ["0.1.0", "1", ""])
@pytest.mark.parametrize("name", ["APSVM_VERSION", "APSVM_HELP"])
def test_variables_that_are_no_options_of_train_change_nothing(name, value, train):
    """Build scripts and images like to export PROJECT_VERSION."""
    assert train(None, env={name: value}).state == "converged"


def test_from_standard_input(cancer, run, info, tmp_path):
    run("train", "-q", cancer.path, tmp_path / "m", "--config", "-", input="C = 3\n")
    assert info(tmp_path / "m").C == 3.0
