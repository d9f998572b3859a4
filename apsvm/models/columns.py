"""What a model keeps of a table: which of its columns have which part, and how they become features.

A table has named columns (CSV, Parquet, Arrow). What is made of them is learned from the training rows once; the same
is made of other rows, whose columns are found by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

#: What becomes of missing cells (``--missing``).
MISSING_RULES = ("median", "zero", "indicator", "refuse")

#: What the features of a category's missing cells, and of its infrequent words together, are called.
IS_MISSING, IS_OTHER = "is missing", "is other"


class ColumnKind(StrEnum):
    """What the cells of a column are."""

    #: Numbers; true and false are 1 and 0.
    NUMBER = "number"
    #: Words, each a feature of its own that is 1 in the rows that have it; numbers among them are words too.
    CATEGORY = "category"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column that becomes features.

    Attributes
    ----------
    name : in the table
    kind : see ``ColumnKind``
    fill : of numbers, what stands for a missing one; None: a missing one is refused
    categories : of a category, the words that have features, by the alphabet
    other : of a category, whether another word has a feature, one for all of them
    missing : whether a missing cell has a feature, behind the column's others
    """

    name: str
    kind: ColumnKind = ColumnKind.NUMBER
    fill: float | None = None
    categories: tuple[str, ...] = ()
    other: bool = False
    missing: bool = False

    @property
    def width(self) -> int:
        """How many features it becomes."""
        values = 1 if self.kind is ColumnKind.NUMBER else len(self.categories) + self.other
        return values + self.missing

    def features(self) -> Iterator[str]:
        """What they are called."""
        if self.kind is ColumnKind.NUMBER:
            yield self.name
        else:
            yield from (f"{self.name}={word}" for word in self.categories)
        if self.other:
            yield f"{self.name} {IS_OTHER}"
        if self.missing:
            yield f"{self.name} {IS_MISSING}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """How the columns of a table become rows.

    Attributes
    ----------
    features : the columns that become features, in the training file's order
    label, qid, bag, cost, id : the names of the columns with these parts, where there are any
    label_words : the labels where they are words: word k is the label k; of two the first is negative
    missing : the rule, one of ``MISSING_RULES``
    left_out : the other columns of the training file, of which the rows say nothing
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

    @property
    def width(self) -> int:
        """How many features they become."""
        return sum(column.width for column in self.features)

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

    @classmethod
    def of_names(cls, names: tuple[str, ...]) -> Columns:
        """Of features that nothing is known of but their names: numbers, none of them missing."""
        return cls(features=tuple(Column(name=name) for name in names), missing="refuse")


def label_number(label: float | str) -> float:
    """The number of a label where labels are no words. Raises ValueError for a word."""
    if not isinstance(label, str):
        return float(label)
    truth = {"true": 1.0, "false": 0.0}.get(label.lower())
    if truth is None:
        raise ValueError(f"no row has the label {label!r}: the labels are numbers")
    return truth
