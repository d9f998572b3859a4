"""The command line: one file per command, imported when it is called. Heavy imports are inside the commands, so that
``--help`` is instant. docs/training.md lists the exit codes."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress

import click
from click.shell_completion import shell_complete

from apsvm import __version__
from apsvm.cli.group import CommandGroup, Listed
from apsvm.cli.shared import CANNOT_WRITE, CLOSED_PIPE, INTERNAL, INTERRUPTED, MISSING, say
from apsvm.cli.shared import reading as reading_inputs  # the package has a module of that name

#: click's convention: `eval "$(_APSVM_COMPLETE=bash_source apsvm)"` switches completion on.
COMPLETION = "_APSVM_COMPLETE"


#: Each command's place, imported on call, and its line in the group's help.
_COMMANDS = {
    "train": Listed("apsvm.cli.commands.train:train", "Train a ranker on DATA and write MODEL."),
    "cv": Listed("apsvm.cli.commands.cv:cv", "Compare settings by cross-validation."),
    "predict": Listed("apsvm.cli.commands.predict:predict", "Score rows, or list the best with reasons."),
    "eval": Listed("apsvm.cli.commands.evaluate:evaluate", "Evaluate models, scores and TREC runs."),
    "compare": Listed("apsvm.cli.commands.compare:compare", "Compare the first rows of two models."),
    "eval-detections": Listed("apsvm.cli.commands.eval_detections:eval_detections", "Evaluate boxes in images."),
    "info": Listed("apsvm.cli.commands.info:info", "Print what a model file says."),
    "verify": Listed("apsvm.cli.commands.verify:verify", "Prove the certificate of a model again."),
    "export": Listed("apsvm.cli.commands.export:export", "Write a model for other programs."),
    "convert": Listed("apsvm.cli.commands.convert:convert", "Write data as a folder that opens at once."),
    "plot": Listed("apsvm.cli.commands.plot:plot", "Draw logs, curves and models."),
    "report": Listed("apsvm.cli.commands.report:report", "Make a page of a training run."),
}


def _show_version(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if not is_asked:
        return
    if context.params.get("verbose"):
        from apsvm._support.versions import show_versions

        show_versions()
    else:
        click.echo(f"apsvm, version {__version__}")
    context.exit()


@click.group(cls=CommandGroup, commands=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V", "--version", is_flag=True, expose_value=False, callback=_show_version,
    help="Show the version, with -v those of all parts, and exit.",
)  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, is_eager=True, hidden=True)
def program(verbose: bool) -> None:
    """Train rankers on the ranking metric itself: average precision, NDCG and others.

    \b
    apsvm train payments.csv --label-column fraud --id-column payment
    apsvm eval new.csv --model payments.csv.model
    apsvm predict new.csv payments.csv.model --top 100 --explain
    """
    if verbose:
        raise click.UsageError("-v goes with --version here; for a command, write it after its name")


def main() -> None:
    """The console script."""
    if "numpy" not in sys.modules:
        # Every product here uses one thread. OpenBLAS starts one per core on loading, and they wait in a busy loop:
        # a quarter of the time of a training on a hundred rows.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    code = run(sys.argv[1:])
    is_watched = sys.getprofile() is not None or sys.gettrace() is not None  # a profiler or tracer reports at exit
    if threading.active_count() == 1 and not is_watched:
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> None:
    """Ends the process without freeing objects one by one, a sixth of the time of a training on a hundred rows.
    Runs exit functions and flushes output first; returns if that fails."""
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):  # the interpreter will say so
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)


def run(arguments: list[str]) -> int:
    """Runs one command; every failure is one message on stderr and an exit code."""
    try:
        # Not program.main(): it would turn a closed pipe into exit code 1 before we see it.
        if COMPLETION in os.environ:
            return shell_complete(program, {}, "apsvm", COMPLETION, os.environ[COMPLETION])
        with reading_inputs(), program.make_context("apsvm", list(arguments)) as context:
            code = program.invoke(context)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
        return INTERRUPTED
    except click.ClickException as failure:
        from apsvm.cli.help import usage_message

        if isinstance(failure, click.exceptions.NoArgsIsHelpError):
            failure.show()
        else:
            say(f"error: {usage_message(failure)}")
        return failure.exit_code
    except BrokenPipeError:
        _discard_output()
        return CLOSED_PIPE
    except OSError as error:
        # Errors of inputs and named outputs are handled where they are used: this is standard output.
        _discard_output()
        say(f"error: cannot write standard output: {error.strerror or error}")
        return CANNOT_WRITE
    except MemoryError:
        say("error: not enough memory for this data")
        return INTERNAL
    except Exception as error:
        if os.environ.get("APSVM_DEBUG"):
            raise
        if isinstance(error, ImportError) and error.name is None:  # raised where an optional package is needed
            say(f"error: {error}")
            return MISSING
        say(f"internal error: {type(error).__name__}: {error} (set APSVM_DEBUG=1 to see where)")
        return INTERNAL
    return code if isinstance(code, int) else 0


def _discard_output() -> None:
    """Discards the interpreter's flush of standard output at exit, which would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
