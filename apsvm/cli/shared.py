"""Exit codes, messages and error handling of all commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

import click

from apsvm._support.files import standard_output
from apsvm._support.shown import printable, printable_lines

#: The exit codes besides 0 and click's 2; docs/training.md lists them.
INTERNAL = 1
STOPPED_EARLY = 3
DOES_NOT_HOLD = 4
SAYS_NOTHING = 5
WORSE = 6
BAD_DATA = 65
NO_INPUT = 66
MISSING = 69
CANNOT_WRITE = 74
INTERRUPTED = 130
TERMINATED = 143
CLOSED_PIPE = 141

#: Clears the terminal's last line while another is written; set by ``cli.output.progress.Bar``.
line_below: Callable[[], AbstractContextManager[None]] | None = None


def _above() -> AbstractContextManager[None]:
    return nullcontext() if line_below is None else line_below()


def say(message: str) -> None:
    """Prints one line on stderr, escaped by ``printable``. A closed stderr does not stop the command."""
    if sys.stderr is None:
        return
    with suppress(OSError), _above():
        text = printable(message)
        click.echo(text if text.startswith(" ") else f"apsvm: {text}", err=True)


def is_set(flag: str) -> bool:
    """True if the current command has this flag, ``quiet`` or ``verbose``, and it is set."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get(flag))


def remark(message: str, source: str = "", *, warning: bool = False) -> None:
    """Prints ``message`` once per command, after the name of the file ``source`` unless the remark before has it;
    nothing with --quiet."""
    meta = click.get_current_context().meta
    said: set[tuple[str, str]] = meta.setdefault("apsvm.remarks", set())
    if is_set("quiet") or (source, message) in said:
        return
    said.add((source, message))
    is_named = source in ("", meta.get("apsvm.source"))
    meta["apsvm.source"] = source or meta.get("apsvm.source")
    say(f"{'warning: ' if warning else ''}{'' if is_named else f'{source}: '}{message}")


class Failure(click.ClickException):
    """Ends the command with ``message`` on stderr and ``code``."""

    exit_code: int  # type: ignore[misc]

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = code


def put(text: str) -> None:
    """Prints ``text``, escaped by ``printable``, and a line end on standard output; failures end the command."""
    with writing("-"), _above():
        stream = standard_output()
        stream.write(printable_lines(text).encode() + b"\n")
        stream.flush()


@contextmanager
def reading(what: str = "") -> Iterator[None]:
    """Turns errors in reading an input into a ``Failure``, without a name those that name their file; and errors of
    data, models, logs and settings, which name what is wrong."""
    try:
        yield
    except ValueError as error:
        from apsvm._support.container import ModelError
        from apsvm._support.log import LogError
        from apsvm.data.dataset import DataError
        from apsvm.trainers.base import InputError
        from apsvm.trainers.settings import SettingsError

        if isinstance(error, SettingsError):
            raise click.UsageError(str(error)) from None
        if not isinstance(error, DataError | ModelError | LogError | InputError):
            raise
        raise Failure(BAD_DATA, str(error)) from None
    except OSError as error:
        name = "standard input" if what == "-" else what or error.filename
        if name is None or isinstance(error, BrokenPipeError):  # an output
            raise
        raise Failure(NO_INPUT, f"cannot read {name}: {error.strerror or error}{_near(name)}") from None


def _near(path: str) -> str:
    """A hint at a file of a similar name, if ``path`` is missing; or nothing."""
    import difflib

    folder, name = os.path.split(path)
    if os.path.lexists(path) or not os.path.isdir(folder or "."):
        return ""
    near = difflib.get_close_matches(name, os.listdir(folder or "."), n=1, cutoff=0.8)
    return f"; did you mean {os.path.join(folder, near[0])}?" if near else ""


@contextmanager
def bad_data(source: str) -> Iterator[None]:
    """``reading``, for the use of the rows, model or log ``source``: other ValueErrors are its fault too."""
    try:
        with reading():
            yield
    except (ValueError, FloatingPointError) as error:
        raise Failure(BAD_DATA, f"{source}: {error}".removeprefix(": ")) from None


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Turns errors in writing an output into a ``Failure``, except a closed pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "standard output" if what == "-" else what
        raise Failure(CANNOT_WRITE, f"cannot write {name}: {error.strerror or error}") from None


def refuse_same_file(output: str, **inputs: str | None) -> None:
    """An output that is also an input would destroy it."""
    if not output:
        raise click.UsageError("the name of a file to write is empty")
    if output == "-" or not (os.path.isfile(output) or os.path.isdir(output)):
        return  # nothing there, or a device
    from apsvm.data.file_patterns import parts_of

    for role, path in inputs.items():
        for part in () if path is None else parts_of(path):
            try:
                identity = os.fstat(0) if part == "-" else os.stat(part)
            except OSError:
                continue
            if os.path.samestat(os.stat(output), identity):
                raise click.UsageError(f"{output!r} is the {role.replace('_', ' ')} file: it would be overwritten")


def all_given() -> frozenset[str]:
    """Names of the current command's options that a flag or a configuration file set."""
    context = click.get_current_context()
    unset = (None, click.core.ParameterSource.DEFAULT)
    return frozenset(name for name in context.params if context.get_parameter_source(name) not in unset)


def refuse_if_given(names: Iterable[str], why: str) -> None:
    """Ends the command if any of these options was set; ``why`` follows the option's name."""
    for name in all_given().intersection(names):
        raise click.UsageError(f"--{name.replace('_', '-')} {why}")
