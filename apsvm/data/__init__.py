"""Data sets: what a file holds, and the reading of it."""

from apsvm.data.dataset import DataError, Dataset
from apsvm.data.svmlight import read_svmlight

__all__ = ["DataError", "Dataset", "read_svmlight"]
