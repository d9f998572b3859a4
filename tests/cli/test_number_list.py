"""Lists and ranges of numbers, as ``-C`` takes them."""

from __future__ import annotations

import click
import pytest

from apsvm.cli.options.parameters import NumberList
from apsvm.trainers.settings import AUTO_MULTIPLE, Multiple

KIND = NumberList(multiples=True)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3", [3.0]),
        ("0.1,1,10", [0.1, 1.0, 10.0]),
        ("0.01:1e5:log10", [0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5]),
        ("1:60:LOG2", [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]),
        ("0.3:0.3:log10", [0.3]),
        ("1:5:log1.5", [1.0, 1.5, 2.25, 3.375]),
        ("0.003:3:log10, 7", [0.003, 0.03, 0.3, 3.0, 7.0]),
        ("auto", [AUTO_MULTIPLE]),
        ("1x", [Multiple(1.0)]),
        ("0.1X:10x:log10,5", [Multiple(0.1), Multiple(1.0), Multiple(10.0), 5.0]),
    ],
)
def test_read(text, values):
    assert KIND.convert(text, None, None) == tuple(values)
    assert KIND.convert(tuple(values), None, None) == tuple(values)


@pytest.mark.parametrize(
    "text",
    ["", "1,", "1:2", "1:10:10", "1:10:log1", "1:10:lognan", "1:10:log", "10:1:log10", "0:1:log10", "1x:10:log10",
     "1:2:log10:3", "-1x", "x", "0x", "1e-300:1e300:log1.1", "nan:1:log10"],
)  # fmt: skip
def test_refused(text):
    with pytest.raises(click.BadParameter):
        KIND.convert(text, None, None)


def test_multiples_only_where_they_mean_something():
    for text in ("auto", "2x", "1x:2x:log2"):
        with pytest.raises(click.BadParameter):
            NumberList().convert(text, None, None)
