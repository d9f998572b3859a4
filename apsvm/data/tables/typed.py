"""Decides the type of a column from evidence in its cells.

The user's word comes first, then the type by the writer of the file or frame, then the share of each kind of cell.
docs/data.md lists the rules in their order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from apsvm._support.naming import advice
from apsvm.data.read_options import TableOptions
from apsvm.data.tables.cells import Cells, leaving_out, quoted, shown, text_of
from apsvm.data.tables.dates import LIKE_A_DATE, day_of, days_of, has_zone, parts_of
from apsvm.data.tables.written_numbers import (
    LIKE_AN_AMOUNT,
    TRUTH,
    is_meant_as_number,
    number_in,
    number_of,
    of_one_unit,
    unit_of,
)
from apsvm.models.columns import MOST_RARE, NUMBER_STYLES, ORDERS, Column, ColumnKind, DatePart

#: Names of columns that identify rows: id, customer_id, customerId, Order No, rownames.
_NAMES_ROWS = re.compile(r"(?i:(.*[\W_])?(id|no|nr|number|key)|rownames|rowid|index|unnamed: 0)|.*[a-z]I[dD]")
#: A column whose cells mostly differ is text if it has more different words than this, else a category.
_FEWEST_TEXTS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Evidence on a column's type. Evidence from several parts can be added.

    Attributes
    ----------
    name : the column's name
    type, stored : as ``Cells.type`` and ``Cells.stored``
    n, missing : number of cells, and of those without a value
    numbers : the cells that are numbers, or dates as days
    words : the texts that are no numbers, each with the number of its cells
    spelled : all texts as words, each with the number of its cells; None for numbers alone, unless requested
    decimal : the decimal mark of the numbers
    coded : True if the numbers are codes (``Cells.are_codes``)
    """

    name: str
    type: str
    stored: str
    n: int
    missing: int
    numbers: NDArray[np.float64]
    words: Mapping[str, int]
    spelled: Mapping[str, int] | None
    decimal: str
    coded: bool = False

    @classmethod
    def of(cls, cells: Cells, *, spelled: bool) -> Evidence:
        """The evidence in ``cells``; with ``spelled``, the texts of a column of numbers are counted too."""
        values = np.ascontiguousarray(cells.values)
        is_number = ~np.isnan(values)
        numbers = values if is_number.all() else values[is_number]
        words: dict[str, int] = {}
        texts = None
        if not cells.is_plain:
            is_word = np.isnan(cells.number_of)
            words = dict(zip(cells.words, cells.counts[is_word].tolist(), strict=True))
        coded = cells.are_codes
        if spelled or words or coded or cells.type in ("category", "string"):
            names, counts, _ = cells.of_words()
            texts = dict(zip(names, counts.tolist(), strict=True))
        n, missing = len(cells), int(np.count_nonzero(cells.is_missing))
        return cls(cells.name, cells.type, cells.stored, n, missing, numbers, words, texts, cells.decimal, coded)

    def __add__(self, other: Evidence) -> Evidence:
        """The evidence of both parts together. Raises ColumnError if their types differ."""
        if self.type != other.type and self.n > self.missing and other.n > other.missing:
            raise ColumnError(f" has the type {self.stored} in one part and {other.stored} in another")
        typed_one = self if self.n > self.missing else other
        spelled = None
        if self.spelled is not None or other.spelled is not None:
            spelled = Counter(self._spelled) + Counter(other._spelled)
        return replace(
            typed_one, n=self.n + other.n, missing=self.missing + other.missing,
            numbers=np.concatenate((self.numbers, other.numbers)), words=Counter(self.words) + Counter(other.words),
            spelled=spelled, decimal="," if "," in (self.decimal, other.decimal) else ".",
            coded=self.coded and other.coded,
        )  # fmt: skip

    @property
    def _spelled(self) -> Mapping[str, int]:
        if self.spelled is not None:
            return self.spelled
        values, counts = np.unique(self.numbers, return_counts=True)
        return {text_of(value): count for value, count in zip(values.tolist(), counts.tolist(), strict=True)}

    @property
    def n_words(self) -> int:
        return sum(self.words.values())


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A column that becomes no feature. ``kind`` is "empty", "text" or "key"; ``why`` is the reason."""

    kind: str
    why: str


class ColumnError(Exception):
    """A column cannot be a feature. The message follows the column's name."""


