"""The progress of ``apsvm train`` on stderr."""

from __future__ import annotations

import re
import time

from apsvm.cli.output.bar import Bar
from apsvm.cli.shared import say
from apsvm.trainers.base import Progress

#: Seconds of training before the first line; each next line comes after twice as many.
FIRST_LINE = 10.0


class Display:
    """Prints the progress of a training on stderr.

    By default a line after 10, 20, 40 … seconds; with ``verbose`` a table with a row for each iteration of a stage;
    nothing if ``quiet``.

    Parameters
    ----------
    one_line : several stages go on at a time; with ``verbose`` each iteration is a line that names its stage
    bar : shows the stage and its iteration, or how many stages have begun if they go on at a time
    """

    def __init__(self, *, verbose: bool, quiet: bool, one_line: bool = False, bar: Bar | None = None) -> None:
        self._verbose = verbose
        self._quiet = quiet
        self._one_line = one_line
        self._bar = bar
        self._begun: set[str] = set()
        self._heading: str | None = None
        self._start = time.monotonic()
        self._next_line = FIRST_LINE

    def show(self, progress: Progress) -> None:
        """Shows an iteration."""
        if self._quiet:
            return
        self._begun.add(progress.stage)
        if self._bar is not None and self._one_line:
            self._bar.reach(len(self._begun))
        elif self._bar is not None:
            self._bar.reach(progress.number, progress.stage or None)
        if self._verbose and not self._one_line:
            heading = _heading(progress)
            if heading != self._heading:
                self._heading = heading
                say(f" {heading}")
            say(f" {_line(progress)}")
        elif self._verbose:
            say(f" {progress.stage}: {_in_words(progress)}")
        elif time.monotonic() - self._start >= self._next_line:
            self._next_line *= 2
            say(f"{progress.stage or 'training'}: {_in_words(progress)}")


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
