"""The columns of a table that are no features: labels, queries, bags, costs, and what its rows are called."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import DataError
from apsvm.data.tables.cells import MISSING, Cell, fail_not_numbers, is_not_finite, text_of
from apsvm.data.tables.parts import listed

#: Of two words the positive one, in any case.
_POSITIVE = ("yes", "y", "t", "positive", "pos", "1", "fraud")

_MOST_ROWS = 8


def labels_of(
    cell: Cell, known: tuple[str, ...] | None, positive: float | str | None = None
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
    cell = cell if known else cell.with_truth()
    infinite = [at for at, word in enumerate(cell.words) if is_not_finite(word)]
    if infinite:
        raise fail_not_numbers(cell, np.isin(cell.word_numbers, infinite))
    if not known and not cell.words:
        return cell.values, (), ""
    if known == ():
        raise fail_not_numbers(cell, cell.bits > MISSING)
    texts, numbers = cell.texts()
    if known:
        unknown = [at for at, text in enumerate(texts) if text not in known]
        if unknown:
            row = int(np.flatnonzero(np.isin(numbers, unknown))[0])
            raise cell.fail(row, f"expected a label of {listed(known)}, found {texts[numbers[row]]!r}")
        return np.array([float(known.index(text)) for text in texts])[numbers], known, ""
    if len(texts) > len(cell.words):  # words and numbers: what would --positive-label 1 mean?
        raise fail_not_numbers(cell, cell.bits > MISSING)
    words, remark = _in_order(cell.name, texts, positive, np.bincount(numbers, minlength=len(texts)))
    return np.array([float(words.index(text)) for text in texts])[numbers], words, remark


def _in_order(
    name: str, texts: list[str], said: float | str | None, counts: NDArray[np.int64]
) -> tuple[tuple[str, ...], str]:
    if len(texts) != 2:
        return tuple(sorted(texts)), ""
    if isinstance(said, str) and said in texts:
        return (next(text for text in texts if text != said), said), ""
    positive = [text for text in texts if text.lower() in _POSITIVE]
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
    """The words of the cell as integers, or None where one of them is no integer."""
    try:
        values = [int(word) for word in cell.words]
    except ValueError:
        return None
    fits = "_" not in "".join(cell.words) and all(-(2**63) <= value < 2**63 for value in values)
    return np.array(values, dtype=np.int64) if fits else None


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
        f"{what if rows.size == 1 else what.replace('has', 'have', 1)}"
    )
