"""Columns of a table in a model: the role of each column, and its conversion to features.

The conversion is learned from the columns of the training file (CSV, Parquet, Arrow). Columns of other files are found
by name and converted alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from apsvm._support.errors import require

#: Rules for missing cells (``--missing``).
MISSING_RULES = ("median", "zero", "indicator", "refuse")

#: Orders of year, month and day in written dates, and times of day, each with an example.
EXAMPLES = {"ymd": "2024-03-31", "dmy": "31/03/2024", "mdy": "03/31/2024", "time": "17:05"}
ORDERS = tuple(EXAMPLES)

#: Decimal separators of numbers that are words in a file.
NUMBER_STYLES = ("point", "comma")

#: Maximum number of infrequent words of a category that are recorded, to distinguish them from new words.
MOST_RARE = 10_000

#: Names of the features for missing cells, and for the infrequent words of a category together.
IS_MISSING, IS_OTHER = "is missing", "is other"


class ColumnKind(StrEnum):
    """Type of a column's cells."""

    #: Numbers; true is 1, false is 0.
    NUMBER = "number"
    #: Words, each with a feature that is 1 in its rows, else 0; numbers among them are words too.
    CATEGORY = "category"
    #: Dates, with or without a time of day.
    DATE = "date"


class DatePart(StrEnum):
    """Part of a date that becomes features."""

    #: Days before the newest date of training.
    AGE = "age"
    #: Sine and cosine of the time of the year.
    YEAR = "year"
    #: A feature for each day of the week.
    WEEKDAY = "weekday"
    #: Sine and cosine of the time of day.
    HOUR = "hour"

    def features(self) -> tuple[str, ...]:
        """Names of the features, to be appended to the column's name."""
        return {
            DatePart.AGE: ("days before the newest",),
            DatePart.YEAR: ("sine of the year", "cosine of the year"),
            DatePart.WEEKDAY: tuple(f"weekday={day}" for day in _WEEKDAYS),
            DatePart.HOUR: ("sine of the day", "cosine of the day"),
        }[self]


_WEEKDAYS = "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column that becomes features."""

    name: str  #: the column's name in the table
    kind: ColumnKind = ColumnKind.NUMBER
    #: Value of a missing number, or of a missing date in days before the newest; None: missing cells are refused.
    fill: float | None = None
    categories: tuple[str, ...] = ()  #: words of a category that have features, in alphabetical order
    other: bool = False  #: all other words of a category share a feature
    missing: bool = False  #: missing cells have a feature, after the column's others
    style: Annotated[str, ("", *NUMBER_STYLES)] = ""  #: decimal separator of numbers that are words
    order: Annotated[str, ("", *ORDERS)] = ""  #: order of day, month and year in dates
    newest: float = 0.0  #: the newest training date, in days since 1 January 1970
    parts: tuple[DatePart, ...] = ()  #: parts of dates that become features
    #: Training words of a category that share a feature, if they are at most ``MOST_RARE``.
    rare: tuple[str, ...] = field(default=(), compare=False)
    zoned: bool = False  #: the dates have time zones
    why: str = field(default="", compare=False)  #: reason for the kind; "" in models of earlier versions

    def __post_init__(self) -> None:
        is_date = self.kind is ColumnKind.DATE
        require(is_date == bool(self.order) == bool(self.parts), "an order and parts of columns of dates only")

    @property
    def width(self) -> int:
        """Number of features made from the column."""
        return sum(1 for _ in self.features())

    def features(self) -> Iterator[str]:
        """Names of the features made from the column."""
        if self.kind is ColumnKind.NUMBER:
            yield self.name
        elif self.kind is ColumnKind.DATE:
            yield from (f"{self.name}: {feature}" for part in self.parts for feature in part.features())
        else:
            yield from (f"{self.name}={word}" for word in self.categories)
        if self.other:
            yield f"{self.name} {IS_OTHER}"
        if self.missing:
            yield f"{self.name} {IS_MISSING}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Conversion of a table's columns to rows."""

    features: tuple[Column, ...] = ()  #: columns that become features, in the order of the training file
    #: Names of the columns with these roles; None without.
    label: str | None = None
    qid: str | None = None
    bag: str | None = None
    cost: str | None = None
    id: str | None = None
    #: Labels that are words: word k is the label k, and of two words the first is negative.
    label_words: tuple[str, ...] = ()
    missing: Annotated[str, MISSING_RULES] = "median"  #: rule for missing cells
    left_out: tuple[str, ...] = field(default=(), compare=False)  #: other columns of the training file
    why_left_out: Mapping[str, str] = field(default_factory=dict, compare=False)  #: the reason for each of them

    @property
    def width(self) -> int:
        """Number of features made from all columns."""
        return sum(column.width for column in self.features)

    @property
    def is_of_numbers(self) -> bool:
        """True if each column holds numbers and is one feature: rows without missing cells then need no encoding."""
        return all(column.kind is ColumnKind.NUMBER and column.width == 1 for column in self.features)

    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, (width,)."""
        return tuple(name for column in self.features for name in column.features())

    def names(self) -> tuple[str, ...]:
        """Names of all columns with a role, those of features first."""
        others = (self.label, self.qid, self.bag, self.cost, self.id)
        return (*(column.name for column in self.features), *(name for name in others if name is not None))

    @classmethod
    def of_names(cls, names: tuple[str, ...]) -> Columns:
        """Columns of features of which only the names are known: numbers without missing values."""
        return cls(features=tuple(Column(name=name) for name in names), missing="refuse")


def label_number(label: float | str, words: Sequence[str] = ()) -> float:
    """The number of a label: for a word its index among ``words`` or, without words, 1 for true and 0 for false. Raises
    ValueError for any other word."""
    if not isinstance(label, str):
        return float(label)
    numbers = {word: float(at) for at, word in enumerate(words)} or {"true": 1.0, "false": 0.0}
    word = label if words else label.lower()
    if word not in numbers:
        raise ValueError(f"no row has the label {label!r}: the labels are {', '.join(words) or 'numbers'}")
    return numbers[word]


@dataclass(frozen=True, slots=True)
class ForModel:
    """Features of the model for which rows are read."""

    columns: Columns | None  #: columns of the table on which it was trained; None for other formats
    names: tuple[str, ...] | None  #: names of the features, if they have names
    width: int  #: number of features
    label_words: tuple[str, ...] = ()  #: names of the labels 0 and 1


#: For reading labels only.
NO_FEATURES = ForModel(Columns(), None, 0)
