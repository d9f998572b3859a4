"""Options of reading a data file that depend on neither model nor trainer. Light to import."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from apsvm._support.types import JsonDict, JsonObject

#: What ``--bags`` says, and a record of a reading, in place of a file.
IGNORE_BAGS = "ignore"


#: Words of a category that have features, at most.
MAX_CATEGORIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """Reading options of a table, a file with named columns.

    Attributes
    ----------
    label, qid, bag, cost, id : the columns with these parts; None: not given
    drop : columns that are no features
    features : the only columns that are; None: all others
    categorical : columns that are categories, whatever their cells look like
    missing : the treatment of missing cells, one of ``apsvm.models.columns.MISSING_RULES``
    max_categories : words of a column that have features of their own, at most
    encoding : the text's encoding; "auto": UTF-8, or cp1252 for separated values that are not UTF-8
    decimal : the decimal mark of its numbers, . or ,; None: derived from the first rows
    positive_label : the label that is positive, where labels are two words
    date_order : the order of ambiguous dates, "dmy" or "mdy"
    skip_lines : lines above the names that are not read
    sheet : the sheet of a workbook, instead of the first
    labelled_only : True if rows without a label are left out
    """

    label: str | None = None
    qid: str | None = None
    bag: str | None = None
    cost: str | None = None
    id: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    categorical: tuple[str, ...] = ()
    missing: str = "median"
    max_categories: int = MAX_CATEGORIES
    encoding: str = "auto"
    decimal: str | None = None
    positive_label: float | str | None = None
    date_order: str | None = None
    skip_lines: int = 0
    sheet: str | None = None
    labelled_only: bool = False

    @property
    def named(self) -> list[tuple[str, str]]:
        """The columns that are named for a part, or as none, each after the option that does so."""
        parts = {"label": self.label, "qid": self.qid, "bag": self.bag, "cost": self.cost, "id": self.id}
        of_parts = [(f"--{part}-column", name) for part, name in parts.items() if name is not None]
        of_features = [("--features-from", name) for name in self.features or ()]
        return [*of_parts, *(("--drop", name) for name in self.drop), *of_features]


#: Nothing said of a table.
UNSAID = TableOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Reading options of a data file.

    Attributes
    ----------
    dtype : "float64" or "float32", how values are stored
    sort_features : accept rows whose features are not in ascending order
    multilabel : accept rows of several labels, or of none
    groups, labels : files that belong to a matrix
    bags : a file with the bag of each row
    ignores_bags : rows stand for themselves, whatever bags they are in; there is no file of bags then
    bag_label : the rule for a bag's label (``apsvm.data.bags.BAG_LABELS``)
    zero_based : True if features count from 0; None: not given, and text counts them from 1
    max_features : refuse a file with a feature beyond this many
    threads : threads of the parser; 0: one for each core
    check : True if every byte of a data folder is checked
    table : options of a file with named columns
    """

    dtype: str = "float64"
    sort_features: bool = False
    multilabel: bool = False
    groups: str | None = None
    labels: str | None = None
    bags: str | None = None
    ignores_bags: bool = False
    bag_label: str = "same"
    zero_based: bool | None = None
    max_features: int | None = None
    threads: int = 0
    check: bool = True
    table: TableOptions = TableOptions()

    def of_a_second_file(self) -> ReadOptions:
        """For another file than the one that ``groups``, ``labels`` and ``bags`` belong to."""
        table = replace(self.table, drop=(), features=None, categorical=())
        return replace(self, groups=None, labels=None, bags=None, table=table)

    def ignoring_bags(self) -> ReadOptions:
        """The same with rows that stand for themselves."""
        return replace(self, bags=None, ignores_bags=True)

    def to_json(self) -> JsonDict:
        """Options that another reading of the same file needs, with absolute paths."""
        options = {name: getattr(self, name) for name in _RECORDED} | {
            name: getattr(self.table, name) for name in _RECORDED_OF_TABLES
        }
        paths = {name: _whole(getattr(self, name)) for name in ("groups", "labels", "bags")}
        return options | paths | ({"bags": IGNORE_BAGS} if self.ignores_bags else {})

    def completed(self, recorded: JsonObject) -> ReadOptions:
        """These options, and what ``to_json`` recorded where they say nothing."""
        result = _completed(self, (*_RECORDED, "groups", "labels"), recorded)
        if self.bags is None and not self.ignores_bags:
            ignores, bags = bags_named(recorded.get("bags"))
            result = replace(result, bags=bags, ignores_bags=ignores)
        return replace(result, table=_completed(self.table, _RECORDED_OF_TABLES, recorded))


#: Options that ``ReadOptions.to_json`` records, besides files.
_RECORDED = ("dtype", "sort_features", "multilabel", "bag_label")
_RECORDED_OF_TABLES = ("encoding", "decimal", "skip_lines", "sheet")
Options = TypeVar("Options", ReadOptions, TableOptions)


def _completed(options: Options, names: Iterable[str], recorded: JsonObject) -> Options:
    """The options, with those of ``names`` that are at their defaults as ``recorded``."""
    defaults = type(options)()
    silent = (name for name in names if getattr(options, name) == getattr(defaults, name))
    return replace(options, **{name: recorded[name] for name in silent if name in recorded})


def bags_named(text: str | None) -> tuple[bool, str | None]:
    """Splits the value of ``--bags``: True if bags are ignored, and the file of bags, if any."""
    return text == IGNORE_BAGS, None if text == IGNORE_BAGS else text


def _whole(path: str | None) -> str | None:
    return None if path is None else os.path.abspath(path)
