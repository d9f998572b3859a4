"""The command line: one file a command. Heavy imports wait inside the commands, so that ``--help`` is instant.

Exit codes: 0 done (train: converged), 1 internal error, 2 usage, 3 stopped early with the model written, 65 bad data,
66 no such input, 74 cannot write, 130/143 after SIGINT/SIGTERM, 141 when the reader of standard output went away.
"""

from __future__ import annotations

import os
import sys

import click

from apsvm import __version__
from apsvm.cli.convert import convert
from apsvm.cli.evaluate import evaluate
from apsvm.cli.export import export
from apsvm.cli.info import info
from apsvm.cli.predict import predict
from apsvm.cli.shared import CLOSED_PIPE, INTERNAL, INTERRUPTED, say
from apsvm.cli.train import train


@click.group(context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "APSVM"})
@click.version_option(__version__, "-V", "--version", prog_name="apsvm")
def commands() -> None:
    """Train linear rankers on the ranking metric itself: average precision, exactly.

    \b
    apsvm train --loss ap data.svm          writes data.svm.model
    apsvm predict test.svm data.svm.model   one score a row
    apsvm eval test.svm --model data.svm.model
    """


for command in (train, predict, evaluate, convert, info, export):
    commands.add_command(command)


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs one command; every failure is one message on stderr and an exit code."""
    try:
        code = commands.main(arguments, prog_name="apsvm", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
        return INTERRUPTED
    except click.ClickException as failure:
        failure.show()
        return failure.exit_code
    except BrokenPipeError:
        # Whoever read the output has seen enough. Let the interpreter's own flush at exit go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return CLOSED_PIPE
    except MemoryError:
        say("error: not enough memory for this data")
        return INTERNAL
    except Exception as error:
        if os.environ.get("APSVM_DEBUG"):
            raise
        say(f"internal error: {type(error).__name__}: {error} (set APSVM_DEBUG=1 to see where)")
        return INTERNAL
    return code if isinstance(code, int) else 0
