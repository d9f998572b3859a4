"""Wall times always, CPU times only where a log keeps them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from apsvm._support import clock
from apsvm._support.clock import Span, Spans
from apsvm._support.log import JsonLinesLog, NoLog


@pytest.fixture
def uncounted(monkeypatch):
    """As in a process that has no log."""
    monkeypatch.setattr(clock, "_cpu_time_ns", None)


def busy():
    """Wall and CPU time pass."""
    began = time.process_time_ns()
    while time.process_time_ns() - began < 3_000_000:
        sum(range(1000))


def test_parts_add_up(uncounted):
    spans = Spans()
    for _ in range(2):
        with spans["oracle"]:
            busy()
    with spans["qp"]:
        pass
    assert set(spans) == {"oracle", "qp"}
    assert spans["oracle"].wall_ns >= 5_000_000  # the two clocks differ a little
    assert Span(1, 2) + Span(10, 20) == Span(11, 22)


def test_a_part_that_fails_has_its_time(uncounted):
    spans = Spans()
    with suppress(ZeroDivisionError), spans["oracle"]:
        busy()
        raise ZeroDivisionError
    assert spans["oracle"].wall_ns >= 2_500_000


def test_without_a_log_nobody_asks_for_the_CPU_time(uncounted, monkeypatch):
    monkeypatch.setattr(time, "process_time_ns", lambda: pytest.fail("it can take longer than what is timed"))
    spans = Spans()
    NoLog()
    with spans["oracle"]:
        time.sleep(1e-3)
    assert spans["oracle"].cpu_ns == 0
    assert spans["oracle"].wall_ns >= 1_000_000


def test_with_a_log_it_is_counted(uncounted):
    JsonLinesLog(io.StringIO())
    spans = Spans()
    with spans["oracle"]:
        busy()
    assert spans["oracle"].cpu_ns >= 3_000_000
    with spans["sleep"]:
        time.sleep(0.02)
    assert spans["sleep"].cpu_ns < spans["sleep"].wall_ns


TRAINING = """
import io, json, sys
import numpy as np
from apsvm.data.labels import of_relevance
from apsvm.data.rows import Rows
from apsvm._support.log import JsonLinesLog, NoLog
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.losses import make_loss
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.training import train

X = np.random.default_rng(0).normal(size=(5000, 10))
data = TrainingSet(Rows(X, threads=1), of_relevance(X[:, 0] + X[:, 1] > 1))
log = JsonLinesLog(io.StringIO()) if sys.argv[1] == "log" else NoLog()
plan = Plan(loss=make_loss("ap"), settings=StructuredSettings(bound="hinge", C=(10.0,)))
(trained,) = train(plan, data, Watch(log=log))
print(json.dumps([[span.wall_ns, span.cpu_ns] for span in trained.stages[0].spans.values()]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("log", ["log", "none"])
def test_of_a_training(log):
    """In a process of its own: whoever counts once counts from then on."""
    done = subprocess.run([sys.executable, "-c", TRAINING, log], check=True, capture_output=True, text=True)
    spans = json.loads(done.stdout)
    assert all(wall > 0 for wall, _ in spans)
    assert (sum(cpu for _, cpu in spans) > 0) == (log == "log")
