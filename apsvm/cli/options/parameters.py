"""The types of the command line's options: numbers, labels, rules."""

from __future__ import annotations

import codecs
import csv
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import click

from apsvm._support.ranges import Range

if TYPE_CHECKING:
    ParamType: TypeAlias = click.ParamType[object]
else:
    ParamType = click.ParamType  # generic in newer versions of click only


def plain_float(text: str) -> float:
    """float() without Python's own forms: underscores and digits of other scripts. Raises ValueError."""
    if "_" in text or not text.isascii():
        raise ValueError(f"not a number: {text!r}")
    return float(text)


class Number(ParamType):
    """A finite number between bounds (click's own FloatRange lets NaN through)."""

    name = "number"

    def __init__(self, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False) -> None:
        self.range = Range(low, high, open_low)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        return self.number(value)

    def number(self, value: object) -> float:
        """The value, or its text."""
        try:
            number = plain_float(str(value))
        except ValueError:
            self.fail(f"expected a number, found {value!r}")
        if not self.range.admits(number):
            self.fail(f"expected a finite number {self.range}".rstrip() + f", found {value!r}")
        return number


class Parsed(ParamType):
    """A value that ``parse`` makes of its text; its ValueErrors are click's.

    Parameters
    ----------
    name, metavar : shown in help; none: the names
    names : the forms that the short help lists
    """

    def __init__(
        self, name: str, parse: Callable[[str], object], metavar: str | None = None, names: Sequence[str] = ()
    ) -> None:
        self.name, self._parse, self._metavar = name, parse, metavar or "|".join(names) or None
        if names:
            self.names = lambda: names

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        try:
            return self._parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error))

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str | None:
        return self._metavar


def _constant(text: str) -> float | str | None:
    word = text.strip().lower()
    if word in ("auto", "none"):
        return word if word == "auto" else None
    try:
        value = Number().number(text)
        return value if value > 0.0 else None
    except click.UsageError:
        raise ValueError(f"expected a finite number, auto or none, found {text!r}") from None


def _label(text: str) -> float | str:
    try:
        number = plain_float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number or a word, found {text!r}")
    return number


def _pool(text: str) -> tuple[str, ...]:
    from apsvm.models.header import parse_pool

    return parse_pool(text)


def _threshold(text: str) -> str:
    from apsvm.metrics.thresholds import ThresholdRule

    return str(ThresholdRule.parse(text.strip().lower()))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []) if name.strip())


def _encoding(name: str) -> str:
    try:
        if name == "auto" or codecs.lookup(name)._is_text_encoding:
            return name
    except LookupError:
        pass
    raise ValueError(f"{name!r} is no encoding of text: utf-8, latin-1, cp1252, utf-16 …")


#: The value of a constant feature; none or a number that is not positive means no such feature.
CONSTANT = Parsed("constant", _constant, "NUMBER|auto|none")
#: A label: a number, or a word of a table's column.
LABEL = Parsed("label", _label)
#: Names of pooling functions for bags, with commas between them.
POOL = Parsed("pool", _pool, "min,mean,max")
#: A rule for a threshold, as text.
THRESHOLD = Parsed("rule", _threshold, names=("f1", "fpr=A", "precision=A", "recall=A", "top=K"))
#: Names with commas between them; a name with a comma is in double quotes.
NAMES = Parsed("name,…", _names, "NAME,…")
#: The name of an encoding of text.
ENCODING = Parsed("name", _encoding, "NAME")
