"""Decides the type of a column, from evidence in its cells; no other module does.

The user's word comes first, then the type that the writer of a file or frame gave the column, then what its cells look
like, by their shares. ``RULES`` lists the decisions in their order, as docs/data.md has them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from apsvm._support.naming import advice
from apsvm.data.read_options import TableOptions
from apsvm.data.tables.cells import Cells, leaving_out, quoted, shown, text_of
from apsvm.data.tables.dates import LIKE_A_DATE, day_of, days_of
from apsvm.data.tables.written_numbers import (
    TRUTH,
    hint_of,
    hint_of_missing,
    is_meant_as_number,
    number_of,
    of_one_unit,
)
from apsvm.models.columns import NUMBER_STYLES, ORDERS, ColumnKind

#: The decisions, in their order: what is seen of a column, and what the column is then.
RULES = (
    ("`--categorical` names it", "words"),
    ("it has no value", "left out"),
    ("typed as a number or truth value", "numbers; left out if it names the rows"),
    ("typed as categories (a dictionary)", "words"),
    ("typed as a date, a timestamp or a time", "dates"),
    ("all cells are codes: digits of one length with leading zeros, or 16 to 20 digits", "words"),
    ("all cells are plain numbers", "numbers; left out if it names the rows; words if typed as text"),
    ("all cells are `true` or `false`", "numbers, 1 and 0"),
    ("all cells are formatted numbers of one style", "numbers"),
    ("all cells are dates of one form, or times", "dates"),
    (
        "more than half of the cells are numbers, and it is not typed as text",
        "an error that shows the first other cell",
    ),
    ("more than half of the words look like dates, or like amounts", "an error that shows the first that differs"),
    ("more than ten different words, in more than half of the cells", "left out as text"),
    ("anything else", "words"),
)

#: What a column is called that names rows: id, customer_id, customerId, Order No, rownames.
_NAMES_ROWS = re.compile(r"(?i:(.*[\W_])?(id|no|nr|number|key)|rownames|rowid|index|unnamed: 0)|.*[a-z]I[dD]")
#: From this many different words on a column in which most cells are different is text, and no category.
_FEWEST_TEXTS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Evidence on a column's type; evidence of several parts can be added.

    Attributes
    ----------
    name : the column's name
    type : by its writer, as ``Cells.type``
    stored : the name of that type
    n, missing : cells, and those of them without a value
    numbers : those that are finite numbers, or days
    words : texts that are no number, and how many cells have each
    spelled : all texts as words and their counts; None where they are numbers alone and not asked for
    decimal : the decimal mark of its numbers
    coded : its numbers are codes (``Cells.are_codes``)
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
        """``spelled``: whether texts are counted of a column of numbers, too."""
        values = np.ascontiguousarray(cells.values)
        is_number = ~np.isnan(values)
        numbers = values if is_number.all() else values[is_number]
        words: dict[str, int] = {}
        texts = None
        if cells.codes is not None:
            is_word = np.isnan(cells.number_of)
            words = dict(zip(cells.words, cells.counts[is_word].tolist(), strict=True))
        coded = cells.are_codes
        if spelled or words or coded or cells.type in ("category", "string"):
            names, counts, _ = cells.of_words()
            texts = dict(zip(names, counts.tolist(), strict=True))
        n, missing = len(cells), int(np.count_nonzero(cells.is_missing))
        return cls(cells.name, cells.type, cells.stored, n, missing, numbers, words, texts, cells.decimal, coded)

    def __add__(self, other: Evidence) -> Evidence:
        """The evidence of the cells of both. Raises ColumnError for other types."""
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
class Type:
    """Type of a column.

    Attributes
    ----------
    kind : numbers, words or dates; None: it is left out
    why : the reason
    style, order : the notation of numbers and of dates, as ``apsvm.models.columns.Column`` has it
    days : for dates written as words, the day number of each
    left_out : "empty", "text" or "key", where ``kind`` is None
    """

    kind: ColumnKind | None
    why: str
    style: str = ""
    order: str = ""
    days: Mapping[str, float] | None = None
    left_out: str = ""


class ColumnError(Exception):
    """A column cannot be a feature; the message goes behind the column's name."""


class WrongCellsError(Exception):
    """Cells of a column cannot be read as the others; the message goes behind the place of the first.

    Attributes
    ----------
    words : of these cells
    """

    def __init__(self, words: Sequence[str], message: str) -> None:
        super().__init__(message)
        self.words = frozenset(words)


