"""A terminal's last line: the progress of a command that has run for more than two seconds."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from apsvm._support.shown import printable
from apsvm.cli import shared

#: Seconds before the bar is shown, and between updates.
PATIENCE, INTERVAL = 2.0, 0.25
_WIDTH = 24


class Bar:
    """``with Bar("classes", total=10) as bar: … bar.reach(3)`` shows progress, seconds so far and seconds left. Without
    a total it shows only the seconds so far. It shows nothing if stderr is no terminal, with --quiet or --verbose, or
    inside another one.

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
        """Sets the number done; ``what`` is in progress now."""
        self._done = done
        self._what = self._what if what is None else what

    def text(self, seconds: float) -> str:
        """The bar's text after this many seconds."""
        what, total = printable(self._what), self.total
        if total is None:
            count = f" {self._done:,}" if self._done else ""
            return f"{what}{count}, {seconds:.0f} s"
        full = min(self._done, total) * _WIDTH // max(1, total)
        left = seconds * (total - self._done) / self._done if 0 < self._done < total else 0.0
        about = f", about {left:.0f} s left" if left >= 1.0 else ""
        return f"[{'#' * full}{'.' * (_WIDTH - full)}] {self._done}/{total} {what}, {seconds:.0f} s{about}"

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
