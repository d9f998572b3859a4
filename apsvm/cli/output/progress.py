"""The progress of ``apsvm train`` on stderr."""

from __future__ import annotations

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
        self._verbose, self._quiet, self._one_line = verbose, quiet, one_line
        self._bar = Bar("") if bar is None else bar
        self._begun: set[str] = set()
        self._heading = ""
        self._start = time.monotonic()
        self._next_line = FIRST_LINE

    def show(self, progress: Progress) -> None:
        """Shows an iteration."""
        if self._quiet:
            return
        self._begun.add(progress.stage)
        values = progress.values
        words = ", ".join(f"{name} {value:.7g}" for name, value in values.items() if value is not None)
        if self._one_line:
            self._bar.reach(len(self._begun))
        else:
            self._bar.reach(progress.number, progress.stage or None)
        if self._verbose and self._one_line:
            say(f" {progress.stage}: {words}")
        elif self._verbose:
            heading, line = [], []
            for name, how in progress.columns.items():
                width = int("".join(filter(str.isdigit, how.partition(".")[0])) or 0)
                heading.append(name.rjust(width))
                line.append(" " * width if values[name] is None else format(values[name], how))
            above = f" {' '.join(heading)}  {progress.stage}".rstrip()
            if above != self._heading:
                self._heading = above
                say(above)
            say(f" {' '.join(line)}".rstrip())
        elif time.monotonic() - self._start >= self._next_line:
            self._next_line *= 2
            say(f"{progress.stage or 'training'}: {words}")
