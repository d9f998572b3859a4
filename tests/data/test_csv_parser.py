"""The parser of CSV text: it reads what the standard library reads, wherever the blocks are cut."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apsvm._native import _kernels
from apsvm.data.tables.cells import MISSING


def parsed(text: bytes, sizes: list[int], columns: str) -> tuple[np.ndarray, list[list[bytes]], list[list[int]]]:
    parser = _kernels.CsvParser(columns=columns)
    at = 0
    for size in sizes:
        parser.feed(text[at : at + size])
        at += size
    parser.feed(text[at:])
    parser.finish()
    words = [parser.words(column) for column in range(sum(letter != "s" for letter in columns))]
    return parser.take(), words, [part.tolist() for part in parser.apart()]


FIELDS = st.one_of(
    st.sampled_from(["", "1", "-2.5", "1e3", "NA", "x", "true", "a b", '"q"', "1_0", ".5", "5.", "-", "+7", "0x1"]),
    st.text(alphabet='a",\n\r 1.', max_size=5),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)


@pytest.mark.slow
@given(
    table=st.lists(st.lists(FIELDS, min_size=3, max_size=3), min_size=1, max_size=6),
    sizes=st.lists(st.integers(0, 9), max_size=8),
)
def test_the_parser_agrees_with_the_standard_library(table: list[list[str]], sizes: list[int]) -> None:
    """Whatever the fields hold, and wherever the blocks are cut."""
    import csv

    stream = io.StringIO()
    csv.writer(stream, quoting=csv.QUOTE_ALL).writerows(table)
    text = stream.getvalue().encode()
    values, words, apart = parsed(text, sizes, "cst")
    whole = parsed(text, [], "cst")
    assert values.tobytes() == whole[0].tobytes()
    assert (words, apart) == whole[1:]
    assert values.shape == (len(table), 2)
    for row, cells in zip(table, values.view(np.int64).tolist(), strict=True):
        for field, cell, of_column, column in zip((row[0], row[2]), cells, words, "ct", strict=True):
            content = field.strip(" ")
            if cell > MISSING:
                assert of_column[cell - MISSING - 1].decode() == content
            elif cell == MISSING:
                assert content == "" or (column == "c" and content == "NA")
            else:
                assert column == "c"
                assert np.array(cell).view(np.float64) == float(content)


def test_the_parser_refuses_what_cannot_be() -> None:
    for options in ({"columns": ""}, {"columns": "x"}, {"separator": "."}, {"separator": '"'}, {"decimal": ";"}):
        with pytest.raises(ValueError, match="expected"):
            _kernels.CsvParser(**{"columns": "c", **options})
    parser = _kernels.CsvParser(columns="cc", longest_row=100)
    with pytest.raises(_kernels.CsvError, match="is a closing quote missing"):
        parser.feed(b'1,"' + b"x" * 200)
