"""Expands a name to files."""

from __future__ import annotations

import glob
import os

_PARQUET = b"PAR1"


def parts_of(source: str) -> list[str]:
    """The files of a name, in the order of their names: those that fit a pattern (``part-*.svm``), those of a folder of
    Parquet files, or the name itself. Raises OSError."""
    if source == "-":
        return [source]
    is_pattern = glob.has_magic(source) and not os.path.lexists(source)
    names = sorted(glob.glob(source)) if is_pattern else [source]
    return [part for name in names for part in _parquet_files(name) or [name]] or [source]


def _parquet_files(folder: str) -> list[str]:
    """The files of a folder if all are Parquet files, apart from hidden ones (``_SUCCESS``); else none."""
    if not os.path.isdir(folder):
        return []
    files = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name[0] not in "._"]
    return files if all(_is_parquet(file) for file in files) else []


def _is_parquet(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        return stream.read(4) == _PARQUET
