"""Data sets: what a file holds, and the reading of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apsvm.data.dataset import DataError, Dataset
    from apsvm.data.folder import open_folder, write_folder
    from apsvm.data.reading import read_data
    from apsvm.data.svmlight import read_svmlight

__all__ = ["DataError", "Dataset", "open_folder", "read_data", "read_svmlight", "write_folder"]

_HOMES = {
    "DataError": "dataset",
    "Dataset": "dataset",
    "open_folder": "folder",
    "read_data": "reading",
    "read_svmlight": "svmlight",
    "write_folder": "folder",
}


def __getattr__(name: str) -> object:
    # The command line declares its options with modules of this folder that load nothing heavy.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
