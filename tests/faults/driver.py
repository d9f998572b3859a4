"""A process with the shim preloaded: for each line of standard input, a case, it forks, arms the shim, runs a command
of apsvm in the child and writes how it ended, a line each.

A case: {"folder": …, "arguments": […], "at": the call that fails, from 0, "kind": 0 EIO, 1 ENOSPC, 2 short, 3 SIGKILL}.
The answer: {"code": exit code, or minus the signal, "stderr": …, "hit": whether there was such a call}.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

from apsvm.cli import run

NEVER = 1 << 30


def child(case: dict[str, object], shim: ctypes.CDLL, errors: int) -> None:
    code = 99
    try:
        folder = str(case["folder"])
        os.chdir(folder)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        os.dup2(errors, 2)
        sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
        shim.faults_arm(case["at"], case["kind"], folder.encode())
        code = run([str(argument) for argument in case["arguments"]])  # type: ignore[union-attr]
        shim.faults_disarm()
        sys.stdout.flush()
        code += 1000 * (not shim.faults_hit())
    except BaseException:
        traceback.print_exc()
    finally:
        os.write(errors, b"\0%d" % code)
        os._exit(0)


def import_what_children_need() -> None:
    """By running the commands once: what is imported here is imported in no child."""
    with tempfile.TemporaryDirectory() as folder:
        rows, model = f"{folder}/rows.svm", f"{folder}/model"
        Path(rows).write_text("1 1:1\n-1 2:1\n1 1:2\n-1 2:2\n")
        for arguments in (["train", "-q", "--bound", "hinge", rows, model], ["predict", rows, model, f"{folder}/out"]):
            assert run(arguments) == 0
        assert run(["convert", "-q", rows, f"{folder}/folder"]) == 0


def main() -> None:
    import_what_children_need()
    shim = ctypes.CDLL(None)
    shim.faults_arm.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_char_p)
    for line in sys.stdin:
        case = json.loads(line)
        errors = os.memfd_create("errors")
        process = os.fork()
        if process == 0:
            child(case, shim, errors)
        _, status = os.waitpid(process, 0)
        said, _, code = os.pread(errors, 1 << 20, 0).decode("utf-8", "replace").partition("\0")
        os.close(errors)
        if os.WIFSIGNALED(status):
            answer = {"code": -os.WTERMSIG(status), "stderr": said, "hit": True}
        else:
            answer = {"code": int(code) % 1000, "stderr": said, "hit": int(code) < 1000}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
