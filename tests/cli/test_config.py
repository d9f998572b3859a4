"""Options from a file."""

from __future__ import annotations

import pytest
from over import over


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data"
    path.write_text("1 1:1\n-1 1:2\n1 1:1.5\n-1 1:1.2\n")
    return path


@pytest.fixture
def train(data, run, info, tmp_path):
    """train(content of the file, option, ..., code=0) → the model's header, or what was said."""

    def call(content, *options, code=0):
        config, model = tmp_path / "c.toml", tmp_path / "m"
        if content is not None:
            config.write_bytes(content.encode() if isinstance(content, str) else content)
            options = ("--config", config, *options)
        done = run("train", data, model, *options, code=code)
        return info(model) if code in (0, 3) else done.stderr

    return call


def test_the_order_of_precedence(train):
    content = "C = 2\nepsilon = 0.02\nseed = 2\n"
    found = train(content, "--seed", 4)
    # default, file, flag
    assert [found.features.bias, found.C, found.settings["epsilon"], found.seed] == [None, 2.0, 0.02, 4]


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


HUGE = str(10**400)  # beyond float64


@over(
    "content, word",
    [
        ("epsiln = 1\n", "did you mean epsilon?"),
        ("maxiterations = 1\n", "did you mean max-iterations?"),
        ("config = 'x'\n", "'config'"),
        ("help_all = true\n", "'help_all'"),
        ("data = 'x'\n", "'data'"),
        ("[train]\nC = 2\n", "'train'"),
        ("max-iterations = 2\nmax_iterations = 3\n", "twice"),
        ("C = \n", "line 1, column 5"),
        (b"C = '\xff'\n", "byte 0xff"),
        ("C = 'much'\n", "'much'"),
        ("C = []\n", "[]"),
        ("C = nan\n", "nan"),
        ("C = -2\n", "-2"),
        (f"epsilon = 0.1\nC = {'[' * 50_000}{']' * 50_000}\n", "recursion"),
        (f"C = {'1' * 5001}\n", "digits"),
        ("C = 2024-01-01\n", "'C'"),
        ("C = true\n", "True"),
        ("oracle = 3\n", "'oracle'"),
        ("bias = true\n", "'bias'"),
        ("quiet = 'perhaps'\n", "'quiet'"),
        ("quiet = 7\n", "'quiet'"),
        ("max-iterations = 2.5\n", "'max-iterations'"),
        ("threads = true\n", "'threads'"),
        ("log = true\n", "'log'"),
        *((f"{key} = {HUGE}\n", HUGE) for key in ("C", "bias", "positive-label", "time-limit")),
    ],
    ids=lambda value: str(value)[:40],
)
def test_refused(content, word, train, tmp_path):
    (tmp_path / "m").write_text("old")
    assert word in train(content, code=2).partition("error: ")[2]
    assert (tmp_path / "m").read_text() == "old"


def test_missing_file(data, run, tmp_path):
    assert "nowhere.toml" in run("train", data, tmp_path / "m", "--config", tmp_path / "nowhere.toml", code=66).stderr


def test_from_standard_input(cancer, run, info, tmp_path):
    run("train", "-q", cancer.path, tmp_path / "m", "--config", "-", input="C = 3\n")
    assert info(tmp_path / "m").C == 3.0
