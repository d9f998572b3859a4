"""``--checkpoint FILE``: what a command has done so far, from which the same command goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

import click

from apsvm._support.types import JsonDict, JsonObject
from apsvm._support.work import UNSTORED, Strand, WorkError
from apsvm.cli.options.parameters import Number
from apsvm.cli.options.training import Signals
from apsvm.cli.output.run_folder import as_json
from apsvm.cli.shared import BAD_DATA, Failure, reading, say, writing

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.data.read_options import ReadOptions

CommandT = TypeVar("CommandT", bound=Callable[..., object])

#: Options that do not decide what comes out, and those whose files' content does.
_OUTPUTS = ("model", "output", "json", "log", "run_dir", "checkpoint", "checkpoint_seconds", "quiet", "verbose")
_RESOURCES = ("jobs", "threads", "time_limit", "scheduler")
_FILES = ("data", "config", "warm_start", "validation", "query_weights", "bags")
_OF_NO_EFFECT = frozenset((*_OUTPUTS, *_RESOURCES, *_FILES))


def checkpoint_options(command: CommandT) -> CommandT:
    """The options of ``work_kept``."""
    help = (
        "Write what has been done to this file, at most every 30 seconds and when stopped by a signal. The same "
        "command goes on from it, to the same result, and removes it at its end."
    )
    command = click.option("--checkpoint-seconds", type=Number(0.0), default=30.0, hidden=True)(command)
    return click.option("--checkpoint", metavar="FILE", callback=_named_file, help=help)(command)


def _named_file(context: click.Context, option: click.Parameter, path: str | None) -> str | None:
    if path == "-":
        raise click.UsageError("--checkpoint is read again: name a file")
    return path


def identity(
    dataset: Dataset, read: ReadOptions, options: JsonObject, inputs: Mapping[str, str | None], *, threads: bool
) -> JsonDict:
    """What decides over a training's result, by what messages call it.

    Parameters
    ----------
    inputs : files that are read besides the data, by what they are
    threads : whether the number of threads does
    """
    import platform

    from apsvm._support.machine import installed

    command = click.get_current_context().info_name
    compared = {
        f"--{name.replace('_', '-')}": str(value) if value.__class__.__module__ != "builtins" else as_json(value)
        for name, value in options.items()
        if (name not in _OF_NO_EFFECT or (threads and name == "threads")) and value is not None
    }
    reading_options = {f"reading: {name}": value for name, value in read.to_json().items() if name != "bags"}
    reading_options |= {f"reading a table: {name}": as_json(value) for name, value in asdict(read.table).items()}
    return {
        "the command": command,
        "the data's SHA-256": dataset.fingerprint,
        "the number of rows": len(dataset),
        "the number of features": int(dataset.X.shape[1]),
        **{f"the {what.replace('_', ' ')} file's SHA-256": _sha256(path) for what, path in inputs.items() if path},
        **{name: value for name, value in reading_options.items() if value is not None},
        **compared,
        **{f"the version of {name}": installed(name) for name in ("apsvm", "numpy", "scipy")},
        "the machine": platform.machine(),
    }


def _sha256(path: str) -> str:
    with reading(path), open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def work_kept(options: JsonObject, training: Callable[[], JsonObject], signals: Signals) -> Iterator[Strand]:
    """The work as a strand that is kept in the file that was named, if one was; ``training``: its ``identity``.

    The file goes when the work is done. It stays where a signal ended the work, or an error did.
    """
    from apsvm._support.checkpoint import Checkpoint, CheckpointError

    path = options["checkpoint"]
    if path is None:
        yield UNSTORED
        return

    def break_off() -> None:
        checkpoint.break_off()
        say(f"the same command goes on from {path}")

    def cannot_write(error: OSError) -> None:
        say(f"warning: cannot write the checkpoint {path}: {error.strerror or error}; the training goes on")

    try:
        with reading(path):
            checkpoint = Checkpoint(
                path,
                seconds=options["checkpoint_seconds"],
                is_stopping=lambda: bool(signals),
                cannot_write=cannot_write,
            )
        checkpoint.of(training())
    except CheckpointError as error:
        raise Failure(BAD_DATA, str(error)) from None
    if checkpoint.resumed and not options["quiet"]:
        say(f"goes on from {path}")
    try:
        yield checkpoint.strand
    except WorkError as error:
        raise Failure(BAD_DATA, f"{path}: {error}: remove it to begin anew") from None
    except OSError:  # not of the data: a cluster that is gone, a full disk
        if not signals:
            break_off()
        raise
    finally:
        is_cut_short = bool(signals) and (checkpoint.strand.is_broken_off or not signals.are_late)
        if is_cut_short:
            break_off()
    if not is_cut_short:
        with writing(path):
            checkpoint.remove()
