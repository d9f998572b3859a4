"""The line that says what a command is doing: on a terminal, after a while, and never in anybody's way."""

from __future__ import annotations

import os
import pty
import threading

import click
import pytest

from apsvm.cli.output import progress as module
from apsvm.cli.output.progress import Bar
from apsvm.cli.shared import say


@pytest.fixture
def terminal(monkeypatch):
    """Makes stderr a terminal (in the test: before it pytest has it) and returns what has been written once it is
    closed."""
    ours, theirs = pty.openpty()
    written: list[bytes] = []

    def follow():
        try:
            while part := os.read(ours, 4096):
                written.append(part)
        except OSError:  # Linux, when nobody has the other end
            pass

    reader = threading.Thread(target=follow)
    reader.start()
    stream = os.fdopen(theirs, "w", encoding="utf-8")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    monkeypatch.setattr(module, "INTERVAL", 0.01)

    def text():
        stream.close()
        reader.join()
        os.close(ours)
        return b"".join(written).decode()

    def begin():
        monkeypatch.setattr("sys.stderr", stream)
        return text

    begin.written = written
    return begin


def wait_until(bar, condition):
    for _ in range(1000):
        if condition(bar):
            return
        threading.Event().wait(0.005)
    raise AssertionError("nothing was shown")


def test_on_a_terminal(terminal):
    written = terminal()
    with Bar("classes", 4) as bar:
        bar.reach(1)
        wait_until(bar, lambda bar: bar.is_shown)
        with Bar("inside") as inner:
            assert not inner.is_shown
        say("a line")
        wait_until(bar, lambda bar: bar.is_shown)
    wait_until(bar, lambda bar: terminal.written[-1].endswith(b"\r\x1b[K"))  # at once, not with what follows
    text = written()
    assert "1/4 classes, 0 s" in text
    assert "\r\x1b[Kapsvm: a line\r\n" in text
    assert "inside" not in text
    assert text.endswith("\r\x1b[K")


def test_what_it_says():
    bar = Bar("converting: rows")
    assert bar.text(7.4) == "converting: rows, 7 s"
    bar.reach(1234567)
    assert bar.text(61.0) == "converting: rows 1,234,567, 61 s"
    bar = Bar("classes", 10)
    assert bar.text(6.0) == "0/10 classes, 6 s"
    bar.reach(3, "class\x1b 3")
    assert bar.text(6.0) == "3/10 class\\x1b 3, 6 s"


@pytest.mark.parametrize("params", [{"quiet": True}, {"verbose": True}])
def test_nothing_where_it_is_not_wanted(terminal, params):
    written = terminal()
    context = click.Context(click.Command("train"))
    context.params = params
    with context, Bar("training") as bar:
        threading.Event().wait(0.05)
        assert not bar.is_shown
    assert written() == ""


def test_nothing_without_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    with Bar("training"):
        threading.Event().wait(0.05)
    assert capsys.readouterr().err == ""
