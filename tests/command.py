"""``apsvm`` inside this process, with standard streams, an environment and a current folder of its own."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from types import ModuleType
from typing import BinaryIO

from apsvm.cli import run

SCRIPTS = Path(__file__).parents[1] / "scripts"
#: Begins like a model file and is damaged behind.
OLD_MODEL = "PK\x03\x04" + 26 * "-" + "header.npy of yesterday\n"


def in_process(
    arguments: Sequence[str], *, input: bytes = b"", env: Mapping[str, str], cwd: Path | None = None
) -> CompletedProcess[bytes]:
    """Output and exit code of a command, as from its own process, without starting one.

    Files are redirected below Python, as a shell does it: whoever writes to descriptor 1 is heard. What was imported
    stays imported, and a warning is whatever pytest makes of it.
    """
    with ExitStack() as stack:
        stdin, stdout, stderr = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        stdin.write(input)
        stdin.seek(0)
        stack.enter_context(_environment(env))
        stack.enter_context(_streams(stdin, stdout, stderr))
        if cwd is not None:
            stack.callback(os.chdir, os.getcwd())
            os.chdir(cwd)
        code = run(list(arguments))
        sys.stdout.flush()
        sys.stderr.flush()
        return CompletedProcess(list(arguments), code, _content(stdout), _content(stderr))


def script_module(name: str) -> ModuleType:
    """The module of a script, ``dev/check_release.py`` say, which finds its neighbours as when it is run."""
    path = SCRIPTS / name
    specification = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look their module up
    before = list(sys.path)
    sys.path.insert(0, str(path.parent))
    try:
        specification.loader.exec_module(module)
    finally:
        sys.path[:] = before
    return module


def script_in_process(script: Path, *arguments: object) -> CompletedProcess[str]:
    """Output and exit code of a script of ``scripts/``, run in this process, which has its imports."""
    before = sys.argv, list(sys.path)
    code: int | str | None = 0
    with ExitStack() as stack:
        stdin, stdout, stderr = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        stack.enter_context(_streams(stdin, stdout, stderr))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("default")  # as for everybody who runs it
        sys.argv = [str(script), *map(str, arguments)]
        sys.path.insert(0, str(script.parent))
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            code = end.code
        finally:
            sys.argv, sys.path[:] = before
        sys.stdout.flush()
        if isinstance(code, str):
            sys.stderr.write(f"{code}\n")
        sys.stderr.flush()
        return CompletedProcess(
            [script, *arguments],
            1 if isinstance(code, str) else code or 0,
            _content(stdout).decode(),
            _content(stderr).decode(),
        )


def _content(stream: BinaryIO) -> bytes:
    stream.seek(0)
    return stream.read()


@contextmanager
def _environment(env: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _streams(*streams: BinaryIO) -> Iterator[None]:
    """Puts files in the place of standard input, output and error."""
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(descriptor) for descriptor in range(3)]
    try:
        for descriptor, stream in enumerate(streams):
            os.dup2(stream.fileno(), descriptor)
        # As Python opens them in the C locale.
        sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
        yield
    finally:
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            stream.close()
        sys.stdin, sys.stdout, sys.stderr = before
        for descriptor, original in enumerate(kept):
            os.dup2(original, descriptor)
            os.close(original)
