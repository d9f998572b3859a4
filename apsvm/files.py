"""Files of the command line: ``-`` is standard input or output; written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes ``content`` to ``path``: to a temporary file beside it, synced, then renamed, so that what was there is
    replaced by all of it or not at all. ``-`` is standard output; a device or pipe is written to in place.

    Raises
    ------
    OSError : it cannot be written; the old file is untouched
    """
    if os.fspath(path) == "-":
        stream = standard_output()
        stream.write(content)
        stream.flush()
        return
    target = Path(path)
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "Is a directory", str(target))
        with target.open("wb") as stream:
            stream.write(content)
        return
    target = target.resolve()  # replace what a link points at, not the link
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".apsvm-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises the OSError that writing ``path`` would raise, before the work is done that it would lose."""
    if os.fspath(path) == "-":
        standard_output()
        return
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a directory", str(target))
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "Permission denied", str(target))
    if target.exists() and not target.is_file():
        return
    folder = target.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such directory", str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """All of a file, or of standard input for ``-``; OSError if it cannot be read."""
    if os.fspath(path) == "-":
        return standard_input().read()
    with open(path, "rb") as stream:
        return stream.read()


def standard_input() -> BinaryIO:
    """Standard input's bytes; OSError if the process was started without."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed")
    return sys.stdin.buffer


def standard_output() -> BinaryIO:
    """Standard output's bytes; OSError if the process was started without."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    return sys.stdout.buffer


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
