"""Learns how the columns of a table become features, from the training rows or from evidence of parts of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from apsvm._support.naming import advice
from apsvm.data.dataset import DataError, Dataset
from apsvm.data.read_options import TableOptions
from apsvm.data.tables.cells import Cells, Table, leaving_out
from apsvm.data.tables.dates import has_zone, parts_of
from apsvm.data.tables.roles import Parts, listed
from apsvm.data.tables.typed import ColumnError, Evidence, Type, WrongCellsError, typed
from apsvm.data.tables.written_numbers import number_in
from apsvm.models.columns import MOST_RARE, Column, ColumnKind, Columns, DatePart

_MOST_NAMED = 6


def learn(table: Table, parts: Parts, options: TableOptions) -> tuple[Columns, list[str]]:
    """Learn how the columns become features, and collect remarks.

    Raises
    ------
    DataError : a cell is missing where that is refused; a column cannot be features
    """
    learned = _Learned(options)
    for name in parts.features:
        cells = table.columns[name]
        try:
            if options.missing == "refuse" and cells.is_missing.any():
                raise fail_missing(cells)
            learned.take(Evidence.of(cells, spelled=name in options.categorical))
        except WrongCellsError as error:
            raise fail_of(cells, error) from None
        cells.let_go()
        release_text()
    return learned.columns_of(parts, table.places.source), learned.remarks()


def release_text() -> None:
    """Gives back the memory of text that is no longer needed, which pyarrow keeps for other files."""
    import pyarrow

    pyarrow.default_memory_pool().release_unused()


def learn_of_parts(
    evidence: Iterable[Mapping[str, Evidence]], parts: Parts, options: TableOptions, source: str
) -> tuple[Columns, list[str]]:
    """``learn`` of the evidence of tables with the same columns, wherever these are.

    Raises
    ------
    DataError : as ``learn``; a column has different types
    """
    learned = _Learned(options)
    of_tables = list(evidence)
    for name in parts.features:
        try:
            whole = of_tables[0][name]
            for other in of_tables[1:]:
                whole = whole + other[name]
            if options.missing == "refuse" and whole.missing:
                raise DataError(f"{source}: column {name!r}: {whole.missing:,} cells are missing (--missing)")
            learned.take(whole)
        except ColumnError as error:
            raise DataError(f"{source}: column {name!r}{error}") from None
        except WrongCellsError as error:
            raise DataError(f"{source}: column {name!r}: {error}") from None
    return learned.columns_of(parts, source), learned.remarks()


def fail_missing(cells: Cells) -> DataError:
    rows = np.flatnonzero(cells.is_missing)
    count = f", and in {rows.size - 1:,} more" if rows.size > 1 else ""
    return cells.fail(
        int(rows[0]),
        f"the cell is missing{count} (--missing median, zero or indicator says what becomes of it)",
    )


def fail_of(cells: Cells, error: WrongCellsError) -> DataError:
    """The error with the place of the first wrong cell."""
    if cells.codes is None:
        return cells.fail(int(np.flatnonzero(np.isinf(cells.values))[0]), str(error))
    is_wrong = np.array([text in error.words for text in cells.texts.to_pylist()] + [False])
    return cells.fail(int(np.argmax(is_wrong[cells.codes])), str(error))


@dataclass
class _Learned:
    """The columns so far, and what is to be said of them."""

    options: TableOptions
    columns: list[Column] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, dict[str, str]] = field(default_factory=dict)
    categories: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)

    def take(self, evidence: Evidence) -> None:
        """Raises WrongCellsError; what else is wrong of columns is gathered."""
        options, name = self.options, evidence.name
        try:
            what = typed(evidence, options)
        except ColumnError as error:
            self.problems.append(f"column {name!r}{error}")
            return
        if what.kind is None:
            self.left_out.setdefault(what.left_out, {})[name] = what.why
            return
        column = self._column(evidence, what)
        if evidence.missing:
            self.missing[name] = evidence.missing
        of_its_own = options.missing == "indicator" or (
            options.missing == "median" and column.kind is ColumnKind.CATEGORY
        )
        self.columns.append(replace(column, why=what.why, missing=of_its_own and evidence.missing > 0))

    def _column(self, evidence: Evidence, what: Type) -> Column:
        if what.kind is ColumnKind.NUMBER:
            return self._number(evidence, what)
        return self._dates(evidence, what) if what.kind is ColumnKind.DATE else self._category(evidence)

    def _number(self, evidence: Evidence, what: Type) -> Column:
        values = evidence.numbers
        if evidence.words:
            of_word = [number_in(word, what.style) for word in evidence.words]
            values = np.concatenate((values, np.repeat(np.array(of_word, dtype=float), list(evidence.words.values()))))
        if what.style:
            self.written.append(f"{evidence.name} ({what.why})")
        rule = self.options.missing
        fill = None if rule == "refuse" else 0.0 if rule == "zero" else median(values)
        return Column(name=evidence.name, fill=fill, style=what.style)

    def _dates(self, evidence: Evidence, what: Type) -> Column:
        days = evidence.numbers
        if what.days is not None:
            days = np.repeat(np.array(list(what.days.values())), list(evidence.words.values()))
        newest, parts = float(days.max()), parts_of(days, what.order)
        self.dates.append(f"{evidence.name} ({', '.join(map(str, parts))})")
        rule = self.options.missing
        has_age = rule != "zero" and DatePart.AGE in parts
        fill = None if rule == "refuse" else float(np.median(newest - days)) if has_age else 0.0
        zoned = any(map(has_zone, evidence.words)) if evidence.words else "tz=" in evidence.stored
        return Column(
            name=evidence.name, kind=ColumnKind.DATE, fill=fill, order=what.order, newest=newest, parts=parts,
            zoned=zoned,
        )  # fmt: skip

    def _category(self, evidence: Evidence) -> Column:
        counts = evidence.spelled or {}
        most = self.options.max_categories
        order = sorted(counts, key=lambda word: (-counts[word], word))
        kept, rare = sorted(order[:most]), sorted(order[most:])
        name = evidence.name
        self.categories.append(f"{name} ({f'{len(kept)} of ' if rare else ''}{len(counts):,})")
        return Column(
            name=name, kind=ColumnKind.CATEGORY, categories=tuple(kept), other=bool(rare),
            rare=tuple(rare) if len(rare) <= MOST_RARE else (),
        )  # fmt: skip

    def columns_of(self, parts: Parts, source: str) -> Columns:
        """Raises DataError."""
        if self.problems:
            raise DataError(f"{source}: {'; '.join(self.problems)}")
        if not self.columns:
            why = [f"{name}: {why}" for names in self.left_out.values() for name, why in names.items()]
            raise DataError(f"{source}: no column is left to be a feature: {listed(why)}")
        names = [name for column in self.columns for name in column.features()]
        if len(set(names)) < len(names):
            twice = next(name for name, times in Counter(names).items() if times > 1)
            raise DataError(f"{source}: two columns would make a feature {twice!r}: rename or --drop one")
        left_out = dict.fromkeys(parts.left_out, "no part")
        left_out |= {name: why for names in self.left_out.values() for name, why in names.items()}
        return Columns(
            features=tuple(self.columns), label=parts.label, qid=parts.qid, bag=parts.bag, cost=parts.cost,
            id=parts.id, missing=self.options.missing, left_out=tuple(left_out), why_left_out=left_out,
        )  # fmt: skip

    def remarks(self) -> list[str]:
        """Sentences on what was learned."""
        remarks = []
        if self.missing:
            total = sum(self.missing.values())
            what = {
                "median": "the column's median stands for a number, a feature of its own for a word",
                "zero": "0 stands for them",
                "indicator": "the column's median stands for a number, and a feature says that it is missing",
            }[self.options.missing]
            cells = "1 cell is" if total == 1 else f"{total:,} cells are"
            remarks.append(f"{cells} missing ({counted(self.missing)}): {what} (--missing)")
        if self.categories:
            limit = f"; at most {self.options.max_categories} have features of their own (--max-categories)"
            some = any(column.other for column in self.columns)
            remarks.append(f"words, each a feature: {listed(self.categories)}{limit if some else ''}")
        if self.written:
            remarks.append(f"numbers: {listed(self.written)}")
        if self.dates:
            remarks.append(f"dates: {listed(self.dates)}")
        texts, keys, empty = (self.left_out.get(kind, {}) for kind in ("text", "key", "empty"))
        if texts:
            columns = [f"{name} ({why.removeprefix('text: ').split()[0]})" for name, why in texts.items()]
            remarks.append(
                f"columns of text, whose words differ in most rows, are left out: {listed(columns)}"
                + advice(" (--id-column takes one for the rows' names, --categorical for a category)")
            )
        if keys:
            remarks.append(
                f"columns that name the rows are left out: {listed(list(keys))}"
                + advice(" (--id-column takes one, --features-from has them as features)")
            )
        if empty:
            remarks.append(f"columns without any value are left out: {listed(list(empty))}")
        return remarks


def median(values: NDArray[np.float64]) -> float:
    """``np.median``, of many values several times as fast: only those near a sample's median are partitioned."""
    n = values.size
    sample = np.sort(values[:: max(1, n >> 12)])
    low, high = sample[int(0.47 * sample.size)], sample[int(0.53 * sample.size)]
    near = values[(values >= low) & (values <= high)]
    middle = np.array([(n - 1) // 2, n // 2])
    places = middle - np.count_nonzero(values < low)
    if places[0] < 0 or places[1] >= near.size:
        near, places = values, middle
    first, second = np.partition(near, places)[places].tolist()
    return float(first / 2 + second / 2)  # their sum may be infinite


def counted(counts: Mapping[str, int]) -> str:
    """Names with their counts, the highest first."""
    order = sorted(counts, key=lambda name: (-counts[name], name))
    some = ", ".join(f"{name} {counts[name]:,}" for name in order[:_MOST_NAMED])
    return some if len(order) <= _MOST_NAMED else f"{some}, … in {len(order):,} columns"


def tells_the_label(are_missing: Mapping[str, NDArray[np.bool_]], rows: Dataset) -> list[str]:
    """Sentences on columns that are filled in the rows of one label alone, and in all of them; ``are_missing``: by
    column, which of its cells."""
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
