"""What the columns of a table are, and what is to become of them, learned from the training rows.

A column of numbers is a feature. A column with words, or one that is said to be so, is a category: each of its words is
a feature that is 1 in the rows that have it, the most frequent ones where there are many, the others together. A column
of dates is what ``dates`` makes of it. Texts and numbers that are none are refused, all columns in one message.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import DataError
from apsvm.data.read_options import TableOptions
from apsvm.data.tables.cells import MISSING, Cell, Cells, fail_not_numbers, hint_of, is_meant_as_number, shown, text_of
from apsvm.data.tables.dates import day_of, days_of, parts_of
from apsvm.data.tables.parts import Parts, listed, quoted
from apsvm.data.tables.written_numbers import number_of, of_one_unit
from apsvm.models.columns import NUMBER_STYLES, ORDERS, Column, ColumnKind, Columns, DatePart

#: Of two words the positive one, in any case.
_POSITIVE = ("yes", "y", "t", "positive", "pos", "1", "fraud")

_MOST_ROWS = 8


def labels_of(
    cell: Cell, label_words: tuple[str, ...] | None, positive: float | str | None
) -> tuple[NDArray[np.float64], tuple[str, ...], str]:
    """The labels (n,), the words that their numbers stand for if they are words, and what is to be said of these.

    Two words become 0 and 1, the second positive by custom ("yes") or because it is the rarer one; more become 0, 1 …
    by the alphabet.

    Parameters
    ----------
    known : the words of the labels that a model was trained on; None: of a training
    positive : of a training, the label that the user says is positive

    Raises
    ------
    DataError : a label is missing, infinite, or a word that the model does not know
    """
    _refuse_missing(cell, "has no label")
    cell = cell if label_words else cell.with_truth()
    infinite = [at for at, word in enumerate(cell.words) if is_meant_as_number(word)]
    if infinite:
        raise fail_not_numbers(cell, np.isin(cell.word_numbers, infinite))
    if not label_words and not cell.words:
        return cell.values, (), ""
    if label_words == ():
        raise fail_not_numbers(cell, cell.bits > MISSING)
    texts, numbers = cell.texts()
    if label_words:
        unknown = [at for at, text in enumerate(texts) if text not in label_words]
        if unknown:
            row = int(np.flatnonzero(np.isin(numbers, unknown))[0])
            raise cell.fail(row, f"expected a label of {listed(label_words)}, found {texts[numbers[row]]!r}")
        return np.array([float(label_words.index(text)) for text in texts])[numbers], label_words, ""
    if len(texts) > len(cell.words):  # words and numbers: what would --positive-label 1 mean?
        raise fail_not_numbers(cell, cell.bits > MISSING)
    words, remark = _in_order(cell.name, texts, positive, np.bincount(numbers, minlength=len(texts)))
    return np.array([float(words.index(text)) for text in texts])[numbers], words, remark


def _in_order(
    name: str, texts: list[str], positive_label: float | str | None, counts: NDArray[np.int64]
) -> tuple[tuple[str, ...], str]:
    if len(texts) != 2:
        return tuple(sorted(texts)), ""
    if isinstance(positive_label, str) and positive_label in texts:
        return (next(text for text in texts if text != positive_label), positive_label), ""
    positive = [text for text in texts if text.lower() in _POSITIVE] or [t for t in texts if t.lower() != "none"]
    if len(positive) == 1:
        why = "by its name"
    else:
        by_count = sorted(texts, key=lambda text: (int(counts[texts.index(text)]), text))
        positive, why = by_count[:1], "the rarer one" if counts[0] != counts[1] else "the first of two as frequent"
    negative = next(text for text in texts if text != positive[0])
    remark = f"column {name!r}: {positive[0]!r} is positive, {why}, {negative!r} negative (--positive-label)"
    return (negative, positive[0]), remark


def numbered(cell: Cell, what: str) -> NDArray[np.int64]:
    """The queries or bags (n,) of cells of text: the integers that they are, or else numbered as they appear."""
    _refuse_missing(cell, f"has no {what}")
    integers = _integers_of(cell)
    return cell.word_numbers if integers is None else integers[cell.word_numbers]


def names_of_numbered(cell: Cell) -> tuple[str, ...]:
    """What ``numbered`` made numbers of, by number; () where they are integers themselves."""
    return tuple(cell.words) if _integers_of(cell) is None else ()


def _integers_of(cell: Cell) -> NDArray[np.int64] | None:
    """The words of the cell as integers; None where one of them is written otherwise, as 000088 and 1.0 are."""
    try:
        values = [int(word) for word in cell.words]
    except ValueError:
        return None
    same = all(str(value) == word and -(2**63) <= value < 2**63 for value, word in zip(values, cell.words, strict=True))
    return np.array(values, dtype=np.int64) if same else None


def costs_of(cell: Cell) -> NDArray[np.float64]:
    """(n,) float64, at least 0."""
    _refuse_missing(cell, "has no cost")
    if cell.words:
        raise fail_not_numbers(cell, cell.bits > MISSING)
    if (cell.values < 0).any():
        row = int(np.flatnonzero(cell.values < 0)[0])
        raise cell.fail(row, f"expected a cost of at least 0, found {text_of(float(cell.values[row]))}")
    return cell.values


def keys_of(cell: Cell) -> NDArray[np.object_]:
    """(n,) what the rows are called; "" where a cell is empty."""
    return np.array([*cell.words, ""], dtype=object)[cell.word_numbers]


def _refuse_missing(cell: Cell, what: str) -> None:
    rows = np.flatnonzero(cell.is_missing)
    if rows.size == 0:
        return
    places = ", ".join(str(cell.places.number(row)) for row in rows[:_MOST_ROWS].tolist())
    more = f", … ({rows.size:,} in all)" if rows.size > _MOST_ROWS else ""
    unit = cell.places.unit + ("s" if rows.size > 1 else "")
    raise DataError(
        f"{cell.places.source}: column {cell.name!r}: every row needs a value, and {unit} {places}{more} "
        f"{what if rows.size == 1 else what.replace('has', 'have', 1)} (NA, null, nil, NaN and ? are empty cells): "
        f"leave {'it' if rows.size == 1 else 'them'} out"
    )


_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d).*|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}(?!\d).*|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?"
    r"|\d{1,2}([-/. ])[A-Za-z]{3}\3\d{2,4}(?!\d).*"
)

#: What a column is called that names rows: id, customer_id, customerId, Order No, rownames.
_NAMES_ROWS = re.compile(r"(?i:(.*[\W_])?(id|no|nr|number|key)|rownames|rowid|index|unnamed: 0)|.*[a-z]I[dD]")
#: From this many different words on a column in which most cells are different is text, and no category.
_FEWEST_TEXTS = 10
_MOST_NAMED = 6


@dataclass
class _Learned:
    """What is known of the columns so far."""

    options: TableOptions
    decimal: str = "."
    columns: list[Column] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    categories: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


def learn(cells: Cells, parts: Parts, options: TableOptions) -> tuple[Columns, list[str]]:
    """How the columns become features, and remarks on it.

    Raises
    ------
    DataError : a cell is missing where that is refused; a column cannot be features
    """
    learned = _Learned(options, cells.decimal)
    place = {name: at for at, name in enumerate(cells.names)}
    for name in parts.features:
        cell = cells.column_at(place[name])
        _learn_column(cell if name in options.categorical else cell.with_truth(), learned)
    if learned.problems:
        raise DataError(f"{cells.places.source}: {'; '.join(learned.problems)}")
    if not learned.columns:
        raise DataError(
            f"{cells.places.source}: no column is left to be a feature: none of them has a value other than text"
        )
    names = [name for column in learned.columns for name in column.features()]
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise DataError(f"{cells.places.source}: two columns would make a feature {twice!r}: rename or --drop one")
    columns = Columns(
        features=tuple(learned.columns),
        label=parts.label, qid=parts.qid, bag=parts.bag, cost=parts.cost, id=parts.id, missing=options.missing,
    )  # fmt: skip
    return columns, _remarks(learned)


def _learn_column(cell: Cell, learned: _Learned) -> None:
    n_missing, n = int(np.count_nonzero(cell.is_missing)), cell.values.size
    rule = learned.options.missing
    if n_missing and rule == "refuse":
        row = int(np.flatnonzero(cell.is_missing)[0])
        count = f", and in {n_missing - 1:,} more" if n_missing > 1 else ""
        raise cell.fail(
            row,
            f"the cell is missing{count} (--missing median, zero or indicator says what becomes of it; on a cluster "
            "zero alone)",
        )
    if n_missing == n:
        learned.empty.append(cell.name)
        return
    column = _column(cell, learned)
    if column is None:
        return
    if n_missing:
        learned.missing[cell.name] = n_missing
    of_its_own = rule == "indicator" or (rule == "median" and column.kind is ColumnKind.CATEGORY)
    learned.columns.append(replace(column, missing=of_its_own and n_missing > 0))


def _column(cell: Cell, learned: _Learned) -> Column | None:
    """None with a problem where it makes no features."""
    if cell.name in learned.options.categorical:
        return _category(cell, learned)
    if not cell.words:
        if learned.options.features is None and _names_rows(cell):
            learned.keys.append(cell.name)
            return None
        return _number(cell, learned.options.missing)
    try:
        return _written_numbers(cell, learned) or _dates(cell, learned) or _category(cell, learned)
    except _AmbiguousError as error:
        learned.problems.append(f"column {cell.name!r}{error}, or --drop {quoted(cell.name)}")
        return None


def _names_rows(cell: Cell) -> bool:
    """Whether a column of numbers names the rows: it is called so, and holds integers of which no two are equal."""
    if cell.values.size < _FEWEST_TEXTS or _NAMES_ROWS.fullmatch(cell.name) is None:
        return False
    values = np.sort(cell.values)  # a missing cell is NaN, and no integer
    return bool((values == np.floor(values)).all() and (values[1:] > values[:-1]).all())


def _number(cell: Cell, rule: str) -> Column:
    if rule == "refuse":
        return Column(name=cell.name)
    if rule == "zero":
        return Column(name=cell.name, fill=0.0)
    values = cell.values if not cell.is_missing.any() else cell.values[~cell.is_missing]
    return Column(name=cell.name, fill=_median(values))


def _median(values: NDArray[np.float64]) -> float:
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


def _written_numbers(cell: Cell, learned: _Learned) -> Column | None:
    """A column whose words are numbers as people write them, or None. Raises _AmbiguousError.

    Where commas are decimal in the file, points stand before no decimals; numbers beside the words were read in the
    style of the file."""
    others = bool((cell.bits < MISSING).any())
    styles = ("comma",) if learned.decimal == "," else ("point",) if others else NUMBER_STYLES
    readings = _readings(cell, styles, number_of)
    if not readings or not of_one_unit(cell.words, others=others):
        return None
    if len(readings) > 1:
        raise _ambiguous(cell, readings, text_of, ": {} may be {}: write it without a separator of thousands")
    ((style, of_word),) = readings.items()
    values = np.where(cell.word_numbers >= 0, of_word[cell.word_numbers], cell.values)
    learned.written.append(f"{cell.name} ({shown(cell.words[0])} is {text_of(float(of_word[0]))})")
    return replace(_number(Cell(cell.name, values, (), cell.places), learned.options.missing), style=style)


def _dates(cell: Cell, learned: _Learned) -> Column | None:
    """A column whose words are dates, or None. Raises _AmbiguousError."""
    readings = {} if (cell.bits < MISSING).any() else _readings(cell, ORDERS, days_of)
    if not readings:
        return None
    if len(readings) > 1:
        raise _ambiguous(cell, readings, day_of, " has dates of which {} may be {}: write them year first")
    ((order, of_word),) = readings.items()
    rule, days = learned.options.missing, of_word[cell.word_numbers[cell.word_numbers >= 0]]
    newest, parts = float(days.max()), parts_of(days, order)
    learned.dates.append(f"{cell.name} ({', '.join(map(str, parts))})")
    has_age = rule != "zero" and DatePart.AGE in parts
    fill = None if rule == "refuse" else float(np.median(newest - days)) if has_age else 0.0
    return Column(name=cell.name, kind=ColumnKind.DATE, fill=fill, order=order, newest=newest, parts=parts)


def _readings(
    cell: Cell, ways: Sequence[str], read: Callable[[str, str], float | None]
) -> dict[str, NDArray[np.float64]]:
    """What each of the words is, by the ways in which all of them are something; of ways that agree the first."""
    readings: dict[str, NDArray[np.float64]] = {}
    if cell.has_words_beyond:
        return readings
    for way in ways:
        values = list(takewhile(lambda value: value is not None, (read(word, way) for word in cell.words)))
        of_word = np.array(values, dtype=np.float64)
        if of_word.size == len(cell.words) and not any(np.array_equal(of_word, other) for other in readings.values()):
            readings[way] = of_word
    return readings


class _AmbiguousError(Exception):
    """The words of a column can be read in two ways; the message goes behind the column's name."""