def typed(evidence: Evidence, options: TableOptions) -> Type:
    """Type of a column, by the first of ``RULES`` that applies.

    Raises
    ------
    ColumnError, WrongCellsError : its cells cannot be read in one way
    """
    if evidence.name in options.categorical:
        return Type(ColumnKind.CATEGORY, "--categorical")
    if evidence.missing == evidence.n:
        return Type(None, "it has no value", left_out="empty")
    by_type = f"typed {evidence.stored}"
    match evidence.type:
        case "number" | "truth":
            if np.isinf(evidence.numbers).any():
                found = "inf" if (evidence.numbers == np.inf).any() else "-inf"
                raise WrongCellsError(["inf", "-inf"], f"expected a finite number, found '{found}'")
            return _numbers(evidence, options, by_type)
        case "category":
            return Type(ColumnKind.CATEGORY, by_type)
        case "date":
            return Type(ColumnKind.DATE, by_type, order="ymd")
        case "time":
            return Type(ColumnKind.DATE, by_type, order="time")
    return _by_looks(evidence, options)


def _by_looks(evidence: Evidence, options: TableOptions) -> Type:
    words, n_words = evidence.words, evidence.n_words
    is_string, n = evidence.type == "string", evidence.n - evidence.missing
    if not words and not is_string and not evidence.coded:
        return _numbers(evidence, options, "all cells are numbers")
    if words and {word.lower() for word in words} <= set(TRUTH):
        return Type(ColumnKind.NUMBER, "all cells are true or false")
    if words:
        found = _written_numbers(evidence) or _dates(evidence, options)
        if found is not None:
            return found
    if evidence.coded and options.features is None and _names_rows(evidence):
        return Type(None, f"it names the rows: {evidence.n:,} different integers", left_out="key")
    if n - n_words > n_words and not is_string and not evidence.coded:
        raise not_numbers(evidence.name, words, of_training=True)
    like_dates = [word for word in words if LIKE_A_DATE.fullmatch(word)]
    if 2 * sum(words[word] for word in like_dates) > n_words:
        raise _mixed_dates(evidence, like_dates)
    # Signs alone beside numbers are a missing one, or 0.
    amounts = [word for word in words if hint_of(word) or (n > n_words and not re.search(r"\w", word))]
    if 2 * sum(words[word] for word in amounts) > n_words:
        raise _unlike_amounts(evidence.name, words)
    assert evidence.spelled is not None
    different = len(evidence.spelled)
    if different > _FEWEST_TEXTS and 2 * different > n:
        but = ""
        if n - n_words > n_words:
            but = (
                ", codes of digits" if evidence.coded else f", most of them numbers, which are typed {evidence.stored}"
            )
        if options.features is not None:
            example = next(iter(evidence.spelled))
            raise ColumnError(
                f" has {different:,} different words in {n:,} rows ({shown(example)}, …{but}), no categories: "
                f"{leaving_out(evidence.name)}{advice(', or --id-column if it names the rows')}"
            )
        return Type(None, f"text: {different:,} different words in {n:,} cells{but}", left_out="text")
    by = f"typed {evidence.stored}, " if is_string else "codes such as " if evidence.coded else ""
    by += f"{shown(next(iter(evidence.spelled)))}: " if evidence.coded else ""
    return Type(ColumnKind.CATEGORY, f"{by}{different:,} different words in {n:,} cells")


def _numbers(evidence: Evidence, options: TableOptions, why: str) -> Type:
    if options.features is None and evidence.type != "truth" and _names_rows(evidence):
        return Type(None, f"it names the rows: {evidence.n:,} different integers", left_out="key")
    return Type(ColumnKind.NUMBER, why)


def may_name_rows(name: str) -> bool:
    """True if a column of this name identifies rows when all its numbers differ."""
    return _NAMES_ROWS.fullmatch(name) is not None


def _names_rows(evidence: Evidence) -> bool:
    """True if a column of numbers identifies rows: by its name, and with distinct integers."""
    if evidence.missing or evidence.n < _FEWEST_TEXTS or not may_name_rows(evidence.name):
        return False
    values = np.sort(evidence.numbers)
    are_different = values[-1] >= 2.0**53 or (values[1:] > values[:-1]).all()  # beyond it float64 merges them
    return bool((values == np.floor(values)).all() and are_different)


def _written_numbers(evidence: Evidence) -> Type | None:
    """Numbers as people write them. Where commas are decimal in the file, points stand before no decimals; numbers
    beside the words were read in the style of the file. Raises ColumnError where two readings are open."""
    words, others = evidence.words, evidence.numbers.size > 0
    styles = ("comma",) if evidence.decimal == "," else ("point",) if others else NUMBER_STYLES
    readings = _readings(words, styles, number_of)
    if not readings or not of_one_unit(list(words), others=others):
        return None
    if len(readings) > 1:
        raise _ambiguous(
            words, readings, text_of, ": {} may be {}: write it without a separator of thousands", evidence
        )
    ((style, values),) = readings.items()
    first = next(iter(words))
    return Type(ColumnKind.NUMBER, f"{shown(first)} is {text_of(float(values[0]))}", style=style)


