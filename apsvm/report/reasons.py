"""Reasons for a row's score: the contributions of its features, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import Dataset
from apsvm.data.features.additive import ALL, Contributions
from apsvm.models.base import Model
from apsvm.models.columns import Column, ColumnKind, Columns, DatePart

#: Significant digits of a number in a reason.
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Reasons:
    """Contributions that add up to a score.

    Attributes
    ----------
    base : score of a row of training medians; of zeros if there are no medians
    features : table columns or features, in words, and their contributions above the base, largest first
    rest : contribution of all others; None without others
    """

    base: float
    features: list[tuple[str, float]]
    rest: float | None

    def all(self) -> Iterator[tuple[str, float]]:
        """Base, features and rest."""
        yield "base", self.base
        yield from self.features
        if self.rest is not None:
            yield "rest", self.rest

    def in_words(self) -> list[str]:
        """Each part with its contribution: name=value (+contribution)."""
        return [f"{words} ({contribution:+.{_DIGITS}g})" for words, contribution in self.all()]


def reasons_of(ranker: Model, rows: Dataset, most: int) -> Iterator[Reasons]:
    """Reasons for each row: the ``most`` table columns, or features, with the largest contributions. Features that
    contribute together have equal shares. A date's contribution that is the same for all rows (all are newer than
    training) is in the base. With several components, the leading one is explained.

    Raises
    ------
    ValueError : the feature map makes columns of all features at once
    """
    import scipy.sparse as sp

    names, (_, widths), medians = ranker.features(), ranker.table_columns(), _medians(ranker)
    columns = ranker.header.features.columns if ranker.header.features.pool is None else None
    first_of = np.concatenate([[0], np.cumsum(widths)])
    each = [of_rows.dealt_to(widths) for of_rows in ranker.contributions(rows.X)]
    bases = [np.zeros(of_rows.shape[1]) for of_rows in each]
    if medians is not None:
        bases = [of_medians.dealt_to(widths)[:][0] for of_medians in ranker.contributions(medians)]
    if columns is not None and rows.X.shape[0] > 1:
        for of_rows, base_of in zip(each, bases, strict=True):
            _add_shared_dates(of_rows, base_of, columns)
    for at, component in enumerate(ranker.leading(rows.X).tolist()):
        x, gains = rows.X[[at]], each[component][at : at + 1][0] - bases[component]
        values = np.asarray(x.toarray() if sp.issparse(x) else x)[0]
        order = np.argsort(-np.abs(gains), kind="stable")
        order = order[gains[order] != 0.0]
        features = [(_words(j, first_of, values, names, columns), float(gains[j])) for j in order[:most].tolist()]
        base = each[component].base + float(bases[component].sum())
        yield Reasons(base, features, float(gains[order[most:]].sum()) if order.size > most else None)


def _words(
    at: int, first_of: NDArray[np.int64], values: NDArray[np.float64], names: Sequence[str], columns: Columns | None
) -> str:
    """The value of a column or feature in a row, in words."""
    if at == first_of.size - 1:
        return ALL
    first, end = int(first_of[at]), int(first_of[at + 1])
    column = None if columns is None else columns.features[at]
    if column is None or column.kind is ColumnKind.NUMBER:
        is_missing = end - first > 1 and values[end - 1] == 1.0
        return names[end - 1] if is_missing else _feature(names[first], float(values[first]))
    if column.missing and values[end - 1] == 1.0:
        return names[end - 1]
    if column.kind is ColumnKind.DATE:
        return f"{column.name}={_date(column, values[first:end])}"
    has = np.flatnonzero(values[first:end] == 1.0)
    return names[first + int(has[0])] if has.size else f"{column.name} of an unknown word"


def _date(column: Column, values: NDArray[np.float64]) -> str:
    """A date and its time of day, as far as the column's features have them. One that is not older than the newest of
    training is given as that day or later, with its weekday."""
    words, at = [], 0
    for part in column.parts:
        of_part = values[at : at + len(part.features())]
        at += of_part.size
        if part is DatePart.AGE:
            day = np.datetime64(math.floor(column.newest - of_part[0]), "D")
            words.append(str(day) if of_part[0] > 0.0 else f"{day} or later,")
        elif part is DatePart.WEEKDAY and values[0] <= 0.0:
            words += [name.rpartition("=")[2] for name, is_day in zip(part.features(), of_part, strict=True) if is_day]
        elif part is DatePart.HOUR:
            minutes = round(math.atan2(*of_part) / math.tau * 1440.0) % 1440
            words.append(f"{minutes // 60:02d}:{minutes % 60:02d}")
    return " ".join(words).removesuffix(",")


def _add_shared_dates(of_rows: Contributions, base: NDArray[np.float64], columns: Columns) -> None:
    """Puts contributions of date columns that are the same for all rows into ``base``."""
    is_date = np.array([column.kind is ColumnKind.DATE for column in columns.features] + [False])
    if is_date.any():
        ends = np.array([(block.min(axis=0), block.max(axis=0)) for block in of_rows.blocks()])
        low, high = ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)
        is_shared = is_date & np.isclose(low, high, rtol=1e-9, atol=1e-12)
        base[is_shared] = low[is_shared]


def _feature(name: str, value: float) -> str:
    """The text of a feature; one-hot features have their value in the name."""
    text = f"{value:.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.{_DIGITS}g}"
    return name if "=" in name and value == 1.0 else f"{name}={text}"


def _medians(ranker: Model) -> NDArray[np.float64] | None:
    """(1, width) medians of the columns, 0 without one; None without a table, or with rows divided by their length."""
    features = ranker.header.features
    if features.columns is None or features.pool is not None or ranker.unit_rows:
        return None
    values: list[float] = []
    for column in features.columns.features:
        values += [column.fill or 0.0] + [0.0] * (column.width - 1)
    return np.array([values])