def _ambiguous(
    cell: Cell, readings: Mapping[str, NDArray[np.float64]], named: Callable[[float], object], problem: str
) -> _AmbiguousError:
    """The error with the first word that is one thing by one reading and another by the other."""
    at, both = next((at, both) for at, both in enumerate(zip(*readings.values(), strict=True)) if len(set(both)) > 1)
    return _AmbiguousError(
        problem.format(shown(cell.words[at]), " or ".join(str(named(float(value))) for value in both))
    )


def _category(cell: Cell, learned: _Learned) -> Column | None:
    """A column with words; None where they make no category, which is noted."""
    numbers = cell.word_numbers
    is_word, is_number = numbers >= 0, cell.bits < MISSING
    n_words, n_numbers = int(np.count_nonzero(is_word)), int(np.count_nonzero(is_number))
    not_finite = [at for at, word in enumerate(cell.words) if is_meant_as_number(word)]
    if not_finite:
        raise fail_not_numbers(cell, np.isin(numbers, not_finite))
    if cell.has_words_beyond:
        _leave_out_text(cell, f"more than {len(cell.words):,}", n_words + n_numbers, learned)
        return None
    most = learned.options.max_categories
    texts, of_cell = cell.texts()
    counts = np.bincount(of_cell[of_cell >= 0], minlength=len(texts))
    if cell.name not in learned.options.categorical and not _may_be_category(cell, learned, texts, counts):
        return None
    order = sorted(range(len(texts)), key=lambda at: (-int(counts[at]), texts[at]))
    kept = sorted(texts[at] for at in order[:most])
    other = len(kept) < len(texts)
    learned.categories.append(f"{cell.name} ({f'{len(kept)} of ' if other else ''}{len(texts):,})")
    return Column(name=cell.name, kind=ColumnKind.CATEGORY, categories=tuple(kept), other=other)