def _dates(evidence: Evidence, options: TableOptions) -> Type | None:
    """Dates of one form. Raises ColumnError where the order of day and month is open."""
    if evidence.numbers.size:
        return None
    readings = _readings(evidence.words, ORDERS, days_of)
    if options.date_order in readings:
        readings = {options.date_order: readings[options.date_order]}
    if not readings:
        return None
    if len(readings) > 1:
        raise _ambiguous(
            evidence.words, readings, day_of,
            " has dates of which {} may be {}: write them year first"
            + advice(", or say --date-order dmy (or mdy)"), evidence,
        )  # fmt: skip
    ((order, days),) = readings.items()
    form = {"ymd": "year first", "dmy": "day first", "mdy": "month first", "time": "of the day"}[order]
    why = f"all cells are {'times' if order == 'time' else 'dates'}, {form}"
    return Type(ColumnKind.DATE, why, order=order, days=dict(zip(evidence.words, days.tolist(), strict=True)))


def _readings(
    words: Mapping[str, int], ways: Sequence[str], read: Callable[[str, str], float | None]
) -> dict[str, NDArray[np.float64]]:
    """Values of the words for each of the ``ways`` that reads all of them; of ways that agree only the first."""
    readings: dict[str, NDArray[np.float64]] = {}
    for way in ways:
        values = list(takewhile(lambda value: value is not None, (read(word, way) for word in words)))
        of_word = np.array(values, dtype=np.float64)
        if of_word.size == len(words) and not any(np.array_equal(of_word, other) for other in readings.values()):
            readings[way] = of_word
    return readings


def _ambiguous(
    words: Mapping[str, int],
    readings: Mapping[str, NDArray[np.float64]],
    named: Callable[[float], object],
    problem: str,
    evidence: Evidence,
) -> ColumnError:
    """The error with the first word that is one thing by one reading and another by the other."""
    word, both = next(
        (word, both)
        for word, both in zip(words, zip(*readings.values(), strict=True), strict=True)
        if len(set(both)) > 1
    )
    meant = " or ".join(str(named(float(value))) for value in both)
    return ColumnError(f"{problem.format(shown(word), meant)}, or {leaving_out(evidence.name)}")


def _mixed_dates(evidence: Evidence, like_dates: Sequence[str]) -> ColumnError:
    """The error of a column of which most words look like dates."""
    example, other = like_dates[0], _unlike_the_others(evidence)
    what = f"{shown(example)}) that are not all of one form ({shown(other)})"
    if example == other:
        what = f"{shown(example)}) of a form that is not read here, such as years of two digits"
    return ColumnError(f" has dates ({what}: write them alike, year first, or {leaving_out(evidence.name)}")


def _unlike_the_others(evidence: Evidence) -> str:
    """First word that shares no date order with the words before it, or else a number."""
    orders: Sequence[str] = ORDERS
    for word in evidence.words:
        orders = [order for order in orders if days_of(word, order) is not None]
        if not orders:
            return word
    return text_of(float(evidence.numbers[0]))


def _unlike_amounts(name: str, words: Mapping[str, int]) -> WrongCellsError:
    """The error of a column of amounts, about the few that are unlike the others, where these are few."""
    unlike = [{word: words[word] for word in words if number_of(word, style) is None} for style in NUMBER_STYLES]
    fewest = min(unlike, key=lambda others: sum(others.values()))
    if not fewest or 10 * sum(fewest.values()) > sum(words.values()):
        return not_numbers(name, words, of_training=True)
    return not_numbers(name, fewest, of_training=True, like=next(word for word in words if word not in fewest))


def not_numbers(name: str, words: Mapping[str, int], *, of_training: bool, like: str = "") -> WrongCellsError:
    """The error of a column with cells that should be numbers and are words, with the number of cells of each;
    ``like``: another cell of the column."""
    word, count = next(iter(words)), sum(words.values())
    more = "" if count == 1 else f" ({count:,} such cells)"
    hint = hint_of_missing(word) or hint_of(word, list(words))
    if not hint and of_training:
        as_words = advice(f"--categorical {quoted(name)}", 'astype("category")')
        hint = (
            f"; a missing cell is empty, or NA; {as_words} takes words and numbers for categories, or "
            f"{leaving_out(name)}"
        )
    finite = "finite " if is_meant_as_number(word) else ""
    number = f"{finite}number like {shown(like)}" if like else f"{finite}number"
    return WrongCellsError(list(words), f"expected a {number}, found {shown(word)}{more}{hint}")
