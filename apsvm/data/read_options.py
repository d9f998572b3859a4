"""Options for reading a data file, which depend on neither model nor trainer. Light to import."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from apsvm._support.types import JsonDict, JsonObject

#: Value of ``--bags``, and of a recorded reading, that ignores bags.
IGNORE_BAGS = "ignore"
#: Most words of a column that have features of their own.
MAX_CATEGORIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """Reading options of a table, a file with named columns.

    Attributes
    ----------
    label, qid, bag, cost, id : the columns with these roles; None: not given
    drop : columns that are no features
    features : the only columns that are features; None: all others
    categorical : columns that are categories, whatever their cells
    missing : the treatment of missing cells, one of ``apsvm.models.columns.MISSING_RULES``
    max_categories : most words of a column that have features of their own
    encoding : the text's encoding; "auto": UTF-8, or cp1252 for separated values that are not UTF-8
    decimal : the decimal mark of its numbers, . or ,; None: derived from the first rows
    positive_label : the positive label, if labels are two words
    date_order : the order of ambiguous dates, "dmy" or "mdy"
    skip_lines : number of lines above the names
    sheet : the sheet of a workbook; None: the first
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
        """(option, column) for each column that an option names as a role, as dropped or as a feature."""
        parts = {"label": self.label, "qid": self.qid, "bag": self.bag, "cost": self.cost, "id": self.id}
        of_parts = [(f"--{part}-column", name) for part, name in parts.items() if name is not None]
        of_features = [("--features-from", name) for name in self.features or ()]
        return [*of_parts, *(("--drop", name) for name in self.drop), *of_features]


#: Defaults of all options of a table.
UNSAID = TableOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Reading options of a data file.

    Attributes
    ----------
    dtype : storage of values, "float64" or "float32"
    sort_features : accept rows whose features are not in ascending order
    multilabel : accept rows of several labels, or of none
    groups, labels : files with the groups and labels of a matrix
    bags : a file with the bag of each row
    ignores_bags : True if rows are ranked singly, whatever their bags; there is no file of bags then
    bag_label : the rule for a bag's label (``apsvm.data.bags.BAG_LABELS``)
    zero_based : True if features count from 0; None: not given
    max_features : refuse a file with a feature beyond this many
    threads : threads of the parser; 0: one a core
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
        """The options for a second file, to which ``groups``, ``labels`` and ``bags`` do not belong."""
        table = replace(self.table, drop=(), features=None, categorical=())
        return replace(self, groups=None, labels=None, bags=None, table=table)

    def ignoring_bags(self) -> ReadOptions:
        """The same options, ignoring bags."""
        return replace(self, bags=None, ignores_bags=True)

    def to_json(self) -> JsonDict:
        """The options that another reading of the file needs, with absolute paths."""
        options = {name: getattr(self, name) for name in _RECORDED} | {
            name: getattr(self.table, name) for name in _RECORDED_OF_TABLES
        }
        paths = {name: _whole(getattr(self, name)) for name in ("groups", "labels", "bags")}
        return options | paths | ({"bags": IGNORE_BAGS} if self.ignores_bags else {})

    def completed(self, recorded: JsonObject) -> ReadOptions:
        """These options; those at their defaults are as ``to_json`` recorded."""
        result = _completed(self, (*_RECORDED, "groups", "labels"), recorded)
        if self.bags is None and not self.ignores_bags:
            ignores, bags = bags_named(recorded.get("bags"))
            result = replace(result, bags=bags, ignores_bags=ignores)
        return replace(result, table=_completed(self.table, _RECORDED_OF_TABLES, recorded))


#: Options that ``ReadOptions.to_json`` records besides files.
_RECORDED = ("dtype", "sort_features", "multilabel", "bag_label")
_RECORDED_OF_TABLES = ("encoding", "decimal", "skip_lines", "sheet")
Options = TypeVar("Options", ReadOptions, TableOptions)


def _completed(options: Options, names: Iterable[str], recorded: JsonObject) -> Options:
    """The options; those of ``names`` at their defaults are as ``recorded``."""
    defaults = type(options)()
    silent = (name for name in names if getattr(options, name) == getattr(defaults, name))
    return replace(options, **{name: recorded[name] for name in silent if name in recorded})


def bags_named(text: str | None) -> tuple[bool, str | None]:
    """Splits the value of ``--bags``: True if bags are ignored, and the file of bags if there is one."""
    return text == IGNORE_BAGS, None if text == IGNORE_BAGS else text


def _whole(path: str | None) -> str | None:
    return None if path is None else os.path.abspath(path)
