"""``apsvm cv`` where nobody names what to try: a portfolio, here of few entries, on 200 rows."""

from __future__ import annotations

import json
import os
import re
import signal
from importlib import import_module

import numpy as np
import pytest

from apsvm import load_model
from apsvm.selection import portfolio as module
from apsvm.selection import references as beside
from apsvm.selection.candidates import Entry
from apsvm.selection.race import Measurements
from apsvm.trainers.fitting import FeatureOptions

LINEAR, PIECEWISE = (FeatureOptions(scale="standard", features=name) for name in ("linear", "piecewise"))
ENTRIES = [
    Entry("auc", {"bound": "hinge"}, LINEAR),
    Entry("ap", {"bound": "hinge"}, PIECEWISE),
    Entry("ap", {"bound": "tight"}, PIECEWISE),
]


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """The portfolio; one C for logistic regression and no trees."""
    monkeypatch.setattr(module, "portfolio", lambda *_: list(ENTRIES))
    monkeypatch.setattr(beside, "LOGISTIC_C", (1.0,))
    monkeypatch.setattr(beside, "MOST_DENSE_VALUES", 0)


@pytest.fixture
def data(rng, tmp_path, write_rows):
    """Positives are where the first feature is far from 0, on either side: broken lines see it, lines do not."""
    X = rng.normal(size=(200, 3))
    return write_rows(tmp_path / "rows.svm", X, np.where(np.abs(X[:, 0]) + 0.3 * rng.normal(size=200) > 1.3, 1.0, -1.0))


def test_what_it_says(data, run, bars):
    _, first, _, on, *_ = run("cv", data, "--folds", 3, "-j", 1).stderr.splitlines()
    assert first == "apsvm: trying 3 combinations of loss and features"
    # Lines are far behind.
    assert re.fullmatch(r"apsvm: given up: auc, hinge, linear, standard \(AP 0\.\d+ in one fold\)", on)
    screening, comparing = bars.index("screening"), bars.index("comparing")
    assert (bars[0], bars[-1]) == (f"reading {data}", "training common models on the same folds")
    for said, pattern in (
        (bars[screening + 1 : comparing], r"\d/\d paths screened, .*, standard"),
        (bars[comparing + 1 : -1], r"\d/\d paths compared"),
    ):
        assert all(re.fullmatch(pattern, one) for one in said), said


def test_a_signal_while_rivals_train(data, run, tmp_path, monkeypatch):
    """The table is shown, and nothing is trained on all rows."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)

    def stopped(*_):
        os.kill(os.getpid(), signal.SIGINT)
        return iter(())

    monkeypatch.setattr(beside, "references", stopped)
    try:
        done = run("cv", data, "--folds", 3, "-j", 1, "-o", tmp_path / "m", code=130)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert "chosen" in done.stdout
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_screening(number, data, run, tmp_path, monkeypatch):
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    model = tmp_path / "m"

    added = Measurements.add

    def killed(self, path):
        os.kill(os.getpid(), number)
        added(self, path)

    monkeypatch.setattr(Measurements, "add", killed)
    try:
        done = run("cv", "-v", data, "--folds", 3, "-j", 1, "-o", model, code=128 + number)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert done.stderr.endswith("error: stopped, nothing was finished in every fold\n")
    assert "compared further" not in done.stderr
    assert not model.exists()


def test_too_few_positives_are_said_at_once(run, tmp_path, write_rows, rng):
    """There are as many folds as positives, and two at least."""
    one, three = (
        write_rows(tmp_path / f"{count}.svm", rng.normal(size=(50, 3)), np.where(np.arange(50) < count, 1.0, -1.0))
        for count in (1, 3)
    )
    done = run("cv", one, code=65)
    assert done.stderr.endswith(": 2 folds need at least 2 positive rows, found 1\n")
    assert "screened" not in done.stderr
    done = run("cv", three, "--loss", "ap", "--bound", "hinge", "--json", tmp_path / "found")
    assert json.loads((tmp_path / "found").read_text())["folds"] == 3
    assert "3 folds: 5 would leave some without" in done.stderr


@pytest.fixture
def ends(monkeypatch):
    """ends(k): the time is over when it is looked up for the k-th time."""
    run = import_module("apsvm.cli.commands.cv")._Run

    def after(looks):
        left = iter(range(looks - 1))
        monkeypatch.setattr(run, "is_over", lambda self: next(left, None) is None)

    return after


@pytest.mark.parametrize("looks", [1, 4, 20, 60])
def test_a_time_limit_that_ends(looks, data, run, tmp_path, ends):
    """Wherever it does, there is a model of the best so far, that two folds at least have judged."""
    ends(looks)
    model = tmp_path / "m"
    done = run("cv", data, "--folds", 3, "-j", 1, "--time-limit", 60, "-o", model, code=3)
    assert "the time limit ends the comparison: " in done.stderr
    assert "for comparison" not in done.stdout
    assert sum(line.endswith("chosen") for line in done.stdout.splitlines()) == 1
    assert load_model(model).header.threshold is not None
