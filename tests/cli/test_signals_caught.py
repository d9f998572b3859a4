"""Signals of a training, without a training: the first is collected, a later one stops."""

from __future__ import annotations

import os
import signal
import time

import pytest

from apsvm.cli.shared import INTERRUPTED, TERMINATED, Failure
from apsvm.cli.training import SIGNALS, signals_caught


@pytest.fixture(autouse=True)
def interruptible():
    """Programs in the background of a shell ignore SIGINT, and so would these tests."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.fixture
def clock(monkeypatch):
    """The time in seconds, as a list of one, that signals are told apart by."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def send(number):
    os.kill(os.getpid(), number)
    time.sleep(0)  # Python runs the handler between two of its instructions


@pytest.mark.parametrize("later", [0.0, 0.1, 0.5])
def test_signals_of_one_moment_are_one(later, clock):
    """A terminal's Ctrl-C may reach us twice, from the shell and from who started us."""
    with signals_caught() as caught:
        send(signal.SIGINT)
        clock[0] += later
        send(signal.SIGTERM)
        assert caught == [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED), (signal.SIGHUP, TERMINATED)]
)
def test_a_later_signal_stops(number, code, clock):
    with signals_caught() as caught:
        send(signal.SIGINT)
        clock[0] += 0.3
        send(signal.SIGINT)
        clock[0] += 0.3  # counted from the first
        with pytest.raises(Failure, match="stopped, no model written") as stopped:
            send(number)
        assert stopped.value.exit_code == code
        assert caught == [signal.SIGINT, signal.SIGINT]


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in SIGNALS]
    with signals_caught():
        assert signal.getsignal(signal.SIGINT) not in before
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_an_ignored_signal_stays_ignored(monkeypatch):
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signals_caught() as caught:
            send(signal.SIGINT)
            send(signal.SIGTERM)
        assert caught == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, previous)
