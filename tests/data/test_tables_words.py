"""Columns of more different words than are told apart."""

from functools import partial
from pathlib import Path

import pytest

from apsvm._native import _kernels
from apsvm.data import DataError, read_data
from apsvm.data.read_options import TableOptions


def test_words_beyond_those_told_apart_make_no_category(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_kernels, "CsvParser", partial(_kernels.CsvParser, most_words=3))
    table = tmp_path / "data.csv"
    table.write_text("w,x,y\na,1,0\nb,2,1\nc,3,0\nd,4,1\ne,5,0\n")
    message = r"column 'w' has more than 3 different words in 5 rows \('a', …\), no categories"
    with pytest.raises(DataError, match=message):
        read_data(table, table=TableOptions())
    table.write_text("w,x,y\na,1,0\nb,2,1\nc,3,0\na,4,1\n")
    assert read_data(table, table=TableOptions()).X.shape == (4, 4)
