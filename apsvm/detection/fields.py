"""Parsers of text files: lines, words, numbers, boxes, and folders of files. Errors name their place."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

from apsvm._support.files import read_bytes
from apsvm._support.ranges import plain_float
from apsvm.data.dataset import DataError

Box = tuple[float, float, float, float]
#: Largest coordinate; areas of such boxes are far from overflow.
LARGEST = 1e9
_MOST_SHOWN = 40


def lines_of(name: str, content: bytes) -> Iterator[tuple[int, list[str]]]:
    """Number, from 1, and words of each line that is not empty. Raises DataError for bytes that are not UTF-8."""
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        try:
            words = line.decode().split()
        except UnicodeDecodeError:
            raise DataError(f"{name}:{number}: expected text in UTF-8, found {line[:_MOST_SHOWN]!r}") from None
        if words:
            yield number, words


def read_lines(path: str) -> Iterator[tuple[int, list[str]]]:
    """``lines_of`` a file. Raises DataError, OSError."""
    return lines_of(path, read_bytes(path))


def number_of(word: str, what: str, place: str) -> float:
    """Parses a finite number. Raises DataError."""
    with suppress(ValueError):
        if math.isfinite(value := plain_float(word)):
            return value
    raise DataError(f"{place}: expected {what}, a finite number, found {word[:_MOST_SHOWN]!r}")


def box_of(words: Sequence[str], place: str) -> Box:
    """Parses a box of four words. Raises DataError."""
    corners = zip(words, ("xmin", "ymin", "xmax", "ymax"), strict=True)
    xmin, ymin, xmax, ymax = (number_of(word, what, place) for word, what in corners)
    return checked((xmin, ymin, xmax, ymax), place)


def checked(box: Box, place: str) -> Box:
    """The box. Raises DataError for invalid coordinates."""
    found = " ".join(f"{corner:.9g}" for corner in box)
    if not all(-LARGEST <= corner <= LARGEST for corner in box):  # also catches NaN
        raise DataError(f"{place}: expected four finite coordinates, found {found}")
    if box[2] < box[0] or box[3] < box[1]:
        expected = "expected xmin ≤ xmax and ymin ≤ ymax"
        raise DataError(f"{place}: {expected}, found {found}; write a box x y w h as x y x+w y+h")
    return box


def files_in(folder: str, suffix: str) -> list[tuple[str, str]]:
    """Stem and path of the folder's files with this suffix (any case), by name, without hidden files. Raises DataError
    without such files or if two have the same stem, OSError."""
    with os.scandir(folder) as entries:
        names = sorted(
            entry.name
            for entry in entries
            if entry.name.lower().endswith(suffix) and not entry.name.startswith(".") and entry.is_file()
        )
    if not names:
        raise DataError(f"{folder}: expected files *{suffix} in this folder, found none")
    result: dict[str, str] = {}
    for name in names:
        stem = name[: -len(suffix)]
        if stem in result:
            raise DataError(f"{os.path.join(folder, name)}: image {stem!r} is there twice, first as {result[stem]}")
        result[stem] = os.path.join(folder, name)
    return list(result.items())
