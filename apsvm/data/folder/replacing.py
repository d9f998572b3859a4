"""A folder that is written beside its place gets the place in one step, and only once it is on the disk."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from pathlib import Path
from typing import BinaryIO

from apsvm._support import places
from apsvm._support.temporary import remove_abandoned, temporary_name


def sync(stream: BinaryIO) -> None:
    """Puts what was written to the stream on the disk. Raises OSError."""
    stream.flush()
    os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Puts the names in a folder on the disk, where folders can be opened. Raises OSError."""
    if not places.HAS_FOLDER_DESCRIPTORS:
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def clean(folder: Path) -> None:
    """Removes what runs that were killed have left in ``folder``. Raises OSError if it cannot be opened."""
    if not places.HAS_FOLDER_DESCRIPTORS:
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        remove_abandoned(handle)
    finally:
        os.close(handle)


def give_place(temporary: Path, target: Path) -> None:
    """Gives the temporary folder the target's name. What has that name goes once it is replaced, and not before."""
    if not target.exists():
        temporary.rename(target)
        sync_folder(target.parent)
        return
    if _exchange(temporary, target):
        old = temporary
    else:  # a file system that cannot swap two names: for a moment neither has it, but both folders are whole
        old = target.parent / temporary_name()
        target.rename(old)
        try:
            temporary.rename(target)
        except BaseException:
            old.rename(target)
            raise
    sync_folder(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def _exchange(a: Path, b: Path) -> bool:
    """Swaps two names in one step (renameat2 of Linux); False where that is not to be had. Raises OSError."""
    library = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    rename = getattr(library, "renameat2", None)
    if rename is None:
        return False
    at_cwd, exchange = -100, 2
    if rename(at_cwd, os.fsencode(a), at_cwd, os.fsencode(b), exchange) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(b))