class WrongCellsError(Exception):
    """Cells of a column cannot be read as the others. The message follows the place of the first.

    Attributes
    ----------
    name : the column's name
    words : the texts of these cells
    """

    def __init__(self, name: str, words: Iterable[str], message: str) -> None:
        super().__init__(message)
        self.name, self.words = name, frozenset(words)


def typed(evidence: Evidence, options: TableOptions) -> Column | LeftOut:
    """Type of a column, by the first rule of docs/data.md that applies.

    Raises
    ------
    ColumnError, WrongCellsError : no single way reads all its cells
    """
    if evidence.name in options.categorical:
        return _words(evidence, options, "--categorical")
    if evidence.missing == evidence.n:
        return LeftOut("empty", "it has no value")
    by_type = f"typed {evidence.stored}"
    match evidence.type:
        case "number" | "truth":
            return _numbers(evidence, options, by_type)
        case "category":
            return _words(evidence, options, by_type)
        case "date" | "time":
            order = "ymd" if evidence.type == "date" else "time"
            return _dates(evidence, options, by_type, order, evidence.numbers, zoned="tz=" in evidence.stored)
    return _by_looks(evidence, options)


def _by_looks(evidence: Evidence, options: TableOptions) -> Column | LeftOut:
    words, n_words = evidence.words, evidence.n_words
    is_string, n = evidence.type == "string", evidence.n - evidence.missing
    if not words and not is_string and not evidence.coded:
        return _numbers(evidence, options, "all cells are numbers")
    if words and all(word.lower() in TRUTH for word in words):
        return _numbers(evidence, options, "all cells are true or false")
    if words:
        column = _written_numbers(evidence, options) or _written_dates(evidence, options)
        if column is not None:
            return column
    if evidence.coded and _names_rows(evidence, options):
        return LeftOut("key", f"it names the rows: {evidence.n:,} different integers")
    if n - n_words > n_words and not is_string and not evidence.coded:
        raise not_numbers(evidence.name, words, of_training=True)
    like_dates = [word for word in words if LIKE_A_DATE.fullmatch(word)]
    if 2 * sum(words[word] for word in like_dates) > n_words:
        raise _mixed_dates(evidence, like_dates[0])
    # A sign alone beside numbers means a missing cell, or 0.
    amounts = [word for word in words if LIKE_AN_AMOUNT.fullmatch(word) or (n > n_words and not re.search(r"\w", word))]
    if 2 * sum(words[word] for word in amounts) > n_words:
        raise _unlike_amounts(evidence.name, words)
    assert evidence.spelled is not None
    different, first = len(evidence.spelled), shown(next(iter(evidence.spelled)))
    if different > _FEWEST_TEXTS and 2 * different > n:
        but = ""
        if evidence.coded:
            but = ", codes of digits"
        elif n - n_words > n_words:
            but = f", most of them numbers, which are typed {evidence.stored}"
        if options.features is not None:
            raise ColumnError(
                f" has {different:,} different words in {n:,} rows ({first}, …{but}), no categories: "
                f"{leaving_out(evidence.name)}{advice(', or --id-column if it names the rows')}"
            )
        return LeftOut("text", f"text: {different:,} different words in {n:,} cells{but}")
    by = f"codes such as {first}: " if evidence.coded else f"typed {evidence.stored}, " if is_string else ""
    return _words(evidence, options, f"{by}{different:,} different words in {n:,} cells")


def _numbers(evidence: Evidence, options: TableOptions, why: str, style: str = "") -> Column | LeftOut:
    values, words = evidence.numbers, evidence.words
    if words:
        of_words = np.array([number_in(word, style) for word in words], dtype=np.float64)
        values = np.concatenate((values, np.repeat(of_words, list(words.values()))))
    elif evidence.type != "truth" and _names_rows(evidence, options):
        return LeftOut("key", f"it names the rows: {evidence.n:,} different integers")
    return Column(
        name=evidence.name, fill=_fill(options, median(values)), style=style,
        missing=options.missing == "indicator" and evidence.missing > 0, why=why,
    )  # fmt: skip


