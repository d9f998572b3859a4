"""Learns how the columns of a table become features, from the training rows or from evidence in parts of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from apsvm._support.naming import advice
from apsvm.data.dataset import DataError, Dataset
from apsvm.data.read_options import TableOptions
from apsvm.data.tables.cells import Cells, Table, leaving_out
from apsvm.data.tables.roles import Parts, listed
from apsvm.data.tables.typed import ColumnError, Evidence, LeftOut, WrongCellsError, typed
from apsvm.models.columns import MOST_RARE, Column, ColumnKind, Columns

_MOST_NAMED = 6


def learn(table: Table, parts: Parts, options: TableOptions) -> tuple[Columns, list[str]]:
    """Learn how the columns become features, and collect remarks.

    Raises
    ------
    DataError : a cell is missing where that is refused; a column cannot be features
    """

    def evidence() -> Iterator[Sequence[Evidence]]:
        for name in parts.features:
            cells = table.columns[name]
            refuse_unusable(cells, options)
            yield [Evidence.of(cells, spelled=name in options.categorical)]
            cells.let_go()
            release_text()

    try:
        return _learned(evidence(), parts, options, table.places.source)
    except WrongCellsError as error:
        raise fail_of(table.columns[error.name], error) from None


def release_text() -> None:
    """Returns unused memory that pyarrow keeps for other files."""
    import pyarrow

    pyarrow.default_memory_pool().release_unused()


def learn_of_parts(
    evidence: Sequence[Mapping[str, Evidence]], parts: Parts, options: TableOptions, source: str
) -> tuple[Columns, list[str]]:
    """``learn`` from the evidence in several tables with the same columns. Raises DataError as ``learn``, and for a
    column whose type differs between tables."""
    try:
        return _learned(([one[name] for one in evidence] for name in parts.features), parts, options, source)
    except WrongCellsError as error:
        raise DataError(f"{source}: column {error.name!r}: {error}") from None


def refuse_unusable(cells: Cells, options: TableOptions) -> None:
    """Raises DataError for an infinite number, and for a missing cell if the options refuse it."""
    if cells.type == "number" and cells.name not in options.categorical:
        cells.plain_numbers()
    rows = np.flatnonzero(cells.is_missing)
    if rows.size and options.missing == "refuse":
        count = f", and in {rows.size - 1:,} more" if rows.size > 1 else ""
        rule = "--missing median, zero or indicator says what becomes of it"
        raise cells.fail(int(rows[0]), f"the cell is missing{count} ({rule})")


def fail_of(cells: Cells, error: WrongCellsError) -> DataError:
    """The error with the place of the first wrong cell."""
    is_wrong = np.array([text in error.words for text in cells.texts] + [False])
    return cells.fail(int(np.argmax(is_wrong[cells.codes])), str(error))


def _learned(
    evidence: Iterable[Sequence[Evidence]], parts: Parts, options: TableOptions, source: str
) -> tuple[Columns, list[str]]:
    """The columns learned from their evidence in each table, and remarks. Raises DataError, WrongCellsError."""
    columns, problems, missing, left_out = list[Column](), list[str](), dict[str, int](), dict[str, LeftOut]()
    for of_column in evidence:
        name = of_column[0].name
        try:
            whole = reduce(add, of_column)
            result = typed(whole, options)
        except ColumnError as error:
            problems.append(f"column {name!r}{error}")
            continue
        if isinstance(result, LeftOut):
            left_out[name] = result
            continue
        columns.append(result)
        if whole.missing:
            missing[name] = whole.missing
    if problems:
        raise DataError(f"{source}: {'; '.join(problems)}")
    if not columns:
        why = [f"{name}: {one.why}" for name, one in left_out.items()]
        raise DataError(f"{source}: no column is left to be a feature: {listed(why)}")
    names = Counter(name for column in columns for name in column.features())
    twice = next((name for name, times in names.items() if times > 1), None)
    if twice is not None:
        raise DataError(f"{source}: two columns would make a feature {twice!r}: rename or --drop one")
    why_left_out = dict.fromkeys(parts.left_out, "no part") | {name: one.why for name, one in left_out.items()}
    learned = Columns(
        features=tuple(columns), label=parts.label, qid=parts.qid, bag=parts.bag, cost=parts.cost, id=parts.id,
        missing=options.missing, left_out=tuple(why_left_out), why_left_out=why_left_out,
    )  # fmt: skip
    return learned, _remarks(columns, missing, left_out, options)


def _remarks(
    columns: Sequence[Column], missing: Mapping[str, int], left_out: Mapping[str, LeftOut], options: TableOptions
) -> list[str]:
    """Remarks on the columns."""
    remarks = []
    if missing:
        becomes = {
            "median": "the column's median stands for a number or a date, a feature of its own for a word",
            "zero": "0 stands for them",
            "indicator": "the column's median stands for a number, and a feature says that it is missing",
        }[options.missing]
        remarks.append(f"{cells_missing(missing)}: {becomes} (--missing)")
    words = [f"{one.name} ({_words_of(one)})" for one in columns if one.kind is ColumnKind.CATEGORY]
    limit = f"; at most {options.max_categories} have features of their own (--max-categories)"
    numbers = [f"{one.name} ({one.why})" for one in columns if one.style]
    dates = [f"{one.name} ({', '.join(one.parts)})" for one in columns if one.kind is ColumnKind.DATE]
    texts, keys, empty = (
        {name: one.why for name, one in left_out.items() if one.kind == kind} for kind in ("text", "key", "empty")
    )
    of_texts = [f"{name} ({why.removeprefix('text: ').split()[0]})" for name, why in texts.items()]
    for named, said, more in (
        (words, "words, each a feature", limit if any(one.other for one in columns) else ""),
        (numbers, "numbers", ""),
        (dates, "dates", ""),
        (of_texts, "columns of text, whose words differ in most rows, are left out",
         advice(" (--id-column takes one for the rows' names, --categorical for a category)")),
        (list(keys), "columns that name the rows are left out",
         advice(" (--id-column takes one, --features-from has them as features)")),
        (list(empty), "columns without any value are left out", ""),
    ):  # fmt: skip
        if named:
            remarks.append(f"{said}: {listed(named)}{more}")
    return remarks


def _words_of(column: Column) -> str:
    """The number of a category's words with features, and of all its words."""
    kept = len(column.categories)
    if not column.other:
        return f"{kept:,}"
    return f"{kept} of {f'{kept + len(column.rare):,}' if column.rare else f'more than {kept + MOST_RARE:,}'}"


def cells_missing(counts: Mapping[str, int]) -> str:
    """The number of missing cells, in all and by column, the highest first."""
    total, order = sum(counts.values()), sorted(counts, key=lambda name: (-counts[name], name))
    some = ", ".join(f"{name} {counts[name]:,}" for name in order[:_MOST_NAMED])
    more = f", … in {len(order):,} columns" if len(order) > _MOST_NAMED else ""
    return f"{'1 cell is' if total == 1 else f'{total:,} cells are'} missing ({some}{more})"


def tells_the_label(are_missing: Mapping[str, NDArray[np.bool_]], rows: Dataset) -> list[str]:
    """Remarks on columns that are filled in all rows of one label and in no other row. ``are_missing`` has the missing
    cells of each column."""
    assert rows.table is not None
    label, labels = rows.table.columns.label, rows.classes()
    if label is None or labels.size != 2:
        return []
    return [
        f"column {name!r} is filled only where {label} = {rows.shown_label(value)}, and in all of these rows: it may "
        f"have been written when the label was known ({leaving_out(name)})"
        for name, missing in are_missing.items()
        for value in labels.tolist()
        if missing.any() and np.array_equal(rows.relevance == value, ~missing)
    ]
