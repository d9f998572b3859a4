"""Reasons for a row's score: the contributions of its features, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import Dataset
from apsvm.data.features.additive import ALL
from apsvm.models.base import Model
from apsvm.models.columns import ColumnKind, Columns

#: Significant digits of a number in a reason.
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Reasons:
    """Contributions that add up to a score.

    Attributes
    ----------
    base : score of a row of training medians; 0 if no median is known
    features : table columns or features, in words, and their contributions above the base, largest first
    rest : contribution of all others; None if there are none
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

    @property
    def largest(self) -> float:
        """Largest absolute contribution, including the base."""
        return max(abs(gave) for _, gave in self.all())

    def in_words(self) -> list[str]:
        """Each part with its contribution: name=value (+contribution)."""
        return [f"{words} ({_number(gave)})" for words, gave in self.all()]


def reasons_of(ranker: Model, rows: Dataset, most: int) -> Iterator[Reasons]:
    """Reasons for each row: the ``most`` table columns, or features, with the largest contributions. Features that
    contribute together have equal shares. With several components, the leading one is explained.

    Raises
    ------
    ValueError : the feature map makes columns of all features at once
    """
    import scipy.sparse as sp

    names, widths, usual = ranker.features(), ranker.column_widths(), _usual(ranker)
    columns = ranker.header.features.columns if ranker.header.features.pool is None else None
    first_of = np.concatenate([[0], np.cumsum(widths)])
    each = [ranker.contributions(rows.X, component).dealt_to(widths) for component in range(ranker.components)]
    usually = [
        np.zeros(of_rows.shape[1]) if usual is None else ranker.contributions(usual, component).dealt_to(widths)[:][0]
        for component, of_rows in enumerate(each)
    ]
    for at, component in enumerate(ranker.leading(rows.X).tolist()):
        x, gave = rows.X[[at]], each[component][at : at + 1][0] - usually[component]
        values = np.asarray(x.toarray() if sp.issparse(x) else x)[0]
        order = np.argsort(-np.abs(gave), kind="stable")
        order = order[gave[order] != 0.0]
        features = [(_words(j, first_of, values, names, columns), float(gave[j])) for j in order[:most].tolist()]
        base = each[component].base + float(usually[component].sum())
        yield Reasons(base, features, float(gave[order[most:]].sum()) if order.size > most else None)


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
    if column.order == "time":
        sine, cosine = values[first : first + 2]
        minutes = round(float(np.arctan2(sine, cosine)) / (2.0 * np.pi) * 1440.0) % 1440
        return f"{column.name} {minutes // 60:02d}:{minutes % 60:02d}"
    if column.kind is ColumnKind.DATE:
        return f"{column.name} {float(values[first]):.{_DIGITS}g} days before the newest"
    has = np.flatnonzero(values[first:end] == 1.0)
    return names[first + int(has[0])] if has.size else f"{column.name} of an unknown word"


def _feature(name: str, value: float) -> str:
    """The text of a feature; one-hot features have their value in the name."""
    return name if "=" in name and value == 1.0 else f"{name}={value:.{_DIGITS}g}"


def _number(gave: float) -> str:
    return f"{gave:+.{_DIGITS}g}"


def _usual(ranker: Model) -> NDArray[np.float64] | None:
    """(1, width) medians of the columns, 0 without one; None if rows are no table's, or divided by their length."""
    features = ranker.header.features
    if features.columns is None or features.pool is not None or ranker.unit_rows:
        return None
    values: list[float] = []
    for column in features.columns.features:
        values += [column.fill or 0.0] + [0.0] * (column.width - 1)
    return np.array([values])