def _dates(
    evidence: Evidence, options: TableOptions, why: str, order: str, days: NDArray[np.float64], *, zoned: bool
) -> Column:
    newest, parts = float(days.max()), parts_of(days, order)
    fill = _fill(options, float(np.median(newest - days)) if DatePart.AGE in parts else 0.0)
    return Column(
        name=evidence.name, kind=ColumnKind.DATE, fill=fill, order=order, newest=newest, parts=parts, zoned=zoned,
        missing=options.missing == "indicator" and evidence.missing > 0, why=why,
    )  # fmt: skip


def _words(evidence: Evidence, options: TableOptions, why: str) -> Column:
    counts, most = evidence.spelled or {}, options.max_categories
    order = sorted(counts, key=lambda word: (-counts[word], word))
    kept, rare = sorted(order[:most]), sorted(order[most:])
    return Column(
        name=evidence.name, kind=ColumnKind.CATEGORY, categories=tuple(kept), other=bool(rare),
        missing=options.missing in ("median", "indicator") and evidence.missing > 0,
        rare=tuple(rare) if len(rare) <= MOST_RARE else (), why=why,
    )  # fmt: skip


def _fill(options: TableOptions, typical: float) -> float | None:
    """The value for a missing cell, None to refuse it."""
    return None if options.missing == "refuse" else 0.0 if options.missing == "zero" else typical


def may_name_rows(name: str) -> bool:
    """True if a column of this name identifies rows when all its numbers differ."""
    return _NAMES_ROWS.fullmatch(name) is not None


def _names_rows(evidence: Evidence, options: TableOptions) -> bool:
    """True if a column of numbers, not named as a feature, identifies rows: by its name, and with distinct integers."""
    few = evidence.missing or evidence.n < _FEWEST_TEXTS
    if few or options.features is not None or not may_name_rows(evidence.name):
        return False
    values = np.sort(evidence.numbers)
    are_different = values[-1] >= 2.0**53 or (values[1:] > values[:-1]).all()  # beyond it float64 merges them
    return bool((values == np.floor(values)).all() and are_different)


def _written_numbers(evidence: Evidence, options: TableOptions) -> Column | LeftOut | None:
    """The column if all words are formatted numbers; else None."""
    style = written_style(evidence)
    if not style:
        return None
    first = next(iter(evidence.words))
    value = number_of(first, style)
    assert value is not None
    return _numbers(evidence, options, f"{shown(first)} is {text_of(value)}", style)


def written_style(evidence: Evidence) -> str:
    """The style in which all words are numbers of one unit; "" if there is none. Raises ColumnError for several.

    In a file with decimal commas a point never stands before decimals. Plain numbers beside the words have the style of
    the file.
    """
    others = evidence.numbers.size > 0
    styles = ("comma",) if evidence.decimal == "," else ("point",) if others else NUMBER_STYLES
    style, _ = _reading(evidence, styles, number_of, text_of, "write it without a separator of thousands")
    return style if style and of_one_unit(list(evidence.words), others=others) else ""


def _written_dates(evidence: Evidence, options: TableOptions) -> Column | None:
    """The column if all words are dates of one form; else None."""
    if evidence.numbers.size:
        return None
    way_out = f"write them year first{advice(', or say --date-order dmy (or mdy)')}"
    order, of_words = _reading(evidence, ORDERS, days_of, day_of, way_out, options.date_order)
    if not order:
        return None
    form = {"ymd": "year first", "dmy": "day first", "mdy": "month first", "time": "of the day"}[order]
    why = f"all cells are {'times' if order == 'time' else 'dates'}, {form}"
    days = np.repeat(of_words, list(evidence.words.values()))
    return _dates(evidence, options, why, order, days, zoned=any(map(has_zone, evidence.words)))


