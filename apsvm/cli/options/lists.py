"""Types of options that take several values: lists of numbers, lists of anything."""

from __future__ import annotations

import math

import click
from click.shell_completion import CompletionItem

from apsvm.cli.options.parameters import Number, ParamType, plain_float
from apsvm.trainers.settings import AUTO_MULTIPLE, Multiple

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
