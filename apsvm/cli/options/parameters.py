"""The types of the command line's options: numbers, lists, labels, rules, and names, which the shell completes.

``eval "$(_APSVM_COMPLETE=bash_source apsvm)"`` switches completion on in bash (zsh_source, fish_source likewise).
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.shell_completion import CompletionItem

from apsvm._support.ranges import Range, plain_float
from apsvm.trainers.settings import Multiple, amount

if TYPE_CHECKING:
    ParamType: TypeAlias = click.ParamType[object]
else:
    ParamType = click.ParamType  # generic in newer versions of click only


class Parsed(ParamType):
    """A value that ``parse`` makes of its text; its ValueErrors are click's.

    Parameters
    ----------
    name, metavar : shown in help; by default the names
    names : the names, or forms of names, that help and shell list
    """

    def __init__(
        self,
        name: str,
        parse: Callable[[str], object],
        metavar: str | None = None,
        names: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self.name, self._parse, self._metavar, self.names = name, parse, metavar, names

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        try:
            return self._parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error))

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str | None:
        return self._metavar or "|".join(self.names()) or None

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names = map(example_of, self.names())
        return [CompletionItem(name) for name in names if name.lower().startswith(incomplete.lower())]


#: Example for each placeholder in the form of a name.
_EXAMPLES = {
    "@k": "@10",
    ":k": ":4",
    ":m": ":300",
    "(rho)": "(0.8)",
    "(gain)": "(linear)",
    "(beta)": "(0.5)",
    "(graph)": "(adjacent)",
    "(loss)": "(ap)",
    "Fβ": "F1",
}


def example_of(form: str) -> str:
    """A name of this form, with an example for its parameter."""
    for placeholder, example in _EXAMPLES.items():
        form = form.replace(placeholder, example)
    return form


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


def number(text: str, limits: Range = Range()) -> float:  # noqa: B008  # frozen
    """The number between bounds (click's own FloatRange lets NaN through). Raises ValueError."""
    with suppress(ValueError):
        if limits.admits(value := plain_float(text)):
            return value
    raise ValueError(f"expected a finite number {limits}".rstrip() + f", found {text!r}")


class Number(Parsed):
    """A finite number between bounds."""

    def __init__(self, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False) -> None:
        super().__init__("number", lambda text: number(text, Range(low, high, open_low)))


#: A range with more values is an error.
_MOST_VALUES = 1000


class NumberList(Parsed):
    """One number or several with commas between them; ``from:to:log10`` is a range of decades, each value 10 times the
    one before, ``log2`` of doublings, and so on. ``multiples``: any may be a ``Multiple``."""

    def __init__(self, *, multiples: bool = False) -> None:
        super().__init__("numbers", self._several)
        self._one = _number_or_multiple if multiples else number

    def _several(self, text: str) -> tuple[float | Multiple, ...]:
        words = text.split(",")
        return tuple(value for word in words for value in (self._range(word) if ":" in word else [self._one(word)]))

    def _range(self, text: str) -> list[float | Multiple]:
        match = re.fullmatch(r"([^:]+):([^:]+):\s*log([\d.]+)\s*", text.lower())
        if match is None or (base := number(match[3])) <= 1.0:
            raise ValueError(f"expected a range like 0.01:100:log10 or 1:64:log2, found {text!r}")
        ends = [self._one(end) for end in match.groups()[:2]]
        start, end = map(amount, ends)
        if isinstance(ends[0], Multiple) != isinstance(ends[1], Multiple) or not 0.0 < start <= end:
            raise ValueError(f"expected a range from a number above 0 to one that is not smaller, found {text!r}")
        count = math.floor((math.log(end) - math.log(start)) / math.log(base) + 1e-9) + 1
        if count > _MOST_VALUES:
            raise ValueError(f"expected a range of at most {_MOST_VALUES} values, found {text!r}")
        # Rounded as written by hand: 0.3, not 0.30000000000000004.
        numbers = [float(f"{start * base**at:.12g}") for at in range(count)]
        return [Multiple(value) for value in numbers] if isinstance(ends[0], Multiple) else [*numbers]


def _number_or_multiple(word: str) -> float | Multiple:
    try:
        return number(word)
    except ValueError:
        return Multiple.parsed(word)


def _constant(text: str) -> float | str | None:
    word = text.strip().lower()
    if word == "auto":
        return word
    value = 0.0 if word == "none" else number(text)
    return value if value > 0.0 else None


def _label(text: str) -> float | str:
    try:
        value = plain_float(text)
    except ValueError:
        return text
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number or a word, found {text!r}")
    return value


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []) if name.strip())


def _encoding(name: str) -> str:
    try:
        "".encode("utf-8" if name == "auto" else name)
    except LookupError as error:
        raise ValueError(str(error)) from None
    return name


def _feature_map(name: str) -> str:
    from apsvm.data.features import LINEAR, parsed

    return name if name in ("auto", LINEAR) else str(parsed(name))  # the first two need no slow imports


def _metric(name: str) -> str:
    from apsvm.metrics import parse_metric

    return parse_metric(name).name


def _imported(module: str, function: str) -> Callable[..., Any]:
    """A function of a module that is imported when it is called."""
    return lambda *arguments: attrgetter(function)(import_module(module))(*arguments)


#: The value of a constant feature; none or a number that is not positive means no such feature.
CONSTANT = Parsed("constant", _constant, "NUMBER|auto|none")
#: A label: a number, or a word of a table's column.
LABEL = Parsed("label", _label)
#: Names of pooling functions for bags, with commas between them.
POOL = Parsed("pool", _imported("apsvm.models.header", "parse_pool"), "min,mean,max")
#: A rule for a threshold.
THRESHOLD = Parsed(
    "rule",
    _imported("apsvm.metrics.thresholds", "ThresholdRule.parse"),
    names=lambda: ("f1", "fpr=A", "precision=A", "recall=A", "top=K"),
)
#: Names with commas between them; a name with a comma is in double quotes.
NAMES = Parsed("name,…", _names, "NAME,…")
#: The name of an encoding of text.
ENCODING = Parsed("name", _encoding, "NAME")
#: The name of a feature map, in full: ``piecewise:4`` of ``piecewise``.
FEATURES = Parsed("name", _feature_map, names=_imported("apsvm.data.features", "FEATURE_MAPS.keys"))
#: The canonical name of a metric.
METRIC = Parsed("name", _metric, names=_imported("apsvm.metrics", "METRICS.keys"))
#: A metric of detections.
DETECTION_METRIC = Parsed("name", _imported("apsvm.detection.measure", "parse_metric"), "NAME")
