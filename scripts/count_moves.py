"""How far a training goes before it evaluates its risk: the calls from module to module, and how many modules.

    .venv/bin/python scripts/count_moves.py [--list] DATA [OPTIONS OF apsvm train]

Counted from the start of the command's own function to the first value of the risk, in one thread (``--threads 1``):
a move is a Python call, or the resumption of a generator, into another module of apsvm than the one before. Imports do
not count. ``--list`` prints each call.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from types import FrameType

import apsvm.cli

ROOT = os.path.dirname(apsvm.__file__) + os.sep
FIRST, LAST = ("cli/train.py", "train"), ("risk/rankings.py", "Risk.tangent")
CO_OPTIMIZED = 1  # bodies of modules and classes are not


class Enough(BaseException):
    """Ends the training where the counting ends."""


def is_import(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def calls(arguments: list[str]) -> list[tuple[str, str]]:
    """Module and function of each call."""
    made: list[tuple[str, str]] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOT) or not code.co_flags & CO_OPTIMIZED:
            return
        call = (code.co_filename.removeprefix(ROOT), code.co_qualname)
        if (made or call == FIRST) and not is_import(frame):
            made.append(call)
        if made and call == LAST:
            sys.setprofile(None)
            raise Enough

    with tempfile.TemporaryDirectory() as folder:
        sys.setprofile(profile)
        try:
            apsvm.cli.run(["train", "--threads", "1", *arguments, os.path.join(folder, "a.model")])
        except Enough:
            return made
    raise SystemExit("the training ended before its risk was evaluated")


def main() -> None:
    arguments = [argument for argument in sys.argv[1:] if argument != "--list"]
    made = calls(arguments)
    modules = [module for module, _ in made]
    if len(arguments) < len(sys.argv) - 1:
        for module, function in made:
            print(f"{module:40} {function}")
    moves = sum(one != other for one, other in itertools.pairwise(modules))
    print(f"{moves} moves between {len(set(modules))} modules")


if __name__ == "__main__":
    main()
