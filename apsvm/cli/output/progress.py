"""Progress: a terminal's last line, once a command has run for two seconds, and the lines of ``apsvm train``."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from apsvm._support.shown import printable
from apsvm.cli import shared
from apsvm.cli.shared import say
from apsvm.trainers.base import Progress

#: Seconds before the bar is shown, and between updates.
PATIENCE, INTERVAL = 2.0, 0.25


class Bar:
    """``with Bar("classes", total=10) as bar: … bar.reach(3)`` shows progress and seconds so far. It shows nothing if
    stderr is no terminal, with --quiet or --verbose, or inside another one.

    total : may grow meanwhile

    Lines of ``shared.say`` and ``shared.put`` go above it.
    """

    def __init__(self, what: str, total: int | None = None) -> None:
        self._what = what
        self.total = total
        self._done = 0
        self._began = time.monotonic()
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.is_shown = False

    def __enter__(self) -> Bar:
        if shared.line_below is None and _wanted():
            shared.line_below = self._away
            self._thread = threading.Thread(target=self._keep_showing, daemon=True, name="apsvm-bar")
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            shared.line_below = None
            self._ended.set()
            self._thread.join()
            self._erase()

    def reach(self, done: int, what: str | None = None) -> None:
        """Shows ``done`` finished steps, and ``what`` as the step in progress."""
        self._done = done
        self._what = self._what if what is None else what

    def text(self, seconds: float) -> str:
        """The bar's text after this many seconds."""
        what = printable(self._what)
        if self.total is not None:
            what = f"{self._done:,}/{self.total:,} {what}"
        elif self._done:
            what = f"{what} {self._done:,}"
        return f"{what}, {seconds:.0f} s"

    def _keep_showing(self) -> None:
        wait = PATIENCE
        while not self._ended.wait(wait):
            wait = INTERVAL
            with self._lock:
                self._show()

    def _show(self) -> None:
        with suppress(OSError, ValueError):
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            text = self.text(time.monotonic() - self._began)[: max(1, columns - 1)]
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
            self.is_shown = True

    def _erase(self) -> None:
        with suppress(OSError, ValueError):
            if self.is_shown:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
            self.is_shown = False

    @contextmanager
    def _away(self) -> Iterator[None]:
        """Hides the bar while something else is written."""
        with self._lock:
            self._erase()
            yield


def _wanted() -> bool:
    if shared.is_set("quiet") or shared.is_set("verbose"):
        return False
    try:
        return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "") != "dumb"
    except ValueError:  # it is closed
        return False


#: Seconds of training before the first line; each next line comes after twice as many.
FIRST_LINE = 10.0


class Display:
    """Prints the progress of a training on stderr, and shows it in ``bar``.

    By default a line after 10, 20, 40 … seconds; with ``verbose`` a table with a row for each iteration of a stage. A
    bar with a total counts the stages that have begun, which go on at a time.
    """

    def __init__(self, bar: Bar, *, verbose: bool) -> None:
        self._bar, self._verbose = bar, verbose
        self._begun: set[str] = set()
        self._heading = ""
        self._start, self._next_line = time.monotonic(), FIRST_LINE

    def show(self, progress: Progress) -> None:
        """Shows an iteration."""
        self._begun.add(progress.stage)
        if self._bar.total is None:
            self._bar.reach(progress.number, progress.stage or None)
        else:
            self._bar.reach(len(self._begun))
        if self._verbose and self._bar.total is None:
            heading, line = [], []
            for name, how in progress.columns.items():
                width, value = int("".join(filter(str.isdigit, how.partition(".")[0])) or 0), progress.values[name]
                heading.append(name.rjust(width))
                line.append(" " * width if value is None else format(value, how))
            above = f" {' '.join(heading)}  {progress.stage}".rstrip()
            if above != self._heading:
                self._heading = above
                say(above)
            say(f" {' '.join(line)}".rstrip())
        elif (elapsed := time.monotonic() - self._start) >= self._next_line:
            self._next_line *= 2
            counted = next(iter(progress.columns))
            say(f"training: {elapsed:.0f} s, {counted} {progress.number:,}")
