"""Reads the columns that are not features: labels, queries, bags, costs and names of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm._support.naming import advice
from apsvm.data.tables.cells import Cells, text_of, word_of
from apsvm.data.tables.learning import fail_of
from apsvm.data.tables.roles import listed
from apsvm.data.tables.typed import not_numbers
from apsvm.data.tables.written_numbers import TRUTH

#: Words for the positive label, in lower case.
_POSITIVE = ("yes", "y", "t", "positive", "pos", "1", "fraud")


def labels_of(
    cells: Cells, label_words: tuple[str, ...] | None, positive: float | str | None
) -> tuple[NDArray[np.float64], tuple[str, ...], str]:
    """The labels (n,), the words that they stand for, if any, and a remark on the words.

    Two words become 0 and 1; 1 is the positive one, by custom ("yes") or because it is rarer. More words become 0, 1 …
    in alphabetical order.

    Parameters
    ----------
    label_words : the words of a model's labels; None in training
    positive : the positive label that the user named, in training

    Raises
    ------
    DataError : a label is missing, infinite, or a word that the model does not know
    """
    cells = cells.with_none()
    _refuse_missing(cells, cells.is_missing, "label", advice(" (--labelled-only)"))
    if cells.is_plain or not cells.words:
        if not label_words:
            return cells.plain_numbers().copy(), (), ""
    elif not label_words and all(word.lower() in TRUTH for word in cells.words):
        numbers = zip(cells.texts, cells.number_of.tolist(), strict=True)
        of_text = [TRUTH.get(text.lower(), number) for text, number in numbers]
        return np.array(of_text, dtype=np.float64)[cells.codes], (), ""
    texts, codes = [word_of(text) for text in cells.texts], cells.codes
    if label_words:
        unknown = [at for at, text in enumerate(texts) if text not in label_words]
        if unknown:
            row = int(np.flatnonzero(np.isin(codes, unknown))[0])
            raise cells.fail(row, f"expected a label of {listed(label_words)}, found {texts[codes[row]]!r}")
        return np.array([float(label_words.index(text)) for text in texts])[codes], label_words, ""
    is_word = np.isnan(cells.number_of)
    if label_words == () or not is_word.all():  # words and numbers: what would --positive-label 1 mean?
        raise fail_of(cells, not_numbers(cells.name, cells.counted(is_word), of_training=False))
    ordered, remark = _in_order(cells.name, texts, positive, cells.counts)
    return np.array([float(ordered.index(text)) for text in texts])[codes], ordered, remark


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


def numbered(cells: Cells, what: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The queries or bags (n,): their integers, or numbers in the order of appearance and the names that they stand
    for."""
    texts, codes = cells.as_they_stand
    _refuse_missing(cells, codes < 0, what)
    integers = _integers_of(texts)
    return (codes.astype(np.int64), tuple(texts)) if integers is None else (integers[codes], ())


def _integers_of(names: list[str]) -> NDArray[np.int64] | None:
    """The names as integers; None if one is written otherwise, as 000088 and 1.0 are."""
    try:
        values = [int(name) for name in names]
    except ValueError:
        return None
    same = all(str(value) == name and -(2**63) <= value < 2**63 for value, name in zip(values, names, strict=True))
    return np.array(values, dtype=np.int64) if same else None


def costs_of(cells: Cells) -> NDArray[np.float64]:
    """(n,) float64, at least 0. Raises DataError."""
    _refuse_missing(cells, cells.is_missing, "cost")
    if cells.words:
        raise fail_of(cells, not_numbers(cells.name, cells.counted(np.isnan(cells.number_of)), of_training=False))
    values = cells.plain_numbers().copy()
    if (values < 0).any():
        row = int(np.flatnonzero(values < 0)[0])
        raise cells.fail(row, f"expected a cost of at least 0, found {text_of(float(values[row]))}")
    return values


def keys_of(cells: Cells) -> NDArray[np.object_]:
    """(n,) the names of the rows, "" for an empty cell."""
    texts, codes = cells.as_they_stand
    return np.array([*texts, ""], dtype=object)[codes]


def _refuse_missing(cells: Cells, is_missing: NDArray[np.bool_], what: str, way: str = "") -> None:
    rows = np.flatnonzero(is_missing)
    if rows.size:
        text = cells.text_at(int(rows[0]))
        read = f" ({text!r} is read as an empty cell)" if text else ""
        count = f", like {rows.size:,} in all" if rows.size > 1 else ""
        raise cells.fail(int(rows[0]), f"this row has no {what}{read}{count}: leave it out{way}")
