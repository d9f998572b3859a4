"""Where an output goes: the folder that holds it, opened, and its name there, every link on the way followed by hand.

A link is followed as Linux follows links where ``fs.protected_symlinks`` is set, on every system and for every part of
the path: in a folder that everybody may write to and whose sticky bit keeps each one's files apart (``/tmp``), a link
counts only if it is the user's own or the folder's owner's. Otherwise whoever guesses the name of an output chooses
which of the user's files is replaced. From then on the folder is a descriptor and not a path, so that nobody can put
another in its place.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

#: As many links as Linux follows.
_MOST_LINKS = 40
#: A folder that may be searched need not be readable.
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_PATH", os.O_RDONLY)
#: Whether names can be looked up in an open folder. On Windows they cannot; there nobody but an administrator makes
#: links, and a path is taken as it stands.
HAS_FOLDER_DESCRIPTORS = os.open in os.supports_dir_fd


class Place(NamedTuple):
    """A name in an open folder.

    Attributes
    ----------
    folder : descriptor of the folder, for ``dir_fd=``
    name : of the entry, which need not exist; it is no link, but where the system has made one that is no path
        (``/proc/self/fd/1`` of a pipe)
    path : of the entry, absolute and without links
    """

    folder: int
    name: str
    path: Path

    def mode(self) -> int | None:
        """The type and permissions of what stands there; None if nothing does."""
        try:
            status = os.lstat(self.name, dir_fd=self.folder)
            if not stat.S_ISLNK(status.st_mode):
                return status.st_mode
            # A link of the system's to something open. A file that has lost its name can only be written in place.
            mode = os.stat(self.name, dir_fd=self.folder).st_mode
            return stat.S_IFCHR if stat.S_ISREG(mode) else mode
        except FileNotFoundError:
            return None


@contextmanager
def errors_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Names ``path`` in errors, which know only a name in a folder. A closed pipe stays what it is."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename, error.filename2 = os.fspath(path), None
        raise


@contextmanager
def place_of(path: str | os.PathLike[str]) -> Iterator[Place]:
    """The place that ``path`` names, links followed, its folder open until the context ends; errors within it name
    ``path``.

    Raises
    ------
    PermissionError : it leads over another user's link in a folder that everybody may write to
    OSError : a folder on the way does not exist or cannot be searched; links that go round in circles
    """
    absolute = os.path.abspath(path) if os.fspath(path) else ""
    with errors_named(path):
        walk = _Walk(absolute)
        try:
            yield walk.to_the_end()
        finally:
            walk.close()


def settled(path: str | os.PathLike[str]) -> Path:
    """``path`` without links, as ``place_of`` follows them; it need not exist. Raises as ``place_of``."""
    if not HAS_FOLDER_DESCRIPTORS:
        return Path(os.path.realpath(path))
    with place_of(path) as place:
        return place.path


def may_be_followed(link_owner: int, folder_owner: int, folder_mode: int, user: int) -> bool:
    """Whether ``user`` follows a link of ``link_owner`` in a folder of this owner and mode."""
    everybodys = stat.S_ISVTX | stat.S_IWOTH
    return folder_mode & everybodys != everybodys or link_owner in (user, folder_owner)


class _Walk:
    """From the root to a place, a part of the path at a time."""

    def __init__(self, path: str) -> None:
        if not path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self._asked = path
        self._links = 0
        self._parts: list[str] = []
        self._ahead = _parts_of(path)
        self._folder = os.open("/", _FOLDER)

    def close(self) -> None:
        os.close(self._folder)

    def to_the_end(self) -> Place:
        if not self._ahead:
            return Place(self._folder, ".", Path("/"))
        while True:
            part = self._ahead.pop()
            if part == "..":
                self._parts = self._parts[:-1]
                self._enter("..")
            elif self._is_link(part) and not self._is_no_path(part):
                self._follow(part)
            elif not self._ahead:
                return Place(self._folder, part, Path("/", *self._parts, part))
            else:
                self._enter(part)
                self._parts.append(part)
            if not self._ahead:  # a link that leads to a folder by its own dots, or to the root
                return Place(self._folder, ".", Path("/", *self._parts))

    def _enter(self, part: str) -> None:
        try:
            folder = os.open(part, _FOLDER, dir_fd=self._folder)
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "No such directory", self._named(part)) from None
        os.close(self._folder)
        self._folder = folder

    def _is_link(self, part: str) -> bool:
        try:
            return stat.S_ISLNK(os.lstat(part, dir_fd=self._folder).st_mode)
        except FileNotFoundError:
            return False

    def _is_no_path(self, part: str) -> bool:
        """Whether it is a link that the system made to something open, whose text names nothing: ``pipe:[4711]``."""
        try:
            behind = os.stat(part, dir_fd=self._folder)
        except OSError:
            return False  # a link to what does not exist yet, or a circle, which is found out by walking
        text = os.path.join("/", *self._parts, os.readlink(part, dir_fd=self._folder))
        with suppress(OSError):
            return not os.path.samestat(behind, os.stat(text))
        return True

    def _follow(self, part: str) -> None:
        self._links += 1
        if self._links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self._asked)
        folder, link = os.stat(self._folder), os.lstat(part, dir_fd=self._folder)
        if not may_be_followed(link.st_uid, folder.st_uid, folder.st_mode, os.geteuid()):
            raise PermissionError(
                errno.EACCES, "It is another user's link in a folder that everybody may write to", self._named(part)
            )
        text = os.readlink(part, dir_fd=self._folder)
        if text.startswith("/"):
            os.close(self._folder)
            self._folder, self._parts = os.open("/", _FOLDER), []
        self._ahead += _parts_of(text)

    def _named(self, part: str) -> str:
        return os.path.join("/", *self._parts, part)


def _parts_of(path: str) -> list[str]:
    """The parts of a path, last first."""
    return [part for part in path.split("/") if part not in ("", ".")][::-1]
