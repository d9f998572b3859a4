"""Why a row stands where it does: the features that raised its score, in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import Dataset
from apsvm.models.kinds import WeightedRanker

#: What a number is written with in a reason.
_DIGITS = 4


def reasons_of(ranker: WeightedRanker, rows: Dataset, most: int) -> Iterator[list[str]]:
    """For each row the features that raised its score the most, above what the column's median in training would have
    given, or 0 where no median is known: name=value (+gave). Of several components those of the leading one.

    Raises
    ------
    ValueError : the feature map makes columns of several features at once
    """
    import scipy.sparse as sp

    names = ranker.features()
    usual = None if ranker.unit_rows else _usual(ranker)
    for at, component in enumerate(ranker.leading(rows.X).tolist()):
        x = rows.X[[at]]
        both = x if usual is None else np.vstack([x.toarray() if sp.issparse(x) else x, usual])
        gave = ranker.contributions(both, component)[:]
        raised = gave[0] if usual is None else gave[0] - gave[1]
        values = np.asarray(x.toarray() if sp.issparse(x) else x)[0]
        order = np.argsort(-raised, kind="stable")[:most]
        yield [_reason(names[j], float(values[j]), float(raised[j])) for j in order.tolist() if raised[j] > 0.0]


def _reason(name: str, value: float, raised: float) -> str:
    """A one-hot feature has its value in its name."""
    what = name if "=" in name and value == 1.0 else f"{name}={value:.{_DIGITS}g}"
    return f"{what} (+{raised:.{_DIGITS}g})"


def _usual(ranker: WeightedRanker) -> NDArray[np.float64] | None:
    """(1, width) the medians of the columns; 0 of what has none; None where rows are no table's."""
    features = ranker.header.features
    if features.columns is None or features.pool is not None:
        return None
    values: list[float] = []
    for column in features.columns.features:
        values += [column.fill or 0.0] + [0.0] * (column.width - 1)
    return np.array([values])
