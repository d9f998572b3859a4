"""Importance of each column of X: its share of the deviation of a fitted ranker's scores over training rows,

    importance of a column ∝ Σ_S sd(f_S(x_S)) / |S|  over the sets S of columns with it,

f_S being what the columns S give together (``data.features.additive``); they add up to 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm._support.types import Matrix
from apsvm.data.moments import column_moments
from apsvm.models.base import Ranker
from apsvm.models.columns import Columns

#: Rows looked at, evenly drawn.
MOST_ROWS = 1_000


def importances(model: Ranker, X: Matrix, columns: Columns | None) -> NDArray[np.float64] | None:
    """Importance of each feature on rows X (n, width), (n_features_in_,) float64: its share of the deviations of
    contributions. None where the map mixes all features at once.

    Parameters
    ----------
    columns : what the columns of a data frame became; None: features are columns
    """
    n = X.shape[0]
    rows = X if n <= MOST_ROWS else X[np.linspace(0, n - 1, MOST_ROWS).astype(np.int64)]
    per_feature = 1 if model.header.features.pool is None else model.header.features.columns_of_feature
    n_columns = model.width // per_feature
    column_of = np.arange(model.width) % n_columns
    if columns is not None:
        n_columns = len(columns.features)
        column_of = np.repeat(np.arange(n_columns), [column.width for column in columns.features])
    result = np.zeros(n_columns)
    if X.shape[1] != model.width:  # rows of bags that are pooled
        return None
    parts = model.linear_parts()
    alone = columns is None and per_feature == 1 and model.feature_map is None and not model.unit_rows
    if parts and alone:  # columns of words, of which there are many, are not spread out
        deviations = np.sqrt(column_moments(rows).variance)
        for part in parts:
            result += np.abs(part.coef) * deviations
        return _adding_up_to_one(result)
    for component in range(model.components):
        try:
            contributions = model.contributions(rows, component)
        except ValueError:
            return None
        sets = [frozenset(column_of[list(part)].tolist()) for part in contributions.parts.features]
        numbers: dict[frozenset[int], int] = {}
        of_part = np.array([numbers.setdefault(one, len(numbers)) for one in sets])
        gave = np.zeros((rows.shape[0], len(numbers)))
        for part, values in zip(of_part.tolist(), contributions[:].T, strict=True):
            gave[:, part] += values
        for one, deviation in zip(numbers, gave.std(axis=0).tolist(), strict=True):
            result[list(one)] += deviation / max(1, len(one))
    return _adding_up_to_one(result)


def _adding_up_to_one(result: NDArray[np.float64]) -> NDArray[np.float64]:
    total = float(result.sum())
    return result / total if total > 0.0 else result
