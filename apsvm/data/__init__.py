"""Data sets: what a file holds, and the reading of it."""

from apsvm.data.dataset import DataError, Dataset
from apsvm.data.folder import open_folder, write_folder
from apsvm.data.reading import read_data
from apsvm.data.svmlight import read_svmlight

__all__ = ["DataError", "Dataset", "open_folder", "read_data", "read_svmlight", "write_folder"]
