"""The command line: one file a command, imported when it is called. Heavy imports wait inside the commands, so that
``--help`` is instant.

Exit codes: 0 done (train: converged), 1 internal error, 2 usage, 3 stopped early with the model written (verify:
undecided), 4 a certificate that does not hold, 65 bad data, 66 no such input, 69 an optional package is missing, 74
cannot write, 130 after SIGINT, 143 after SIGTERM or SIGHUP, 141 when the reader of standard output went away.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import click
from click.shell_completion import shell_complete

from apsvm import __version__
from apsvm.cli.commands import ImportedCommands
from apsvm.cli.shared import CANNOT_WRITE, CLOSED_PIPE, INTERNAL, INTERRUPTED, say

#: click's convention: `eval "$(_APSVM_COMPLETE=bash_source apsvm)"` switches completion on.
COMPLETION = "_APSVM_COMPLETE"


#: Where each command stands: it is imported when it is called, or when all are listed.
_COMMANDS = {
    "train": "apsvm.cli.train:train",
    "cv": "apsvm.cli.cv:cv",
    "predict": "apsvm.cli.predict:predict",
    "eval": "apsvm.cli.evaluate:evaluate",
    "eval-detections": "apsvm.cli.eval_detections:eval_detections",
    "info": "apsvm.cli.info:info",
    "verify": "apsvm.cli.verify:verify",
    "export": "apsvm.cli.export:export",
    "convert": "apsvm.cli.convert:convert",
    "plot": "apsvm.cli.plot:plot",
    "report": "apsvm.cli.report:report",
    "bench": "apsvm.cli.bench:bench",
    "doctor": "apsvm.cli.doctor:doctor",
    "sorter": "apsvm.cli.sorter:sorter",
}


@click.group(commands=ImportedCommands(_COMMANDS), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="apsvm")
def commands() -> None:
    """Train linear rankers on the ranking metric itself: average precision, exactly.

    \b
    apsvm train --loss ap data.svm          writes data.svm.model
    apsvm predict test.svm data.svm.model   one score a row
    apsvm eval test.svm --model data.svm.model
    """


#: Letters of LIBLINEAR and SVM-rank, and what says the same here.
_LETTERS_ELSEWHERE = {"-c": ["-C"], "-s": ["--loss", "--solver"], "-w": ["--query-weights"], "-p": ["--loss"]}


def _with_hints(failure: click.ClickException) -> click.ClickException:
    """A letter that another program has for an option is answered with the option."""
    if not isinstance(failure, click.NoSuchOption) or failure.ctx is None:
        return failure
    known = {option for parameter in failure.ctx.command.params for option in parameter.opts}
    here = [option for option in _LETTERS_ELSEWHERE.get(failure.option_name, []) if option in known]
    message = f"No such option {failure.option_name!r}. Here it is {' or '.join(here)}."
    return click.UsageError(message, ctx=failure.ctx) if here else failure


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs one command; every failure is one message on stderr and an exit code."""
    try:
        # Not commands.main(): it would turn a closed pipe into exit code 1 before we see it.
        if COMPLETION in os.environ:
            return shell_complete(commands, {}, "apsvm", COMPLETION, os.environ[COMPLETION])
        with commands.make_context("apsvm", list(arguments)) as context:
            code = commands.invoke(context)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
        return INTERRUPTED
    except click.ClickException as failure:
        failure = _with_hints(failure)
        if sys.stderr is not None:
            with suppress(OSError):
                failure.show()
        return failure.exit_code
    except BrokenPipeError:
        _discard_output()
        return CLOSED_PIPE
    except OSError as error:
        # Inputs and named outputs are answered for where they are used: this is standard output.
        _discard_output()
        say(f"error: cannot write standard output: {error.strerror or error}")
        return CANNOT_WRITE
    except MemoryError:
        say("error: not enough memory for this data")
        return INTERNAL
    except Exception as error:
        if os.environ.get("APSVM_DEBUG"):
            raise
        say(f"internal error: {type(error).__name__}: {error} (set APSVM_DEBUG=1 to see where)")
        return INTERNAL
    return code if isinstance(code, int) else 0


def _discard_output() -> None:
    """Lets the interpreter's own flush of standard output at exit go nowhere: it would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
