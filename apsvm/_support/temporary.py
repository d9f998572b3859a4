"""Names of what is still being written: they carry the machine and the process, so that a later run can tell which of
them nobody will ever finish, and removes those.

    .apsvm-<machine>-<process>-<random>

All of it is short, whatever the name of the output: an output may have any name that its file system takes.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from contextlib import suppress
from functools import cache

#: Of a data folder, which is all that is ever removed of a folder.
_MEMBER = re.compile(r".*\.npy|header\.json")
_NAME = re.compile(r"\.apsvm-([0-9a-f]{8})-([0-9]{1,10})-[0-9a-f]{12}")


def temporary_name() -> str:
    """A new name for a file or folder that this process is about to write."""
    return f".apsvm-{_machine()}-{os.getpid()}-{secrets.token_hex(6)}"


def remove_abandoned(folder: int) -> None:
    """Removes from an open folder (a descriptor) what processes of this machine and user have left unfinished that do
    not run any more. What cannot be removed stays."""
    with suppress(OSError):
        identity = os.stat(folder)
        _sweep(identity.st_dev, identity.st_ino, folder)


def _sweep(device: int, inode: int, folder: int) -> None:
    """Once a process and folder: a folder may have very many entries."""
    if (os.getpid(), device, inode) in _SWEPT:
        return
    _SWEPT.add((os.getpid(), device, inode))
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)  # it may be open for searching only
    try:
        names = [name for name in os.listdir(opened) if _is_abandoned(name)]
        for name in names:
            with suppress(OSError):
                _remove(name, opened)
    finally:
        os.close(opened)


_SWEPT: set[tuple[int, int, int]] = set()


def _is_abandoned(name: str) -> bool:
    match = _NAME.fullmatch(name)
    if match is None or match[1] != _machine():
        return False
    process = int(match[2])
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _remove(name: str, folder: int) -> None:
    """Removes an entry of this user's: a file, or a folder of nothing but members of a data folder."""
    entry = os.lstat(name, dir_fd=folder)
    if entry.st_uid != os.geteuid():
        return
    if stat.S_ISREG(entry.st_mode):
        os.unlink(name, dir_fd=folder)
    elif stat.S_ISDIR(entry.st_mode):
        inside = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        try:
            members = os.listdir(inside)
            if not all(map(_MEMBER.fullmatch, members)):
                return
            for member in members:
                os.unlink(member, dir_fd=inside)
        finally:
            os.close(inside)
        os.rmdir(name, dir_fd=folder)


@cache
def _machine() -> str:
    """Eight hexadecimal digits of the machine and, where processes of containers have numbers of their own, of those:
    of a number of another's nobody here can say whether it runs."""
    try:
        space = str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        space = ""
    node = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return hashlib.sha256(f"{node} {space}".encode()).hexdigest()[:8]
