"""The types of the command line's options: numbers, lists, labels, rules."""

from __future__ import annotations

import codecs
import csv
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import click
from click.shell_completion import CompletionItem

from apsvm._support.ranges import Range
from apsvm.trainers.settings import AUTO_MULTIPLE, Multiple

if TYPE_CHECKING:
    ParamType: TypeAlias = click.ParamType[object]
else:
    ParamType = click.ParamType  # generic in newer versions of click only


def plain_float(text: str) -> float:
    """Like float(), but refuses "1_000" and digits that are not ASCII. Raises ValueError."""
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


#: A range with more values is an error.
_MOST_VALUES = 1000


class NumberList(ParamType):
    """One number or several with commas between them, each as ``Number``; ``from:to:log10`` is a range of decades, each
    value 10 times the one before, ``log2`` of doublings, and so on. ``multiples``: any may be a ``Multiple``."""

    name = "numbers"

    def __init__(
        self, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False, multiples: bool = False
    ) -> None:
        self._number = Number(low, high, open_low=open_low)
        self._multiples = multiples

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float | Multiple, ...]:
        words = value if isinstance(value, tuple) else str(value).split(",")  # a tuple: converted already
        values: list[float | Multiple] = []
        for word in words:
            if isinstance(word, str) and ":" in word:
                values += self._range(word)
            else:
                values.append(self._one(word))
        return tuple(values)

    def _one(self, word: object) -> float | Multiple:
        if isinstance(word, Multiple):
            return word
        text = word.strip().lower() if isinstance(word, str) else ""
        if self._multiples and text == "auto":
            return AUTO_MULTIPLE
        if not self._multiples:
            return self._number.number(word)
        is_multiple = text.endswith("x")
        try:
            value = self._number.number(text[:-1] if is_multiple else word)
        except click.UsageError:
            expected = f"a finite number {self._number.range}, auto or a multiple such as 10x"
            self.fail(f"expected {expected}, found {word!r}")
        return Multiple(value) if is_multiple else value

    def _range(self, text: str) -> list[float] | list[Multiple]:
        first, to, *steps = text.split(":")
        try:
            base = plain_float(steps[0].strip().lower().removeprefix("log"))
            if len(steps) != 1 or not steps[0].strip().lower().startswith("log") or not 1.0 < base < math.inf:
                raise ValueError
        except (ValueError, IndexError):
            self.fail(f"expected a range like 0.01:100:log10 or 1:64:log2, found {text!r}")
        ends = [self._one(end) for end in (first, to)]
        start, end = (value.factor if isinstance(value, Multiple) else value for value in ends)
        if isinstance(ends[0], Multiple) != isinstance(ends[1], Multiple) or not 0.0 < start <= end:
            self.fail(f"expected a range from a number above 0 to one that is not smaller, found {text!r}")
        count = math.floor((math.log(end) - math.log(start)) / math.log(base) + 1e-9) + 1
        if count > _MOST_VALUES:
            self.fail(f"expected a range of at most {_MOST_VALUES} values, found {text!r}")
        # Rounded as written by hand: 0.3, not 0.30000000000000004.
        numbers = [float(f"{start * base**at:.12g}") for at in range(count)]
        return [Multiple(number) for number in numbers] if isinstance(ends[0], Multiple) else numbers


class Several(ParamType):
    """One or several different values with commas between them, each parsed by ``one``."""

    name = "several"

    def __init__(self, one: ParamType) -> None:
        self.one = one

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[object, ...]:
        words = value if isinstance(value, tuple) else [word.strip() for word in str(value).split(",")]
        values = tuple(self.one.convert(word, param, ctx) for word in words)
        if len(set(values)) < len(values):
            self.fail(f"found one twice in {value!r}")
        return values

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"{self.one.get_metavar(param, ctx) or self.one.name.upper()},…"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        fitting = self.one.shell_complete(ctx, param, last)
        return [CompletionItem(f"{before}{comma}{item.value}") for item in fitting]


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
