"""The types of the command line's options: finite numbers, lists of them, lists of anything."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import click
from click.shell_completion import CompletionItem

from apsvm.trainers.settings import AUTO_MULTIPLE, Multiple, Range

if TYPE_CHECKING:
    ParamType: TypeAlias = click.ParamType[object]
else:
    ParamType = click.ParamType  # generic in newer versions of click only


def plain_float(text: str) -> float:
    """float(), without what only Python's own literals have: underscores and digits of other scripts. ValueError."""
    if "_" in text or not text.isascii():
        raise ValueError(f"not a number: {text!r}")
    return float(text)


def number_of(value: object) -> float:
    """The number in text, or of a configuration file; infinite where a whole one is beyond float64. ValueError."""
    if isinstance(value, str):
        return plain_float(value)
    assert isinstance(value, int | float)
    try:
        return float(value)
    except OverflowError:
        return math.inf


class Number(ParamType):
    """A finite number between bounds (click's own FloatRange lets NaN through)."""

    name = "number"

    def __init__(self, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False) -> None:
        self.range = Range(low, high, open_low)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        return self.number(value)

    def number(self, value: object) -> float:
        """The value, text or a number of a configuration file."""
        try:
            number = number_of(value)
        except ValueError:
            self.fail(f"expected a number, found {value!r}")
        if not self.range.admits(number):
            self.fail(f"expected a finite number {self.range}".rstrip() + f", found {value!r}")
        return number


class ConstantFeature(ParamType):
    """The value of a constant feature, a number, of which one that is not positive says that there is none, as "none"
    does; or "auto"."""

    name = "constant"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        word = value.strip().lower() if isinstance(value, str) else ""
        if word in ("auto", "none"):
            return word
        try:
            return Number().number(value)
        except click.UsageError:
            self.fail(f"expected a finite number, auto or none, found {value!r}")

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "NUMBER|auto|none"


class LabelValue(ParamType):
    """A label: a number, or a word of a table's column."""

    name = "label"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        try:
            number = number_of(value)
        except ValueError:
            return str(value)
        if not math.isfinite(number):
            self.fail(f"expected a finite number or a word, found {value!r}")
        return number


class PoolNames(ParamType):
    """Names of what the rows of a bag are pooled by, with commas between them."""

    name = "pool"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        from apsvm.models.header import parse_pool

        try:
            return value if isinstance(value, tuple) else parse_pool(str(value))
        except ValueError as error:
            self.fail(str(error))

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "min,mean,max"


class ThresholdType(ParamType):
    """A rule for a threshold, as text."""

    name = "rule"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from apsvm.metrics.thresholds import ThresholdRule

        try:
            return str(ThresholdRule.parse(str(value).strip().lower()))
        except ValueError as error:
            self.fail(str(error))

    @staticmethod
    def names() -> list[str]:
        """The forms of rules."""
        return ["f1", "fpr=A", "precision=A", "recall=A", "top=K"]

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "|".join(self.names())


#: A range of more values than this is a mistake.
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
        # A tuple: from a configuration file, or converted already.
        words = value if isinstance(value, tuple) else value.split(",") if isinstance(value, str) else [value]
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
        # As written by hand: 0.3 and not 0.30000000000000004.
        numbers = [float(f"{start * base**at:.12g}") for at in range(count)]
        return [Multiple(number) for number in numbers] if isinstance(ends[0], Multiple) else numbers


class Several(ParamType):
    """One or several with commas between them, each as ``one`` reads it, none twice."""

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