def _may_be_category(cell: Cell, learned: _Learned, texts: list[str], counts: NDArray[np.int64]) -> bool:
    """Whether a column with words looks like a category; else that is noted, or raised where it is numbers with
    a few words among them. ``texts``: the different cells, of which there are this many."""
    numbers = cell.word_numbers
    is_word, most = numbers >= 0, learned.options.max_categories
    n_words, n_numbers = int(np.count_nonzero(is_word)), int(np.count_nonzero(cell.bits < MISSING))
    if n_numbers > n_words and len(texts) - len(cell.words) > most:
        raise fail_not_numbers(cell, is_word)
    dates = sum(int(counts[at]) for at, word in enumerate(cell.words) if _DATE.fullmatch(word))
    if 2 * dates > n_words:
        example = next(word for word in cell.words if _DATE.fullmatch(word))
        other = _unlike_the_others(cell)
        what = f"{shown(example)}) that are not all of one form ({shown(other)})"
        if example == other:
            what = f"{shown(example)}) of a form that is not read here, such as years of two digits"
        learned.problems.append(
            f"column {cell.name!r} has dates ({what}: write them alike, year first, or --drop {quoted(cell.name)}"
        )
        return False
    # Signs alone beside numbers are a missing one, or 0.
    unlike = (at for at, word in enumerate(cell.words) if hint_of(word) or (n_numbers and not re.search(r"\w", word)))
    if 2 * sum(int(counts[at]) for at in unlike) > n_words:
        raise fail_not_numbers(cell, is_word)
    if len(texts) > _FEWEST_TEXTS and 2 * len(texts) > n_words + n_numbers:
        _leave_out_text(cell, f"{len(texts):,}", n_words + n_numbers, learned)
        return False
    return True


