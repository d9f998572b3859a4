"""The short path through a row, which needs a line before it and 32 bytes behind it, against the one that any row may
take, as it is taken where the text comes byte by byte; and memory that grows beyond the pages of small arrays."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from over import over
from svmlight_cases import BAD, GOOD, Bad, Good, assert_same_outcome, identical, outcome

BEFORE = b"0 cost:1\n"
BEHIND = b"# so many bytes that no row looks beyond them\n"
FREE = Good("free", b"", [])


def both(text: bytes, case: Good | Bad = FREE, **options: Any) -> Any:
    """Result of the whole text, equal to that of the text byte by byte."""
    text = BEFORE + text + b"\n" + BEHIND
    at_once = outcome(text, len(text), case, **options)
    assert_same_outcome(at_once, outcome(text, 1, case, **options))
    return at_once


@over("case", [*GOOD, *BAD], ids=lambda case: case.name)
def test_corners(case: Good | Bad) -> None:
    both(case.text, case)


@over("whole", [4, 5, 6, 7])
def test_more_digits_than_64_bits(whole: int) -> None:
    """With 16 decimals, of which 64 bits would keep 5 at the last place."""
    mantissa = str((10 ** (whole + 15) // 2**64 + 1) * 2**64 + 5)
    value = f"{mantissa[:whole]}.{mantissa[whole:]}"
    assert both(f"1 1:{value}".encode())[2][0] == float(value)


@over("decimals", range(1, 21))
def test_as_many_decimals_as_digits(decimals: int) -> None:
    value = f".{5:0{decimals}}"
    assert both(f"1 1:{value}".encode())[2][0] == float(value)


def digits(most: int) -> st.SearchStrategy[str]:
    return st.text("0123456789", min_size=1, max_size=most)


values = st.one_of(
    digits(18),
    st.builds("{}{}.{}".format, st.sampled_from(["", "-"]), st.integers(0, 9), digits(9)),
    st.builds("{}{}.{}".format, st.sampled_from(["", "-"]), digits(10), st.text("0123456789", max_size=20)),
    st.builds("0.900719925474{}".format, digits(6)),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)


@pytest.mark.slow
@settings(max_examples=400)
@given(st.lists(st.tuples(st.integers(1, 10) | st.integers(1, 10**9), values), min_size=1, max_size=12), st.booleans())
def test_values_are_those_of_python(entries: list[tuple[int, str]], dense: bool) -> None:
    steps = [1 if dense else step for step, _ in entries]
    indices = np.cumsum(steps)
    text = "1 " + " ".join(f"{i}:{value}" for i, (_, value) in zip(indices, entries, strict=True))
    result = both(text.encode())
    assert identical(result[1].astype(np.int64), indices - 1)
    assert identical(result[2], np.array([float(value) for _, value in entries]))


@over("value", ["1", "0.5", "-0.25", "12.125", "0.123456789012", "0.12345678901234567", "1e2", "7."])
@over("index", ["1", "12345678", "123456789", "123456789012345678"])
def test_a_character_too_many(index: str, value: str) -> None:
    """In each place of an entry, each character that means something."""
    entry = f"{index}:{value}"
    for at in range(len(entry) + 1):
        for other in " \t:.,-+e#\r\0\x7f\xe9/;0":
            text = f"1 {entry[:at]}{other}{entry[at:]} 999999999999999999:2"
            both(text.encode("latin-1"))
            both(text.encode("latin-1"), dtype=np.float32, sort_features=True)


def test_float32_overflows() -> None:
    line, _, message = both(b"1 1:0.5 2:" + b"9" * 7 + b".0 3:1e39", dtype=np.float32)
    assert line == 2
    assert re.match("the value of feature 3 overflows float32", message)
    (*_, message) = both(b"1 1:0.5 2:" + b"9" * 15 + b" 3:" + b"9" * 40 + b".5", dtype=np.float32)
    assert re.match("the value of feature 3 overflows float32", message)


@over("options", [{}, {"max_features": 3}, {"n_features": 3}, {"narrow_limit": 2}])
@over("text", [b"1 1:1 2:2 3:3.5 4:4 5:5.25", b"1 0:1 1:2.5", b"1 2:1.5 2:2.5", b"1 2:1.5 1:2.5"])
def test_columns_that_are_refused(text: bytes, options: dict[str, int]) -> None:
    both(text, **options)
    both(text, **options, zero_based=True)
    both(text, **options, sort_features=True)
    both(text, **options, ignore_unknown="n_features" in options)


@pytest.mark.slow
@pytest.mark.parametrize("n", [200_000, 1_100_000, 3_000_000])
def test_large_arrays(n: int) -> None:
    """Values of 1.6, 8.8 and 24 MB: from 2 MB on they lie elsewhere, and are moved as they grow."""
    rng = np.random.default_rng(n)
    numbers = rng.integers(10, 100, n)
    columns = np.arange(n) % 2 + (np.arange(n) // 2 % 7 == 0)
    lines = (f"1 {i}:{a} {j}:{b}\n" for i, a, j, b in zip(
        columns[::2] + 1, numbers[::2], columns[1::2] + 2, numbers[1::2], strict=True))  # fmt: skip
    text = "".join(lines).encode()
    indptr, indices, read, *_ = outcome(text, 1 << 19, FREE)
    assert identical(indptr, np.arange(0, n + 1, 2, dtype=np.int32))
    assert identical(indices, (columns + np.arange(n) % 2).astype(np.int32))
    assert identical(read, numbers.astype(np.float64))
    assert read.flags.writeable