def _reading(
    evidence: Evidence,
    ways: Sequence[str],
    read: Callable[[str, str], float | None],
    show: Callable[[float], object],
    way_out: str,
    preferred: str | None = None,
) -> tuple[str, list[float]]:
    """The one of the ``ways`` that reads all words, and their values; "" if there is none. Raises ColumnError if two
    ways give different values and neither is ``preferred``."""
    readings: dict[str, list[float]] = {}
    for way in ways:
        values = []
        for word in evidence.words:
            value = read(word, way)
            if value is None:
                break
            values.append(value)
        if len(values) == len(evidence.words) and values not in readings.values():
            readings[way] = values
    if preferred in readings:
        return preferred, readings[preferred]
    if len(readings) < 2:
        return next(iter(readings.items()), ("", []))
    word, both = next(
        (word, both) for word, *both in zip(evidence.words, *readings.values(), strict=True) if len(set(both)) > 1
    )
    meant = " or ".join(str(show(value)) for value in both)
    raise ColumnError(f": {shown(word)} may be {meant}: {way_out}, or {leaving_out(evidence.name)}")


def _mixed_dates(evidence: Evidence, example: str) -> ColumnError:
    """The error of a column whose words mostly look like dates. It names the first cell that no order reads together
    with the cells before it."""
    orders, other = list(ORDERS), ""
    for word in evidence.words:
        orders = [order for order in orders if days_of(word, order) is not None]
        if not orders:
            other = word
            break
    what = f"{shown(example)}) that are not all of one form ({shown(other or text_of(float(evidence.numbers[0])))})"
    if example == other:
        what = f"{shown(example)}) of a form that is not read here, such as years of two digits"
    return ColumnError(f" has dates ({what}: write them alike, year first, or {leaving_out(evidence.name)}")


def _unlike_amounts(name: str, words: Mapping[str, int]) -> WrongCellsError:
    """The error of a column of amounts. It names a cell unlike the others if at most a tenth of the cells are."""
    by_unit = Counter[str]()
    for word, count in words.items():
        by_unit[unit_of(word)] += count
    unit = by_unit.most_common(1)[0][0]
    unlike = [{word: words[word] for word in words if number_of(word, style) is None} for style in NUMBER_STYLES]
    unlike.append({word: words[word] for word in words if unit_of(word) != unit})
    fewest = min(filter(None, unlike), key=lambda others: sum(others.values()), default={})
    if not fewest or 10 * sum(fewest.values()) > sum(words.values()):
        return not_numbers(name, words, of_training=True)
    return not_numbers(name, fewest, of_training=True, like=next(word for word in words if word not in fewest))


def not_numbers(name: str, words: Mapping[str, int], *, of_training: bool, like: str = "") -> WrongCellsError:
    """The error of a column of numbers that has these words, each with the number of its cells. ``like`` is another
    cell of the column."""
    word, count = next(iter(words)), sum(words.values())
    more = "" if count == 1 else f" ({count:,} such cells)"
    if LIKE_AN_AMOUNT.fullmatch(word):
        hint = (
            "signs of money or per cent and separators of thousands are read where all cells of a column are written "
            "alike; --decimal , (or .) names what stands before decimals"
        )
    else:
        hint = "a missing cell is empty, or NA"
        if of_training:
            as_words = advice(f"--categorical {quoted(name)}", 'astype("category")')
            hint += f"; {as_words} takes words and numbers for categories, or {leaving_out(name)}"
    number = f"{'finite ' * is_meant_as_number(word)}number{like and f' like {shown(like)}'}"
    return WrongCellsError(name, words, f"expected a {number}, found {shown(word)}{more}; {hint}")


def median(values: NDArray[np.float64]) -> float:
    """``np.median``, but several times as fast for many values: it partitions those near the median of a sample."""
    n = values.size
    sample = np.sort(values[:: max(1, n >> 12)])
    low, high = sample[int(0.47 * sample.size)], sample[int(0.53 * sample.size)]
    near = values[(values >= low) & (values <= high)]
    middle = np.array([(n - 1) // 2, n // 2])
    places = middle - np.count_nonzero(values < low)
    if places[0] < 0 or places[1] >= near.size:
        near, places = values, middle
    first, second = np.partition(near, places)[places].tolist()
    return float(first / 2 + second / 2)  # the sum may be infinite
