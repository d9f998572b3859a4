"""Files of the command line: ``-`` is standard input or output; outputs are written whole or not at all.

An output is written to a temporary file beside the target, synced, and renamed. A symbolic link is replaced, never
followed, so that it cannot redirect the output to another of the user's files. Devices, pipes and names below ``/dev``
or ``/proc`` are written in place.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, TextIO

Path = str | os.PathLike[str]


def temporary_beside(path: Path) -> str:
    """New short name in the folder of ``path``, for a file or folder that will replace it. The leftover of a killed
    process may be deleted."""
    return os.path.join(os.path.dirname(os.path.abspath(path)), f".apsvm-{os.urandom(6).hex()}.tmp")


def write_whole(path: Path, content: bytes) -> None:
    """Writes ``content`` to a temporary file beside ``path``, syncs it and renames it: an old file stays whole until
    then, and the new one gets its permissions. ``-`` is standard output.

    Raises
    ------
    OSError : the file cannot be written; the old one is untouched
    """
    if os.fspath(path) == "-":
        stream = standard_output()
        stream.write(content)
        stream.flush()
        return
    with _errors_named(path):
        mode = _mode_of_output(path)
        if mode is not None and not stat.S_ISREG(mode):
            with open(path, "wb") as device:
                device.write(content)
            return
        temporary = temporary_beside(path)
        try:
            with open(temporary, "xb") as stream:
                if mode is not None:
                    os.chmod(temporary, stat.S_IMODE(mode))
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        sync_folder(os.path.dirname(temporary))


def open_alone(path: Path, *, is_new: bool = False) -> TextIO:
    """Opens a file for writing, locks it until it is closed (on systems with ``flock``) and empties it. Replaces a link
    to a file.

    Raises
    ------
    FileExistsError : the file exists, although ``is_new``
    OSError : the file cannot be written, or another process has locked it; its content stays
    """
    mode = _mode_of_output(path)
    is_file = mode is None or stat.S_ISREG(mode)
    if is_file and os.path.islink(path):
        os.unlink(path)

    def open_file(name: str, flags: int) -> int:
        return os.open(name, flags | (getattr(os, "O_NOFOLLOW", 0) if is_file else 0), 0o666)

    try:
        stream = open(path, "x" if is_new else "a", encoding="utf-8", opener=open_file)  # noqa: SIM115
    except FileExistsError:
        raise FileExistsError(errno.EEXIST, "another process has created it") from None
    try:
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            _hold(stream)
            stream.truncate(0)
    except BaseException:
        stream.close()
        raise
    return stream


def _is_below_dev(path: Path) -> bool:
    return os.path.abspath(path).startswith(("/dev/", "/proc/"))


def _hold(stream: TextIO) -> None:
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(errno.EAGAIN, "another process is writing it") from None
        except OSError:  # a file system without locks
            return


def check_writable(path: Path) -> None:
    """Raises the OSError that writing ``path`` would raise; to be called before long work."""
    if os.fspath(path) == "-":
        standard_output()
        return
    with _errors_named(path):
        mode = _mode_of_output(path)
        if mode is not None and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        if mode is None or stat.S_ISREG(mode):
            check_folder(path)


def check_folder(path: Path) -> None:
    """Raises OSError unless files can be created in the folder of ``path``."""
    folder = os.path.dirname(os.path.abspath(path))
    if not stat.S_ISDIR(os.stat(folder).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)


def sync_folder(folder: Path) -> None:
    """Syncs the names in a folder to disk, on systems where a folder can be opened. Raises OSError."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _mode_of_output(path: Path) -> int | None:
    """Type and permissions of the file at ``path``; None for a new file or a link to a file.

    Raises
    ------
    IsADirectoryError : ``path`` is a folder
    OSError : the folder does not exist, or the name is too long
    """
    if not os.fspath(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if _is_below_dev(path):
        mode = os.stat(path).st_mode
        return stat.S_IFCHR if stat.S_ISREG(mode) else mode  # standard output that goes to a file
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            mode = os.stat(path).st_mode
            if stat.S_ISREG(mode):
                return None
    except FileNotFoundError:
        if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            raise FileNotFoundError(errno.ENOENT, "No such directory", path) from None
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return mode


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    """Names ``path`` in errors that name the temporary file or the folder."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename, error.filename2 = os.fspath(path), None
        raise


def read_bytes(path: Path) -> bytes:
    """The content of a file, or of standard input for ``-``. Raises OSError."""
    if os.fspath(path) == "-":
        return standard_input().read()
    with open(path, "rb") as stream:
        return stream.read()


def digest_of_file(path: Path) -> str:
    """The SHA-256 of a file, hexadecimal. Raises OSError."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def standard_input() -> BinaryIO:
    """Standard input as bytes; OSError if the process has none."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed")
    return sys.stdin.buffer


def standard_output() -> BinaryIO:
    """Standard output as bytes; OSError if the process has none."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    return sys.stdout.buffer
