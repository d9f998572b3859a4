"""What ``apsvm train`` shows on stderr while it works."""

from __future__ import annotations

from apsvm.cli.shared import say


class Display:
    """Fixed-width lines on stderr, the same on a terminal and in a pipe: the first ten of a stage, then every tenth,
    from 200 on every fiftieth, and the last; all of them if ``verbose``, none if ``quiet``."""

    def __init__(self, *, verbose: bool, quiet: bool) -> None:
        self._verbose = verbose
        self._quiet = quiet
        self._heading: str | None = None
        self._unshown: str | None = None

    def line(self, heading: str, number: int, text: str) -> None:
        """The ``number``-th line (from 1) under ``heading``; another heading begins another stage."""
        if self._quiet:
            return
        if heading != self._heading:
            self.finish()
            self._heading = heading
            say(f" {heading}")
        self._unshown = text
        if self._verbose or number <= 10 or (number <= 200 and number % 10 == 0) or number % 50 == 0:
            self.finish()

    def finish(self) -> None:
        """Shows the last line, if it has not been."""
        if self._unshown is not None:
            say(f" {self._unshown}")
            self._unshown = None
