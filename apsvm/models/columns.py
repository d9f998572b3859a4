"""Table columns as a model keeps them: the role of each column, and its conversion to features.

A table has named columns (CSV, Parquet, Arrow). What is made of them is learned from the training rows once; the same
is made of other rows, whose columns are found by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

#: What becomes of missing cells (``--missing``).
MISSING_RULES = ("median", "zero", "indicator", "refuse")

#: The orders of year, month and day in which dates are written, and times of day alone; and one of each.
EXAMPLES = {"ymd": "2024-03-31", "dmy": "31/03/2024", "mdy": "03/31/2024", "time": "17:05"}
ORDERS = tuple(EXAMPLES)

#: How numbers are written that are words in a file: with a point before the decimals, or a comma.
NUMBER_STYLES = ("point", "comma")

#: Infrequent words of a category that are kept, at most: they are told from new ones.
MOST_RARE = 10_000

#: What the features of a category's missing cells, and of its infrequent words together, are called.
IS_MISSING, IS_OTHER = "is missing", "is other"


class ColumnKind(StrEnum):
    """Type of a column's cells."""

    #: Numbers; true and false are 1 and 0.
    NUMBER = "number"
    #: Words, each a feature of its own that is 1 in the rows that have it; numbers among them are words too.
    CATEGORY = "category"
    #: Dates, with or without a time of day.
    DATE = "date"


class DatePart(StrEnum):
    """Part of a date that becomes features."""

    #: Days before the newest date of training.
    AGE = "age"
    #: Sine and cosine of the time of the year.
    YEAR = "year"
    #: A feature a day of the week.
    WEEKDAY = "weekday"
    #: Sine and cosine of the time of day.
    HOUR = "hour"

    def features(self) -> tuple[str, ...]:
        """Names of the features, which follow the column's name."""
        return {
            DatePart.AGE: ("days before the newest",),
            DatePart.YEAR: ("sine of the year", "cosine of the year"),
            DatePart.WEEKDAY: tuple(f"weekday={day}" for day in _WEEKDAYS),
            DatePart.HOUR: ("sine of the day", "cosine of the day"),
        }[self]


_WEEKDAYS = "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column that becomes features.

    Attributes
    ----------
    name : in the table
    kind : see ``ColumnKind``
    fill : what stands for a missing number, or for the days of a missing date before the newest; None: a missing one is
        refused
    categories : the words with features, in alphabetical order, if the column is a category
    other : of a category, whether another word has a feature, one for all of them
    missing : True if a missing cell has a feature, behind the column's others
    style : of numbers, how those are written that are words, one of ``NUMBER_STYLES``; "" where there were none
    order : the order of day, month and year in dates, one of ``ORDERS``
    newest : the newest training date, in days from the beginning of 1970
    parts : the parts of dates that become features
    rare : of a category, the words of training that share a feature, where they are at most ``MOST_RARE``
    zoned : True if the dates name their zones
    why : what decided the kind; "" in models of earlier versions
    """

    name: str
    kind: ColumnKind = ColumnKind.NUMBER
    fill: float | None = None
    categories: tuple[str, ...] = ()
    other: bool = False
    missing: bool = False
    style: str = ""
    order: str = ""
    newest: float = 0.0
    parts: tuple[DatePart, ...] = ()
    rare: tuple[str, ...] = field(default=(), compare=False)
    zoned: bool = False
    why: str = field(default="", compare=False)

    @property
    def width(self) -> int:
        """Number of features made from the column."""
        if self.kind is ColumnKind.NUMBER:
            values = 1
        elif self.kind is ColumnKind.DATE:
            values = sum(len(part.features()) for part in self.parts)
        else:
            values = len(self.categories)
        return values + self.other + self.missing

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
    """Conversion of a table's columns to rows.

    Attributes
    ----------
    features : the columns that become features, in the training file's order
    label, qid, bag, cost, id : the names of the columns with these parts, where there are any
    label_words : the labels where they are words: word k is the label k; of two the first is negative
    missing : the rule, one of ``MISSING_RULES``
    left_out : the other columns of the training file, of which the rows say nothing
    why_left_out : the reason for each
    """

    features: tuple[Column, ...] = ()
    label: str | None = None
    qid: str | None = None
    bag: str | None = None
    cost: str | None = None
    id: str | None = None
    label_words: tuple[str, ...] = ()
    missing: str = "median"
    left_out: tuple[str, ...] = field(default=(), compare=False)
    why_left_out: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def width(self) -> int:
        """Number of features made from all columns."""
        return sum(column.width for column in self.features)

    @property
    def is_of_numbers(self) -> bool:
        """True if each column is a number and one feature: rows without missing cells then need no encoding."""
        return all(column.kind is ColumnKind.NUMBER and column.width == 1 for column in self.features)

    def feature_names(self) -> tuple[str, ...]:
        """(width,) what the features are called."""
        return tuple(name for column in self.features for name in column.features())

    def names(self) -> tuple[str, ...]:
        """The columns that have a part: the features, and those beside them."""
        beside = (self.label, self.qid, self.bag, self.cost, self.id)
        return (*(column.name for column in self.features), *(name for name in beside if name is not None))

    def label_value(self, label: float | str) -> float:
        """The number of a label: itself, or that of a word.

        Raises
        ------
        ValueError : there is no such word; the message lists the known ones
        """
        if not self.label_words or not isinstance(label, str):
            return label_number(label)
        if label not in self.label_words:
            raise ValueError(f"no row has the label {label!r}: the labels are {', '.join(self.label_words)}")
        return float(self.label_words.index(label))

    def fault(self) -> str | None:
        """Error in columns that no training produces, as "expected, found"; None if they are valid."""
        if self.missing not in MISSING_RULES:
            return f"one of {', '.join(MISSING_RULES)} in 'features.columns.missing', found {self.missing!r}"
        for column in self.features:
            if (column.kind is ColumnKind.DATE) != bool(column.parts) or column.order not in ("", *ORDERS):
                return "an order of year, month and day, and parts, of columns of dates alone"
            if column.style not in ("", *(NUMBER_STYLES if column.kind is ColumnKind.NUMBER else ())):
                return "one of point, comma and nothing as the style of a column of numbers alone"
            if column.parts and (not column.order or not math.isfinite(column.newest)):
                return "of a column of dates how they are written, and the newest of training"
        return None

    @classmethod
    def of_names(cls, names: tuple[str, ...]) -> Columns:
        """Columns of features known only by name: numbers without missing values."""
        return cls(features=tuple(Column(name=name) for name in names), missing="refuse")


def label_number(label: float | str) -> float:
    """The number of a label where labels are no words. Raises ValueError for a word."""
    if not isinstance(label, str):
        return float(label)
    truth = {"true": 1.0, "false": 0.0}.get(label.lower())
    if truth is None:
        raise ValueError(f"no row has the label {label!r}: the labels are numbers")
    return truth


@dataclass(frozen=True, slots=True)
class ForModel:
    """The features of the model that rows are read for.

    Attributes
    ----------
    columns : what it keeps of the table it was trained on; None: it was trained on something else
    names : the features' names, where they have some
    width : how many there are
    label_words : what labels 0 and 1 are called
    """

    columns: Columns | None
    names: tuple[str, ...] | None
    width: int
    label_words: tuple[str, ...] = ()


#: For a reader of labels alone.
NO_FEATURES = ForModel(Columns(), None, 0)