def _unlike_the_others(cell: Cell) -> str:
    """Of dates that are not all in one order, the first that is not in that of those before, or else the first number
    beside them."""
    orders: Sequence[str] = ORDERS
    for word in cell.words:
        orders = [order for order in orders if days_of(word, order) is not None]
        if not orders:
            return word
    return cell.text_at(int(np.flatnonzero(cell.bits < MISSING)[0]))


def _leave_out_text(cell: Cell, n_different: str, n: int, learned: _Learned) -> None:
    """Notes a column in which most words differ: a problem where the user named it as a feature."""
    if learned.options.features is None:
        learned.texts.append(f"{cell.name} ({n_different})")
        return
    learned.problems.append(
        f"column {cell.name!r} has {n_different} different words in {n:,} rows ({shown(cell.words[0])}, …), no "
        f"categories: --drop {quoted(cell.name)}, or --id-column if it names the rows"
    )


def _remarks(learned: _Learned) -> list[str]:
    remarks = []
    if learned.missing:
        total = sum(learned.missing.values())
        what = {
            "median": "the column's median stands for a number, a feature of its own for a word",
            "zero": "0 stands for them",
            "indicator": "the column's median stands for a number, and a feature says that it is missing",
        }[learned.options.missing]
        cells = "1 cell is" if total == 1 else f"{total:,} cells are"
        remarks.append(f"{cells} missing ({counted(learned.missing)}): {what} (--missing)")
    if learned.categories:
        limit = f"; at most {learned.options.max_categories} have features of their own (--max-categories)"
        some = any(column.other for column in learned.columns)
        remarks.append(f"words, each a feature: {listed(learned.categories)}{limit if some else ''}")
    if learned.written:
        remarks.append(f"numbers: {listed(learned.written)}")
    if learned.dates:
        remarks.append(f"dates: {listed(learned.dates)}")
    if learned.texts:
        remarks.append(
            f"columns of text, whose words differ in most rows, are left out: {listed(learned.texts)} (--id-column "
            "takes one for the rows' names, --categorical for a category)"
        )
    if learned.keys:
        remarks.append(
            f"columns that name the rows are left out: {listed(learned.keys)} (--id-column takes one, --features-from "
            "has them as features)"
        )
    if learned.empty:
        remarks.append(f"columns without any value are left out: {listed(learned.empty)}")
    return remarks


def counted(counts: dict[str, int]) -> str:
    """Names with their counts, the highest first."""
    order = sorted(counts, key=lambda name: (-counts[name], name))
    some = ", ".join(f"{name} {counts[name]:,}" for name in order[:_MOST_NAMED])
    return some if len(order) <= _MOST_NAMED else f"{some}, … in {len(order):,} columns"
