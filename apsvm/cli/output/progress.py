"""What ``apsvm train`` shows on stderr while it works."""

from __future__ import annotations

import re

from apsvm.cli.output.bar import Bar
from apsvm.cli.shared import say
from apsvm.trainers.base import Progress


class Display:
    """Fixed-width lines on stderr, the same on a terminal and in a pipe: the first ten of a stage, then every tenth,
    from 200 on every fiftieth, and the last; all of them if ``verbose``, none if ``quiet``.

    one_line : several stages at a time: each line says which, and shows only if ``verbose``
    bar : of these stages, shows how many have begun
    """

    def __init__(self, *, verbose: bool, quiet: bool, one_line: bool = False, bar: Bar | None = None) -> None:
        self._verbose = verbose
        self._quiet = quiet
        self._one_line = one_line
        self._bar = bar
        self._begun: set[str] = set()
        self._heading: str | None = None
        self._unshown: str | None = None

    def show(self, progress: Progress) -> None:
        """A line of the table of its stage."""
        if self._quiet:
            return
        if self._one_line:
            self._begun.add(progress.stage)
            if self._bar is not None:
                self._bar.reach(len(self._begun))
            if self._verbose:
                say(f" {progress.stage}: {_in_words(progress)}")
            return
        heading = _heading(progress)
        if heading != self._heading:
            self.finish()
            self._heading = heading
            say(f" {heading}")
        self._unshown = _line(progress)
        number = progress.number
        if self._verbose or number <= 10 or (number <= 200 and number % 10 == 0) or number % 50 == 0:
            self.finish()

    def finish(self) -> None:
        """Shows the last line, if it has not been."""
        if self._unshown is not None:
            say(f" {self._unshown}")
            self._unshown = None


def _width(specification: str) -> int:
    match = re.match(r"[<>^]?(\d+)", specification)
    return int(match[1]) if match else 0


def _heading(progress: Progress) -> str:
    names = " ".join(f"{name:>{_width(specification)}}" for name, specification in progress.columns.items())
    return f"{names}  {progress.stage}".rstrip()


def _line(progress: Progress) -> str:
    cells = []
    for name, specification in progress.columns.items():
        value = progress.values[name]
        cells.append(" " * _width(specification) if value is None else format(value, specification))
    return " ".join(cells).rstrip()


def _in_words(progress: Progress) -> str:
    return ", ".join(f"{name} {value:.7g}" for name, value in progress.values.items() if value is not None)
