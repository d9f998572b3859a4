"""The types of the command line's options: numbers, labels, rules."""

from __future__ import annotations

import math
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


class ConstantFeature(ParamType):
    """The value of a constant feature, or "auto". "none" or a number that is not positive means no such feature."""

    name = "constant"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        word = str(value).strip().lower()
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
            number = plain_float(str(value))
        except ValueError:
            return str(value)
        if not math.isfinite(number):
            self.fail(f"expected a finite number or a word, found {value!r}")
        return number


class PoolNames(ParamType):
    """Names of pooling functions for bags, with commas between them."""

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
