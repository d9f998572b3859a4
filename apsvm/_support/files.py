"""Files of the command line: ``-`` is standard input or output; written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from typing import BinaryIO

from apsvm._support import places
from apsvm._support.places import Place, errors_named, place_of
from apsvm._support.temporary import remove_abandoned, temporary_name


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes ``content`` to ``path``: to a temporary file beside it, synced, then renamed, so that what was there is
    replaced by all of it or not at all. ``-`` is standard output; a device or pipe is written to in place.

    What processes that do not run any more have left unfinished in the same folder is removed.

    Raises
    ------
    OSError : it cannot be written, or is another user's link (``apsvm._support.places``); the old file is untouched
    """
    if os.fspath(path) == "-":
        stream = standard_output()
        stream.write(content)
        stream.flush()
        return
    if not places.HAS_FOLDER_DESCRIPTORS:
        _replace_by_path(os.path.realpath(path), content)
        return
    with place_of(path) as place:
        mode = place.mode()
        if mode is not None and stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if mode is not None and not stat.S_ISREG(mode):
            _write_in_place(place, content)
            return
        remove_abandoned(place.folder)
        _replace(place, content, mode)


def _replace(place: Place, content: bytes, mode: int | None) -> None:
    """Puts a new file in the place, with the permissions of the ``mode`` of the old one, if there is one."""
    folder, temporary = place.folder, temporary_name()
    permissions = 0o666 if mode is None else stat.S_IMODE(mode)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, permissions, dir_fd=folder), "wb") as stream:
            if mode is not None:
                os.fchmod(stream.fileno(), permissions)  # what the umask has taken away
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(temporary, place.name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    opened = os.open(".", os.O_RDONLY, dir_fd=folder)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _replace_by_path(path: str, content: bytes) -> None:
    """Where folders have no descriptors: a temporary file beside it, renamed; a device is written to in place."""
    with errors_named(path):
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb") as device:
                device.write(content)
            return
        temporary = os.path.join(os.path.dirname(path), temporary_name())
        try:
            with open(temporary, "xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise


def _check_by_path(path: str) -> None:
    """``check_writable`` where folders have no descriptors."""
    with errors_named(path):
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            raise FileNotFoundError(errno.ENOENT, "No such directory", path)
        if not os.access(path if os.path.exists(path) else folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _write_in_place(place: Place, content: bytes) -> None:
    with os.fdopen(os.open(place.name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=place.folder), "wb") as stream:
        stream.write(content)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises the OSError that writing ``path`` would raise, before the work is done that it would lose."""
    if os.fspath(path) == "-":
        standard_output()
        return
    if not places.HAS_FOLDER_DESCRIPTORS:
        _check_by_path(os.path.realpath(path))
        return
    with place_of(path) as place:
        mode = place.mode()
        if mode is not None and stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if mode is not None and not os.access(place.name, os.W_OK, dir_fd=place.folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        if mode is not None and not stat.S_ISREG(mode):
            return
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=place.folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


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
