"""Why a row stands where it does: what its features gave to its score, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import Dataset
from apsvm.data.features.additive import together
from apsvm.models.base import Model

#: What a number is written with in a reason.
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Reasons:
    """What adds up to a score.

    Attributes
    ----------
    base : the score of a usual row, which has the columns' medians in training, or 0 where no median is known
    features : features, alone or together, in words, and what they gave above that, the most first
    rest : what the others gave; None where there are none
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
        """Of what they gave, the base included."""
        return max(abs(gave) for _, gave in self.all())

    def in_words(self) -> list[str]:
        """Each with what it gave: name=value (+gave)."""
        return [f"{words} ({_number(gave)})" for words, gave in self.all()]


def reasons_of(ranker: Model, rows: Dataset, most: int) -> Iterator[Reasons]:
    """For each row, with the features that gave the ``most`` in either direction. Of several components those of the
    leading one.

    Raises
    ------
    ValueError : the feature map makes columns of all features at once
    """
    import scipy.sparse as sp

    names = ranker.features()
    usual = None if ranker.unit_rows else _usual(ranker)
    for at, component in enumerate(ranker.leading(rows.X).tolist()):
        x = rows.X[[at]]
        both = x if usual is None else np.vstack([x.toarray() if sp.issparse(x) else x, usual])
        contributions = ranker.contributions(both, component)
        parts, base, gave = contributions.parts.features, contributions.base, contributions[:]
        if usual is not None:
            base += float(gave[1].sum())
            gave = gave[:1] - gave[1]
        values = np.asarray(x.toarray() if sp.issparse(x) else x)[0]
        order = np.argsort(-np.abs(gave[0]), kind="stable")
        order = order[gave[0][order] != 0.0]
        features = [
            (together([_feature(names[i], float(values[i])) for i in parts[j]], len(names)), float(gave[0][j]))
            for j in order[:most].tolist()
        ]
        yield Reasons(base, features, float(gave[0][order[most:]].sum()) if order.size > most else None)


def _feature(name: str, value: float) -> str:
    """A one-hot feature has its value in its name."""
    return name if "=" in name and value == 1.0 else f"{name}={value:.{_DIGITS}g}"


def _number(gave: float) -> str:
    return f"{gave:+.{_DIGITS}g}"


def _usual(ranker: Model) -> NDArray[np.float64] | None:
    """(1, width) the medians of the columns; 0 of what has none; None where rows are no table's."""
    features = ranker.header.features
    if features.columns is None or features.pool is not None:
        return None
    values: list[float] = []
    for column in features.columns.features:
        values += [column.fill or 0.0] + [0.0] * (column.width - 1)
    return np.array([values])
